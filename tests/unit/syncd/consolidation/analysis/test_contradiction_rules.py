"""Each rule and objection decides at its threshold: a row for each, just on one side of it and just on the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from syncd.consolidation.analysis.contradiction_rules import (
    INSTEAD,
    IS,
    IS_NOT,
    LIMITS,
    OVER,
    RULES,
    Evidence,
    Overlap,
    find_objection,
    find_rule,
    score_evidence,
)
from syncd.consolidation.analysis.sentence_claims import Claim

BIT = 0.001


def claim(text="the gateway runs", **flags):
    """A claim of two words that are worth 2."""
    empty = {"negated": False, "denied": frozenset(), "changed": False, "instead": False, "over": False, "once": False}
    words = {"gateway": 1.0, "run": 1.0}
    return Claim(**{"text": text, "words": words, "values": (), "new": False, **empty, **flags})


def overlap(older=None, newer=None, **facts):
    """Two claims that say the same but for what is asked for."""
    same = {"shared": frozenset({"gateway", "run"}), "both": 2.0, "subject": 2.0}
    flags = {"anchored": False, "agreed": True, "changed": False, "loose": False}
    return Overlap(**{"older": older or claim(), "newer": newer or claim(), **same, **flags, **facts})


def evidence(common=None, **facts):
    """Claims that differ in nothing but for what is asked for."""
    nothing = {"older_only": {}, "newer_only": {}, "differs": False, "conflict": None}
    flags = {"special": False, "rare": True, "many": False}
    return Evidence(**{"overlap": common or overlap(), **nothing, **flags, **facts})


SURE = overlap(newer=claim(changed=True), changed=True)
LONG = claim(words={"gateway": 1.0, "run": 1.0, "cellar": 2.0})
NAMED = LIMITS.support_loose * LIMITS.support


@pytest.mark.parametrize(
    ("without", "against", "name"),
    [
        pytest.param(
            overlap(subject=LIMITS.support),
            overlap(subject=LIMITS.support - BIT),
            "they have too little in common",
            id="support",
        ),
        pytest.param(
            overlap(subject=LIMITS.support - LIMITS.anchor, anchored=True),
            overlap(subject=LIMITS.support - LIMITS.anchor - BIT, anchored=True),
            "they have too little in common",
            id="an equal sentence supports it",
        ),
        pytest.param(
            replace(SURE, subject=LIMITS.support * LIMITS.support_sure),
            replace(SURE, subject=LIMITS.support * LIMITS.support_sure - BIT),
            "they have too little in common",
            id="less support where a change is told and one claim is whole",
        ),
        pytest.param(
            replace(SURE, subject=1.0, both=2 * LIMITS.whole),
            replace(SURE, subject=1.0, both=2 * LIMITS.whole - BIT),
            "they have too little in common",
            id="whole",
        ),
        pytest.param(
            replace(SURE, subject=1.0),
            replace(SURE, subject=1.0, agreed=False),
            "they have too little in common",
            id="less support only where the titles agree",
        ),
        pytest.param(overlap(), overlap(shared=frozenset()), "they have too little in common", id="no word"),
        pytest.param(
            overlap(claim(once=True), claim(once=True, changed=True)),
            overlap(claim(once=True), claim(once=True)),
            "each describes one occasion",
            id="two occasions",
        ),
        pytest.param(
            overlap(claim(once=True)),
            overlap(claim(once=True), claim(once=True)),
            "each describes one occasion",
            id="an occasion and a state",
        ),
        pytest.param(
            overlap(loose=True, changed=True, both=NAMED),
            overlap(loose=True, changed=True, both=NAMED - BIT),
            "the titles may name two things",
            id="two titles",
        ),
        pytest.param(
            overlap(loose=True, anchored=True),
            overlap(loose=True),
            "the titles may name two things",
            id="two titles over an equal sentence",
        ),
    ],
)
def test_an_objection_is_made_just_below_its_threshold(without, against, name):
    assert find_objection(without) == ""
    assert find_objection(against) == name


VALUE = {"conflict": ("8", "9"), "differs": True}
APART = {"older_only": {"old": 1.0}, "newer_only": {"new": 1.0}}


def parallel(share, **facts):
    """Claims of which each says so much, of what both say, that the other does not."""
    return evidence(older_only={"old": 2 * share}, newer_only={"new": 9.0}, **facts)


@pytest.mark.parametrize(
    ("holds", "fails"),
    [
        pytest.param(evidence(**VALUE), evidence(differs=True), id="only one can be right"),
        pytest.param(
            evidence(replace(SURE, both=2 * LIMITS.alike), **VALUE),
            evidence(replace(SURE, both=2 * LIMITS.alike - BIT), **VALUE),
            id="alike",
        ),
        pytest.param(
            evidence(overlap(LONG, both=3 * LIMITS.mutual), **VALUE),
            evidence(overlap(LONG, both=3 * LIMITS.mutual - BIT), **VALUE),
            id="mutual",
        ),
        pytest.param(evidence(**VALUE), evidence(rare=False, **VALUE), id="a word that few notes have"),
        pytest.param(evidence(**VALUE), evidence(special=True, **VALUE), id="what a title names"),
        pytest.param(evidence(SURE, special=True, rare=False, **VALUE), evidence(special=True, **VALUE), id="a change"),
        pytest.param(parallel(LIMITS.parallel, **VALUE), parallel(LIMITS.parallel + BIT, **VALUE), id="parallel"),
        pytest.param(
            parallel(LIMITS.parallel_changed, common=SURE, **VALUE),
            parallel(LIMITS.parallel_changed + BIT, common=SURE, **VALUE),
            id="parallel where a change is told",
        ),
        pytest.param(
            parallel(LIMITS.parallel, common=SURE, many=True, **VALUE),
            parallel(LIMITS.parallel + BIT, common=SURE, many=True, **VALUE),
            id="parallel in long notes",
        ),
        pytest.param(
            evidence(many=True, **VALUE), evidence(overlap(agreed=False), many=True, **VALUE), id="long notes agree"
        ),
        pytest.param(evidence(overlap(agreed=False), **VALUE), evidence(overlap(agreed=False)), id="short notes"),
    ],
)
def test_another_value_contradicts(holds, fails):
    assert find_rule(holds).name == "another value"
    assert find_rule(holds).difference(holds) == ("8", "9")
    assert find_rule(fails) is None


NO = claim("the gateway does not run", negated=True, denied=frozenset({"run"}))
DENIED = overlap(newer=NO)
ENDED = overlap(newer=claim(over=True))
REPLACED = overlap(newer=claim(instead=True))
HEAVY = claim(words={"gateway": 1.0, "run": 9.0})


@pytest.mark.parametrize(
    ("name", "holds", "fails"),
    [
        pytest.param("denied", evidence(DENIED), evidence(overlap(NO, NO)), id="a claim is denied"),
        pytest.param("denied", evidence(DENIED), evidence(replace(DENIED, agreed=False)), id="under titles that agree"),
        pytest.param("denied", evidence(DENIED), evidence(DENIED, many=True), id="in short notes"),
        pytest.param("denied", evidence(DENIED), evidence(DENIED, differs=True), id="of equal values"),
        pytest.param("denied", evidence(DENIED), evidence(overlap(claim(instead=True), NO)), id="by no replacement"),
        pytest.param(
            "denied",
            evidence(DENIED),
            evidence(overlap(newer=replace(NO, denied=frozenset({"cellar"})))),
            id="in a word that it has",
        ),
        pytest.param(
            "denied",
            evidence(replace(DENIED, both=2 * LIMITS.denied)),
            evidence(replace(DENIED, both=2 * LIMITS.denied - BIT)),
            id="denied: alike",
        ),
        pytest.param(
            "denied",
            evidence(overlap(LONG, NO, both=3 * LIMITS.mutual)),
            evidence(overlap(LONG, NO, both=3 * LIMITS.mutual - BIT)),
            id="denied: mutual",
        ),
        pytest.param(
            "denied",
            parallel(LIMITS.parallel, common=DENIED),
            parallel(LIMITS.parallel + BIT, common=DENIED),
            id="denied: parallel",
        ),
        pytest.param(
            "denied",
            evidence(overlap(newer=replace(NO, text="不在", changed=True))),
            evidence(overlap(newer=replace(NO, text="不在"))),
            id="denied: a syllable is not always a not",
        ),
        pytest.param(
            "ended", evidence(ENDED), evidence(overlap(claim(over=True), claim(over=True))), id="ended before"
        ),
        pytest.param("ended", evidence(ENDED), evidence(ENDED, many=True), id="ended in short notes"),
        pytest.param(
            "ended",
            evidence(replace(ENDED, both=2 * LIMITS.alike)),
            evidence(replace(ENDED, both=2 * LIMITS.alike - BIT)),
            id="ended: alike",
        ),
        pytest.param(
            "ended",
            evidence(overlap(newer=claim(over=True, words={"run": 1.0}), both=LIMITS.turned * LIMITS.support)),
            evidence(overlap(newer=claim(over=True, words={"run": 1.0}), both=LIMITS.turned * LIMITS.support - BIT)),
            id="ended: support",
        ),
        pytest.param(
            "replaced",
            evidence(replace(REPLACED, both=2 * LIMITS.instead)),
            evidence(replace(REPLACED, both=2 * LIMITS.instead - BIT)),
            id="replaced: share of the older claim",
        ),
        pytest.param(
            "replaced",
            evidence(overlap(claim(words={"run": 1.0}), REPLACED.newer, both=LIMITS.support)),
            evidence(overlap(claim(words={"run": 1.0}), REPLACED.newer, both=LIMITS.support - BIT)),
            id="replaced: support",
        ),
        pytest.param(
            "replaced", evidence(REPLACED), evidence(overlap(claim(instead=True), REPLACED.newer)), id="replaced before"
        ),
        pytest.param("replaced", evidence(REPLACED), evidence(overlap(NO, REPLACED.newer)), id="replaced: not denied"),
        pytest.param("replaced", evidence(REPLACED), evidence(REPLACED, many=True), id="replaced in short notes"),
        pytest.param(
            "renamed",
            evidence(replace(SURE, both=2 * LIMITS.renamed_end), older_only={"db-7": 0.7}, newer_only={"new": 1.0}),
            evidence(replace(SURE, both=2 * LIMITS.renamed_end), older_only={"gateway": 1.0}, newer_only={"new": 1.0}),
            id="renamed: a name of letters and figures is no word in the middle",
        ),
        pytest.param("renamed", evidence(SURE, **APART), evidence(**APART), id="a change is told"),
        pytest.param("renamed", evidence(SURE, **APART), evidence(SURE, newer_only={"new": 1.0}), id="the older name"),
        pytest.param("renamed", evidence(SURE, **APART), evidence(SURE, older_only={"old": 1.0}), id="the newer name"),
        pytest.param("renamed", evidence(SURE, **APART), evidence(SURE, differs=True, **APART), id="of equal values"),
        pytest.param(
            "renamed",
            evidence(replace(SURE, subject=LIMITS.support), **APART),
            evidence(replace(SURE, subject=LIMITS.support - BIT), **APART),
            id="renamed: support",
        ),
        pytest.param(
            "renamed",
            evidence(replace(SURE, newer=HEAVY, subject=10 * LIMITS.renamed_subject), **APART),
            evidence(replace(SURE, newer=HEAVY, subject=10 * LIMITS.renamed_subject - BIT), **APART),
            id="renamed: subject",
        ),
        pytest.param(
            "renamed",
            evidence(replace(SURE, both=2 * LIMITS.renamed), older_only={"gateway": 1.0}, newer_only={"new": 1.0}),
            evidence(
                replace(SURE, both=2 * LIMITS.renamed - BIT), older_only={"gateway": 1.0}, newer_only={"new": 1.0}
            ),
            id="renamed in the middle",
        ),
        pytest.param(
            "renamed",
            evidence(replace(SURE, both=2 * LIMITS.renamed_end), older_only={"run": 1.0}, newer_only={"new": 1.0}),
            evidence(
                replace(SURE, both=2 * LIMITS.renamed_end - BIT), older_only={"run": 1.0}, newer_only={"new": 1.0}
            ),
            id="renamed at the end",
        ),
        pytest.param(
            "renamed",
            evidence(SURE, **APART),
            evidence(replace(SURE, shared=frozenset({"run"})), **APART),
            id="renamed: they begin alike",
        ),
    ],
)
def test_a_rule_holds_just_above_its_threshold(name, holds, fails):
    assert find_rule(holds).name == name
    assert find_rule(fails) is None


def test_what_differs_is_said_in_the_words_of_the_rule():
    said = {
        "denied": (evidence(DENIED), IS_NOT),
        "ended": (evidence(ENDED), OVER),
        "replaced": (evidence(REPLACED), INSTEAD),
        "renamed": (evidence(SURE, **APART), ("old", "new")),
    }
    for name, (each, difference) in said.items():
        assert (find_rule(each).name, find_rule(each).difference(each)) == (name, difference)
    again = evidence(overlap(NO))
    assert find_rule(again).difference(again) == IS
    assert [each.name for each in RULES] == ["another value", *said]


def test_a_finding_is_surer_the_more_is_shared_and_where_a_change_is_told():
    assert score_evidence(evidence(overlap(subject=4.0))) == 0.85
    assert score_evidence(evidence(overlap(subject=4.0, changed=True))) == 1.0
    assert score_evidence(evidence(overlap(both=1.0, subject=2.0))) == 0.7
    assert score_evidence(parallel(0.5, common=overlap(subject=9.0))) == 0.8
