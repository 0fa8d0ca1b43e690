"""The chunk store of one scope replaces the chunks of a document, reads them, and searches them by vector and by words.

Any thread may call it; `store_writer.py` writes. Maintenance runs in parallel on a handle of its own. If both change the same
rows, LanceDB rejects the maintenance, never the write, and the maintenance retries.

Law, tested: after `replace` returns, the next search finds the rows, and they survive a crash and a power cut, or are among `unwritten`."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from index import timings
from index.errors import IndexUnusable, ResourceExhausted, Unavailable
from index.foreground import SHORT_S, foreground
from index.model import Filter
from index.process_memory import release_unused
from index.storage import arrow_rows, lancedb_table, maintenance_policy
from index.storage.chunk_rows import Match, Row, check_encodable, check_pool
from index.storage.lancedb_table import DROP, HeldRows
from index.storage.resident_rows import Rows, nearest_similarities, spread, to_unit_length
from index.storage.store_writer import HoldVectors, StoreWriter, fits
from index.store_failures import log_cause
from index.tracing import span

DRAIN: Final = 10.0  # seconds that the removal of old versions waits for readers
LOADING: Final = 3.0  # most seconds that a search by words waits for rows that are loaded into memory
UNWRITTEN: Final = 30.0  # most seconds that a search waits for them if the table lacks a write and can't get it
DAMAGED: Final = 3  # consecutive failed searches after which the store counts as damaged
UNPRUNED: Final = 300  # most commits whose versions are removed while all readers wait; more would take seconds
STEADY: Final = 1.0  # seconds by which the wall clock may deviate during one maintenance
MARGIN: Final = 60.0  # seconds by which a version must be older than a maintenance that removes it beside readers

_one_large_load = threading.Lock()  # while rows are loaded, they need twice the memory that they keep

T = TypeVar("T")


class ChunkStore(StoreWriter):
    """Stores the chunks of one scope."""

    def __init__(
        self, uri: str, *, dimensions: int, options: Mapping[str, str] | None = None, hold: HoldVectors | None = None
    ) -> None:
        """Open or create the store at `uri`, a folder or `s3://…`.

        `hold` makes what is kept in memory of more than HELD rows; without it, nothing is kept of them. Raises
        StoreDamaged if the store can't be repaired; then `discard` it, open it again and fill it from the files."""
        self._keeping, self._recalling = threading.Lock(), threading.Lock()
        self._closing = False
        self._unpruned = 0
        self._failures = 0  # consecutive failed searches
        super().__init__(uri, dimensions, options, hold)

    def search(
        self,
        *,
        vector: np.ndarray | Callable[[], np.ndarray | None] | None,
        words: str | None,
        filter: Filter,
        pool: int,
    ) -> tuple[list[Match], list[Match]]:
        """Return the `pool` chunks nearest to `vector` and those that contain `words`, best first, from one state of the store.

        Of many chunks, a few of the nearest may be missing; `nearest` finds all while the rows are in memory. A `vector` given
        as a function is computed while LanceDB, or a second thread for a call that runs alone, looks for the words."""
        check_pool(pool)
        check_encodable("the query", words or "")
        if vector is not None and not callable(vector):
            arrow_rows.check_vector(vector, self._table.dimensions)
        if words:
            self._await_few_rows()
        self._flush_for_table()
        with self._gate.enter():
            view = self._table.seen
            if view.rows is None:
                self._start_loading_rows()
                return self._search_table(view, vector, words, filter, pool)
            find_words: Callable[[], list[Match]] = list
            if words:
                find_words = partial(view.rows.with_words, words, filter, pool)
                if callable(vector):
                    find_words = foreground.begin(find_words)
            point = self._make_point(vector)
            with timings.STORE["search"].measure():
                with span("vector", pool=pool):
                    nearest = [] if point is None else view.rows.nearest(point, filter, pool, exact=False)
                with span("words", pool=pool):
                    return nearest, find_words()  # what a second thread did meanwhile is not measured

    def _search_table(
        self,
        view: lancedb_table.TableView,
        vector: np.ndarray | Callable[[], np.ndarray | None] | None,
        words: str | None,
        filter: Filter,
        pool: int,
    ) -> tuple[list[Match], list[Match]]:
        word_search = self._loop.start(self._table.search(view.reader, None, words, filter, pool))
        try:
            point, near = self._make_point(vector), None
            with timings.STORE["search"].measure():
                with span("vector", pool=pool):
                    if point is not None:
                        vector_search = self._table.search(view.reader, point, None, filter, pool)
                        near = self._await_search(self._loop.start(vector_search))[0]
                with span("words", pool=pool):
                    answer = self._await_search(word_search)[1]
        finally:
            word_search.cancel()
        return arrow_rows.read_matches(near, filter), arrow_rows.read_matches(answer, filter)

    def _make_point(self, vector: np.ndarray | Callable[[], np.ndarray | None] | None) -> np.ndarray | None:
        made = vector() if callable(vector) else vector
        return None if made is None else arrow_rows.check_vector(made, self._table.dimensions)

    def nearest(self, asked: Sequence[tuple[np.ndarray, Filter]], pool: int) -> list[list[Match]]:
        """Return for each point the `pool` nearest chunks that pass its filter, best first, from one state of the store."""
        check_pool(pool)
        points = [(arrow_rows.check_vector(vector, self._table.dimensions), filter) for vector, filter in asked]
        if self._table.seen.held is None:
            self._write_or_load_buffer()
        measured = timings.STORE["search"].measure()
        with measured, self._gate.enter(), span("near", points=len(points), pool=pool):
            view = self._table.seen
            if (held := view.held) is not None:
                runs = [partial(held.nearest, point, filter, pool) for point, filter in points]
                half = len(runs) // 2
                halves = foreground.run_both(
                    lambda: [run() for run in runs[half:]], lambda: [run() for run in runs[:half]]
                )
                return halves[1] + halves[0]
            self._start_loading_rows()
            answers = self._await_search(self._loop.start(self._table.nearest(view, points, pool)))
        return [arrow_rows.read_matches(answer, filter) for answer, (_, filter) in zip(answers, points, strict=True)]

    @property
    def is_damaged(self) -> bool:
        """Return whether the last DAMAGED searches in a local store failed; in other stores the network may be the cause."""
        return self._table.folder is not None and self._failures >= DAMAGED

    def _await_search(self, work: Future[T]) -> T:
        try:
            answers = self._await(work)
        except IndexUnusable:
            self._failures += 1
            raise
        self._failures = 0
        return answers

    def known_digests(self, digests: Collection[str]) -> set[str]:
        """Return those of `digests` that may be stored, without reading the store."""
        buffered = {row.digest for row in itertools.chain.from_iterable(self._buffer.values())}
        return self._table.known_digests(digests) | buffered.intersection(digests)

    def vectors(self, digests: Collection[str]) -> dict[str, np.ndarray]:
        """Return the stored vectors of texts with these digests, by digest."""
        buffered = {
            row.digest: np.asarray(row.vector, np.float32)
            for row in itertools.chain.from_iterable(self._buffer.values())
            if row.vector is not None and row.digest in digests
        }
        answers = self._run_unflushed(self._table.vectors_of_digests(set(digests) - buffered.keys()))
        return buffered | {digest: vector for answer in answers for digest, vector in arrow_rows.read_vectors(answer)}

    def vectors_of(self, doc_id: str, most: int | None = None) -> np.ndarray:
        """Return the vectors of a document's chunks as the rows of a matrix, of unit length; with `most`, so many of them."""
        self._flush_for_table()
        with self._gate.enter():
            rows = self._table.seen.rows
            if rows is not None:
                return rows.vectors_of(doc_id, most)
            self._start_loading_rows()
            answers = self._run(self._table.vectors_of_documents([doc_id]))
            matrices = [matrix for _, matrix in arrow_rows.read_unit_vectors(answers)]
        return spread(np.concatenate(matrices), most) if matrices else np.empty((0, self._table.dimensions), np.float32)

    def similarities(self, points: np.ndarray, doc_ids: Collection[str]) -> dict[str, float]:
        """Return for each document the highest cosine similarity of one of its chunks to one of `points`.

        Every vector is compared, in one state of the store; documents without vectors are left out."""
        units = to_unit_length(np.stack([arrow_rows.check_vector(point, self._table.dimensions) for point in points]))
        self._flush_for_table()
        with self._gate.enter():
            rows = self._table.seen.rows
            if rows is not None:
                return rows.similarities(units, doc_ids)
            self._start_loading_rows()
            best: dict[str, float] = {}
            for ids, matrix in arrow_rows.read_unit_vectors(self._run(self._table.vectors_of_documents(doc_ids))):
                for doc_id, value in zip(ids, nearest_similarities(matrix, units).tolist(), strict=True):
                    best[doc_id] = max(value, best.get(doc_id, -1.0))
            return best

    def rows_of(self, doc_id: str, *, vectors: bool = False) -> list[Row]:
        """Return the rows of one document in order, without their vectors unless `vectors` is set."""
        if (buffered := self._buffer.get(doc_id)) is not None:
            rows = list(buffered) if vectors else [replace(row, vector=None) for row in buffered]
        else:
            rows = arrow_rows.read_rows(self._run_unflushed(self._table.rows_of(doc_id, vectors=vectors)))
        return sorted(rows, key=lambda row: row.ord)

    def texts(self, workspace: str, part: str) -> dict[str, str]:
        """Return the texts of the documents of a workspace whose ids begin with the hexadecimal digit `part`."""
        buffered = {doc_id: rows for doc_id, rows in self._buffer.items() if doc_id.startswith(part)}
        stored = self._run_unflushed(self._table.texts(Filter(workspace=workspace), part))
        texts = {doc_id: text for doc_id, text in arrow_rows.join_passages([stored]).items() if doc_id not in buffered}
        waiting = (rows for rows in buffered.values() if any(row.workspace == workspace for row in rows))
        return texts | _join_rows(waiting)

    def texts_of(self, doc_ids: Collection[str]) -> dict[str, str]:
        """Return the texts of these documents."""
        wanted = set(doc_ids)
        buffered = {doc_id: rows for doc_id, rows in self._buffer.items() if doc_id in wanted}
        stored = self._run_unflushed(self._table.texts_of(wanted - buffered.keys()))
        return arrow_rows.join_passages(stored) | _join_rows(buffered.values())

    def vector_sums(self, filter: Filter) -> dict[str, np.ndarray]:
        """Return the sum of the vectors of each document's rows that pass `filter`; documents without vectors are left out."""
        if self._table.seen.vectors is None:
            self._try_flush()
        with self._gate.enter():
            vectors = self._table.seen.vectors
            return self._run(self._table.vector_sums(filter)) if vectors is None else vectors.vector_sums(filter)

    def count(self) -> int:
        """Return the number of chunks."""
        return self._run_read(self._table.count())

    def row_counts(self) -> dict[str, int]:
        """Return the number of chunks of each document."""
        return arrow_rows.count_rows(self._run_read(self._table.select(("doc_id",))))

    def needs_maintenance(self, now: float | None = None) -> bool:
        """Return whether `maintain` is worth it now (seconds of `time.monotonic`)."""
        return maintenance_policy.is_due(self._work, time.monotonic() if now is None else now)

    def maintain(self, *, prune: bool = True) -> None:
        """Merge the fragments of many commits, update the indices and, with `prune`, remove old versions.

        Searches and writes continue in the meantime; only the removal blocks them, for tens of milliseconds."""
        with self._keeping:
            self.flush()
            began, wall = time.monotonic(), time.time()
            before = self._run(self._table.version())
            counted = self._work.commits
            unpruned = self._unpruned + counted
            self._compact(self._table.optimize)
            self._compact(self._table.build_indices)
            version = self._compact(self._table.optimize)
            self._sync_files(indices=True)
            if prune and self._prune(version, unpruned):
                unpruned = 0
            else:
                renewed = self._run(self._table.reconnect(warm=self._table.seen.held is None))
                with self._writing:
                    self._run(self._table.undo_write())  # readers must not see half of a write that failed
                    self._renew(renewed)
                if prune and version > before and unpruned > UNPRUNED:
                    self._prune_beside(began, wall)
                    unpruned = counted  # about this many versions are younger than the margin
            with self._writing:
                rows, now = self._run(self._table.count()), time.monotonic()
                self._unpruned = unpruned  # last, because a maintenance that fails counts its commits again
                self._work = maintenance_policy.WrittenRows(
                    rows=rows, commits=self._work.commits - counted, dirty=0, written=now, kept=now, took=now - began
                )

    def close(self) -> None:
        """Wait for running work, except for rows that are loaded for later searches, and close the store."""
        self._closing = True
        with suppress(Unavailable):  # the catalog remembers what was not written
            self.flush()
        with self._keeping, self._writing, self._gate.drain(DRAIN):
            self._loop.close()

    def _compact(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a step of maintenance in parallel with writes; after two failures, run it while writes wait.

        A failed step has changed nothing, and failures have many classes, so every failure is retried."""
        for _ in range(2):
            try:
                return self._loop.run(work())
            except lancedb_table.FAILURES as error:
                if "conflict" not in str(error).casefold():
                    log_cause(error)
        with self._writing:
            return self._run(work())

    def _prune(self, version: int, unpruned: int) -> bool:
        """Remove all versions except the newest while readers and writers wait; return whether that was possible.

        A merge at this time would block readers for seconds. The removal is therefore postponed while there is something
        to merge, because writes continue, when there are so many versions, as of `unpruned` commits, that it would take seconds
        too, and while the rows are loaded into memory, which reads for seconds."""
        if unpruned > UNPRUNED:
            return False
        for _ in range(3):
            renewed = self._run(self._table.reconnect(warm=self._table.seen.held is None))
            with self._writing:
                if self._recalling.locked():  # and no loading begins while this method writes
                    return False
                if self._run(self._table.version()) == version:
                    with self._gate.drain(DRAIN) as alone:
                        if alone:
                            self._run(self._table.optimize(drop=DROP))
                            self._renew(renewed)
                            self._sync_files(forget=True)
                    return alone
            version = self._compact(self._table.optimize)
        return False

    def _prune_beside(self, began: float, wall: float) -> None:
        """Remove versions from long before the start of this maintenance, at `began`, while others read and write.

        This maintenance wrote a version and renewed the handles, so new readers use a version from after its start. The
        method waits for earlier readers. LanceDB decides by the wall clock which versions are old, so nothing is removed
        if the clock has jumped since the start, or while the rows are loaded into memory, which reads for seconds."""
        if not self._recalling.acquire(blocking=False):
            return
        try:
            with self._writing:
                self._run(self._table.undo_write())  # before the version that it restores is removed
            with self._gate.drain(DRAIN) as left:
                pass
        finally:
            self._recalling.release()
        took = time.monotonic() - began
        if left and abs(time.time() - wall - took) < STEADY:
            self._compact(lambda: self._table.optimize(drop=timedelta(seconds=took + MARGIN)))
            self._sync_files(indices=True, forget=True)

    def _await_few_rows(self) -> None:
        """Load the rows and wait for them if they are few: there, LanceDB's scores of words depend much on maintenance."""
        if self._table.seen.rows is None and self._work.rows <= maintenance_policy.AWAITED:
            self._await_rows(LOADING)

    def _await_rows(self, limit_s: float) -> None:
        """Start to load the rows, and wait for them."""
        self._start_loading_rows()
        if self._recalling.acquire(timeout=limit_s):
            self._recalling.release()

    def _start_loading_rows(self) -> None:
        """Start to load the rows, or their vectors, into memory if they are few enough and not there."""
        if not self._may_load(self._work.rows) or not self._recalling.acquire(blocking=False):
            return
        if self._table.seen.held is None:  # tested last: another thread may just have loaded them
            with suppress(RuntimeError):  # the system allows no more threads; a later search tries again
                threading.Thread(target=self._load_rows, name="recall", daemon=True).start()
                return
        self._recalling.release()

    def _load_rows(self) -> None:
        is_large = self._work.rows > maintenance_policy.AWAITED
        try:
            with _one_large_load if is_large else nullcontext():
                with self._writing:
                    with self._showing:
                        self._missed = []
                    with suppress(Unavailable):  # the next write reports it, and the rows in memory get what waits
                        self._write_table({})  # what waited until now; later writes go to the table
                rows = self._read_all_rows()
                with self._writing:
                    for documents in filter(None, (*(self._missed or ()), self._buffer)):
                        rows = rows.replace(documents)
                    if self._missed is not None and fits(rows, self._work.rows):
                        self._show_rows(rows)  # until then, no new write waits in the buffer: these rows would lack it
        except Unavailable:
            pass  # searches report it
        except ResourceExhausted:
            self._too_large = self._work.rows
        finally:
            self._missed = None
            release_unused()  # what reading took
            self._recalling.release()

    def _show_rows(self, rows: HeldRows) -> None:
        """Let searches use the rows in memory, and drop the indices that searches have read into memory until now."""
        if self._unsure:  # the newest version may have more than these rows
            self._table.show_readers(self._table.seen.reader, rows)
        else:
            self._run(self._table.renew(self._run(self._table.reconnect(warm=False)), rows))

    def _read_all_rows(self) -> HeldRows:
        """Read the rows, or of many rows their vectors, batch by batch. Raises ResourceExhausted if they are too many by now."""
        vectors = self._hold_vectors if self._holds_vectors(self._work.rows) else None
        if vectors is None and self._work.rows > maintenance_policy.OUTGROWN:
            raise ResourceExhausted("there are too many rows to be kept in memory")
        with self._gate.enter():
            count, batches = self._run(self._table.all_rows(arrow_rows.VECTORS if vectors else arrow_rows.COLUMNS))
            pieces = iter(lambda: self._read_next(batches), None)
            if vectors:
                return vectors(map(arrow_rows.read_vector_batch, pieces), self._table.dimensions)
            rows = itertools.chain.from_iterable(map(arrow_rows.read_batch, pieces))
            return Rows.of(rows, count, self._table.dimensions, lancedb_table.split_words)

    def _read_next(self, batches: Any) -> Any:
        if self._closing:
            raise Unavailable("the store is closed", retryable=False)
        if self._work.rows > maintenance_policy.AWAITED and not self._unsure:  # otherwise a call waits for these rows
            foreground.give_way(SHORT_S)
        return self._run(lancedb_table.next_batch(batches))

    def _flush_for_table(self) -> None:
        """Write the buffer to the table if searches read the table."""
        if self._table.seen.rows is None:
            self._write_or_load_buffer()

    def _write_or_load_buffer(self) -> None:
        """Write the buffer to the table for a search of it; if that fails, load the rows into memory, which get what waits."""
        self._try_flush()
        if self._buffer and maintenance_policy.may_be_held(self._work.rows, self._too_large):
            self._await_rows(UNWRITTEN)

    def _try_flush(self) -> None:
        """Write the buffer to the table for a read of it; if that fails, the read lacks the newest rows."""
        with suppress(Unavailable):  # the next write reports it
            self.flush()

    def _run_read(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            self.flush()
        except BaseException:
            work.close()
            raise
        return self._run_unflushed(work)

    def _run_unflushed(self, work: Coroutine[Any, Any, T]) -> T:
        with self._gate.enter():
            return self._run(work)


def _join_rows(documents: Iterable[Collection[Row]]) -> dict[str, str]:
    """Return the text of each document that has rows."""
    ordered = (sorted(rows, key=lambda row: row.ord) for rows in documents if rows)
    return {rows[0].doc_id: "\n".join(row.text[row.cut :] for row in rows) for rows in ordered}
