"""A unified diff shows a person the change of one note, and is applied to the note once the person approves it.

Laws, tested: a diff that is applied to the text it was made from gives the wanted text; no line of the text that the diff
does not name changes, line ends included; a diff whose lines are not in the text, or not in one place only, is refused. Both
take time that grows with the size of the texts, whatever an agent writes."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal[" ", "-", "+"]
CONTEXT: Final = 3  # unchanged lines around a change
STEPS: Final = 5_000_000  # pairs of equal lines that are compared for one diff, which takes about a second
NO_END: Final = "\\ No newline at end of file"
_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})? @@")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+\Z")
_FILE_HEADERS: Final = ("diff ", "index ", "--- ", "+++ ")


class DiffError(ValueError):
    """Reports a diff that can't be read, or does not fit a text; the message is a part of a sentence for its writer."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """Holds a line of a hunk without its line end; `ends` is False if the text ends after it, without a line end."""

    kind: Kind
    text: str
    ends: bool = True


@dataclass(frozen=True, slots=True)
class Hunk:
    """Holds one place of a change; `start` is the 1-based line in the text before, 0 for an empty text."""

    start: int
    lines: tuple[DiffLine, ...]

    @property
    def before(self) -> list[str]:
        """Return the lines that the text has at this place."""
        return [line.text for line in self.lines if line.kind != "+"]


def line_end_of(text: str) -> str:
    """Return the line end of most lines of `text`."""
    return "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"


def compose_diff(before: str, after: str, path: str) -> str:
    """Return the diff from `before` to `after`, both with the name `path`; "" if they differ in line ends only."""
    old, new = (_LINE.findall(text.replace("\r\n", "\n")) for text in (before, after))
    if old == new:
        return ""
    lines = (f"--- {_one_line(path)}\n", f"+++ {_one_line(path)}\n", *_compose_hunks(old, new))
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_END}\n" for line in lines)


def _compose_hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for group in LineMatcher(old, new).get_grouped_opcodes(CONTEXT):
        (_, first, _, first_new, _), (_, _, last, _, last_new) = group[0], group[-1]
        yield f"@@ -{_format_range(first, last)} +{_format_range(first_new, last_new)} @@\n"
        for tag, start, end, start_new, end_new in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[start:end])
            else:
                yield from (f"-{line}" for line in old[start:end])
                yield from (f"+{line}" for line in new[start_new:end_new])


def _format_range(start: int, end: int) -> str:
    """Return the lines of one side of a hunk; without lines, the number is that of the line above."""
    count = end - start
    return f"{start + 1}" if count == 1 else f"{start + 1 if count else start},{count}"


