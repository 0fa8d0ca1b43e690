"""Add to an answer the URL at which the owner's Obsidian opens each note.

A note that is read or written alone always has a URL. In lists the URL costs a model more than it helps, so hits have it
only over REST and when the request asks for whole texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel

from mcp_server.operations.wire_format import NoteLink

T = TypeVar("T", bound=BaseModel)


def link_notes(answer: T, url: Callable[[str, bool], str], *, every: bool) -> T:
    """Add URLs to the answer, made by `url` from each note's path and whether it is shared; with `every`, also to hits."""
    changed: dict[str, Any] = {}
    for name in type(answer).model_fields:
        part = getattr(answer, name)
        if isinstance(part, list) and part and isinstance(part[0], BaseModel):
            changed[name] = [link_notes(item, url, every=every) for item in part]
    if isinstance(answer, NoteLink) and (every or answer.is_whole) and (path := answer.place()):
        changed["url"] = url(path, getattr(answer, "scope", None) is not None)
    return answer.model_copy(update=changed) if changed else answer
