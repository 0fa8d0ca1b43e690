"""Find contradictions between an older and a newer note: pairs of sentences on one subject that cannot both be right.

No model that understands the notes is involved. Two claims are about one subject when they share most of their
words. They contradict each other when, besides these words, a figure, date, state or name differs of which only one
can be right. Claims about two subjects of a kind share words as well, so every word that identifies the subject, in
the claim or in the title, must be equal.

Laws, tested: a note never contradicts itself; the findings about two notes depend on nothing but these notes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from syncd.consolidation.analysis.change_words import FROM, MOMENT
from syncd.consolidation.analysis.contradiction_rules import (
    LIMITS,
    Evidence,
    Overlap,
    find_objection,
    find_rule,
    score_evidence,
)
from syncd.consolidation.analysis.sentence_claims import Claim, Value

Differing: TypeAlias = tuple[list[Value], list[Value]]  # values of one kind, for each of two claims
Telling: TypeAlias = Callable[[str], float]  # 1 for a word that few notes have, less for one that many have


@dataclass(frozen=True, slots=True)
class NoteClaims:
    """Holds what a note claims.

    A word is worth less, the more claims of the note have it, as it does not set them apart."""

    title: Claim
    claims: tuple[Claim, ...]
    words: frozenset[str]  # of the title and all claims
    named: bool  # the title is not just the beginning of the text
    rare: frozenset[str] = frozenset()  # words of it that few notes have

    @classmethod
    def of(cls, title: Claim, claims: tuple[Claim, ...], telling: Telling = lambda _: 1.0) -> NoteClaims:
        """Make the claims of a note. `telling` returns how distinctive a written word is in this workspace."""
        counts = Counter(word for claim in claims for word in claim.words)
        tells = {word: telling(shown) for claim in (title, *claims) for word, shown in claim.shown.items()}
        weighted = tuple(
            replace(
                claim,
                words={word: worth * min(1.0, 2 / counts[word]) * tells[word] for word, worth in claim.words.items()},
            )
            for claim in claims
        )
        title = replace(title, words={word: worth * tells[word] for word, worth in title.words.items()})
        first = claims[0].text if claims else ""
        words = frozenset(title.words) | counts.keys()
        rare = frozenset(word for word, share in tells.items() if share >= LIMITS.few)
        return cls(title, weighted, words, not _plain_words(first).startswith(_plain_words(title.text)), rare)


@dataclass(frozen=True, slots=True)
class OpposedClaims:
    """Holds a claim of the older note, the contradicting claim of the newer one, and their difference."""

    older: str
    newer: str
    difference: tuple[str, str]  # the differing words or values, older first
    score: float
    changed: bool  # the newer claim says that something changed
    rule: str  # the name of the rule by which they contradict each other


def find_contradictions(older: NoteClaims, newer: NoteClaims) -> tuple[OpposedClaims, ...]:
    """Find the claims of two notes that contradict each other, the surest first."""
    named = compare_titles(older, newer)
    if named == "apart":
        return ()
    same = {claim.text for claim in older.claims} & {claim.text for claim in newer.claims}
    anchored = any(len(claim.words) >= 2 for claim in older.claims if claim.text in same)
    title = {
        word: worth for word, worth in older.title.words.items() if word in newer.title.words or word in newer.words
    }
    title |= {word: worth for word, worth in newer.title.words.items() if word in older.words}
    surest: dict[str, OpposedClaims] = {}  # by the older claim
    for claim, other in _claims_sharing_words(older, newer, same):
        if not other.over and (_has_rival(claim, other, newer.claims) or _has_rival(other, claim, older.claims)):
            continue
        opposed = _compare_claims(claim, other, older, newer, title, anchored=anchored, loose=named == "loose")
        if opposed and (opposed.older not in surest or surest[opposed.older].score < opposed.score):
            surest[opposed.older] = opposed
    often = Counter(opposed.newer for opposed in surest.values())
    # A sentence that contradicts several is an item of a list, or chance.
    single = [opposed for opposed in surest.values() if often[opposed.newer] == 1]
    return tuple(sorted(single, key=lambda opposed: (-opposed.score, opposed.older, opposed.newer))[: LIMITS.shown])


def _claims_sharing_words(older: NoteClaims, newer: NoteClaims, same: set[str]) -> Iterator[tuple[Claim, Claim]]:
    """Yield the pairs of claims of both notes that share enough words."""
    holders: dict[str, list[int]] = defaultdict(list)
    for n, claim in enumerate(newer.claims):
        if claim.text not in same:
            for word in claim.words:
                holders[word].append(n)
    for claim in older.claims:
        if claim.text in same:
            continue
        shared: dict[int, float] = defaultdict(float)
        for word, worth in claim.words.items():
            for n in holders.get(word, ()):
                shared[n] += worth
        for n in sorted(shared):
            if shared[n] >= LIMITS.touching * min(claim.weight, newer.claims[n].weight):
                yield claim, newer.claims[n]


def _has_rival(claim: Claim, other: Claim, claims: Sequence[Claim]) -> bool:
    """Return whether another claim shares as much with `claim` as `other` does, so that the counterpart is unclear."""
    both = claim.words.keys() & other.words.keys()
    return any(rival is not other and both <= rival.words.keys() for rival in claims) if len(claims) > 1 else False


def compare_titles(older: NoteClaims, newer: NoteClaims) -> Literal["apart", "loose", ""]:
    """Compare the titles: "apart" = they name two things, "loose" = they may name two things, "" = they agree."""
    title, other = older.title, newer.title
    named = older.named and newer.named
    brief = all(note.claims and 2 * len(note.title.text) <= len(note.claims[0].text) for note in (older, newer))
    if not named and not brief:
        return ""
    for value in title.values:
        for its in other.values:
            if (
                (named or value.names)
                and (value.kind, value.sign) == (its.kind, its.sign)
                and value.value != its.value
                and value not in other.values
            ):
                return "apart"
    if not named:
        return ""
    moments = [
        {match[0].lower() for match in MOMENT.finditer(FROM.sub("", each.text)) if match[0] not in ("may", "march")}
        for each in (title, other)
    ]
    if moments[0] != moments[1] and (all(moments) or not other.changed):
        return "apart"
    older_only = sum(worth for word, worth in title.words.items() if word not in newer.words)
    newer_only = sum(worth for word, worth in other.words.items() if word not in older.words)
    return "loose" if min(older_only, newer_only) >= LIMITS.loose else ""


def _compare_claims(
    claim: Claim,
    other: Claim,
    older: NoteClaims,
    newer: NoteClaims,
    title: Mapping[str, float],
    *,
    anchored: bool,
    loose: bool,
) -> OpposedClaims | None:
    overlap = _measure_overlap(claim, other, older, newer, title, anchored=anchored, loose=loose)
    if find_objection(overlap):
        return None
    evidence = _collect_evidence(overlap, older, newer)
    spoke = find_rule(evidence)
    if spoke is None:
        return None
    return OpposedClaims(
        claim.text, other.text, spoke.difference(evidence), score_evidence(evidence), overlap.changed, spoke.name
    )


def _measure_overlap(
    claim: Claim,
    other: Claim,
    older: NoteClaims,
    newer: NoteClaims,
    title: Mapping[str, float],
    *,
    anchored: bool,
    loose: bool,
) -> Overlap:
    """Measure what two claims share. `title`: words of one title that the other note has too, with their worth."""
    shared = {word: worth for word, worth in claim.words.items() if word in other.words}
    codes = set(_code_values(claim)) & set(_code_values(other))
    both = sum(shared.values()) + LIMITS.code * len(codes)
    few = len(shared) + len(codes) < 2  # then a word counts only if both titles have it
    named = {
        word: worth
        for word, worth in title.items()
        if not few or (word in older.title.words and word in newer.title.words)
    }
    return Overlap(
        older=claim,
        newer=other,
        shared=frozenset(shared),
        both=both,
        subject=both + sum(worth for word, worth in named.items() if word not in shared),
        anchored=anchored,
        agreed=anchored or _titles_agree(claim, other, older, newer),
        changed=other.changed or newer.title.changed or (newer.title.new and not older.title.new),
        loose=loose,
    )


def _collect_evidence(overlap: Overlap, older: NoteClaims, newer: NoteClaims) -> Evidence:
    """Collect the differences between two claims that share enough."""
    claim, other = overlap.older, overlap.newer
    older_only, newer_only = _words_of_one(claim, other, newer.words), _words_of_one(other, claim, older.words)
    differing = _differing_values(claim, other)
    return Evidence(
        overlap=overlap,
        older_only=older_only,
        newer_only=newer_only,
        differs=bool(differing),
        conflict=_find_conflict(claim, other, differing, overlap.shared, changed=overlap.changed),
        special=bool(older_only.keys() & older.title.words.keys() or newer_only.keys() & newer.title.words.keys()),
        rare=bool(overlap.shared & older.rare),
        many=len(older.claims) * len(newer.claims) > LIMITS.many,
    )


def _titles_agree(claim: Claim, other: Claim, older: NoteClaims, newer: NoteClaims) -> bool:
    """Return whether the titles share a word or a name, or one title shares a word with the other note's claim."""
    titles = older.title.words.keys(), newer.title.words.keys()
    codes = [{value.value for value in title.values} for title in (older.title, newer.title)]
    return bool(
        titles[0] & titles[1] or titles[0] & other.words.keys() or titles[1] & claim.words.keys() or codes[0] & codes[1]
    )


