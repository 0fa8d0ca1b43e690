"""Add to an answer the URL at which the owner's Obsidian opens each note.

A note that is read or written by itself always has one. In lists it costs a model more than it gives, so hits have it
over REST and where the whole text was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel

from mcp_server.operations.wire_format import NoteLink

T = TypeVar("T", bound=BaseModel)


def link_notes(answer: T, url: Callable[[str], str], *, every: bool) -> T:
    """The answer with its URLs, where `url` makes one of a path; of `every` note, hits too."""
    changed: dict[str, Any] = {}
    for name in type(answer).model_fields:
        part = getattr(answer, name)
        if isinstance(part, list) and part and isinstance(part[0], BaseModel):
            changed[name] = [link_notes(item, url, every=every) for item in part]
    if isinstance(answer, NoteLink) and (every or answer.is_whole) and (path := answer.place()):
        changed["url"] = url(path)
    return answer.model_copy(update=changed) if changed else answer
