"""Write rows of documents into a catalog, for tests of the code that reads the catalog."""

from __future__ import annotations

from index.catalog.catalog import Catalog
from index.model import Document, Stat

STAT = Stat(size=10, mtime_ns=20, ino=30)


def document(path: str = "Captures/default/A.md", **given) -> Document:
    fields = {
        "path": path, "scope": "captures", "workspace": "default", "namespace": "default", "claimed_id": None, "type": "note",
        "title": "A", "content": "text", "text": "text", "digest": "d1", "content_hash": f"hash of {path}", "collection": "documents",
        "tags": (), "aliases": (), "summary": None, "source": None, "metadata": {}, "created_at": 1_000, "updated_at": None, "version": 1,
    }  # fmt: skip
    return Document(**fields | given)


def write(catalog: Catalog, *documents: Document, removes=()) -> int:
    return catalog.write(upserts=[(one, STAT, 2, True) for one in documents], removes=removes)
