"""Open chunk stores, at once or when something of them is first wanted.

LanceDB takes longer to import than all else together. A command that needs the catalog alone opens its stores later,
which means never; this module and those that use it import LanceDB when a store is opened."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from index.storage.chunk_store import ChunkStore


def open_store(uri: str, *, dimensions: int, options: Mapping[str, str]) -> ChunkStore:
    """Open or make the store at `uri`, a folder or `s3://…`. Raises StoreDamaged when it can't be mended."""
    from index.storage.chunk_store import ChunkStore  # noqa: PLC0415 - see above

    return ChunkStore.open(uri, dimensions=dimensions, options=options)


def open_later(uri: str, *, dimensions: int, options: Mapping[str, str], opened: Callable[[], object]) -> ChunkStore:
    """The store at `uri`, which is opened, and `opened` called, when something of it is wanted."""
    store = _DeferredStore(lambda: open_store(uri, dimensions=dimensions, options=options), dimensions, opened)
    return cast("ChunkStore", store)


def discard(uri: str, options: Mapping[str, str]) -> None:
    """Remove the store at `uri`, whatever is left of it."""
    from index.storage.chunk_store import discard as discard_store  # noqa: PLC0415 - see above

    discard_store(uri, options)


class _DeferredStore:
    """Stands for a store that is not open yet."""

    is_damaged = False  # as far as anybody knows

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
