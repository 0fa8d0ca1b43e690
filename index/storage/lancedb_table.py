"""Access LanceDB: one table of chunks, its schema and indices, its maintenance, and every query on it.

Only this module calls LanceDB. It is asynchronous and runs on one event loop; `chunk_store.py` adds the locks, and
`arrow_rows.py` converts the rows for these calls and from their results."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from index.model import Filter
from index.storage import crash_repair, maintenance_policy
from index.storage.arrow_rows import COLUMNS, PLACED, PLAIN, SHOWN, TEXTS, add_vectors, count_rows, schema
from index.storage.chunk_rows import Match, Row, sql_condition
from index.storage.crash_repair import StoreDamaged
from index.storage.lancedb_import import (
    FTS,
    AsyncTable,
    Bitmap,
    BTree,
    IvfRq,
    IvfSq,
    LabelList,
    MatchQuery,
    lancedb,
    value_to_sql,
)
from index.storage.resident_rows import Rows

NAME: Final = "chunks"
VECTOR_INDEX: Final = "vector_idx"
FAILURES: Final = (RuntimeError, ValueError, OSError)  # what LanceDB raises, except panics: see `PanicAsFailure`

# MiB of memory that a merge of the word index fills before it writes a partition; LanceDB reads the variable at its first
# merge. The default of 2,048 took 220 MB for 570,000 different words, 2 takes 36 MB. A search reads every partition: at
# 100,000 rows, 15 partitions instead of one make it a millisecond slower.
os.environ.setdefault("LANCE_FTS_PARTITION_SIZE", "2")

TOKENIZER: Final[dict[str, Any]] = {
    "base_tokenizer": "icu/split",  # `simple`, the default, finds nothing inside a Japanese sentence
    "language": "English",
    "stem": True,
    "remove_stop_words": False,
    "ascii_folding": True,
}
INDICES: Final[dict[str, Any]] = {
    "doc_id": BTree(),
    "digest": BTree(),
    "workspace": Bitmap(),
    "type": Bitmap(),
    "tags": LabelList(),
    "text": FTS(**TOKENIZER),
}
# A new table lacks the other indices, which cover no row before maintenance; without this one, words are split otherwise.
FIRST: Final = ("text",)
VECTORS: Final[
    dict[str, Any]
] = {  # with the default sample rate, training takes a minute at 100,000 rows once some are deleted
    "sq": IvfSq(distance_type="cosine", sample_rate=32),
    "rq": IvfRq(distance_type="cosine", num_bits=4, sample_rate=64),
}
KINDS: Final[dict[str, maintenance_policy.VectorIndex]] = {"IVF_SQ": "sq", "IVF_RQ": "rq"}
NPROBES: Final = 20  # partitions of the vector index that a search reads
FEWER: Final = 6  # the same for a search with several points near the same rows: one point finds what another misses

INDEX_CACHE: Final = 256 << 20
METADATA_CACHE: Final = 2 << 20  # every commit adds to it until maintenance: 64 MB were full after 300, and no faster
BACK: Final = 8  # older versions that are tried when the newest can't be read
LOADED: Final = 1_000  # most rows of a batch when all rows are read
TERMS: Final = 5_000  # most values in one IN list
SEGMENTS: Final = 6  # most segments of the vector index; with more, it is rebuilt
UNSORTED: Final = 1_000  # most hashes of digests that wait to be sorted
# LanceDB decides by the wall clock which versions are old. The clock of a machine without a battery may jump by decades.
KEEP, DROP = timedelta(days=36_500), timedelta(milliseconds=1)


class HeldVectors(Protocol):
    """Describes what is in memory of rows that are too many to keep whole. It never changes, like `Rows`."""

    def replace(self, documents: Mapping[str, Collection[Row]]) -> HeldVectors:
        """Return a new state in which these documents have these rows."""

    def nearest(self, point: NDArray[np.float32], restriction: Filter, pool: int) -> list[Match]:
        """Return the nearest rows to `point` that pass `restriction`, best first."""

    def vector_sums(self, restriction: Filter) -> dict[str, NDArray[np.float32]]:
        """Return for each document the sum of its vectors that pass `restriction`."""


HeldRows: TypeAlias = Rows | HeldVectors


@dataclass(frozen=True, slots=True)
class TableView:
    """Holds what readers see: one version of the table and, if loaded, its rows in memory."""

    reader: AsyncTable
    held: HeldRows | None

    @property
    def rows(self) -> Rows | None:
        """Return the rows in memory if they are there with their words and texts."""
        return self.held if isinstance(self.held, Rows) else None

    @property
    def vectors(self) -> HeldVectors | None:
        """Return what is in memory of rows that are too many to keep whole."""
        return None if isinstance(self.held, Rows) else self.held


class Table:
    """Wraps the table of one database, with one handle for the writer and one for readers, which is fixed to a version."""

    fresh: bool  # created by `open`
    healed: bool  # restored to an older version by `open`: rows may be missing
    kind: maintenance_policy.VectorIndex  # kind of the vector index that readers use
    seen: TableView  # a search reads this attribute only once

    def __init__(self, uri: str, *, dimensions: int) -> None:
        self.dimensions = dimensions
        self.uri = uri
        folder = crash_repair.local_folder(uri)
        self.folder = folder / f"{NAME}.lance" if folder else None
        self._counts: dict[str, int] = {}  # rows of each document, as the only writer knows them
        self._digests = StoredDigests()
        self._options: dict[str, str] = {}
        self._undo: int | None = None  # the version to restore before the next write

    async def open(self, options: Mapping[str, str]) -> None:
        """Open, create or repair the table. Raises StoreDamaged if that fails."""
        self._options = dict(options)
        self._db = await self._connect()
        self.fresh = not await self._exists()
        self.healed = False if self.fresh else await self._mend()
        if self.fresh:
            await self._create()
        await self.renew(self._db)
        if not self.fresh:
            known = await self.select(("doc_id", "digest"))
            self._counts = count_rows(known)
            self._digests = StoredDigests(known["digest"].to_pylist())

    async def _create(self) -> None:
        """Create the table, empty."""
        table = await self._db.create_table(NAME, schema=schema(self.dimensions))
        await table.set_unenforced_primary_key("chunk_id")
        await _ensure_indices(table, FIRST)

    async def reconnect(self, *, warm: bool) -> Any:
        """Return a new connection; with `warm`, one that has already read what searches need.

        The cache of an old connection keeps files open that maintenance has replaced, so they still take disk space, and
        indices in memory, which few searches read while the rows are there."""
        db = await self._connect()
        if warm:
            table = await db.open_table(NAME)
            for index in await table.list_indices():
                await _can_query(table, index.columns[0])
        return db

    async def renew(self, db: Any, held: HeldRows | None = None) -> None:
        """Move both handles to the newest version, whose rows in memory are `held`, through the connection `db`."""
        self._writer, reader = await db.open_table(NAME), await db.open_table(NAME)
        self._db = db
        statistics = await reader.index_stats(VECTOR_INDEX)
        self.kind = KINDS[statistics.index_type] if statistics else "none"
        self.show_readers(reader, held)

    def show_readers(self, reader: AsyncTable, held: HeldRows | None) -> None:
        """Give this handle and these rows to all later readers."""
        self.seen = TableView(reader, held)

    async def replace(self, ids: Sequence[str], batches: Iterator[Any]) -> tuple[AsyncTable, int]:
        """Replace the rows of these documents; return a reader of the newest version and the number of rows removed.

        When there is nothing to do, no version is written."""
        await self.undo_write()
        known = [doc_id for doc_id in ids if doc_id in self._counts]
        batch = next(batches, None)
        if not known and batch is None:
            return await self._db.open_table(NAME), 0
        self._undo = await self._writer.version()
        try:
            with PanicAsFailure():
                for terms in _batches(known):
                    await self._writer.delete(_is_in("doc_id", terms))
                counts = Counter[str]()
                while batch is not None:
                    await self._writer.add(batch)
                    counts.update(count_rows(batch))
                    self._digests.add(batch["digest"].to_pylist())
                    batch = next(batches, None)
        except FAILURES:
            await self.undo_write()  # if this fails too (a full disk), the next write begins with it
            raise
        self._undo = None
        removed = sum(self._counts.pop(doc_id) for doc_id in known)
        self._counts.update((doc_id, counts[doc_id]) for doc_id in ids if counts[doc_id])  # with the caller's strings
        return await self._db.open_table(NAME), removed

    async def undo_write(self) -> None:
        """Restore the version before a failed write."""
        if self._undo is not None:
            writer = await self._db.open_table(NAME)
            await writer.checkout(self._undo)
            await writer.restore()
            self._writer, self._undo = writer, None

    async def search(
        self, reader: AsyncTable, point: np.ndarray | None, words: str | None, restriction: Filter, pool: int
    ) -> tuple[Any, Any]:
        """Return the rows nearest to `point`, and the rows that contain `words`; both queries run in parallel."""
        condition = sql_condition(restriction, value_to_sql)
        legs: dict[str, Any] = {}
        if point is not None:
            legs["_distance"] = self._nearest(reader, point, pool, NPROBES)
        if words and words.strip():
            # As a plain string, text in quotation marks would be a phrase query, for which the index lacks positions.
            legs["_score"] = reader.query().nearest_to_text(MatchQuery(words, "text"))  # type: ignore[call-arg]  # its defaults are Fields
        asked = [_run_query(leg, condition, [*SHOWN, value], pool) for value, leg in legs.items()]
        answers = dict(zip(legs, await asyncio.gather(*asked), strict=True))
        return answers.get("_distance"), answers.get("_score")

    async def nearest(self, view: TableView, asked: Sequence[tuple[np.ndarray, Filter]], pool: int) -> list[Any]:
        """Return the rows nearest to each of these points of one query, without their text; the queries run in parallel."""
        nprobes = FEWER if len(asked) > 1 else NPROBES
        legs = [
            (self._nearest(view.reader, point, pool, nprobes), sql_condition(restriction, value_to_sql))
            for point, restriction in asked
        ]
        return await asyncio.gather(
            *(_run_query(leg, condition, [*PLACED, "_distance"], pool) for leg, condition in legs)
        )

    def _nearest(self, reader: AsyncTable, point: np.ndarray, pool: int, nprobes: int) -> Any:
        near = reader.query().nearest_to(point).column("vector").distance_type("cosine")
        return near.nprobes(nprobes).refine_factor(maintenance_policy.refine_factor(self.kind, pool))

    async def select(self, columns: Sequence[str], condition: str | None = None) -> Any:
        """Return these columns of the rows that satisfy `condition`; None = of all rows."""
        query = self.seen.reader.query().select(list(columns))
        return await (query.where(condition) if condition else query).to_arrow()

    async def all_rows(self, columns: Sequence[str] = COLUMNS) -> tuple[int, Any]:
        """Return the number of rows that readers see, and a reader of their batches: all at once would need much memory."""
        reader = self.seen.reader
        query = reader.query().select(list(columns))
        return await reader.count_rows(), await query.to_batches(max_batch_length=LOADED)

    def known_digests(self, digests: Iterable[str]) -> set[str]:
        """Return those of `digests` that the table has or had, without reading it; very rarely another one too."""
        return {digest for digest in digests if digest in self._digests}

    async def vectors_of_digests(self, digests: Iterable[str]) -> list[Any]:
        """Return digest and vector of the rows with these digests, without rows that have no vector."""
        known = sorted(self.known_digests(digests))
        conditions = [f"{_is_in('digest', terms)} AND vector IS NOT NULL" for terms in _batches(known)]
        return [await self.select(("digest", "vector"), condition) for condition in conditions]

    async def vectors_of_documents(self, doc_ids: Collection[str]) -> list[Any]:
        """Return document and vector of the rows of these documents, without rows that have no vector."""
        known = [doc_id for doc_id in doc_ids if doc_id in self._counts]
        conditions = [f"{_is_in('doc_id', terms)} AND vector IS NOT NULL" for terms in _batches(known)]
        return [await self.select(("doc_id", "vector"), condition) for condition in conditions]

    async def texts(self, restriction: Filter, part: str) -> Any:
        """Return the columns TEXTS of the rows that pass `restriction`, of documents whose id begins with `part`."""
        assert part in tuple("0123456789abcdef"), "not a hexadecimal digit"
        begins = f"doc_id >= '{part}' AND doc_id < '{chr(ord(part) + 1)}'"
        condition = sql_condition(restriction, value_to_sql)
        return await self.select(TEXTS, f"({condition}) AND {begins}" if condition else begins)

    async def texts_of(self, doc_ids: Collection[str]) -> list[Any]:
        """Return the columns TEXTS of the rows of these documents."""
        known = sorted(doc_id for doc_id in doc_ids if doc_id in self._counts)
        return [await self.select(TEXTS, _is_in("doc_id", terms)) for terms in _batches(known)]

    async def rows_of(self, doc_id: str, *, vectors: bool) -> Any:
        """Return the rows of one document, with or without their vectors."""
        return await self.select(COLUMNS if vectors else PLAIN, _is_in("doc_id", [doc_id]))

    async def vector_sums(self, restriction: Filter) -> dict[str, np.ndarray]:
        """Return the sum of the vectors of each document's rows that pass `restriction`, reading one batch at a time."""
        condition, totals = sql_condition(restriction, value_to_sql), dict[str, np.ndarray]()
        query = self.seen.reader.query().select(["doc_id", "vector"])
        async for piece in await (query.where(condition) if condition else query).to_batches():
            add_vectors(totals, piece)
        return totals

    async def count(self) -> int:
        """Return the number of rows that readers see."""
        return int(await self.seen.reader.count_rows())

    async def maintenance_counts(self) -> tuple[int, int, int]:
        """Return the number of rows, of small fragments beyond the first, and of rows that the word index lacks."""
        stats: Any = await self.seen.reader.stats()  # a dict, whatever its annotation says
        words = await self.seen.reader.index_stats("text_idx")
        pieces = stats["fragment_stats"]["num_small_fragments"]
        return stats["num_rows"], max(0, pieces - 1), (words.num_unindexed_rows or 0) if words else 0

    async def version(self) -> int:
        """Return the newest version of the table, whichever handle wrote it."""
        return int(await (await self._db.open_table(NAME)).version())

    async def optimize(self, *, drop: timedelta = KEEP) -> int:
        """Merge small fragments and update the indices; return the resulting version.

        `drop`: also remove versions older than this. DROP removes all old versions, and every file that no version needs,
        including the files of a write in progress."""
        if drop == DROP:
            await self.undo_write()  # before the version that it restores is removed
        table = await self._db.open_table(NAME)
        await table.optimize(cleanup_older_than=drop, delete_unverified=drop == DROP)
        return int(await table.version())

    async def build_indices(self) -> None:
        """Create missing indices; that of vectors if there are enough, or if it is of the wrong kind or in many segments."""
        table = await self._db.open_table(NAME)
        await _ensure_indices(table, INDICES)
        wanted = maintenance_policy.choose_vector_index(await table.count_rows("vector IS NOT NULL"))
        statistics = await table.index_stats(VECTOR_INDEX)
        if wanted != "none" and (
            statistics is None or KINDS[statistics.index_type] != wanted or (statistics.num_indices or 0) > SEGMENTS
        ):
            await table.create_index("vector", config=VECTORS[wanted], replace=True)

    async def _connect(self) -> Any:
        session = lancedb.Session(index_cache_size_bytes=INDEX_CACHE, metadata_cache_size_bytes=METADATA_CACHE)
        return await lancedb.connect_async(self.uri, storage_options=self._options or None, session=session)

    async def _exists(self) -> bool:
        """Return whether a table exists, intact or not: a damaged table must not be replaced by an empty one."""
        if self.folder:
            return self.folder.is_dir() and any(self.folder.iterdir())
        return NAME in (await self._db.list_tables()).tables

    async def _mend(self) -> bool:
        """Repair the table as far as possible; return True if rows may be lost."""
        torn = self.folder is not None and crash_repair.drop_torn_manifests(self.folder)
        try:
            with PanicAsFailure():
                table = await self._db.open_table(NAME)
                columns = await table.schema()
        except FAILURES as error:
            raise StoreDamaged("the search index can't be opened; it must be rebuilt") from error
        if [(field.name, field.type) for field in columns] != [(f.name, f.type) for f in schema(self.dimensions)]:
            raise StoreDamaged("the search index was made for other columns or another model; it must be rebuilt")
        local = self.folder is not None  # an object store writes a file completely or not at all
        back = local and not await _is_readable(table)
        if back:
            await _restore_readable_version(table)
        await _ensure_indices(table, FIRST, probe=local)
        return torn or back


