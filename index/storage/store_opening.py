"""Open chunk stores immediately, or at their first use.

Importing LanceDB takes longer than the rest of a command. A command that needs only the catalog therefore defers its
stores and never opens them; LanceDB is imported when a store opens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from index.storage.chunk_store import ChunkStore


def open_store(uri: str, *, dimensions: int, options: Mapping[str, str]) -> ChunkStore:
    """Open or create the store at `uri`, a folder or `s3://…`. Raises StoreDamaged when it can't be repaired."""
    from index.storage.chunk_store import ChunkStore  # noqa: PLC0415 - see above

    return ChunkStore.open(uri, dimensions=dimensions, options=options)


def open_later(uri: str, *, dimensions: int, options: Mapping[str, str], opened: Callable[[], object]) -> ChunkStore:
    """Return a store at `uri` that opens, and calls `opened`, at its first use."""
    store = _DeferredStore(lambda: open_store(uri, dimensions=dimensions, options=options), dimensions, opened)
    return cast("ChunkStore", store)


def discard(uri: str, options: Mapping[str, str]) -> None:
    """Remove the store at `uri`, whatever its state."""
    from index.storage.chunk_store import discard as discard_store  # noqa: PLC0415 - see above

    discard_store(uri, options)


class _DeferredStore:
    """Stands in for a store that is not open yet."""

    is_damaged = False  # nothing is known before it opens

    def __init__(self, open_it: Callable[[], ChunkStore], dimensions: int, opened: Callable[[], object]) -> None:
        self.dimensions = dimensions
        self._open_it, self._opened = open_it, opened
        self._opening = threading.RLock()
        self._store: ChunkStore | None = None

    def __getattr__(self, name: str) -> Any:
        with self._opening:
            if self._store is None:
                self._store = self._open_it()
                self._opened()
        return getattr(self._store, name)

    def close(self) -> None:
        """Close the store, if it was opened."""
        if self._store is not None:
            self._store.close()
