"""Write to the tables of the stores, a moment after a commit, the rows that wait in their buffers.

The catalog marks these documents. After a crash, the next pass reads their files again, so no row is missing for long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from index.catalog.catalog import Catalog
from index.errors import Unavailable, run_all
from index.foreground import foreground

if TYPE_CHECKING:
    from index.storage.chunk_store import ChunkStore

DELAY_S: Final = 1.0  # from a commit to the write: many commits then share one
RETRY_S: Final = 5.0  # from a write that failed to the next one


class LateWrites:
    """Remembers which documents wait for a write of their rows, and begins it. Its `lock` is that of commits."""

    def __init__(self, catalog: Catalog, stores: Callable[[], Iterable[ChunkStore]], lock: threading.RLock) -> None:
        self._catalog, self._stores, self._lock = catalog, stores, lock
        self._waiting: set[str] = set()  # keys that the catalog marks
        self._timer: threading.Timer | None = None
        self._is_closed = False

    def find(self, keys: Collection[str]) -> set[str]:
        """Return those of `keys` whose rows a store has only in memory."""
        return {key for store in self._stores() for key in store.unwritten if key in keys}

    def add(self, keys: Collection[str]) -> None:
        """Write the rows of these documents, which the catalog marks, in a moment. The caller holds the lock."""
        self._waiting.update(keys)
        if keys:
            self._write_after(DELAY_S)

    def abandon(self, keys: Iterable[str]) -> None:
        """Leave the marks of known documents whose commit failed until a later commit. The caller holds the lock."""
        self._waiting.difference_update(keys)

    def finish(self) -> None:
        """Write all rows that only memory has. Raises Unavailable if that fails; they stay in memory then."""
        run_all([*(store.flush for store in self._stores()), self._settle])

    def close(self) -> None:
        """Remove the marks of what the stores wrote when they were closed. The caller holds the lock."""
        self._is_closed = True
        if self._timer:
            self._timer.cancel()
        with suppress(Unavailable):  # the next start then reads some files again
            self._settle()

    def _write_after(self, delay_s: float) -> None:
        """Begin a write after a delay, unless one is to come. The caller holds the lock."""
        if self._timer is None and not self._is_closed:
            self._timer = threading.Timer(delay_s, self._write_late)
            self._timer.daemon = True
            try:
                self._timer.start()
            except RuntimeError:  # the system allows no more threads; the next commit tries again
                self._timer = None

    def _write_late(self) -> None:
        foreground.give_way()
        self._timer = None  # a commit from here on begins the next one
        try:
            self.finish()
        except Unavailable:  # the next commit reports it, or the maintenance
            with self._lock:
                self._write_after(RETRY_S)

    def _settle(self) -> None:
        with self._lock:
            if self._waiting:
                written = self._waiting - self.find(self._waiting)
                self._catalog.settle(written)
                self._waiting -= written