class StoredDigests:
    """Remembers which digests a table has stored, so that Memex does not query it for texts that it never had.

    It holds a 64-bit hash of each digest in 8 bytes; a set of them took 100. Equal hashes are rare and cost a query."""

    def __init__(self, digests: Iterable[str] = ()) -> None:
        self._sorted = np.empty(0, np.int64)
        self._unsorted: set[int] = set()
        self.add(digests)

    def __contains__(self, digest: str) -> bool:
        number = hash(digest)
        at = int(np.searchsorted(self._sorted, number))
        return number in self._unsorted or (at < len(self._sorted) and int(self._sorted[at]) == number)

    def add(self, digests: Iterable[str]) -> None:
        """Add digests; those that the table loses again stay."""
        self._unsorted.update(map(hash, digests))
        if len(self._unsorted) > UNSORTED:
            new = np.fromiter(self._unsorted, np.int64, len(self._unsorted))
            self._sorted = np.union1d(self._sorted, new)
            self._unsorted = set()


class PanicAsFailure:
    """Converts a panic in LanceDB, which damaged files cause, to a RuntimeError, because its class can't be imported."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None and kind.__name__ == "RustPanic":
            raise RuntimeError(f"LanceDB panicked: {error}") from error


async def _run_query(query: Any, condition: str | None, columns: Sequence[str], pool: int) -> Any:
    return await (query.where(condition) if condition else query).select(list(columns)).limit(pool).to_arrow()


async def next_batch(batches: Any) -> Any:
    """Return the next batch of a reader; None at its end."""
    return await anext(batches, None)


def split_words(text: str) -> list[str]:
    """Return the words of `text`, as the word index and its searches have them."""
    return [token.text for token in lancedb.tokenize(text, **TOKENIZER)]


def count_chunks(uri: str, options: Mapping[str, str]) -> dict[str, int]:
    """Count the chunks of each document in the table at `uri`, without changing it. Raises StoreDamaged if that fails."""

    async def read_ids() -> Any:
        db = await lancedb.connect_async(uri, storage_options=dict(options) or None)
        return await (await db.open_table(NAME)).query().select(["doc_id"]).to_arrow()  # opens every data file

    try:
        return count_rows(asyncio.run(read_ids()))
    except FAILURES as error:
        raise StoreDamaged("the chunks can't be read") from error


def discard(uri: str, options: Mapping[str, str] | None = None) -> None:
    """Remove the table at `uri` with its whole content, whatever its state. No process may have it open."""

    async def drop() -> None:
        db = await lancedb.connect_async(uri, storage_options=dict(options or {}) or None)
        if NAME in (await db.list_tables()).tables:
            await db.drop_table(NAME)

    folder = crash_repair.local_folder(uri)
    if folder:
        crash_repair.remove_table(folder / f"{NAME}.lance")
    else:
        asyncio.run(drop())


async def _is_readable(table: AsyncTable) -> bool:
    """Return whether every data file opens: LanceDB opens a table and counts its rows without checking."""
    try:
        with PanicAsFailure():
            await table.query().select(["ord"]).to_arrow()
    except FAILURES:
        return False
    return True


async def _restore_readable_version(table: AsyncTable) -> None:
    """Restore the newest readable version."""
    listed: list[dict[str, Any]] = await table.list_versions()  # type: ignore[no-untyped-call]  # LanceDB has no annotation
    versions = sorted((version["version"] for version in listed), reverse=True)
    for version in versions[1 : BACK + 1]:
        await table.checkout(version)
        if await _is_readable(table):
            await table.restore()
            return
    raise StoreDamaged("the search index can't be read back; it must be rebuilt")


async def _ensure_indices(table: AsyncTable, columns: Collection[str], *, probe: bool = False) -> None:
    """Create the indices that these columns lack and, with `probe`, all unreadable ones."""
    present = {index.name for index in await table.list_indices()}
    for column, config in INDICES.items():
        is_present = f"{column}_idx" in present
        if (not is_present and column in columns) or (is_present and probe and not await _can_query(table, column)):
            await table.create_index(column, config=config, replace=True)
    if probe and VECTOR_INDEX in present and not await _can_query(table, "vector"):
        await table.drop_index(VECTOR_INDEX)  # maintenance creates it again


async def _can_query(table: AsyncTable, column: str) -> bool:
    query: Any = table.query()
    if column == "text":
        query = query.nearest_to_text("a", columns="text")
    elif column == "vector":
        size = (await table.schema()).field("vector").type.list_size
        query = query.nearest_to(np.ones(size, np.float32)).column("vector").distance_type("cosine")
    else:
        query = query.where("array_has_all(tags, [''])" if column == "tags" else f"{column} = ''")
    try:
        with PanicAsFailure():
            await query.select(["ord"]).limit(1).to_arrow()
    except FAILURES:
        return False
    return True


def _is_in(column: str, values: Iterable[str]) -> str:
    return f"{column} IN ({', '.join(map(value_to_sql, values))})"


def _batches(values: Collection[str]) -> Iterator[list[str]]:
    remaining = iter(values)
    while terms := list(itertools.islice(remaining, TERMS)):
        yield terms
