"""Choose the range of lines to read from a long document: by number or below a heading, within a token budget.

Pure. Law, tested: all parts, one after the other by their `next_line`, are the document, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from index.errors import InvalidArgument, NotFound
from index.model import Heading
from index.names import fold
from mcp_server.answers.text_budget import estimate_tokens

LONGEST: Final = 1_000  # characters of a line; a longer one counts as several
SHOWN: Final = 50  # headings of an outline
NEAR: Final = 5  # headings that are named when there is none of the name asked for
SEPARATOR: Final = " > "  # between the headings of a trail
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")  # as headings count them


@dataclass(frozen=True, slots=True)
class LinePart:
    """Some lines of a text. Lines count from 1."""

    text: str
    start: int
    end: int  # the last one that is there; start - 1 = none
    next: int | None  # where to go on; None = what was asked for is all there
    total: int


@dataclass(frozen=True, slots=True)
class TextLines:
    """A text in lines, none of them very long."""

    lines: tuple[str, ...]  # with their ends
    places: tuple[int, ...]  # of each line as it is written, the first of these

    @classmethod
    def from_text(cls, text: str) -> TextLines:
        """`text` in lines."""
        lines: list[str] = []
        places = []
        for line in _LINE.findall(text):
            places.append(len(lines))
            lines += _split_long_line(line) if len(line) > LONGEST else [line]
        return cls(tuple(lines), tuple(places))

    def line_of(self, heading: Heading) -> int:
        """The line of a heading."""
        return self.places[heading.line] + 1 if heading.line < len(self.places) else len(self.lines)


def _split_long_line(line: str) -> list[str]:
    """A very long line in several, parted at blanks where there are any."""
    pieces, at = [], 0
    while len(line) - at > LONGEST:
        blank = line.rfind(" ", at + LONGEST // 2, at + LONGEST)
        end = at + LONGEST if blank < 0 else blank + 1
        pieces.append(line[at:end])
        at = end
    return [*pieces, line[at:]]


def select_lines(text: TextLines, start: int, end: int, budget: int) -> LinePart:
    """The lines from `start` to `end`, as many as cost `budget` tokens; at least one.

    Raises InvalidArgument for a begin that is none."""
    total = len(text.lines)
    if start > max(1, total):
        raise InvalidArgument(f"start_line is beyond the end: the document has {total:,} lines", total_lines=total)
    if end < start:
        raise InvalidArgument("end_line must not be before start_line")
    end, taken, cost = min(end, total), start - 1, 0
    for line in text.lines[start - 1 : end]:
        cost += estimate_tokens(line)
        if cost > budget and taken >= start:
            break
        taken += 1
    return LinePart("".join(text.lines[start - 1 : taken]), start, taken, taken + 1 if taken < end else None, total)


def find_section(text: TextLines, headings: Sequence[Heading], wanted: str) -> tuple[int, int]:
    """The first and the last line of the section under the heading `wanted`: its words, or its trail as searches give it.

    Raises NotFound, which names headings that are near."""
    trails = _heading_trails(headings)
    asked = _fold_heading(wanted)
    at = next(
        (
            n
            for n, trail in enumerate(trails)
            if asked in (_fold_heading(SEPARATOR.join(trail)), _fold_heading(trail[-1]))
        ),
        None,
    )
    if at is None:
        names = {_fold_heading(trail[-1]): trail[-1] for trail in trails}
        last = _fold_heading(wanted.rpartition(SEPARATOR)[2])
        near = [names[key] for key in get_close_matches(last, names, NEAR, 0.4)] or [*names.values()][:NEAR]
        hint = f"; near: {', '.join(repr(name[:80]) for name in near)}" if near else ", and there are none in it"
        raise NotFound(f"no such heading in the document{hint}", headings=near)
    chosen = headings[at]
    behind = next(
        (text.line_of(heading) for heading in headings[at + 1 :] if heading.level <= chosen.level), len(text.lines) + 1
    )
    return text.line_of(chosen), behind - 1


def list_headings(text: TextLines, headings: Sequence[Heading]) -> list[tuple[int, str]]:
    """The headings with their lines, at most `SHOWN`: of the upper levels, if there are more."""
    levels = sorted({heading.level for heading in headings})
    while len(levels) > 1 and sum(heading.level <= levels[-1] for heading in headings) > SHOWN:
        levels.pop()
    shown = [heading for heading in headings if heading.level in levels][:SHOWN]
    return [(text.line_of(heading), f"{'#' * heading.level} {heading.text}") for heading in shown]


def _heading_trails(headings: Sequence[Heading]) -> list[tuple[str, ...]]:
    trail: list[Heading] = []
    trails = []
    for heading in headings:
        trail = [*(entry for entry in trail if entry.level < heading.level), heading]
        trails.append(tuple(entry.text for entry in trail))
    return trails


def _fold_heading(name: str) -> str:
    return fold(" ".join(name.split()).lstrip("# "))
