"""Cut the best snippet out of a passage that is too long: the part with the most words of the query.

Pure. Law, tested: a snippet is a slice of its passage, with "…" at each cut, and no longer than requested."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from index.search.fusion import RUN, keywords

MARK: Final = "…"
_WORD: Final = re.compile(r"\w+")
_MOST: Final = 400  # occurrences of the query's words that are considered
_SNAP: Final = 24  # characters within which a cut moves to the edge of a word or line


def cut_snippet(passage: str, query: str, size: int) -> str:
    """Return at most `size` characters of `passage`, around the place with the most different words of the query."""
    passage = passage.strip()
    if len(passage) <= size:
        return passage
    inner = max(1, size - 2 * len(MARK))
    start = _window_start(passage, query, inner)
    end = start + inner
    if end >= len(passage):
        start, end = max(0, len(passage) - inner), len(passage)
    else:
        end = _word_end_near(passage, end, max(start + 1, end - _SNAP))
    if start:
        start = min(_word_start_near(passage, start), end - 1)
    return f"{MARK * bool(start)}{passage[start:end].strip()}{MARK * (end < len(passage))}"


def _window_start(passage: str, query: str, size: int) -> int:
    """Return the start of the first window with the most different words of the query, with some text before them."""
    text = passage.lower()
    if len(text) != len(passage):  # a few letters become two letters in lower case
        text = passage
    places = sorted(
        (match.start(), term) for term in _search_terms(query) for match in re.finditer(re.escape(term), text)
    )
    places = places[:_MOST]
    if not places:
        return 0
    offsets = [at for at, _ in places]
    best, most = 0, 0
    for number, at in enumerate(offsets):
        behind = bisect_right(offsets, at + size)
        different = len({term for _, term in places[number:behind]})
        if different > most:
            best, most = number, different
    last = offsets[bisect_right(offsets, offsets[best] + size) - 1]
    spare = size - (last - offsets[best])
    return max(0, offsets[best] - spare // 3)


def _search_terms(query: str) -> set[str]:
    """Return the search terms of a query: words, and pairs of letters in scripts without blanks."""
    terms: set[str] = set()
    for word in _WORD.findall(keywords(query).lower()):
        if RUN.search(word):
            terms |= {word[at : at + 2] for at in range(max(1, len(word) - 1))}
        elif len(word) > 1:
            terms.add(word)
    return terms


def _word_end_near(text: str, end: int, least: int) -> int:
    """Return the end of a word near `end`, if one exists."""
    at = end
    while at > least and not text[at].isspace():
        at -= 1
    return at if text[at].isspace() else end


def _word_start_near(text: str, start: int) -> int:
    """Return the start of a word near `start`, if one exists."""
    for at in range(start, min(len(text), start + _SNAP)):
        if text[at - 1].isspace():
            return at
    return start
