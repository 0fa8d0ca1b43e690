"""A change note is the capture that holds a proposed change: what it is for, and the diff of the note in a fenced block.

Laws, tested: what was composed reads back; no reason and no diff can end the fence, hide text or add a property."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from index.errors import InvalidArgument
from index.names import base_name
from syncd.changes.unified_diff import DiffError, Hunk, parse_diff
from syncd.documents.capture_note import CHANGE, DIFF_FENCE
from syncd.notes.front_matter import FrontmatterError, read_properties, split
from syncd.notes.quoted_text import quote_inline
from syncd.notes.timestamps import iso

TARGET, BASE, REASON, WORKSPACE = "target", "base", "reason", "workspace"
MAX_REASON: Final = 500  # characters
_UNLINKABLE: Final = frozenset("#^[]|")


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """Holds a proposed change of the note at `target`; `base` is the SHA-256 of the note that it was made for."""

    target: str
    base: str
    reason: str
    hunks: tuple[Hunk, ...]


def check_reason(reason: str) -> str:
    """Return the reason on one line. Raises InvalidArgument if it is empty or too long."""
    words = " ".join(reason.split())
    if not words or len(words) > MAX_REASON or any(ord(character) < 32 or character == "\x7f" for character in words):
        raise InvalidArgument(
            f"reason must be a sentence of 1 to {MAX_REASON} printable characters that the owner reads", field="reason"
        )
    return words


def change_title(target: str) -> str:
    """Return the title of the change note for the note at `target`."""
    return f"Change of {base_name(target).removesuffix('.md')}"


def change_properties(
    *,
    id: str,
    created_at: int,
    target: str,
    base: str,
    reason: str,
    agent: str,
    workspace: str,
    title: str | None = None,
) -> dict[str, Any]:
    """Return the properties of a change note, in the order in which they are written."""
    values = {"id": id, "created_at": iso(created_at), "type": CHANGE, "title": title, "source": agent}
    values |= {TARGET: target, BASE: base, REASON: reason, WORKSPACE: workspace}
    return {key: value for key, value in values.items() if value}


def compose_body(target: str, base: str, reason: str, diff: str) -> str:
    """Return the text of a change note. It names all that makes two proposals differ."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", diff)), default=0))
    note = f"`{target}`" if _UNLINKABLE & set(target) else f"[[{target.removesuffix('.md')}]]"
    return (
        f"> {quote_inline(reason, MAX_REASON)}\n\nAn agent proposes this change of {note} (version `{base[:12]}`).\n\n"
        f"{fence}diff\n{diff}{fence}\n\n"
        "Tick `promote` to apply it, or set `review: dismissed`. You may correct the lines that begin with `+` before.\n"
    )


def read_change(text: str) -> ProposedChange:
    """Return the change that a note with this text proposes. Raises InvalidArgument if it can't be read."""
    front, body = split(text)
    try:
        properties = read_properties(front)
    except FrontmatterError as error:
        raise InvalidArgument(f"the properties of the proposed change can't be read: {error}") from error
    target, base, reason = (_text_of(properties, name) for name in (TARGET, BASE, REASON))
    if not target:
        raise InvalidArgument("the proposed change has no property `target` that names its note")
    try:
        return ProposedChange(target, base, reason, parse_diff(_diff_of(body)))
    except DiffError as error:
        raise InvalidArgument(f"the diff of the proposed change can't be read: {error}") from error


def _diff_of(body: str) -> str:
    """Return the text in the fenced block of a diff. Raises DiffError."""
    text = body.replace("\r\n", "\n")
    opening = DIFF_FENCE.search(text)
    if opening is None:
        raise DiffError("there is no block that begins with ```diff")
    closing = re.compile(rf"^{opening[1]}`*[ \t]*$", re.MULTILINE).search(text, opening.end())
    if closing is None:
        raise DiffError("the block ```diff has no end")
    return text[opening.end() : closing.start()]


def _text_of(properties: Mapping[str, Any], name: str) -> str:
    value = next((value for key, value in properties.items() if key.casefold() == name), "")
    return value if isinstance(value, str) else ""
