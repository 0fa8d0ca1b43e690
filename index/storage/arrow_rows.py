"""Convert rows to Arrow tables for LanceDB, and LanceDB's Arrow answers to rows and matches.

Only this module knows Arrow. Each row of an answer is checked again for the workspace that the query named."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np

# Read at the import: Arrow's own pool does not return memory to the system.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

import pyarrow as pa
import pyarrow.compute as pc

from index.errors import InvalidArgument
from index.model import Filter
from index.storage.chunk_rows import Match, Row, VectorBatch
from index.storage.resident_rows import to_unit_length

COLUMNS: Final = tuple(Row.__dataclass_fields__)
PLAIN: Final = COLUMNS[:-1]  # all except the vector
KEY: Final = ("doc_id", "ord")
PLACED: Final = (*KEY, "workspace", "heading")
SHOWN: Final = (*PLACED, "cut", "text")
NUMBERED: Final = (*KEY, "workspace", "type", "heading")
VECTORS: Final = (*NUMBERED, "vector")
TEXTS: Final = (*KEY, "cut", "text")  # columns for the texts of documents
_TEXTLESS: Final = {"cut": 0, "text": ""}
ADDED_ROWS: Final = 512  # rows added at a time: LanceDB needs about 2 KB of memory for each until it has written them
LENGTH: Final = 1_000.0  # largest absolute value in a vector, which fits into 16 bits


def schema(dimensions: int) -> pa.Schema:
    """Return the schema of the table."""
    text, number = pa.string(), pa.int32()
    kinds: dict[str, pa.DataType] = dict.fromkeys(PLAIN, text) | {"ord": number, "cut": number}
    kinds |= {"tags": pa.list_(text), "created_at": pa.int64(), "vector": pa.list_(pa.float16(), dimensions)}
    return pa.schema([pa.field(name, kinds[name], nullable=name in ("source", "vector")) for name in COLUMNS])


def to_batches(rows: Iterable[Row], dimensions: int) -> Iterator[pa.Table]:
    """Convert `rows` to Arrow tables for LanceDB, ADDED_ROWS rows at a time."""
    remaining = iter(rows)
    while batch := list(islice(remaining, ADDED_ROWS)):
        yield to_arrow(batch, dimensions)


def to_arrow(rows: Sequence[Row], dimensions: int) -> pa.Table:
    """Convert `rows` to an Arrow table for LanceDB. Vectors are stored in 16 bits, which changes a cosine by less than 0.001."""
    kinds = schema(dimensions)
    plain = [pa.array([getattr(row, name) for row in rows], kinds.field(name).type) for name in PLAIN]
    matrix = np.zeros((len(rows), dimensions), np.float16)
    for at, row in enumerate(rows):
        if row.vector is not None:
            matrix[at] = check_vector(row.vector, dimensions)
    empty = pa.array([row.vector is None for row in rows], pa.bool_())
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), dimensions, mask=empty)
    return pa.table([*plain, vectors], schema=kinds)


def check_vector(vector: np.ndarray, dimensions: int) -> np.ndarray:
    """Return `vector` as float32. Raises InvalidArgument if its shape or its values are invalid.

    For a vector with NaN, LanceDB would silently find nothing."""
    if vector.shape != (dimensions,):
        raise InvalidArgument(f"a vector of shape {vector.shape} where ({dimensions},) is stored")
    if not np.isfinite(vector).all() or np.abs(vector).max(initial=0.0) > LENGTH:
        raise InvalidArgument("a vector with values that are not numbers, or far from unit length")
    return np.asarray(vector, np.float32)


def read_matches(answer: pa.Table | None, restriction: Filter) -> list[Match]:
    """Read the matches in the answer of one query, best first, without repeats, and only those of the requested workspace.

    An answer with the columns `PLACED` gives matches without text."""
    by_key: dict[tuple[str, int], Match] = {}
    for values in answer.to_pylist() if answer is not None else ():
        score, distance = values.pop("_score", None), values.pop("_distance", None)
        match = Match(**_TEXTLESS | values, value=max(-1.0, 1.0 - distance) if score is None else score)
        if restriction.workspace is None or match.workspace == restriction.workspace:
            by_key.setdefault((match.doc_id, match.ord), match)
    return sorted(by_key.values(), key=lambda match: (-match.value, match.doc_id, match.ord))


def read_rows(table: pa.Table) -> list[Row]:
    """Read the rows that `Table.rows_of` found, in no order."""
    return [row for piece in table.to_batches(max_chunksize=1_000) for row in read_batch(piece)]


def read_batch(piece: pa.RecordBatch) -> Iterator[Row]:
    """Read the rows of a batch that holds all of `COLUMNS`, or all except the vector."""
    plain = piece.select(list(PLAIN)).to_pylist()
    has, vectors = [False] * len(plain), iter(())
    if "vector" in piece.schema.names:
        column = piece.column("vector")
        has, vectors = column.is_valid().to_pylist(), iter(_read_matrix(column))
    for values, is_embedded in zip(plain, has, strict=True):
        yield Row(**{**values, "tags": tuple(values["tags"])}, vector=next(vectors) if is_embedded else None)


def read_vector_batch(piece: pa.RecordBatch) -> VectorBatch:
    """Read the rows with a vector of a batch that holds `NUMBERED` and the vector; each heading must be a number."""
    piece = piece.filter(piece.column("vector").is_valid())
    columns = (piece.column(name) for name in NUMBERED)
    doc_ids, ords, workspaces, types, headings = (column.to_pylist() for column in columns)
    return VectorBatch(doc_ids, ords, workspaces, types, list(map(int, headings)), _read_matrix(piece.column("vector")))


def add_vectors(totals: dict[str, np.ndarray], piece: pa.RecordBatch) -> None:
    """Add the vectors in a batch of `doc_id` and `vector` to the totals of their documents."""
    column = piece.column("vector")
    ids = piece.column("doc_id").filter(column.is_valid()).dictionary_encode()
    if not len(ids):
        return
    order = np.argsort(numbers := ids.indices.to_numpy(), kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    sums = np.add.reduceat(_read_matrix(column)[order], starts, axis=0)
    for doc_id, total in zip(ids.dictionary.to_pylist(), sums, strict=True):
        totals[doc_id] = totals[doc_id] + total if doc_id in totals else total


def read_vectors(table: pa.Table) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the digests and vectors that `Table.vectors_of_digests` found."""
    for piece in table.to_batches():
        yield from zip(piece.column("digest").to_pylist(), _read_matrix(piece.column("vector")), strict=True)


