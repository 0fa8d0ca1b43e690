"""Parse notes for tests, and list their defects."""

from __future__ import annotations

from syncd.documents.parser import parse


def parsed(text, path="Garden/Note.md"):
    return parse(text.encode() if isinstance(text, str) else text, path, mtime_ms=1_700_000_000_000)


def names(document):
    return [defect.name for defect in document.defects]
