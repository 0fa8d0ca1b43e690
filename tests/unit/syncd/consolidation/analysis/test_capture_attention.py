"""What needs attention among captures: copies, contradictions, tags, and that nothing else changes what is found."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.encoders.word_frequency import word_ranks
from index.model import DocumentOverview
from index.search import vector_similarity
from index.text import similarity_sketch
from syncd.consolidation.analysis import capture_attention
from syncd.consolidation.analysis.contradiction_rules import RULES
from syncd.consolidation.analysis.contradictions import NoteClaims, find_contradictions
from syncd.consolidation.analysis.duplicates import find_duplicate
from syncd.consolidation.analysis.findings import key_of
from syncd.consolidation.analysis.sentence_claims import Claims
from tests.bench.consolidate import pairs
from tests.support.example_counts import examples

DAY = 86_400_000
NOTES = [
    note
    for name in ("contradictions", "apart", "again")
    for pair in pairs(name)[::4]
    for note in (pair.older, pair.newer)
]


def noted(number, title, text, *, tags=(), at=None):
    """A capture; `text` goes along as its hash."""
    return DocumentOverview(
        id=f"n{number:03}",
        key=f"k{number:03}",
        path=f"Captures/default/{number}/{title}.md",
        title=title,
        type="note",
        tags=tuple(tags),
        source=None,
        created_at=at if at is not None else number * DAY,
        updated_at=None,
        content_hash=text,
    )


def found(captures):
    """What comparing these notes finds, by their words alone."""
    captures = sorted(captures, key=lambda one: one.id)
    texts = lambda numbers: {n: captures[n].content_hash for n in numbers}  # noqa: E731 - a value
    made = [similarity_sketch.make_sketch(one.content_hash) for one in captures]
    nobody = np.empty((0, vector_similarity.MUTUAL), np.int64), np.empty((0, vector_similarity.MUTUAL), np.float32)
    near = capture_attention.choose_pairs(made, [], nobody, lambda: None)
    return capture_attention.compare_pairs(
        "default", captures, near, texts, word_ranks(), common=similarity_sketch.find_frequent(made)
    )


def proposals(captures):
    """All of it."""
    told = found(captures)
    return (*told.duplicates, *told.near, *told.supersedes)


@functools.cache
def everything():
    return proposals([noted(n, *note) for n, note in enumerate(NOTES)])


@functools.cache
def reader():
    return Claims(word_ranks())


def said(title, text):
    return NoteClaims.of(*reader().read(title, text))


@given(st.randoms(use_true_random=False))
@examples(4)
def test_the_same_notes_in_any_order_give_the_same_findings(dice):
    shuffled = [noted(n, *note) for n, note in enumerate(NOTES)]
    dice.shuffle(shuffled)
    assert proposals(shuffled) == everything()
    assert len(everything()) > 5


def test_a_note_that_shares_nothing_with_others_changes_no_finding():
    captures = [noted(n, *note) for n, note in enumerate(NOTES)]
    strange = noted(900, "Zzyzx", "Qwrtpl vbnmx ghjkl wqzrt.")
    assert proposals([*captures, strange]) == everything()


def test_a_key_tells_what_would_be_done_and_nothing_else():
    older, newer = pairs("contradictions")[0].older, pairs("contradictions")[0].newer
    [one] = proposals([noted(1, *older), noted(2, *newer)])
    [edited] = proposals([noted(1, *older), replace(noted(2, *newer), content_hash=newer[1] + "\n\nSo be it.")])
    assert one.key == edited.key
    assert one.hashes != edited.hashes
    [turned] = proposals([noted(1, *older, at=9 * DAY), noted(2, *newer)])
    assert turned.ids == one.ids[::-1]
    assert turned.key != one.key
    assert key_of("a", "relate", ("b", "c"), ()) != key_of("a", "relate", ("b",), ("c",))
    assert key_of("a", "relate", ("b",), ()) != key_of("b", "relate", ("b",), ())


@pytest.mark.parametrize("pair", pairs("contradictions")[::4], ids=lambda pair: pair.newer[0])
def test_what_a_newer_note_says_otherwise_is_quoted_from_both(pair):
    against = find_contradictions(said(*pair.older), said(*pair.newer))
    for one in against:
        assert one.older in pair.older[1].replace("`", "")
        assert one.newer in pair.newer[1].replace("`", "")
    assert against


@pytest.mark.parametrize(("name", "count"), [("", 38), ("later-", 8), ("last-", 11)])
def test_of_the_planted_contradictions_as_many_are_known_as_the_thresholds_were_chosen_for(name, count):
    def known(pairs):
        return [pair.newer[0] for pair in pairs if find_contradictions(said(*pair.older), said(*pair.newer))]

    assert len(known(pairs(f"{name}contradictions"))) == count
    assert known(pairs(f"{name}apart")) == []


def test_a_finding_names_the_rule_that_decided_it():
    decided = {
        each.rule
        for pair in pairs("contradictions")
        for each in find_contradictions(said(*pair.older), said(*pair.newer))
    }
    assert decided == {rule.name for rule in RULES}


@pytest.mark.parametrize("pair", [*pairs("apart")[::3], *pairs("last-apart")[::2]], ids=lambda pair: pair.newer[0])
def test_notes_about_two_things_of_a_kind_are_neither_contrary_nor_the_same(pair):
    older, newer = said(*pair.older), said(*pair.newer)
    assert find_contradictions(older, newer) == ()
    assert find_duplicate((pair.older[1], older), (pair.newer[1], newer)) is None


@pytest.mark.parametrize("note", NOTES[::7], ids=lambda note: note[0])
def test_a_note_is_never_contrary_to_itself(note):
    assert find_contradictions(said(*note), said(*note)) == ()


def test_the_same_words_are_a_copy_of_the_oldest():
    text = "The gateway keeps packets on its flash while the uplink is down, and sends them once it is back."
    told = found([noted(3, "Uplink", text), noted(1, "Gateway", text), noted(2, "Flash", f"**{text}**")])
    assert sorted(one.ids for one in told.duplicates) == [("n001", "n002"), ("n001", "n003")]
    assert told.near == told.supersedes == ()


def test_forms_that_were_filled_in_are_no_copies_though_most_words_are_the_same():
    form = "Choose it under Appearance and restart the editor. It has icons for tasks, questions, quotes and bookmarks."
    themes = [
        noted(n, f"{name} colours", f"{name} by {name.lower()}. {form}") for n, name in enumerate(("Ochre", "Birch"))
    ]
    assert found(themes).near == ()
    words = ("Ochre", "Birch", "Slate", "Plum", "Moss")
    sheets = [
        noted(n, f"{word} for {word.lower()} walls", f"{form} Seen twice {word}.") for n, word in enumerate(words)
    ]
    assert found(sheets).near == ()


def test_a_word_tells_less_the_more_notes_have_it():
    common = similarity_sketch.find_frequent([similarity_sketch.make_sketch(f"station {n}") for n in range(96)])
    assert (common.distinctiveness("station"), common.distinctiveness("95"), common.distinctiveness("heron")) == (
        0.5,
        1.0,
        1.0,
    )


def test_a_reason_is_told_in_the_words_of_the_notes():
    def reason(one, other):
        [told] = found(
            [
                noted(1, "Vet", f"Pepper's vet in Hainweg {one}."),
                noted(2, "Vet moved", f"Pepper's vet in Hainweg {other}."),
            ]
        ).supersedes
        return told.reason

    assert (
        reason("opens on Tuesday at 9:00", "opens on Friday at 9:00")
        == "the newer says “Friday” where the older says “Tuesday”"
    )
    assert reason("takes rabbits", "does not take rabbits now") == "the newer note denies what the older one affirms"


def test_an_old_note_that_was_edited_since_is_not_called_superseded():
    pair = pairs("contradictions")[0]
    older, newer = noted(1, *pair.older), noted(2, *pair.newer)
    assert found([older, newer]).supersedes
    assert not found([replace(older, updated_at=5 * DAY), newer]).supersedes


def test_many_notes_that_say_the_same_of_other_figures_are_a_log():
    notes = [
        noted(n, f"Uplink {chr(97 + n)}", f"The uplink of the harbour gateway loses {n + 2} percent.") for n in range(5)
    ]
    assert found(notes[:2]).supersedes
    assert not found(notes).supersedes


def test_no_secret_is_quoted():
    key = "sk-ant-api03-" + "aB3dE6gH9" * 10
    notes = [
        noted(1, "Token", f"The staging gateway uses the token {key} and port 80."),
        noted(2, "Token", f"The staging gateway uses the token {key} and port 90."),
    ]
    told = repr([(one.reason, one.quotes) for one in proposals(notes)])
    assert key not in told
    assert "staging gateway" in told


def test_what_nobody_changed_or_linked_is_unused():
    captures = [noted(n, f"Note {n}", "x", at=0) for n in range(5)]
    captures[1] = replace(captures[1], updated_at=DAY)
    captures[4] = replace(captures[4], type="file")
    now = 400 * DAY
    told = capture_attention.find_unused("default", captures, linked={"n002"}, now=now)
    assert {one.ids for one in told} == {("n000",), ("n003",)}
    assert not capture_attention.find_unused("default", captures, linked=(), now=100 * DAY)


def test_work_is_broken_off_between_batches():
    captures = [noted(n, *note) for n, note in enumerate(NOTES)]
    made = [similarity_sketch.make_sketch(one.content_hash) for one in captures]
    nobody = np.empty((0, 1), np.int64), np.empty((0, 1), np.float32)

    class Stopped(Exception):
        pass

    def stop():
        raise Stopped

    with pytest.raises(Stopped):
        capture_attention.choose_pairs(made, [], nobody, stop)
    with pytest.raises(Stopped):
        capture_attention.compare_pairs(
            "default",
            captures,
            np.array([[0, 1]]),
            lambda _: {},
            word_ranks(),
            common=similarity_sketch.find_frequent(made),
            go_on=stop,
        )


def test_pairs_beyond_the_bound_are_told():
    captures = [noted(n, *note) for n, note in enumerate(NOTES)]
    every = np.array([[0, 1], [2, 3], [4, 5]])
    told = capture_attention.compare_pairs(
        "default", captures, every, lambda _: {}, word_ranks(), common=similarity_sketch.find_frequent([]), looked_at=2
    )
    assert told.left_out == 1


def test_tags_of_captures_become_proposals():
    captures = [noted(n, f"{n}", "x", tags=("kubernetes",) if n < 3 else ("k8s",)) for n in range(4)]
    [one] = capture_attention.find_tag_synonyms("default", captures, word_ranks())
    assert (one.kind, one.would, one.ids) == ("tag-merge", ("kubernetes", "k8s"), ())
    assert "3 captures have kubernetes, 1 capture has k8s" in one.reason
