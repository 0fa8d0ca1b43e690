"""Write the rows of one store, at once or a little later, and show readers each write as one step.

While readers find the rows in memory, a write may wait in the buffer: the rows in memory have it, and the table gets many
such writes as one. A commit of LanceDB takes tens of milliseconds, and a change of the rows in memory less than one. Before
the first search loads the rows into memory, a write may wait as well: that search writes the buffer first.

There is one writer: it deletes and adds rows through its own handle and then gives readers a new handle. LanceDB runs on one
private event loop, so any thread may call the store."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from index.errors import EARLY_CLOCK, Unavailable
from index.storage import arrow_rows, crash_repair, lancedb_table, maintenance_policy
from index.storage.chunk_rows import Row, VectorBatch, check_rows
from index.storage.lancedb_import import AsyncTable
from index.storage.lancedb_table import HeldRows, HeldVectors, PanicAsFailure
from index.storage.reader_gate import ReaderGate
from index.storage.resident_rows import Rows
from index.store_failures import to_unavailable

HoldVectors: TypeAlias = Callable[[Iterable[VectorBatch], int], HeldVectors]  # of rows, and dimensions
T = TypeVar("T")


class StoreWriter:
    """Writes the rows of one store; any thread may call it.

    Law, tested: while a document is in the buffer, readers have its rows in memory, or write the buffer before they read the
    table; what a flush doesn't write stays there."""

    def __init__(
        self, uri: str, dimensions: int, options: Mapping[str, str] | None, hold: HoldVectors | None = None
    ) -> None:
        self._table = lancedb_table.Table(uri, dimensions=dimensions)
        self._hold_vectors = hold
        self._too_large = 0  # number of rows that did not fit into memory; a tenth fewer are tried again
        self._gate = ReaderGate()
        self._writing = threading.Lock()  # of the table
        # Of the buffer and of what readers see; `_writing` is never taken while it is held.
        self._showing = threading.Lock()
        self._buffer: Mapping[str, Collection[Row]] = {}  # documents whose rows the table lacks
        self._missed: list[Mapping[str, Collection[Row]]] | None = None  # writes since the rows began to load
        self._unsure = False  # the last write failed, so the table may contain more than readers see
        self._durable: set[str] = set()
        self._loop = EventLoopThread()
        try:
            self._run(self._table.open(options or {}))
            if self._table.fresh:  # its first write may wait, and the catalog lists the document before that
                self._sync_files()
            rows, commits, dirty = (0, 0, 0) if self._table.fresh else self._run(self._table.maintenance_counts())
        except BaseException:
            self._loop.close()
            raise
        now = time.monotonic()
        self._work = maintenance_policy.WrittenRows(rows=rows, commits=commits, dirty=dirty, written=now, kept=now)

    @property
    def dimensions(self) -> int:
        """Return the number of dimensions of its vectors."""
        return self._table.dimensions

    @property
    def may_lack_rows(self) -> bool:
        """Return whether opening restored an older version, so that rows may be missing and no digest can be trusted."""
        return self._table.healed

    def replace(self, documents: Mapping[str, Collection[Row]], *, buffered: bool = False) -> None:
        """Replace the rows of these documents, durably and as one step for readers; no rows remove the document.

        `buffered`: if readers find the rows in memory, or will, write them to the table at the next `flush`, or with a later write."""
        check_rows(documents)
        for row in itertools.chain.from_iterable(documents.values()):
            if row.vector is not None:  # check all vectors before anything is written
                arrow_rows.check_vector(row.vector, self._table.dimensions)
        if not documents:
            return
        with self._showing:
            held = self._table.seen.held
            if buffered and self._may_buffer(documents, held):
                waiting = {doc_id: list(rows) for doc_id, rows in documents.items()}
                if held is not None:
                    self._table.show_readers(self._table.seen.reader, held.replace(waiting))
                self._buffer = {**self._buffer, **waiting}
                return
        with self._writing:
            self._write_table(documents)

    def flush(self) -> None:
        """Write the buffer to the table, durably."""
        if self._buffer:
            with self._writing:
                self._write_table({})

    @property
    def unwritten(self) -> Collection[str]:
        """Return the documents whose rows are in the buffer: a crash loses them."""
        return self._buffer.keys()

    def _may_buffer(self, documents: Mapping[str, Collection[Row]], held: HeldRows | None) -> bool:
        """Return whether these documents may wait in the buffer, because readers find them in memory or will after their first search."""
        waiting = sum(map(len, (*self._buffer.values(), *documents.values())))
        if waiting > maintenance_policy.BUFFERED or self._unsure or self._loop.is_closed:
            return False
        if time.time() < 0:  # the table would refuse every search that has to read this write there
            return False
        if held is None:  # rows that are being loaded get only what is written to the table
            return self._missed is None and self._may_load(self._work.rows + waiting)
        return fits(held, self._work.rows + waiting)

    def _may_load(self, rows: int) -> bool:
        """Return whether a search would load so many rows, or their vectors, into memory."""
        return maintenance_policy.may_be_held(rows, self._too_large) or self._holds_vectors(rows)

    def _holds_vectors(self, rows: int) -> bool:
        return self._hold_vectors is not None and maintenance_policy.HELD < rows <= maintenance_policy.VECTORS_HELD

    def _write_table(self, documents: Mapping[str, Collection[Row]]) -> None:
        """Write the buffer and `documents` to the table; the caller holds `_writing`. Others may write to the buffer meanwhile."""
        before = self._buffer
        together = {**before, **documents}
        if not together:
            return
        batches = arrow_rows.to_batches(itertools.chain.from_iterable(together.values()), self._table.dimensions)
        try:
            reader, removed = self._run(self._table.replace(list(together), batches))
            self._sync_files()
        except BaseException:
            self._unsure = True
            raise
        with self._showing:
            newer = {doc_id: rows for doc_id, rows in self._buffer.items() if before.get(doc_id) is not rows}
            self._show_written(reader, removed, together, new=documents, keep=bool(newer))
            self._buffer = newer  # last: until then, readers find the rows here

    def _show_written(
        self,
        reader: AsyncTable,
        removed: int,
        written: Mapping[str, Collection[Row]],
        *,
        new: Mapping[str, Collection[Row]],
        keep: bool,
    ) -> None:
        """Let readers see what was `written`, of which the rows in memory lack what is `new`; `keep` these for the buffer."""
        added = sum(map(len, written.values()))
        large = maintenance_policy.is_large_write(added, self._work.rows)
        if added or removed:
            self._work = self._work.add_commit(added=added, removed=removed, now=time.monotonic())
        held = self._current_rows()
        # The rows are copied last, when the memory for adding them is free again.
        if held is not None and (keep or (not large and fits(held, self._work.rows))):
            self._table.show_readers(reader, held.replace(new) if new else held)
        else:
            self._table.show_readers(reader, None)
        self._unsure = False
        if large:
            self._missed = None
        elif (missed := self._missed) is not None:
            missed.append(written)

    def _renew(self, db: Any) -> None:
        """Move readers and the writer to the newest version, through the connection `db`; the caller holds `_writing`."""
        if self._unsure:
            self._write_table({})  # if the buffer could not be written, it may have the only rows in memory
        with self._showing:
            self._run(self._table.renew(db, self._current_rows()))

    def _sync_files(self, *, indices: bool = False, forget: bool = False) -> None:
        if self._table.folder:
            tops = (*crash_repair.ROWS, "_indices") if indices else crash_repair.ROWS
            try:
                known = crash_repair.sync_files(self._table.folder, self._durable, tops=tops)
            except OSError as error:
                raise to_unavailable(error) from error
            self._durable = known if forget else self._durable | known

    def _current_rows(self) -> HeldRows | None:
        """Return the rows in memory if they certainly belong to the newest version, otherwise None."""
        if self._unsure:
            self._missed = None
            return None
        return self._table.seen.held

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._await(self._loop.start(work))

    def _await(self, work: Future[T]) -> T:
        try:
            with lancedb_table.PanicAsFailure():
                return work.result()
        except lancedb_table.FAILURES as error:
            raise to_unavailable(error) from error


class EventLoopThread:
    """Runs an event loop on a separate thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="lancedb", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` and return its result."""
        with PanicAsFailure():
            return self.start(work).result()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start `work`, which completes even if the caller is interrupted."""
        if self.is_closed:
            work.close()
            raise Unavailable("the store is closed", retryable=False)
        if time.time() < 0:
            work.close()
            raise Unavailable(EARLY_CLOCK)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @property
    def is_closed(self) -> bool:
        """Return whether `close` was called."""
        return self._loop.is_closed()

    def close(self) -> None:
        """Stop the event loop and its thread."""
        if not self.is_closed:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


def fits(held: HeldRows, rows: int) -> bool:
    """Return whether rows in memory may stay there once the store has so many; of too few, whole rows are loaded instead."""
    if isinstance(held, Rows):
        return rows <= maintenance_policy.OUTGROWN and not held.is_full
    return maintenance_policy.HELD < rows <= maintenance_policy.VECTORS_OUTGROWN
