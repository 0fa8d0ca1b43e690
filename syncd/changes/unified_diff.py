"""A unified diff shows a person the change of one note, and is applied to the note once the person approves it.

Laws, tested: a diff that is applied to the text it was made from gives the wanted text; no line of the text that the diff
does not name changes, line ends included; a diff whose lines are not in the text, or not in one place only, is refused."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal[" ", "-", "+"]
CONTEXT: Final = 3  # unchanged lines around a change
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
    return "".join(
        line if line.endswith("\n") else f"{line}\n{NO_END}\n"
        for line in difflib.unified_diff(old, new, _one_line(path), _one_line(path), n=CONTEXT)
    )


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


def apply_hunks(hunks: Sequence[Hunk], text: str) -> str:
    """Return `text` after the changes. A hunk whose line number is wrong is applied where its lines are, if that is one place.

    Raises DiffError."""
    lines, end = _LINE.findall(text), line_end_of(text)
    plain = [line.removesuffix("\n").removesuffix("\r") for line in lines]
    made: list[str] = []
    done = drift = 0  # lines of the text that were copied; how far the last hunk was from its line number
    for number, hunk in enumerate(hunks, 1):
        at = _find_place(plain, hunk, done, drift, number)
        made += lines[done:at]
        drift, done = at - _expected_place(hunk), at + len(hunk.before)
        made += _changed_lines(hunk, lines[at:done], end)
    made += lines[done:]
    for number, line in enumerate(made[:-1]):  # the line that ended the text has others behind it now
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


def _find_place(plain: Sequence[str], hunk: Hunk, least: int, drift: int, number: int) -> int:
    before, expected = hunk.before, _expected_place(hunk) + drift
    last = len(plain) - len(before)
    if not before:
        if plain and expected > last:
            raise DiffError(f"its part {number} names no line of the text")
        return min(max(expected, least), len(plain))
    if least <= expected <= last and plain[expected : expected + len(before)] == before:
        return expected
    places = [at for at in range(least, last + 1) if plain[at] == before[0] and plain[at : at + len(before)] == before]
    if len(places) != 1:
        count = f"are in {len(places)} places" if places else "are not in the text, in this order"
        raise DiffError(f"the lines of its part {number} {count}")
    return places[0]


def _one_line(path: str) -> str:
    return " ".join(path.split())
