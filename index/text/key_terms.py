"""Extract the key terms that nodes share, and label a group of nodes with the terms that describe it best.

A term is identified by its key, which is equal for all forms of a word. It is shown in the form of a tag: lower case,
one line, no punctuation. Memex can therefore safely put a term of any note into a sentence."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from index.text.sentences import plain_text
from index.text.words import PIECE, TextLanguage, Token, detect_language, tokenize

LONGEST: Final = 4_000  # most characters of a node that are read for its terms
WORTH: Final = 0.3  # least worth of a word that counts as a term
SHARE: Final = 0.4  # least share of a group's members that must have a term of the label
WORDS: Final = 3  # most terms in a label
_MARKED = re.compile(r"[\[<`*_&\\{%]|://|www\.|::")  # marks that occur only in text with markup
_NOTHING: Final[Counter[str]] = Counter()


@dataclass(slots=True)
class Reader:
    """Reads the terms of many texts, and caches the terms of each word."""

    places: Mapping[str, int]  # English words by frequency rank, the most frequent at 0
    shown: dict[str, Counter[str]] = field(default_factory=dict)  # key → written forms, with their counts
    _seen: dict[tuple[str, bool], dict[str, tuple[Token, ...]]] = field(default_factory=dict)

    def terms(self, name: str, texts: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Return the keys of the terms in a node's name, and of those in its name and texts together."""
        text, language = self._read_texts((name, *texts))
        seen = self._seen.setdefault((language.language, language.japanese), {})
        name_keys, text_keys = (
            {token.key for piece in set(PIECE.findall(part)) for token in self._read_piece(piece, language, seen)}
            for part in (name, text)
        )
        return frozenset(name_keys), frozenset(name_keys | text_keys)

    def phrases(self, texts: Sequence[str]) -> dict[tuple[str, str], str]:
        """Return the pairs of neighbouring terms: their keys → the written phrase."""
        text, language = self._read_texts(texts)
        seen = self._seen.setdefault((language.language, language.japanese), {})
        phrases: dict[tuple[str, str], str] = {}
        before: Token | None = None
        end = 0
        for piece in PIECE.finditer(text):
            terms = self._read_piece(piece[0], language, seen)
            if text[end : piece.start()].strip(" "):
                before = None  # punctuation separates them
            for token in terms:
                if before and token.thing:
                    phrases.setdefault((before.key, token.key), f"{before.text}{token.glue and ' '}{token.text}")
                before = token
            before, end = before if terms else None, piece.end()
        return phrases

    def _read_piece(self, piece: str, language: TextLanguage, seen: dict[str, tuple[Token, ...]]) -> tuple[Token, ...]:
        """Return the terms of a word, or of a run of a script without spaces."""
        terms = seen.get(piece)
        if terms is None:
            terms = seen[piece] = tuple(token for token in tokenize(piece, language) if token and token.worth >= WORTH)
            for token in terms:
                self.shown.setdefault(token.key, Counter())[token.text] += 1
        return terms

    def most_frequent_form(self, key: str) -> str:
        """Return the most frequent written form of a term."""
        forms = self.shown.get(key, _NOTHING)
        return min(forms, key=lambda form: (-forms[form], len(form), form), default=key)

    def _read_texts(self, texts: Iterable[str]) -> tuple[str, TextLanguage]:
        lines, left = [], LONGEST
        for text in texts:
            lines.append(plain_text(text[:left]) if _MARKED.search(text) else text[:left])
            left -= len(text)
            if left <= 0:
                break
        joined = "\n".join(lines)
        return joined, detect_language(joined, self.places)


def choose_label(
    members: Sequence[frozenset[str]],
    spoken: Mapping[str, Sequence[int]],
    nodes: int,
    *,
    tags: Sequence[Sequence[str]],
    phrases: Sequence[Mapping[tuple[str, str], str]],
    reader: Reader,
) -> str | None:
    """Choose up to three terms that many members share and few other nodes have; None if there are none.

    `members`: the terms of each member; `spoken`: for each term, which of all `nodes` nodes contain it; `phrases`: the
    pairs of neighbouring terms of each member."""
    size = len(members)
    least = max(2, math.ceil(SHARE * size))
    counts = Counter(key for terms in members for key in terms)
    rated: dict[tuple[str, ...], tuple[float, str]] = {}
    for key, count in counts.items():
        if count >= least:
            rated[(key,)] = (_distinctiveness(count, size, len(spoken[key]), nodes), reader.most_frequent_form(key))
    together = Counter(pair for pairs in phrases for pair in pairs)
    for pair, count in together.items():
        if count >= least and all(counts[key] for key in pair):
            known = min(len(spoken[key]) for key in pair)
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
    return ", ".join(chosen) or None


def _distinctiveness(count: int, size: int, all_of_them: int, nodes: int) -> float:
    """Return how well a term that `count` of `size` members have distinguishes them from the other nodes."""
    inside = count / size
    outside = (max(0, all_of_them - count) + 0.5) / (max(0, nodes - size) + 1)
    return inside * math.log(inside / outside)