def join_passages(tables: Iterable[pa.Table]) -> dict[str, str]:
    """Join the passages that `Table.texts` found, and return the text of each document."""
    passages: dict[str, list[tuple[int, str]]] = {}
    for table in tables:
        for values in table.to_pylist():
            passages.setdefault(values["doc_id"], []).append((values["ord"], values["text"][values["cut"] :]))
    return {doc_id: "\n".join(text for _, text in sorted(parts)) for doc_id, parts in passages.items()}


def read_unit_vectors(tables: Iterable[pa.Table]) -> Iterator[tuple[list[str], np.ndarray]]:
    """Yield batches of the vectors that `Table.vectors_of_documents` found: document ids, and vectors of unit length."""
    for table in tables:
        for piece in table.to_batches(max_chunksize=4_000):
            yield piece.column("doc_id").to_pylist(), to_unit_length(_read_matrix(piece.column("vector")))


def count_rows(table: pa.Table) -> dict[str, int]:
    """Count the rows of each document."""
    return {item["values"]: item["counts"] for item in pc.value_counts(table["doc_id"]).to_pylist()}


def _read_matrix(column: pa.FixedSizeListArray) -> np.ndarray:
    """Return the vectors as a matrix, without the missing ones."""
    flat: np.ndarray = column.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(-1, column.type.list_size).astype(np.float32)
