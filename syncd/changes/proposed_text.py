"""Decide the proposed text of a shared note from what an agent asks for, or refuse it with the reason.

Laws, tested: an agent's change sets and removes no property that Memex or the owner decides about, whether it comes as a text,
as a patch or as properties; what an agent does not name keeps its bytes, line ends included."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from index.errors import InvalidArgument, ResourceExhausted
from syncd.changes.unified_diff import DiffError, apply_hunks, compose_diff, line_end_of, parse_diff
from syncd.documents.capture_note import MAX_CONTENT, check_content
from syncd.notes.front_matter import (
    OWNED,
    FrontmatterError,
    PropertyValue,
    comparable_key,
    edit,
    is_publishing,
    read_properties,
    replace_body,
    split,
)
from syncd.vault.path_rules import is_utf8

_BARE_CR: Final = re.compile(r"\r(?!\n)")  # Obsidian begins a line after it, so a line of a diff would be shown as two
PROPOSABLE: Final = frozenset({"tags", "title", "summary"})  # of the reserved properties: they only describe a note


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """Holds what an agent asks for: the whole new text or a patch, and properties (None = remove)."""

    text: str | None = None
    patch: str | None = None
    properties: Mapping[str, PropertyValue] | None = None


def propose_text(current: str, request: ChangeRequest) -> str:
    """Return the whole note that an agent proposes in place of `current`. Raises InvalidArgument or ResourceExhausted."""
    if request.text is not None and request.patch is not None:
        raise InvalidArgument("give the whole new text as `text` or a diff as `patch`, not both", field="patch")
    if "\0" in current or _BARE_CR.search(current) or not is_utf8(current):
        raise InvalidArgument(
            "the note is not valid text with usual line ends, so no change of it can be proposed; tell the owner"
        )
    body = split(current)[1]
    try:
        changed = edit(current, _allowed_properties(request.properties or {}))
    except FrontmatterError as error:
        raise InvalidArgument(f"the properties can't be changed so: {error}", field="properties") from error
    proposed = replace_body(changed, _proposed_body(body, request))
    if not compose_diff(current, proposed, ""):
        raise InvalidArgument("the proposed text is that of the note: there is nothing to change")
    return proposed


def decided_properties(text: str) -> dict[str, Any]:
    """Return the properties of a note that no proposed change may set, by comparable name. Raises FrontmatterError."""
    named = {comparable_key(key): value for key, value in read_properties(split(text)[0]).items()}
    return {key: value for key, value in named.items() if _is_decided(key)}


def _allowed_properties(properties: Mapping[str, PropertyValue]) -> dict[str, PropertyValue]:
    for key in properties:
        if _is_decided(key):
            raise InvalidArgument(
                f"the property {key[:100]!r} is not yours to propose: only the owner or Memex decides about it",
                field="properties",
            )
        if not key.strip() or len(key) > 128 or not key.isprintable():
            raise InvalidArgument("the name of a property must be 1 to 128 printable characters", field="properties")
    return dict(properties)


def _is_decided(key: str) -> bool:
    name = comparable_key(key)
    return name in OWNED - PROPOSABLE or is_publishing(key) or name.startswith("suggested_")


def _proposed_body(body: str, request: ChangeRequest) -> str:
    if request.patch is not None:
        check_content(request.patch)
        try:
            proposed = apply_hunks(parse_diff(request.patch), body)
        except DiffError as error:
            raise InvalidArgument(
                f"the patch can't be applied to the note: {error}; read the note again, and name more lines around the change",
                field="patch",
            ) from error
    elif request.text is not None:
        check_content(request.text)
        proposed = re.sub(r"\r\n?|\n", line_end_of(body), request.text)
    else:
        return body
    if split(proposed)[0] and not split(body)[0]:
        raise InvalidArgument(
            "text must not begin with properties between `---` lines: leave them out, and name changes in `properties`",
            field="text",
        )
    if "\0" in proposed:
        raise InvalidArgument("the text contains NUL characters, so it is not text", field="text")
    if _BARE_CR.search(proposed):
        raise InvalidArgument(
            "a line of the patch contains a CR character: remove it, or begin a line there", field="patch"
        )
    if len(proposed.encode()) > MAX_CONTENT:
        raise ResourceExhausted(f"the changed note would exceed {MAX_CONTENT:,} bytes", limit=MAX_CONTENT)
    return proposed