def _words_of_one(claim: Claim, other: Claim, known: frozenset[str]) -> dict[str, float]:
    """Return the words of a claim that the other note lacks, and its names of letters and digits of a different form."""
    forms = {value.sign for value in other.values if value.kind == "code"}
    return {word: worth for word, worth in claim.words.items() if word not in known} | {
        value.value: LIMITS.code for value in claim.values if value.kind == "code" and value.sign not in forms
    }


def _differing_values(claim: Claim, other: Claim) -> list[Differing]:
    """Return the values of both claims that are comparable and not equal."""
    differing = []
    kinds = dict.fromkeys((value.kind, value.sign) for value in claim.values)
    for kind, sign in kinds:
        ours = [value for value in claim.values if (value.kind, value.sign) == (kind, sign)]
        theirs = [value for value in other.values if (value.kind, value.sign) == (kind, sign)]
        left = [value for value in ours if not any(_are_equal(value, its) for its in theirs)]
        right = [its for its in theirs if not any(_are_equal(value, its) for value in ours)]
        if left and right:
            differing.append((left, right))
    return differing


def _are_equal(value: Value, other: Value) -> bool:
    if value.kind == "date":  # one of them may leave out the year or the day
        (a, _, year), (b, _, its_year) = value.value.partition(" "), other.value.partition(" ")
        (month, _, day), (its_month, _, its_day) = a.partition("-"), b.partition("-")
        same = (month == its_month or "0" in (month, its_month)) and (day == its_day or "0" in (day, its_day))
        return same and (year == its_year or not year or not its_year)
    return value.value == other.value


