"""Extract the key terms that nodes share, and label a group of nodes with the terms that describe it best.

A term is identified by its key, which is equal for all forms of a word. It is shown in the form of a tag: lower case,
one line, no punctuation, and it is no part of a secret if the reader gets a function that removes secrets. Memex can
therefore safely put a term of any note into a sentence."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from index.text.sentences import cut_cleaned, plain_text
from index.text.words import PIECE, TextLanguage, Token, detect_language, find_pieces, tokenize

LONGEST: Final = 4_000  # most characters of a node that are read for its terms
WORTH: Final = 0.3  # least worth of a word that counts as a term
SHARE: Final = 0.4  # least share of a group's members that must have a term of the label
WORDS: Final = 3  # most terms in a label
_MARKED = re.compile(r"[\[<`*_&\\{%]|://|www\.|::")  # marks that occur only in text with markup
_NOTHING: Final[Counter[str]] = Counter()


class _Pieces(dict[str, frozenset[str]]):
    """Maps words, and runs of a script without spaces, to the keys of their terms in one language."""

    def __init__(self, language: TextLanguage, shown: dict[str, Counter[str]]) -> None:
        super().__init__()
        self._language, self._shown = language, shown
        self._terms: dict[str, tuple[Token, ...]] = {}

    def __missing__(self, piece: str) -> frozenset[str]:
        keys = self[piece] = frozenset(token.key for token in self.terms_of(piece))
        return keys

    def terms_of(self, piece: str) -> tuple[Token, ...]:
        """Return the terms of one of them."""
        terms = self._terms.get(piece)
        if terms is None:
            tokens = tokenize(piece, self._language)
            terms = self._terms[piece] = tuple(token for token in tokens if token and token.worth >= WORTH)
            for token in terms:
                self._shown.setdefault(token.key, Counter())[token.text] += 1
        return terms

    def find_keys(self, text: str) -> frozenset[str]:
        """Return the keys of all terms in `text`."""
        return frozenset().union(*map(self.__getitem__, set(find_pieces(text))))


@dataclass(slots=True)
class Reader:
    """Reads the terms of many texts, and caches the terms of each word."""

    places: Mapping[str, int]  # English words by frequency rank, the most frequent at 0
    clean: Callable[[str], str] = str  # removes secrets from a text
    shown: dict[str, Counter[str]] = field(default_factory=dict)  # key → written forms, with their counts
    _seen: dict[tuple[str, bool], _Pieces] = field(default_factory=dict)

    def terms(self, name: str, texts: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Return the keys of the terms in a node's name, and of those in its name and texts together."""
        name = self.clean(name)
        text, seen = self._read_texts((name, *texts))
        name_keys = seen.find_keys(name)
        return name_keys, name_keys | seen.find_keys(text)

    def phrases(self, texts: Sequence[str]) -> dict[tuple[str, str], str]:
        """Return the pairs of neighbouring terms: their keys → the written phrase."""
        text, seen = self._read_texts(texts)
        phrases: dict[tuple[str, str], str] = {}
        before: Token | None = None
        end = 0
        for piece in PIECE.finditer(text):
            terms = seen.terms_of(piece[0])
            if text[end : piece.start()].strip(" "):
                before = None  # punctuation separates them
            for token in terms:
                if before and token.thing:
                    phrases.setdefault((before.key, token.key), f"{before.text}{token.glue and ' '}{token.text}")
                before = token
            before, end = before if terms else None, piece.end()
        return phrases

    def most_frequent_form(self, key: str) -> str:
        """Return the most frequent written form of a term."""
        forms = self.shown.get(key, _NOTHING)
        return min(forms, key=lambda form: (-forms[form], len(form), form), default=key)

    def _read_texts(self, texts: Iterable[str]) -> tuple[str, _Pieces]:
        """Return the beginning of these texts without markup, and the terms of words in its language."""
        lines, left = [], LONGEST
        for text in texts:
            line = cut_cleaned(text, left, self.clean)
            lines.append(self.clean(plain_text(line)) if _MARKED.search(line) else line)
            left -= len(text)
            if left <= 0:
                break
        joined = "\n".join(lines)
        language = detect_language(joined, self.places)
        seen = self._seen.get((language.language, language.japanese))
        if seen is None:
            seen = self._seen[language.language, language.japanese] = _Pieces(language, self.shown)
        return joined, seen


def choose_label(
    members: Sequence[Collection[str]],
    holders: Mapping[str, Sequence[int]],
    nodes: int,
    *,
    tags: Sequence[Sequence[str]],
    phrases: Sequence[Mapping[tuple[str, str], str]],
    reader: Reader,
) -> str | None:
    """Choose up to three terms that many members share and few other nodes have; None if there are none.

    `members`: the terms of each member; `holders`: for each term, which of all `nodes` nodes contain it; `phrases`: the
    pairs of neighbouring terms of each member."""
    size = len(members)
    least = max(2, math.ceil(SHARE * size))
    counts = Counter(key for terms in members for key in terms)
    rated: dict[tuple[str, ...], tuple[float, str]] = {}
    for key, count in counts.items():
        if count >= least:
            rated[(key,)] = (_distinctiveness(count, size, len(holders[key]), nodes), reader.most_frequent_form(key))
    together = Counter(pair for pairs in phrases for pair in pairs)
    for pair, count in together.items():
        if count >= least and all(counts[key] for key in pair):
            known = min(len(holders[key]) for key in pair)
            forms = Counter(pairs[pair] for pairs in phrases if pair in pairs)
            rated[pair] = (1.25 * _distinctiveness(count, size, known, nodes), min(forms, key=lambda f: (-forms[f], f)))
    tagged = Counter(tag for member_tags in tags for tag in dict.fromkeys(member_tags))
    for tag, count in tagged.items():
        if count >= least and (tag,) not in rated and count > size / 2:
            rated[(tag,)] = (0.9 * _distinctiveness(count, size, count, nodes), tag)
    chosen: list[str] = []
    taken: set[str] = set()
    for keys in sorted(rated, key=lambda keys: (-rated[keys][0], keys)):
        if rated[keys][0] > 0 and not taken & set(keys):
            chosen.append(rated[keys][1])
            taken.update(keys)
        if len(chosen) == WORDS:
            break
    return reader.clean(", ".join(chosen)) or None  # tags are not read by `reader`


def _distinctiveness(count: int, size: int, all_of_them: int, nodes: int) -> float:
    """Return how well a term that `count` of `size` members have distinguishes them from the other nodes."""
    inside = count / size
    outside = (max(0, all_of_them - count) + 0.5) / (max(0, nodes - size) + 1)
    return inside * math.log(inside / outside)
