"""Decide whether two notes are duplicates: equal, edited, in another order, one part of the other, or reworded.

Laws, tested: a note is a duplicate of itself; two notes are not duplicates if each states a figure, date or name for
which the other note states another."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

from index.text.similarity_sketch import RUN, word_stems
from syncd.consolidation.analysis.contradictions import NoteClaims, compare_titles
from syncd.consolidation.analysis.sentence_claims import WIDE, Claim

LEAST: Final = 2.0  # lowest worth of a note's words; shorter notes are not compared
RUNS: Final = 0.5  # lowest share of the shorter note's runs of three words in an edited copy
WORDS: Final = 0.75  # lowest share of the shorter note's word worth in a reworded copy
BOTH: Final = 0.6  # lowest share of the word worth of both notes in a reworded copy
LOST: Final = 0.12  # highest worth of a claim's words that the kept note may lack
SAME: Final = 0.6  # lowest share of equal characters in titles of scripts without blanks
SLOTTED: Final = 3  # words in titles that differ in one word, from which they name two things
_LINK: Final = re.compile(r"\[\[(?:[^\]|#\n]*/)?([^\]|#\n/]+)")
_BLANKS: Final = re.compile(r"\{\{[^{}\n]+\}\}|<%.+?%>")  # placeholders of a template
_BLANK: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Describes a duplicate: "equal" in its words, "edited", a "part" of the other note, or in other "words"."""

    how: Literal["equal", "edited", "part", "words"]
    kept: int  # 0 or 1: the note that contains everything
    score: float
    lost: tuple[str, ...]  # sentences that only the other has


def normalize(text: str) -> str:
    """Reduce a text to its letters and digits."""
    return _BLANK.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


@dataclass(frozen=True, slots=True)
class _Note:
    """Prepares a note for comparison."""

    text: str
    said: NoteClaims

    @property
    def words(self) -> dict[str, float]:
        """Return the words of its text with their worth; of its title if it has no text."""
        claims = self.said.claims or (self.said.title,)
        return {word: worth for claim in claims for word, worth in claim.words.items()}

    @property
    def name(self) -> tuple[str, ...]:
        """Return the words of its title."""
        return tuple(normalize(self.said.title.text).split())

    @property
    def links(self) -> set[tuple[str, ...]]:
        """Return the names of the notes that it links to."""
        return {tuple(normalize(link).split()) for link in _LINK.findall(self.text)}


def find_duplicate(note: tuple[str, NoteClaims], other: tuple[str, NoteClaims]) -> Duplicate | None:
    """Decide whether two notes, the older first, are duplicates; each is given with its text."""
    older, newer = _Note(*note), _Note(*other)
    ours, theirs = older.words, newer.words
    sizes = sum(ours.values()), sum(theirs.values())
    named = compare_titles(older.said, newer.said)
    if named == "apart" or min(sizes) < LEAST * (1.5 if named else 1):
        return None  # too little text to decide; titles that may name two things need more
    if normalize(older.text) == normalize(newer.text):
        return Duplicate("equal", 0, 1.0, ())
    runs, its_runs = _word_runs(older.text), _word_runs(newer.text)
    in_runs = len(runs & its_runs) / max(1, min(len(runs), len(its_runs)))
    shared = sum(worth for word, worth in ours.items() if word in theirs)
    in_words = shared / min(sizes)
    both = 2 * shared / sum(sizes)
    if in_words < WORDS or (in_runs < RUNS and both < BOTH) or _are_two_things(older, newer):
        return None
    kept = 0 if sizes[0] >= sizes[1] else 1
    copy, whole = (newer.said, older.said) if kept == 0 else (older.said, newer.said)
    if _tells_of_change(newer.said) and not _tells_of_change(older.said):
        return None  # the newer note says that something changed
    if not _has_all_values(whole, copy) or (
        _is_negated(older.said) != _is_negated(newer.said) and min(sizes) < 2 * LEAST
    ):
        return None
    lost = tuple(claim.text for claim in copy.claims if _is_new(claim, whole))
    how: Literal["edited", "part", "words"] = (
        "words" if in_runs < RUNS else "part" if min(sizes) < 0.75 * max(sizes) else "edited"
    )
    score = round(min(1.0, 0.5 * in_words + 0.3 * both + 0.2 * in_runs), 3)
    return Duplicate(how, kept, score, lost)


def _are_two_things(older: _Note, newer: _Note) -> bool:
    """Return whether two notes are about two things although they share most of their words."""
    return any(
        differ(older, newer)
        for differ in (_one_is_template, _one_links_to_other, _follow_own_titles, _titles_differ_in_slot)
    )


def _one_is_template(older: _Note, newer: _Note) -> bool:
    """Return whether exactly one of them is a template with placeholders."""
    return bool(_BLANKS.search(older.text)) != bool(_BLANKS.search(newer.text))


def _one_links_to_other(older: _Note, newer: _Note) -> bool:
    """Return whether one of them links to the other, which does not link to itself."""
    return newer.name in older.links - newer.links or older.name in newer.links - older.links


def _follow_own_titles(older: _Note, newer: _Note) -> bool:
    """Return whether each text has a word of its own title that the other note lacks."""
    older_only = older.said.title.words.keys() - newer.said.words
    newer_only = newer.said.title.words.keys() - older.said.words
    return bool(older_only & older.words.keys() and newer_only & newer.words.keys())


def _titles_differ_in_slot(older: _Note, newer: _Note) -> bool:
    """Return whether the titles differ in one word, and either each note lacks the other's word or both titles are long."""
    if not _differ_in_one_word(list(older.name), list(newer.name)):
        return False
    lacking = all(
        set(note.name) - set(normalize(other.text).split()) for note, other in ((older, newer), (newer, older))
    )
    return lacking or min(len(older.name), len(newer.name)) >= SLOTTED


def _differ_in_one_word(title: list[str], other: list[str]) -> bool:
    """Return whether two titles differ in one word: "Theme A", "Theme B"."""
    if WIDE.search("".join(title + other)):
        title, other = list(" ".join(title)), list(" ".join(other))
        least = min(len(title), len(other))
        begins = next((n for n in range(least) if title[n] != other[n]), least)
        ends = next((n for n in range(least - begins) if title[-1 - n] != other[-1 - n]), least - begins)
        return begins + ends < least and begins + ends >= SAME * max(len(title), len(other))
    return len(title) == len(other) > 1 and sum(a != b for a, b in zip(title, other, strict=True)) == 1


def _tells_of_change(note: NoteClaims) -> bool:
    return note.title.changed or any(claim.changed for claim in note.claims)


def _word_runs(text: str) -> set[tuple[str, ...]]:
    words = word_stems(text)
    return {tuple(words[n : n + RUN]) for n in range(max(1, len(words) - RUN + 1))}


def _has_all_values(whole: NoteClaims, copy: NoteClaims) -> bool:
    """Return whether the whole contains all figures, dates and names of the copy."""
    held = {(value.kind, value.value) for claim in (whole.title, *whole.claims) for value in claim.values}
    copied = {(value.kind, value.value) for claim in copy.claims for value in claim.values if value.kind != "side"}
    return copied <= held


def _is_negated(note: NoteClaims) -> bool:
    return sum(claim.negated for claim in note.claims) % 2 == 1


def _is_new(claim: Claim, whole: NoteClaims) -> bool:
    """Return whether much of a claim is missing in the whole."""
    lacking = sum(worth for word, worth in claim.words.items() if word not in whole.words)
    return lacking > max(LOST, 0.25 * claim.weight)
