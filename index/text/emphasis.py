"""Remove the marks of emphasis from a line of Markdown: bold, slanted, struck and highlighted text.

A mark counts if CommonMark pairs it with another one: `2*3`, `a == b` and `snake_case` have none.

Laws, tested: it agrees with markdown-it-py; time is linear in the text."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from index.deferred_patterns import compile_later

STAND_INS: Final = range(0xE0000, 0xE1000)  # code points that no visible text has
_RUN = compile_later(r"\\.|\*+|_+|(?<!~)~~(?!~)|(?<!=)==(?!=)")

# The open runs that a closing run treats alike: the mark, the length modulo 3, and whether they could close too.
_Openers = dict[tuple[str, int, bool], list["_Run"]]


@dataclass(slots=True)
class _Run:
    """Describes the marks of a run that are not paired yet, `text[start:end]`."""

    mark: str
    start: int
    end: int
    length: int  # at first
    opens: bool
    closes: bool


def remove_emphasis(text: str) -> str:
    """Return `text` without marks of emphasis; a character of `STAND_INS` counts as a code span."""
    openers: _Openers = defaultdict(list)
    spans: list[tuple[int, int]] = []
    for match in _RUN.finditer(text):
        if match[0][0] == "\\":
            continue
        run = _read_run(text, *match.span())
        if run.closes:
            spans += _close(openers, run)
        if run.opens and run.start < run.end:
            openers[run.mark, run.length % 3, run.closes].append(run)
    kept, start = [], 0
    for begin, end in sorted(spans):
        kept.append(text[start:begin])
        start = end
    return "".join([*kept, text[start:]])


def _read_run(text: str, start: int, end: int) -> _Run:
    """Return the run `text[start:end]`; the characters around it decide what it can do."""
    before, after = text[start - 1 : start] or " ", text[end : end + 1] or " "
    sign_before, sign_after = _is_sign(before), _is_sign(after)
    left = not after.isspace() and (not sign_after or before.isspace() or sign_before)
    right = not before.isspace() and (not sign_before or after.isspace() or sign_after)
    opens, closes = left, right
    if text[start] == "_":
        opens, closes = left and (not right or sign_before), right and (not left or sign_after)
    return _Run(text[start], start, end, end - start, opens, closes)


def _is_sign(character: str) -> bool:
    return ord(character) in STAND_INS or unicodedata.category(character)[0] in "PS"


def _close(openers: _Openers, run: _Run) -> list[tuple[int, int]]:
    """Pair marks of `run` with the nearest open ones, and return the spans of all these marks."""
    spans = []
    while run.start < run.end:
        stacks = [
            stack
            for (mark, length, closes), stack in openers.items()
            if stack and mark == run.mark and not ((closes or run.opens) and _is_barred(length, run.length))
        ]
        if not stacks:
            break
        opener = max((stack[-1] for stack in stacks), key=lambda nearest: nearest.start)
        width = min(2, opener.end - opener.start, run.end - run.start)
        spans += [(opener.end - width, opener.end), (run.start, run.start + width)]
        opener.end -= width
        run.start += width
        for stack in openers.values():  # a mark between two that are paired has no meaning
            while stack and (stack[-1].start > opener.start or stack[-1].start == stack[-1].end):
                stack.pop()
    return spans


def _is_barred(length: int, other: int) -> bool:
    """Return whether two runs, one of which could both open and close, may not be paired: `*a**b*` has one emphasis."""
    return (length + other) % 3 == 0 and length % 3 != 0
