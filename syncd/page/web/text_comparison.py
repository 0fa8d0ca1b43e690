"""Compare two texts side by side: equal lines are aligned and long runs of them folded, and words that differ are marked.

The lines of a patch get their kinds: added, removed, or where they stand.

Law, tested: the lines of a side, folded ones included, are the lines of its text that are not blank."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import Final, Literal, TypeAlias

Pieces: TypeAlias = tuple[tuple[str, bool], ...]  # parts of a line: the text, and whether the other side lacks it

LINES: Final = 500  # most compared lines of a text
PAIRS: Final = 20_000  # most pairs of words, one of each line, of two lines in which words are compared
ALL_PAIRS: Final = 500_000  # most such pairs of two texts
CONTEXT: Final = 2  # equal lines shown beside a difference
ALIKE: Final = 0.4  # least similarity of two lines in which words are compared
LineKind: TypeAlias = Literal["added", "removed", "place", "same"]
_KINDS: Final[dict[str, LineKind]] = {"+": "added", "-": "removed", "@": "place"}
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


def compare_texts(left: str, right: str, *, is_cut: bool = False, most: int | None = None) -> Comparison:
    """Compare two texts, except for their blank lines. `is_cut`: one of them is only the beginning of a text; `most`: of the rows."""
    lines, others = ([line.rstrip() for line in text.splitlines() if line.strip()] for text in (left, right))
    is_cut = is_cut or max(len(lines), len(others)) > LINES
    lines, others = lines[:LINES], others[:LINES]
    rows = tuple(islice(_compare_lines(lines, others), None if most is None else most + 1))
    return Comparison(rows[:most], is_cut or (most is not None and len(rows) > most))


def _compare_lines(lines: Sequence[str], others: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of two texts; words are compared only in the rows that the caller takes."""
    codes = SequenceMatcher(None, lines, others, autojunk=False).get_opcodes()
    pairs_left = ALL_PAIRS
    for number, (tag, start, end, other, last) in enumerate(codes):
        if tag == "equal":
            is_first, is_last = number == 0, number == len(codes) - 1
            yield from _equal_rows(lines[start:end], is_first=is_first, is_last=is_last)
        else:
            for line, across in zip_longest(lines[start:end], others[other:last]):
                words, words_across = _WORD.findall(line or ""), _WORD.findall(across or "")
                pairs = len(words) * len(words_across)
                if 0 < pairs <= min(PAIRS, pairs_left):
                    pairs_left -= pairs
                    yield Row("changed", *_mark_words(words, words_across))
                else:
                    yield Row("changed", _whole(line), _whole(across))


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


def _mark_words(words: Sequence[str], others: Sequence[str]) -> tuple[Pieces, Pieces]:
    """Return the words of two lines, with those marked that the other one lacks."""
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    if matcher.ratio() < ALIKE:
        return _whole("".join(words)), _whole("".join(others))
    pieces: list[tuple[str, bool]] = []
    across: list[tuple[str, bool]] = []
    for tag, start, end, other, last in matcher.get_opcodes():
        pieces.append(("".join(words[start:end]), tag != "equal"))
        across.append(("".join(others[other:last]), tag != "equal"))
    return tuple(piece for piece in pieces if piece[0]), tuple(piece for piece in across if piece[0])


def _whole(line: str | None) -> Pieces:
    return () if line is None else ((line, False),)


@dataclass(frozen=True, slots=True)
class PatchLine:
    """Holds a line of a patch; a place says which file, or which lines of it, follow."""

    kind: LineKind
    text: str


def patch_lines(patch: Iterable[str] | None) -> tuple[PatchLine, ...] | None:
    """Return the lines of a unified diff of one file; None for none. The first two lines name the file."""
    if patch is None:
        return None
    return tuple(
        PatchLine("place" if number < 2 else _KINDS.get(line[:1], "same"), line) for number, line in enumerate(patch)
    )
