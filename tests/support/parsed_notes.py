"""Parse notes for tests, and list their defects."""

from __future__ import annotations

from index.model import COLLECTIONS
from syncd.documents import parser


def parse(raw, path, *, mtime_ms=0, inbox="Captures", collections=COLLECTIONS):
    return parser.parse(raw, path, mtime_ms=mtime_ms, inbox=inbox, collections=collections)


def parsed(text, path="Garden/Note.md"):
    return parse(text.encode() if isinstance(text, str) else text, path, mtime_ms=1_700_000_000_000)


def names(document):
    return [defect.name for defect in document.defects]