class LineMatcher(difflib.SequenceMatcher[str]):
    """Finds equal lines of two texts; after STEPS, all that is left counts as replaced."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(None, old, new)
        partners: dict[str, list[int]] = self.b2j  # type: ignore[attr-defined]  # documented, but not in the types
        self._pairs = [0, *accumulate(1 + len(partners.get(line, ())) for line in old)]
        self._left = STEPS

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        """Return the longest run of equal lines; an empty one after STEPS."""
        ahi = len(self._pairs) - 1 if ahi is None else ahi
        self._left -= self._pairs[ahi] - self._pairs[alo]
        return super().find_longest_match(alo, ahi, blo, bhi) if self._left > 0 else difflib.Match(alo, blo, 0)


def parse_diff(text: str) -> tuple[Hunk, ...]:
    """Return the hunks of a diff; headers of files are skipped. Raises DiffError."""
    hunks: list[tuple[int, list[DiffLine]]] = []
    for line in text.replace("\r\n", "\n").rstrip("\n").split("\n"):
        if match := _HUNK.match(line):
            hunks.append((int(match[1]), []))
        elif hunks:
            _add_line(hunks[-1][1], line)
        elif line.strip() and not line.startswith(_FILE_HEADERS):
            raise DiffError("it must begin with `@@ -1,3 +1,4 @@`, or with the two lines that name the file before it")
    if not hunks:
        raise DiffError("it has no line that begins with `@@`")
    if not any(line.kind != " " for _, lines in hunks for line in lines):
        raise DiffError("it has no line that begins with `+` or `-`")
    return tuple(Hunk(start, tuple(lines)) for start, lines in hunks)


def _add_line(lines: list[DiffLine], line: str) -> None:
    match line[:1]:
        case " " | "-" | "+" as kind:
            lines.append(DiffLine(kind, line[1:]))
        case "":
            lines.append(DiffLine(" ", ""))  # some programs remove the blank of an empty line
        case "\\" if lines:
            lines[-1] = DiffLine(lines[-1].kind, lines[-1].text, ends=False)
        case _:
            raise DiffError(f"the line {line[:80]!r} begins with none of the characters `+`, `-` and blank")


class _PlainLines:
    """Holds the lines of a text without their line ends, and finds successive lines among them."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._text = _join_lines(lines)
        self._starts = [0, *accumulate(1 + len(line) for line in lines)]  # of the line end before each line

    def find(self, wanted: Sequence[str], least: int) -> list[int]:
        """Return where `wanted` is, from line `least` on; two places at most."""
        places: list[int] = []
        text, at = _join_lines(wanted), self._starts[least] - 1
        while len(places) < 2 and (at := self._text.find(text, at + 1)) >= 0:
            places.append(bisect_left(self._starts, at))
        return places


def _join_lines(lines: Sequence[str]) -> str:
    return "".join(f"\n{line}" for line in lines) + "\n"


def apply_hunks(hunks: Sequence[Hunk], text: str) -> str:
    """Return `text` after the changes. A hunk whose line number is wrong is applied where its lines are, if that is one place.

    Raises DiffError."""
    lines, end = _LINE.findall(text), line_end_of(text)
    plain = _PlainLines([line.removesuffix("\n").removesuffix("\r") for line in lines])
    made: list[str] = []
    done = drift = 0  # lines of the text that were copied; how far the last hunk was from its line number
    for number, hunk in enumerate(hunks, 1):
        at = _find_place(plain, hunk, done, drift, number)
        made += lines[done:at]
        drift, done = at - _expected_place(hunk), at + len(hunk.before)
        made += _changed_lines(hunk, lines[at:done], end)
    made += lines[done:]
    for number, line in enumerate(made[:-1]):  # the line that ended the text has others after it now
        if not line.endswith("\n"):
            made[number] = f"{line}{end}"
    return "".join(made)


def _changed_lines(hunk: Hunk, there: Sequence[str], end: str) -> Iterator[str]:
    """Yield the lines at the place of a hunk after the change; a line that stays keeps its bytes."""
    remaining = iter(there)
    for line in hunk.lines:
        if line.kind == "+":
            yield f"{line.text}{end if line.ends else ''}"
        else:
            kept = next(remaining)
            if line.kind == " ":
                yield kept


def _expected_place(hunk: Hunk) -> int:
    """Return the 0-based line at which a hunk begins; without a line before, its number is that of the line above."""
    return max(0, hunk.start - 1) if hunk.before else hunk.start


def _find_place(plain: _PlainLines, hunk: Hunk, least: int, drift: int, number: int) -> int:
    before, expected = hunk.before, _expected_place(hunk) + drift
    count = len(plain.lines)
    if not before:
        if count and expected > count:
            raise DiffError(f"its part {number} names no line of the text")
        return min(max(expected, least), count)
    if least <= expected and plain.lines[expected : expected + len(before)] == before:
        return expected
    places = plain.find(before, least)
    if len(places) != 1:
        where = "are in more than one place" if places else "are not in the text, in this order"
        raise DiffError(f"the lines of its part {number} {where}")
    return places[0]


def _one_line(path: str) -> str:
    return " ".join(path.split())
