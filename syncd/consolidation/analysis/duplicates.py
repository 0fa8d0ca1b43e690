"""Decide whether two notes are duplicates: whether one of them says all that the other says, sentence by sentence.

The note with fewer words is the copy. A sentence of the copy is in the other note if a sentence there has most of its
words. Two such sentences may differ in words that one of them adds, or in spelling; if a word stands in place of
another, as in an update or in a form that was filled in for two things, the notes are not duplicates.

Laws, tested: a note of some length is a duplicate of itself; the order of two notes does not change whether they are
duplicates; notes with a sentence that states another figure or name, or is denied in one of them, are not duplicates; a
note that is too long to be read to its end is a duplicate only of a note with the same words."""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Final, Literal

from index.text.sentences import plain_text, split_markdown
from index.text.similarity_sketch import word_stems
from index.text.tags import fold_accents

LEAST: Final = 12  # fewest different words of a copy
PART: Final = 0.5  # lowest size of a copy relative to the other note; a smaller one is a note of its own, as an excerpt
SAME: Final = 0.6  # share of a sentence's words in a sentence of the other note, from which both are about one thing
COVERED: Final = 0.95  # lowest share of the copy's words in sentences that are in the other note
SPELLING: Final = 0.75  # lowest similarity of two spellings of a word
READ: Final = 20_000  # characters read from a text
_HEADING: Final = re.compile(r"^[ ]{0,3}#{1,6}[ \t].*$", re.MULTILINE)
_CODE: Final = re.compile(r"^\s*(?:`{3,}|~{3,})[^\n]*\n(.*?)(?:^\s*(?:`{3,}|~{3,})\s*$|\Z)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[\[(?:[^\]|#\n]*/)?([^\]|#\n/]+)")
_PLACEHOLDER: Final = re.compile(r"\{\{[^{}\n]+\}\}|<%.+?%>")
_FIGURE: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NOT: Final = re.compile(
    r"(?<![^\W_])(?:not|no|never|cannot|\w+n['’]t|nobody|nothing|none|nicht|kein\w*|nie|niemals|nichts|pas|jamais|rien|"
    r"nunca|tampoco|nada|não|nem|non|mai|niente|niet|geen|nooit|не|нет|никогда|nigdy)(?![^\W_])|ません|ない|なかった|不|没|未|无|않|없|아니",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Describes a duplicate: "equal" in its words, "edited", or a "part" of the other note."""

    how: Literal["equal", "edited", "part"]
    kept: int  # 0 or 1: the note that contains everything
    score: float
    lost: tuple[str, ...]  # sentences that only the other has


@dataclass(frozen=True, slots=True)
class Sentence:
    """Holds a sentence, its words, and whether it denies something."""

    text: str
    words: frozenset[str]
    negated: bool


@dataclass(frozen=True)
class Sentences:
    """Finds among some sentences the one that has most words of another sentence."""

    all: tuple[Sentence, ...]

    @cached_property
    def places(self) -> Mapping[str, Sequence[int]]:
        """Return for each word the positions of the sentences that have it."""
        places = defaultdict[str, list[int]](list)
        for number, sentence in enumerate(self.all):
            for word in sentence.words:
                places[word].append(number)
        return dict(places)

    @cached_property
    def size(self) -> int:
        """Return the number of words of all sentences."""
        return sum(len(sentence.words) for sentence in self.all)

    def find_match(self, sentence: Sentence) -> Sentence | None:
        """Return the sentence that has most of the words of `sentence`, if one has enough of them."""
        words, least = sentence.words, math.ceil(SAME * len(sentence.words))
        # A sentence that has none of these words lacks too many: so only a few sentences are compared.
        rarest = sorted(words, key=lambda word: len(self.places.get(word, ())))[: len(words) - least + 1]
        near = [self.all[number] for number in sorted({n for word in rarest for n in self.places.get(word, ())})]
        best = max(near, key=lambda other: (len(words & other.words), -len(other.words)), default=None)
        return best if best and len(words & best.words) >= least else None


@dataclass(frozen=True)
class ComparedNote:
    """Prepares a note for comparison."""

    title: str
    text: str

    @cached_property
    def wording(self) -> bytes:
        """Return a digest of all its words, in order."""
        return hashlib.sha256(" ".join(_split_words(self.text)).encode()).digest()

    @cached_property
    def sentences(self) -> Sentences:
        """Return the sentences of its text, and its lines of code, without repeats."""
        return _read_sentences(_split_text(self.text[:READ]))

    @cached_property
    def headings(self) -> Sentences:
        """Return its headings."""
        return _read_sentences(map(plain_text, _HEADING.findall(self.text[:READ])))

    @cached_property
    def name(self) -> tuple[str, ...]:
        """Return the words of its title."""
        return _split_words(self.title)

    @cached_property
    def links(self) -> frozenset[tuple[str, ...]]:
        """Return the names of the notes that it links to."""
        return frozenset(map(_split_words, _LINK.findall(self.text)))

    @cached_property
    def figures(self) -> frozenset[str]:
        """Return the figures of its sentences and headings."""
        return frozenset(
            figure
            for sentence in (*self.sentences.all, *self.headings.all)
            for figure in _FIGURE.findall(sentence.text)
        )


def find_duplicate(older: ComparedNote, newer: ComparedNote) -> Duplicate | None:
    """Decide whether two notes are duplicates."""
    equal = older.wording == newer.wording
    if not equal and max(len(older.text), len(newer.text)) > READ:
        return None
    kept = 0 if older.sentences.size >= newer.sentences.size else 1
    whole, copy = (older, newer) if kept == 0 else (newer, older)
    total = copy.sentences.size
    if len(copy.sentences.places) < LEAST or total < PART * whole.sentences.size:
        return None
    if equal:
        return Duplicate("equal", 0, 1.0, ())
    lost = None if _are_two_things(whole, copy) else _find_lost(whole, copy)
    if lost is None:
        return None
    how: Literal["edited", "part"] = "part" if total < 0.75 * whole.sentences.size else "edited"
    missing = sum(len(sentence.words) for sentence in lost)
    return Duplicate(how, kept, round(1 - missing / total, 3), tuple(sentence.text for sentence in lost))


def _find_lost(whole: ComparedNote, copy: ComparedNote) -> list[Sentence] | None:
    """Return the sentences that only the copy has; None if they are too many, or if another one says something else."""
    lost, left = list[Sentence](), (1 - COVERED) * copy.sentences.size
    for sentence in copy.sentences.all:
        match = whole.sentences.find_match(sentence)
        if match is None:
            lost.append(sentence)
            left -= len(sentence.words)
        if left < 0 or (match and _differ(sentence, match)):
            return None
    return lost


def _differ(sentence: Sentence, match: Sentence) -> bool:
    """Return whether one of two sentences is denied, or has a word in place of another."""
    only, others = sentence.words - match.words, match.words - sentence.words
    return sentence.negated != match.negated or (
        bool(others) and any(not any(_are_spellings(word, other) for other in others) for word in only)
    )


def _are_spellings(word: str, other: str) -> bool:
    """Return whether two words without figures are spelt nearly alike."""
    return word.isalpha() and other.isalpha() and SequenceMatcher(None, word, other).ratio() >= SPELLING


def _are_two_things(whole: ComparedNote, copy: ComparedNote) -> bool:
    """Return whether the notes are about two things although they share most of their words."""
    return (
        bool(_PLACEHOLDER.search(whole.text)) != bool(_PLACEHOLDER.search(copy.text))  # one is a template
        or copy.name in whole.links - copy.links  # one links to the other as to another note
        or whole.name in copy.links - whole.links
        or _differ_in_figures(whole, copy)  # days, parts of a series
        or not copy.figures <= whole.figures  # another value
        or _differ_in_one_word(whole.name, copy.name)  # "Theme A", "Theme B"
        or any((match := whole.headings.find_match(line)) and _differ(line, match) for line in copy.headings.all)
    )


def _differ_in_figures(note: ComparedNote, other: ComparedNote) -> bool:
    """Return whether two titles have different figures; "Search" and "Search 2" are one title, taken twice."""
    shorter, longer = sorted((note.name, other.name), key=len)
    numbered = len(longer) > len(shorter) and longer[:-1] == shorter and longer[-1].isdigit()
    return not numbered and set(_FIGURE.findall(note.title)) != set(_FIGURE.findall(other.title))


def _differ_in_one_word(name: Sequence[str], other: Sequence[str]) -> bool:
    return len(name) == len(other) > 1 and sum(a != b for a, b in zip(name, other, strict=True)) == 1


def _split_words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^\W_]+", fold_accents(text)))


def _split_text(text: str) -> Iterator[str]:
    yield from split_markdown(_HEADING.sub("\n", text))
    for block in _CODE.finditer(text):
        yield from (line.strip() for line in block[1].splitlines() if any(c.isalnum() for c in line))


def _read_sentences(texts: Iterable[str]) -> Sentences:
    """Read sentences without repeats; those without a word say nothing that can be compared."""
    return Sentences(tuple(sentence for sentence in map(_read_sentence, dict.fromkeys(texts)) if sentence.words))


def _read_sentence(text: str) -> Sentence:
    # A stem is cut to six characters, a figure is not.
    words = frozenset(word_stems(text)) | frozenset(_FIGURE.findall(text))
    return Sentence(text, words, len(_NOT.findall(text)) % 2 == 1)
