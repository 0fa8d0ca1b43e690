"""What is stored of a chunk, what a search gets back, and the only place where a filter becomes text.

Law, tested with hostile values: a filter matches rows of its own workspace only, whatever its fields contain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from index.errors import InvalidArgument
from index.identity import ID
from index.model import Filter
from index.query import tag_key

_BIGGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Row:
    """A chunk as it is stored. `text` is what was embedded, context and all; the passage itself is `text[cut:]`."""

    chunk_id: str
    doc_id: str
    ord: int
    workspace: str
    namespace: str
    collection: str
    type: str
    source: str | None
    tags: tuple[str, ...]  # as `query.tag_keys` gives them
    created_at: int
    digest: str  # of `text`: equal digests have equal vectors
    heading: str
    cut: int
    text: str
    vector: np.ndarray | None  # float32, unit length; None when no encoder was ready


@dataclass(frozen=True, slots=True)
class Match:
    """A chunk that a search found; `value` is its BM25 score or its cosine similarity."""

    doc_id: str
    ord: int
    workspace: str
    heading: str
    cut: int
    text: str
    value: float


def checked(documents: Mapping[str, Sequence[Row]]) -> list[Row]:
    """All rows of `documents`, which are well formed: each under its own document, none twice."""
    rows = [row for chunks in documents.values() for row in chunks]
    assert all(ID.match(doc_id) for doc_id in documents), f"a malformed id among {sorted(documents)[:3]}"
    assert all(row.doc_id == doc_id for doc_id, own in documents.items() for row in own), "a row of another document"
    assert len({row.chunk_id for row in rows}) == len(rows), "two rows with one chunk id"
    for row in rows:
        encodable(row.doc_id, *(value for value in _texts(row) if value is not None))
    return rows


def encodable(name: str, *texts: str) -> None:
    """Refuse half a character (a lone surrogate), which no store can hold."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            at = f"{text[max(0, error.start - 20) : error.start]!r}"
            raise InvalidArgument(f"{name}: there is half a character (a lone surrogate) after {at}") from error


def where(restriction: Filter, quote: Callable[[Any], str]) -> str | None:
    """The condition of `restriction`, each value of it made by `quote`; None when it restricts nothing."""
    equal = {
        "workspace": restriction.workspace,
        "namespace": restriction.namespace,
        "collection": restriction.collection,
        "type": restriction.type,
        "source": restriction.source,
    }
    parts = [f"{column} = {quote(value)}" for column, value in equal.items() if value is not None]
    tags = sorted({tag_key(tag) for tag in restriction.tags} - {""})
    encodable("the filter", *(value for value in equal.values() if value is not None), *tags)
    if restriction.tags:
        parts.append(f"array_has_all(tags, {quote(tags)})" if tags else "false")
    if restriction.since is not None:
        parts.append(f"created_at >= {quote(_bounded(restriction.since))}")
    if restriction.until is not None:
        parts.append(f"created_at < {quote(_bounded(restriction.until))}")
    return " AND ".join(parts) or None


def _texts(row: Row) -> tuple[str | None, ...]:
    return (
        row.chunk_id, row.workspace, row.namespace, row.collection, row.type, row.source, *row.tags, row.digest, row.heading, row.text,
    )  # fmt: skip


def _bounded(time: int) -> int:
    return max(-_BIGGEST, min(_BIGGEST, int(time)))
