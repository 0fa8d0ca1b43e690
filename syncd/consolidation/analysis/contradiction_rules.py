"""Decide by rules whether two claims contradict each other: the evidence as values, the objections and rules as tables.

Laws, tested: each threshold decides where its field says; a finding carries the name of the rule that decided it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from syncd.consolidation.analysis.sentence_claims import WIDE, Claim

# Differences between two claims that are not words of the claims.
IS: Final = ("not so", "so")
IS_NOT: Final = ("so", "not so")
OVER: Final = ("so", "over")
INSTEAD: Final = ("so", "something else")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Sets when two claims are compared, are about one thing, and contradict each other.

    The worth of words is what they say about a topic: a noun that few notes have is worth about 1. The values were
    chosen on the tuning half of the pairs in `tests/bench/planted/`. With them `tests.bench --only consolidate`
    finds 57 of the 76 contradictions of all four sets, and no false ones. Each field's comment gives these two
    figures for other values of the field, all other fields unchanged."""

    touching: float = 0.4  # share of the worth of the lighter claim: 57 at 0.2; 56 at 0.48, 55 at 0.6
    support: float = 1.3  # worth shared by both claims and the titles: 58 and 2 wrong at 1.04, 48 at 1.56
    support_loose: float = 1.2  # factor of `support` when the titles may name two things: 57 at 0.6, 56 at 1.44
    support_sure: float = (
        0.75  # factor of `support` when a change is stated and a claim is whole: 57 at 0.38, 56 at 0.9
    )
    whole: float = 0.95  # lowest `alike` at which a claim is wholly in the other: 57 at 0.5, 55 without the rule
    alike: float = 0.6  # share of the lighter claim, for another value and an end: 57 at 0.3, 54 at 0.72
    mutual: float = 0.6  # share of the worth of both claims when no change is stated: 56 at 0.3, 55 at 0.72
    few: float = 0.6  # distinctiveness of a word that few notes have, 0 to 1: 57 from 0.3 to 0.9; keeps forms apart
    parallel: float = 0.2  # worth that only one claim has, per worth of both: 57 from 0.1 to 0.3
    parallel_changed: float = 0.85  # `parallel` when a change is stated: 54 at 0.43, 57 at 1.28
    loose: float = 0.5  # worth of each title that the other note lacks: 55 at 0.4; a false duplicate at 0.75
    many: int = 150  # pairs of claims of two notes: 57 at 20, 57 and 4 wrong at 300
    code: float = 0.7  # worth of a name made of letters and figures: 56 at 0.35, 57 at 1.05
    anchor: float = 1.0  # worth of a sentence that both notes have: 57 from 0.5 to 1.5
    turned: float = 0.6  # times `support`, to deny, end or replace a claim: 57 from 0.3 to 0.9
    denied: float = 0.75  # `alike` of a claim and its denial: 57 from 0.38 to 0.9, 54 without the rule
    instead: float = 0.8  # share of the older claim, to replace it: 58 at 0.64, 57 at 0.96, 56 at 1.2
    renamed: float = 0.65  # share of the older claim when a name in its middle differs: 58 at 0.33, 56 at 0.78
    renamed_end: float = 0.45  # `renamed` when the claim ends in the name: 58 at 0.36, 56 at 0.54
    renamed_subject: float = 0.4  # share of the newer claim that the older note has: 57 at 0.2, 56 at 0.48
    shown: int = 3  # pairs of sentences that a finding quotes; decides nothing


LIMITS: Final = Thresholds()


