"""Make records and facts of captures, for tests of the context."""

from __future__ import annotations

import uuid
from typing import Any

from index.model import Record
from syncd.context.fact_reader import words_of
from syncd.context.note_facts import ContextFact, WeighedFact

DAY_MS = 86_400_000
WRITTEN = 1_780_000_000_000  # 2026-05-28
_SPACE = uuid.UUID(int=1)


def record(path: str = "Captures/default/A.md", **fields: Any) -> Record:
    """Return the row of a capture at `path`."""
    usual: dict[str, Any] = {
        "id": str(uuid.uuid5(_SPACE, path)), "path": path, "scope": "captures", "workspace": "default", "namespace": "default",
        "type": "note", "title": "A", "digest": "d", "content_hash": "h", "collection": "documents", "tags": (), "aliases": (),
        "summary": None, "source": "claude-code", "metadata": {}, "created_at": WRITTEN, "updated_at": None, "version": 1,
        "chunks": 1, "defects": (), "writable": True, "file": None, "superseded_by": None,
        "summary_derived": False,
    }  # fmt: skip
    return Record(**usual | fields)


def fact(text: str, *, days: int = 0, key: str = "", **fields: Any) -> ContextFact:
    """Return a fact that is `days` older than the newest."""
    usual: dict[str, Any] = {
        "key": key or str(uuid.uuid5(_SPACE, text)), "path": f"Captures/default/{text[:20]}.md", "title": text, "namespace": "default",
        "type": "note", "text": text, "at": WRITTEN - days * DAY_MS, "author": "claude-code", "stale": False,
    }  # fmt: skip
    return ContextFact(**usual | fields)


def weigh(*facts: ContextFact) -> list[WeighedFact]:
    """Return the facts with their words, and one token for each word of their lines."""
    return [WeighedFact(one, len(one.line.split()), words_of(one.text)) for one in facts]
