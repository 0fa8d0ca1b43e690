"""Remove the target of each link in converted Markdown that does not lead to the web, to mail or to a note.

Law, tested: whatever the text, no link of the result has another scheme; code blocks stay unchanged."""

from __future__ import annotations

from typing import Final

from index.text.link_schemes import drop_forbidden
from syncd.notes.markdown_outline import parse_outline

TRIES: Final = 3  # rounds after which targets in code blocks are removed too


def drop_targets(text: str) -> str:
    """Remove the targets that are not allowed from `text`. Code blocks stay unchanged."""
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
    return drop_forbidden(text)  # in each round, HTML turned into a line that begins or ends a code block


def _code_lines(text: str) -> list[tuple[int, int]]:
    """Return the lines of each code block outside lists and quotes: the first, and the one after the last."""
    outline = parse_outline(text)
    return [
        (outline.text.count("\n", 0, block.start), outline.text.count("\n", 0, block.end) + 1)
        for block in outline.blocks
        if block.kind == "code"
    ]
