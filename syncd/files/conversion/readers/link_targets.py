"""Take the target from each link in converted Markdown that leads elsewhere than to the web, to mail or to a note.

Law, tested: whatever the text, no link of the result has another scheme; blocks of code stay as they are."""

from __future__ import annotations

from typing import Final

from index.text.link_schemes import drop_forbidden
from syncd.notes.markdown_outline import parse_outline

TRIES: Final = 3  # after which targets in code go too


def drop_targets(text: str) -> str:
    """`text` without the targets that are not allowed. Blocks of code stay as they are."""
    for _ in range(TRIES):
        if drop_forbidden(text) == text:
            return text
        lines, parts, at = text.split("\n"), [], 0
        for first, behind in [*_code_lines(text), (text.count("\n") + 1,) * 2]:
            parts += [drop_forbidden("\n".join(lines[at:first]))] if first > at else []
            parts += ["\n".join(lines[first:behind])] if behind > first else []
            at = behind
        before, text = text, "\n".join(parts)
        if text == before:
            return text
    return drop_forbidden(text)  # each time what had been HTML became a line that begins or ends a block of code


def _code_lines(text: str) -> list[tuple[int, int]]:
    """The lines of each block of code that lies in no list and no quote: the first, and the one behind the last."""
    outline = parse_outline(text)
    return [
        (outline.text.count("\n", 0, block.start), outline.text.count("\n", 0, block.end) + 1)
        for block in outline.blocks
        if block.kind == "code"
    ]