@dataclass(frozen=True, slots=True)
class Overlap:
    """Holds what the claims of two notes have in common, to decide whether they are about one thing."""

    older: Claim
    newer: Claim
    shared: frozenset[str]  # words of both
    both: float  # worth of these words, and of the shared names made of letters and digits
    subject: float  # `both`, and the worth that the titles add
    anchored: bool  # the notes have an equal sentence
    agreed: bool  # they have an equal sentence, or titles about one thing
    changed: bool  # the newer note says that something changed
    loose: bool  # the titles may be about two things

    @property
    def support(self) -> float:
        """Return the evidence that the claims are about one thing."""
        return self.subject + LIMITS.anchor * self.anchored

    @property
    def similarity(self) -> float:
        """Return how much of the shorter claim the other one contains, 0 to 1."""
        return self.both / max(self.both, min(self.older.weight, self.newer.weight))

    @property
    def is_mostly_shared(self) -> bool:
        """Return whether most of the content of both claims is shared."""
        return 2 * self.both >= LIMITS.mutual * (self.older.weight + self.newer.weight)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Holds the differences between two claims."""

    overlap: Overlap
    older_only: Mapping[str, float]  # words of the older claim that the newer note lacks
    newer_only: Mapping[str, float]
    differs: bool  # a figure, date, state or name differs
    conflict: tuple[str, str] | None  # the two values, if only one of them can be right
    special: bool  # a title has a word that only its own claim has
    rare: bool  # the claims share a word that few notes have
    many: bool  # the notes are so long that some claims match by chance

    @property
    def difference_ratio(self) -> float:
        """Return how much content only one claim has, relative to the shared content."""
        return min(sum(self.older_only.values()), sum(self.newer_only.values())) / self.overlap.both

    @property
    def is_focused(self) -> bool:
        """Return whether the claims contain little besides their shared content."""
        changed = self.overlap.changed and not self.many
        return self.difference_ratio <= (LIMITS.parallel_changed if changed else LIMITS.parallel)


Objection: TypeAlias = tuple[str, Callable[[Overlap], bool]]
Difference: TypeAlias = Callable[[Evidence], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Rule:
    """Describes one way in which two claims contradict each other, and the difference it reports."""

    name: str
    holds: Callable[[Evidence], bool]
    difference: Difference


def _share_too_little(overlap: Overlap) -> bool:
    sure = overlap.changed and overlap.agreed and overlap.similarity >= LIMITS.whole
    return overlap.support < LIMITS.support * (LIMITS.support_sure if sure else 1.0) or not overlap.shared


def _tell_of_occasions(overlap: Overlap) -> bool:
    return overlap.older.once and overlap.newer.once and not overlap.newer.changed


def _may_be_two_things(overlap: Overlap) -> bool:
    supported = overlap.changed and overlap.both >= LIMITS.support_loose * LIMITS.support
    return overlap.loose and not (overlap.anchored or supported)


def _has_another_value(evidence: Evidence) -> bool:
    overlap = evidence.overlap
    if evidence.conflict is None or overlap.similarity < LIMITS.alike or (evidence.many and not overlap.agreed):
        return False
    return evidence.is_focused and (
        overlap.changed or (overlap.is_mostly_shared and not evidence.special and evidence.rare)
    )


def _can_contradict(evidence: Evidence) -> bool:
    """Return whether claims without differing values can contradict each other at all."""
    return evidence.overlap.agreed and not evidence.many and not evidence.differs


def _shares_subject(evidence: Evidence) -> bool:
    return _can_contradict(evidence) and evidence.overlap.both >= LIMITS.turned * LIMITS.support


def _is_denied(evidence: Evidence) -> bool:
    overlap, older, newer = evidence.overlap, evidence.overlap.older, evidence.overlap.newer
    denies, denied = (older, newer) if older.negated else (newer, older)
    # In these scripts a syllable is not always a "not".
    sure = not WIDE.search(older.text + newer.text) or newer.changed
    return bool(
        _shares_subject(evidence)
        and older.negated != newer.negated
        and not (older.instead or newer.instead)
        and overlap.similarity >= LIMITS.denied
        and sure
        and evidence.is_focused
        and overlap.is_mostly_shared
        and denies.denied & denied.words.keys()
    )


def _is_ended(evidence: Evidence) -> bool:
    overlap, older, newer = evidence.overlap, evidence.overlap.older, evidence.overlap.newer
    return _shares_subject(evidence) and newer.over and not older.over and overlap.both >= LIMITS.alike * newer.weight


def _is_replaced(evidence: Evidence) -> bool:
    overlap, older, newer = evidence.overlap, evidence.overlap.older, evidence.overlap.newer
    return (
        _shares_subject(evidence)
        and newer.instead
        and not older.instead
        and not older.negated
        and overlap.both >= max(LIMITS.support, LIMITS.instead * older.weight)
    )


def _is_renamed(evidence: Evidence) -> bool:
    """Return whether a name is replaced by another, where the newer note says that something changed."""
    overlap, older, only = evidence.overlap, evidence.overlap.older, evidence.older_only
    subject = max(LIMITS.support, LIMITS.renamed_subject * overlap.newer.weight)
    if not _can_contradict(evidence) or not overlap.changed or overlap.subject < subject:
        return False
    if not only or not evidence.newer_only or next(iter(older.words)) not in overlap.shared:
        return False
    ends = list(older.words)[-1] in only or not only.keys() <= older.words.keys()
    return overlap.both >= (LIMITS.renamed_end if ends else LIMITS.renamed) * older.weight


def _conflicting_values(evidence: Evidence) -> tuple[str, str]:
    assert evidence.conflict is not None
    return evidence.conflict


def _differing_names(evidence: Evidence) -> tuple[str, str]:
    older, newer = (
        " ".join(claim.shown.get(word, word) for word in only)
        for claim, only in (
            (evidence.overlap.older, evidence.older_only),
            (evidence.overlap.newer, evidence.newer_only),
        )
    )
    return older, newer


OBJECTIONS: Final[tuple[Objection, ...]] = (
    ("they have too little in common", _share_too_little),
    ("each describes one occasion", _tell_of_occasions),
    ("the titles may name two things", _may_be_two_things),
)
# The first rule that holds decides.
RULES: Final = (
    Rule("another value", _has_another_value, _conflicting_values),
    Rule("denied", _is_denied, lambda evidence: IS if evidence.overlap.older.negated else IS_NOT),
    Rule("ended", _is_ended, lambda _: OVER),
    Rule("replaced", _is_replaced, lambda _: INSTEAD),
    Rule("renamed", _is_renamed, _differing_names),
)


def find_objection(overlap: Overlap) -> str:
    """Return the name of the first objection to comparing two claims; "" = none."""
    return next((name for name, holds in OBJECTIONS if holds(overlap)), "")


def find_rule(evidence: Evidence) -> Rule | None:
    """Find the first rule by which two claims contradict each other."""
    return next((each for each in RULES if each.holds(evidence)), None)


def score_evidence(evidence: Evidence) -> float:
    """Score how sure a contradiction is, 0.45 to 1; the score only orders the findings."""
    overlap = evidence.overlap
    total = (
        0.45
        + 0.2 * min(1.0, overlap.similarity)
        + 0.15 * overlap.changed
        + 0.1 * min(1.0, overlap.support / 4)
        + 0.1 * (1 - min(1.0, evidence.difference_ratio))
    )
    return round(min(1.0, total), 3)
