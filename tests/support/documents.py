"""Make documents without the parser, for tests of the code that uses them."""

from __future__ import annotations

import hashlib
from typing import Any

from index.model import Block, Document


def document(
    *parts: tuple[str, str], path: str = "Captures/w/Note.md", title: str = "Note", between: str = "\n\n", **fields: Any
) -> Document:
    """Return a document of (kind, text) blocks; "heading" parts make the trail of what follows."""
    text, blocks = "", []
    trail: tuple[str, ...] = ()
    for kind, part in parts:
        if kind == "heading":
            level = len(part) - len(part.lstrip("#"))
            trail = trail[: level - 1]
        blocks.append(Block(kind, len(text), len(text) + len(part), trail))  # type: ignore[arg-type]  # free in tests
        if kind == "heading":
            trail = (*trail, part.lstrip("#").strip())
        text += part + between
    digest = hashlib.sha256(repr((path, title, text, sorted(fields.items()))).encode()).hexdigest()
    given: dict[str, Any] = {
        "path": path,
        "scope": "captures",
        "workspace": path.split("/")[1],
        "namespace": "default",
        "claimed_id": None,
        "type": "note",
        "title": title,
        "content": text,
        "text": text,
        "digest": digest,
        "content_hash": hashlib.sha256(text.encode()).hexdigest(),
        "collection": "documents",
        "tags": (),
        "aliases": (),
        "summary": None,
        "source": None,
        "metadata": {},
        "created_at": 1_000,
        "updated_at": None,
        "version": 1,
        "blocks": tuple(blocks),
    }
    return Document(**given | fields)


def note(path: str, *paragraphs: str, **fields: Any) -> Document:
    """Return a note of paragraphs, named for its file."""
    title = path.rpartition("/")[2].removesuffix(".md")
    return document(*(("paragraph", text) for text in paragraphs), path=path, **{"title": title} | fields)
