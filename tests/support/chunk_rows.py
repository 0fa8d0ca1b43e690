"""Generate rows and vectors for tests of the chunk store from a seed, and search the store."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from index.model import Filter
from index.query import tag_keys
from index.storage.chunk_rows import Row
from index.storage.chunk_store import ChunkStore

DIMENSIONS = 16
ALL = Filter()


def unit(seed: Any, dimensions: int = DIMENSIONS) -> np.ndarray:
    """Return a unit vector that depends on `seed` alone."""
    digest = int.from_bytes(hashlib.sha256(repr(seed).encode()).digest()[:8])
    vector = np.random.default_rng(digest).standard_normal(dimensions).astype(np.float32)
    return vector / np.linalg.norm(vector)


def row(doc_id: str = "a", ord: int = 0, text: str = "hello world", **given: Any) -> Row:
    """Return a row of document `doc_id`; its vector is that of its text."""
    fields: dict[str, Any] = {
        "chunk_id": f"{doc_id}-{ord}",
        "doc_id": doc_id,
        "ord": ord,
        "workspace": "default",
        "namespace": "default",
        "collection": "documents",
        "type": "note",
        "source": None,
        "tags": (),
        "created_at": 1_000,
        "digest": hashlib.sha256(text.encode()).hexdigest(),
        "heading": "",
        "cut": 0,
        "text": text,
        "vector": unit(text),
    }
    fields |= given
    fields["tags"] = tag_keys(fields["tags"])
    return Row(**fields)


def near(store: ChunkStore, text: str, filter: Filter = ALL, pool: int = 10) -> list[str]:
    return [match.doc_id for match in store.search(vector=unit(text), words=None, filter=filter, pool=pool)[0]]


def found(store: ChunkStore, words: str, filter: Filter = ALL, pool: int = 10) -> list[str]:
    return [match.doc_id for match in store.search(vector=None, words=words, filter=filter, pool=pool)[1]]
