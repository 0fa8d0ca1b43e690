"""Define the stored row of a chunk and the match of a search, and turn a filter into a condition on rows.

No other module converts a filter to SQL. Law, tested with hostile values: a filter matches only rows of its own
workspace, whatever its fields contain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from index.document_ids import ID
from index.errors import InvalidArgument
from index.model import Filter
from index.query import tag_key

MOST: Final = 1_000  # most matches of one search by vector or by words
EQUAL: Final = ("workspace", "namespace", "collection", "type", "source")  # fields of a filter that a row must equal
_BIGGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Row:
    """Holds a chunk as it is stored. `text` is the embedded text with its context; the passage itself is `text[cut:]`."""

    chunk_id: str
    doc_id: str
    ord: int
    workspace: str
    namespace: str
    collection: str
    type: str
    source: str | None
    tags: tuple[str, ...]  # as `query.tag_keys` returns them
    created_at: int
    digest: str  # of `text`: equal digests have equal vectors
    heading: str
    cut: int
    text: str
    vector: np.ndarray | None  # float32, unit length; None when no encoder was ready


class VectorBatch(NamedTuple):
    """Holds rows that have a vector, by column; each heading is a number."""

    doc_ids: Sequence[str]
    ords: Sequence[int]
    workspaces: Sequence[str]
    types: Sequence[str]
    headings: Sequence[int]
    vectors: NDArray[np.float32]  # [rows, dimensions]


class Match(NamedTuple):  # a search makes many, and a frozen dataclass takes three times as long to make
    """Describes a chunk that a search found; `value` is its BM25 score or its cosine similarity."""

    doc_id: str
    ord: int
    workspace: str
    heading: str
    cut: int
    text: str
    value: float


def check_rows(documents: Mapping[str, Collection[Row]]) -> None:
    """Check that each row is under its own document, and none is there twice. Raises InvalidArgument for a lone surrogate."""
    assert all(ID.match(doc_id) for doc_id in documents), f"a malformed id among {sorted(documents)[:3]}"
    ids = set()
    for doc_id, chunks in documents.items():
        for row in chunks:
            assert row.doc_id == doc_id, "a row of another document"
            check_encodable(row.doc_id, *(value for value in _texts(row) if value is not None))
            ids.add(row.chunk_id)
    assert len(ids) == sum(map(len, documents.values())), "two rows with one chunk id"


def check_pool(pool: int) -> None:
    """Raise InvalidArgument unless a search can return so many matches."""
    if not 1 <= pool <= MOST:
        raise InvalidArgument(f"a pool of {pool} is not between 1 and {MOST}")


def check_encodable(name: str, *texts: str) -> None:
    """Raise InvalidArgument for a lone surrogate (half a character), which no store can save."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            at = f"{text[max(0, error.start - 20) : error.start]!r}"
            raise InvalidArgument(f"{name}: there is half a character (a lone surrogate) after {at}") from error


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Holds a filter in the form for comparisons with rows."""

    equal: Mapping[str, str]  # field → required value
    # Tags: None = any row passes, empty = no row passes.
    tags: frozenset[str] | None  # a row must have all of them
    any_tags: frozenset[str] | None  # a row must have at least one of them
    since: int | None
    until: int | None
    documents: frozenset[str] | None  # None = any row passes, empty = no row passes


def to_row_filter(restriction: Filter) -> RowFilter:
    """Convert `restriction`. Raises InvalidArgument for a lone surrogate in it."""
    equal = {name: value for name in EQUAL if (value := getattr(restriction, name)) is not None}
    tags, any_tags = _tag_keys(restriction.tags), _tag_keys(restriction.any_tags)
    check_encodable("the filter", *equal.values(), *sorted(tags or ()), *sorted(any_tags or ()))
    since, until = (None if time is None else _clamp(time) for time in (restriction.since, restriction.until))
    check_encodable("the filter", *sorted(restriction.documents or ()))
    return RowFilter(equal, tags, any_tags, since, until, restriction.documents)


def sql_condition(restriction: Filter, quote: Callable[[Any], str]) -> str | None:
    """Return `restriction` as an SQL condition, with each value quoted by `quote`; None when it restricts nothing."""
    row_filter = to_row_filter(restriction)
    parts = [f"{column} = {quote(value)}" for column, value in row_filter.equal.items()]
    for function, tags in (("array_has_all", row_filter.tags), ("array_has_any", row_filter.any_tags)):
        if tags is not None:
            parts.append(f"{function}(tags, {quote(sorted(tags))})" if tags else "false")
    if row_filter.since is not None:
        parts.append(f"created_at >= {quote(row_filter.since)}")
    if row_filter.until is not None:
        parts.append(f"created_at < {quote(row_filter.until)}")
    if row_filter.documents is not None:
        named = ", ".join(map(quote, sorted(row_filter.documents)))
        parts.append(f"doc_id IN ({named})" if named else "false")
    return " AND ".join(parts) or None


def _tag_keys(tags: Sequence[str]) -> frozenset[str] | None:
    return frozenset(map(tag_key, tags)) - {""} if tags else None


def _texts(row: Row) -> tuple[str | None, ...]:
    return (
        row.chunk_id, row.workspace, row.namespace, row.collection, row.type, row.source, *row.tags, row.digest, row.heading, row.text,
    )  # fmt: skip


def _clamp(time: int) -> int:
    return max(-_BIGGEST, min(_BIGGEST, int(time)))
