"""Choose the range of lines to read from a long document: by number or below a heading, within a token budget.

Pure. Law, tested: the parts that `next_line` leads to, joined in order, are the document, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from index.errors import InvalidArgument, NotFound
from index.model import Heading
from index.names import fold
from mcp_server.answers.best_snippet import MARK
from mcp_server.answers.text_budget import estimate_tokens

LONGEST: Final = 1_000  # characters of a line; a longer line counts as several lines
SHOWN: Final = 50  # headings of an outline
NEAR: Final = 5  # similar headings that an error suggests
SEPARATOR: Final = " > "  # between the headings of a trail
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")  # lines as the outline counts them


@dataclass(frozen=True, slots=True)
class LinePart:
    """Holds a range of lines of a text. Lines count from 1."""

    text: str
    start: int
    end: int  # the last line of the part; start - 1 = no line
    next: int | None  # the line to continue at; None = the requested range is complete
    total: int


@dataclass(frozen=True, slots=True)
class TextLines:
    """Holds a text as lines, none of them longer than `LONGEST`."""

    lines: tuple[str, ...]  # with their line ends
    places: tuple[int, ...]  # for each line of the document, the first of its parts in `lines`

    @classmethod
    def from_text(cls, text: str) -> TextLines:
        """Split `text` into lines."""
        lines: list[str] = []
        places = []
        for line in _LINE.findall(text):
            places.append(len(lines))
            lines += _split_long_line(line) if len(line) > LONGEST else [line]
        return cls(tuple(lines), tuple(places))

    def line_of(self, heading: Heading) -> int:
        """Return the line of a heading."""
        return self.places[heading.line] + 1 if heading.line < len(self.places) else len(self.lines)


def _split_long_line(line: str) -> list[str]:
    """Split a very long line into several, at blanks where possible."""
    pieces, at = [], 0
    while len(line) - at > LONGEST:
        blank = line.rfind(" ", at + LONGEST // 2, at + LONGEST)
        end = at + LONGEST if blank < 0 else blank + 1
        pieces.append(line[at:end])
        at = end
    return [*pieces, line[at:]]


def select_lines(text: TextLines, start: int, end: int, budget: int) -> LinePart:
    """Return the lines from `start` to `end` that fit into `budget` tokens, at least one.

    Raises InvalidArgument for a start beyond the end of the text or after `end`."""
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
    """Return the first and the last line of the section under the heading `wanted`, given as its text or as the trail in a search hit.

    The trail may contain `MARK` in place of a part, as in a hit that shows it cut. Raises NotFound, which suggests similar headings."""
    trails = _heading_trails(headings)
    asked, places = _fold_heading(wanted), [_fold_heading(SEPARATOR.join(trail)) for trail in trails]
    at = next((n for n, trail in enumerate(trails) if asked in (places[n], _fold_heading(trail[-1]))), None)
    if at is None and MARK in asked:
        at = next((n for n, name in enumerate(places) if _is_cut_from(name, asked)), None)
    if at is None:
        names = {_fold_heading(trail[-1]): trail[-1] for trail in trails}
        last = _fold_heading(wanted.rpartition(SEPARATOR)[2])
        near = [names[key] for key in get_close_matches(last, names, NEAR, 0.4)] or [*names.values()][:NEAR]
        hint = f"; similar: {', '.join(repr(name[:80]) for name in near)}" if near else ", which has no headings"
        raise NotFound(f"no such heading in the document{hint}", headings=near)
    chosen = headings[at]
    behind = next(
        (text.line_of(heading) for heading in headings[at + 1 :] if heading.level <= chosen.level), len(text.lines) + 1
    )
    return text.line_of(chosen), behind - 1


def require_overlap(section: tuple[int, int], start: int, end: int | None) -> None:
    """Raise InvalidArgument if a section, given by its first and last line, has none of the lines from `start` to `end`."""
    first, last = section
    if start > last or (end is not None and end < first):
        raise InvalidArgument(
            f"the section has the lines {first:,} to {last:,}, and none from start_line to end_line",
            first_line=first,
            last_line=last,
        )


def list_headings(text: TextLines, headings: Sequence[Heading]) -> list[tuple[int, str]]:
    """List at most `SHOWN` headings with their lines; if more exist, only those of the upper levels."""
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


def _is_cut_from(trail: str, cut: str) -> bool:
    """Return whether `cut` is `trail` with `MARK` in place of all but its beginning, or of a part; the trail may contain `MARK` too."""
    parts = {cut.partition(MARK)[::2], cut.rpartition(MARK)[::2]}
    return any(begin and trail.startswith(begin) and trail.endswith(end) for begin, end in parts)


def _fold_heading(name: str) -> str:
    return fold(" ".join(name.split()).lstrip("# "))