def _find_conflict(
    claim: Claim, other: Claim, differing: list[Differing], shared: frozenset[str], *, changed: bool
) -> tuple[str, str] | None:
    """Return the two conflicting values, if all differences are about one thing."""
    if not differing:
        return None
    first = [(ours[0], theirs[0]) for ours, theirs in differing]
    names = [pair for pair in first if pair[0].names]
    kinds = {value.kind for value, _ in first}
    another = "date" in kinds and (claim.entry or other.entry)  # another day is another event
    if (
        another
        or kinds & {"side", "part"}
        or (not changed and any(len(ours) != len(theirs) for ours, theirs in differing))
    ):
        return None
    if names and (len(differing) > 1 or not (names[0][0].before and names[0][1].before)):
        return None
    if names and names[0][0].before <= 1 and len(shared) < 2:
        return None
    if kinds & {"date", "day"} and kinds - {"date", "day", "time"} and not changed:
        return None  # two moments, each with its own figures
    before, after = first[0]
    return _format_value(before), _format_value(after)


def _code_values(claim: Claim) -> Iterator[str]:
    return (value.value for value in claim.values if value.kind == "code")


def _format_value(value: Value) -> str:
    """Return a value as it is written."""
    return value.shown or value.value


def _plain_words(text: str) -> str:
    return re.sub(r"\W+", " ", text).casefold().strip()
