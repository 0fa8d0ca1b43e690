"""Measure the width of text in a terminal, and wrap text to a width.

Law, tested: no line from `wrap` is wider than requested, in any script, except a line that holds only a command
between backticks: broken, it could not be pasted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

NARROWEST = 2  # a wide character must fit
_WORD = re.compile(r"(?<!\S)`[^`]+`[^\s`]*(?!\S)|\S+")  # a command between backticks is one word


def width(text: str) -> int:
    """Count the cells that `text` takes: two for a wide character, none for an accent or a joiner."""
    return len(text) if text.isascii() else sum(map(_char_width, text))


def pad(text: str, cells: int) -> str:
    """Pad `text` on the right to at least `cells` cells."""
    return text + " " * (cells - width(text))


def wrap(text: str, cells: int) -> list[str]:
    """Wrap `text` to lines of at most `cells` cells, at spaces where possible."""
    cells = max(cells, NARROWEST)
    lines, line = [], ""
    for word in _WORD.findall(text):
        if line and width(line) + 1 + width(word) > cells:
            lines.append(line)
            line = ""
        *whole, rest = (word,) if word.startswith("`") and " " in word else _split_word(word, cells)
        lines += whole
        line = f"{line} {rest}" if line else rest
    return [*lines, line] if line or not lines else lines


def hang_indent(head: str, text: str, cells: int, indent: int | None = None) -> list[str]:
    """Wrap `text` after `head`; further lines are indented by `indent` cells, or else as far as `head` is long."""
    indent = len(head) if indent is None else indent
    first, *more = wrap(text, cells - indent)
    return [head + first, *(" " * indent + piece for piece in more)]


def _split_word(word: str, cells: int) -> Iterator[str]:
    piece, taken = "", 0
    for letter in word:
        wide = _char_width(letter)
        if taken + wide > cells:
            yield piece
            piece, taken = "", 0
        piece, taken = piece + letter, taken + wide
    yield piece


def _char_width(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
