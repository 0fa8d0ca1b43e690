"""Find and remove the block ids at the end of an observation: Memex's id with the ordinal, and a person's link anchor.

Laws, tested: time is linear in the text. Obsidian reads the last id of a block, so a person's id always stays last."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

# Starts of lines that don't begin a paragraph.
BLOCK = re.compile(r"[ \t]*(?:(?:[-+*]|[0-9]{1,9}[.)])(?:[ \t]|\Z)|`{3}|~{3}|[>|#])")

_ID = re.compile(r"\^[A-Za-z0-9-]++")
_OURS = re.compile(r"\^[oO][1-9][0-9]{0,11}")


@dataclass(frozen=True, slots=True)
class BlockId:
    """Describes a block id, `lines[line][start:end]`."""

    line: int
    start: int
    end: int
    text: str

    @property
    def ordinal(self) -> int:
        """Return the ordinal in an id made by Memex."""
        return int(self.text[2:])


def find_block_ids(inner: Sequence[str], paragraph: int) -> tuple[BlockId | None, BlockId | None]:
    """Find Memex's id and a person's id in the lines of an item; its own first paragraph has `paragraph` lines.

    Memex's id is on the last line that contains only ids, or else at the end of the last paragraph line that ends in
    one. A person's id is on the same line, or after it: at the end of the paragraph, or of the item on a separate
    line."""
    ours = _find_ours(inner, paragraph)
    if ours:
        theirs = _find_at_end(ours.line, inner[ours.line])[1]
        if theirs:
            return ours, theirs
    first = ours.line + 1 if ours else 0
    last = len(inner) - 1
    if (
        last >= max(first, 1)
        and not needs_blank_line(inner[:last])
        and len(inner[last]) - len(inner[last].lstrip()) < 2
    ):
        last_ours, theirs = _find_at_end(last, inner[last])
        if theirs and not last_ours and not inner[last][: theirs.start].strip():
            return ours, theirs
    if paragraph > first:
        return ours, _find_at_end(paragraph - 1, inner[paragraph - 1])[1]
    return ours, None


def remove_block_ids(inner: Sequence[str], ids: Sequence[BlockId]) -> str:
    """Return the lines without these ids; lines that contained nothing else are removed."""
    kept = list(inner)
    cuts = {at: min(id.start for id in ids if id.line == at) for at in {id.line for id in ids}}
    for at in sorted(cuts, reverse=True):
        left = inner[at][: max(0, cuts[at] - 1)]
        kept[at : at + 1] = [left] if left.strip() else []
    return "\n".join(kept).strip()


def needs_blank_line(above: Sequence[str]) -> bool:
    """Return whether an id on the next line would count as the end of a nested list or a quote."""
    return any(BLOCK.match(line) for line in takewhile(str.strip, reversed(above)))


def ends_like_block_id(line: str) -> bool:
    """Return whether a text ends in a person's id, so that Memex's id can't follow on its line."""
    return _find_at_end(0, line)[1] is not None


def _find_ours(inner: Sequence[str], paragraph: int) -> BlockId | None:
    for at in range(len(inner) - 1, 0, -1):
        ours, theirs = _find_at_end(at, inner[at])
        if ours and not inner[at][: min(ours.start, theirs.start if theirs else ours.start)].strip():
            return ours
    for at in range(max(paragraph, 1) - 1, -1, -1):
        if ours := _find_at_end(at, inner[at])[0]:
            return ours
    return None


def _find_at_end(at: int, line: str) -> tuple[BlockId | None, BlockId | None]:
    """Return Memex's id and a person's id at the end of a line, in either order."""
    last = _last_id(at, line)
    if last is None:
        return None, None
    before = _last_id(at, line[: last.start])
    if _is_ours(last):
        return last, before if before and not _is_ours(before) else None
    return before if before and _is_ours(before) else None, last


def _is_ours(id: BlockId) -> bool:
    return _OURS.fullmatch(id.text) is not None


def _last_id(at: int, line: str) -> BlockId | None:
    end = len(line.rstrip())
    start = line.rfind("^", 0, end)
    if start < 0 or (start and not line[start - 1].isspace()) or not _ID.fullmatch(line, start, end):
        return None
    return BlockId(at, start, end, line[start:end])
