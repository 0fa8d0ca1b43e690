"""Open chunk stores immediately, or at their first use.

Importing LanceDB takes longer than the rest of a command. A command that needs only the catalog therefore defers its
stores and never opens them; LanceDB is imported when a store opens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from index.storage.chunk_store import ChunkStore
    from index.storage.store_writer import HoldVectors


def open_store(uri: str, *, dimensions: int, options: Mapping[str, str], hold: HoldVectors | None = None) -> ChunkStore:
    """Open or create a store, as `ChunkStore` does."""
    from index.storage.chunk_store import ChunkStore  # noqa: PLC0415 - see above

    return ChunkStore(uri, dimensions=dimensions, options=options, hold=hold)


def open_later(open_it: Callable[[], ChunkStore], dimensions: int, opened: Callable[[], object]) -> ChunkStore:
    """Return a store that `open_it` opens at its first use, when `opened` is called too; if it fails, at the next use again."""
    return cast("ChunkStore", _DeferredStore(open_it, dimensions, opened))


def discard(uri: str, options: Mapping[str, str]) -> None:
    """Remove the store at `uri`, whatever its state."""
    from index.storage.lancedb_table import discard as discard_store  # noqa: PLC0415 - see above

    discard_store(uri, options)


class _DeferredStore:
    """Stands in for a store that is not open yet."""

    def __init__(self, open_it: Callable[[], ChunkStore], dimensions: int, opened: Callable[[], object]) -> None:
        self.dimensions = dimensions
        self._open_it, self._opened = open_it, opened
        self._opening = threading.RLock()
        self._store: ChunkStore | None = None
        self._is_reported = False  # whether `opened` was called, and did not fail

    def __getattr__(self, name: str) -> Any:
        with self._opening:
            if self._store is None:
                self._store = self._open_it()
            is_reported, self._is_reported = self._is_reported, True  # now, because `opened` uses this store
        if not is_reported:
            try:
                self._opened()  # without the lock: it waits for that of commits, which hold theirs while they use the store
            except BaseException:
                self._is_reported = False
                raise
        return getattr(self._store, name)

    @property
    def is_damaged(self) -> bool:
        """Return whether searches show that the store is damaged; this does not open it."""
        return self._store is not None and self._store.is_damaged

    def close(self) -> None:
        """Close the store, if it was opened."""
        if self._store is not None:
            self._store.close()
