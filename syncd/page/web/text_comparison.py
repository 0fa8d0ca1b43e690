"""Compare two texts side by side: equal lines are aligned and long runs of them folded, and words that differ are marked.

Law, tested: the lines of a side, folded ones included, are the lines of its text that are not blank."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Final, Literal, TypeAlias

Pieces: TypeAlias = tuple[tuple[str, bool], ...]  # parts of a line: the text, and whether the other side lacks it

LINES: Final = 500  # most compared lines of a text
LINE: Final = 4_000  # longest line in which words are compared
CONTEXT: Final = 2  # equal lines shown beside a difference
ALIKE: Final = 0.4  # least similarity of two lines in which words are compared
_WORD: Final = re.compile(r"\s*\S+")


@dataclass(frozen=True, slots=True)
class Row:
    """Holds a line of each text; a side without one is empty. `folded`: the number of equal lines that are not shown."""

    kind: Literal["same", "changed", "folded"]
    left: Pieces = ()
    right: Pieces = ()
    folded: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Holds the rows, and whether a text was too long to be compared to its end."""

    rows: tuple[Row, ...]
    is_cut: bool

    @property
    def is_equal(self) -> bool:
        """Return whether the texts are equal, except for blank lines."""
        return not self.is_cut and all(row.kind != "changed" for row in self.rows)


def compare_texts(left: str, right: str) -> Comparison:
    """Compare two texts, except for their blank lines."""
    lines, others = ([line.rstrip() for line in text.splitlines() if line.strip()] for text in (left, right))
    is_cut = max(len(lines), len(others)) > LINES
    lines, others = lines[:LINES], others[:LINES]
    codes = SequenceMatcher(None, lines, others, autojunk=False).get_opcodes()
    rows: list[Row] = []
    for number, (tag, start, end, other, last) in enumerate(codes):
        if tag == "equal":
            is_first, is_last = number == 0, number == len(codes) - 1
            rows += _equal_rows(lines[start:end], is_first=is_first, is_last=is_last)
        else:
            pairs = zip_longest(lines[start:end], others[other:last])
            rows += [Row("changed", *_mark_words(line, across)) for line, across in pairs]
    return Comparison(tuple(rows), is_cut)


def _equal_rows(lines: Sequence[str], *, is_first: bool, is_last: bool) -> Iterator[Row]:
    """Yield rows of equal lines: those beside a difference, and one for the number of the others."""
    head, tail = 0 if is_first else CONTEXT, 0 if is_last else CONTEXT
    folded = len(lines) - head - tail
    if folded <= 1:
        head, folded = len(lines), 0
    for line in lines[:head]:
        yield Row("same", ((line, False),), ((line, False),))
    if folded:
        yield Row("folded", folded=folded)
        for line in lines[head + folded :]:
            yield Row("same", ((line, False),), ((line, False),))


def _mark_words(left: str | None, right: str | None) -> tuple[Pieces, Pieces]:
    """Return two lines with the words marked that the other one lacks; a line that is missing is empty."""
    if left is None or right is None or max(len(left), len(right)) > LINE:
        return _whole(left), _whole(right)
    words, others = _WORD.findall(left), _WORD.findall(right)
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    if matcher.ratio() < ALIKE:
        return _whole(left), _whole(right)
    pieces: list[tuple[str, bool]] = []
    across: list[tuple[str, bool]] = []
    for tag, start, end, other, last in matcher.get_opcodes():
        pieces.append(("".join(words[start:end]), tag != "equal"))
        across.append(("".join(others[other:last]), tag != "equal"))
    return tuple(piece for piece in pieces if piece[0]), tuple(piece for piece in across if piece[0])


def _whole(line: str | None) -> Pieces:
    return () if line is None else ((line, False),)
