"""The shared index is a third catalog and store of a build: the notes of the vault that agents may read.

It exists only while something is shared. Laws, tested: a reader sees the whole index or none; one that still reads after
30 s fails, because a removal must not wait longer. When `discard` returns, no file of it is left. It holds no other index,
so nothing that reads it can reach the vault's own index."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from index.encoders.embedder import Embedder
from index.errors import MemexError, Unavailable
from index.model import IndexName
from index.scope.index import Index
from index.scope.integrity_check import store_uris
from index.storage.crash_repair import StoreDamaged
from index.storage.reader_gate import ReaderGate
from index.storage.store_opening import discard

SHARED: Final[IndexName] = "shared"
DRAIN_S: Final = 30.0  # seconds that a removal waits for readers; reads of those that are still inside then fail
PURGE_S: Final = 600.0  # seconds after the removal of a note from which the remains of removed notes are purged


@dataclass(frozen=True, slots=True)
class SharedIndexPlace:
    """Says where the shared index of a build is stored, and opens it."""

    folder: Path
    uri: str
    options: Mapping[str, str]
    opened: Callable[[Embedder], Index]  # opens or creates it

    @property
    def mark(self) -> Path:
        """Return the file that exists while rows of removed notes may still be in the files of the index."""
        return self.folder / "shared.remains"

    def has_files(self) -> bool:
        """Return whether there may be files of the index."""
        return (self.folder / f"{SHARED}.db").exists()

    def remove(self) -> None:
        """Remove all files; nothing may have them open."""
        for uri in store_uris(self.uri, SHARED):
            if "://" in uri:
                discard(uri, self.options)
            else:
                shutil.rmtree(uri, ignore_errors=True)
        for file in (*self.folder.glob(f"{SHARED}.db*"), self.mark):
            file.unlink(missing_ok=True)


@dataclass(slots=True)
class SharedIndex:
    """Opens, fills and removes the shared index of the build in use; safe to use from any thread."""

    place: SharedIndexPlace
    embedder: Embedder
    is_complete: bool = False  # whether it was compared with the whole vault since it was opened
    _index: Index | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _gate: ReaderGate = field(default_factory=ReaderGate)

    @contextmanager
    def read(self) -> Iterator[Index | None]:
        """Yield the index for reading, or None while there is none. A thread must not nest calls."""
        with self._gate.enter():
            yield self._index

    @contextmanager
    def write(self) -> Iterator[Index]:
        """Yield the index for writing, opened or created if necessary; it is not removed meanwhile."""
        with self._lock:
            if self._index is not None and self._index.is_damaged:
                self.discard()
            if self._index is None:
                try:
                    self._index = self.place.opened(self.embedder)
                except (StoreDamaged, MemexError, OSError):
                    self.place.remove()
                    self._index = self.place.opened(self.embedder)
            yield self._index

    def open_existing(self) -> None:
        """Open the index if its files exist, so that searches find its notes before the first pass."""
        with suppress(MemexError, StoreDamaged, OSError):  # the next pass tries again and reports a failure
            if self.place.has_files():
                with self.write():
                    pass

    def mark_complete(self, index: Index) -> None:
        """Record that `index` was compared with the whole vault, unless it was removed meanwhile."""
        with self._lock:
            self.is_complete = self.is_complete or index is self._index

    def mark_remains(self) -> None:
        """Record that a note is about to be removed, whose rows stay in the files until they are purged; the first time counts."""
        try:
            self.place.mark.touch(exist_ok=False)
        except FileExistsError:
            pass
        except OSError as error:
            raise Unavailable(f"the shared index can't be written: {error.strerror}") from error

    def discard(self) -> bool:
        """Remove the index and its files; return whether there was anything."""
        with self._lock:
            index, self._index, self.is_complete = self._index, None, False
            if index is None and not self.place.has_files():
                return False
            with self._gate.drain(DRAIN_S):
                if index is not None:
                    index.close()
                self.place.remove()
            return True

    def maintain(self) -> bool:
        """Maintain the index; return whether it was removed to purge what is left of removed notes, and must be filled again."""
        with self._lock:
            with suppress(FileNotFoundError):
                if not 0 <= time.time() - self.place.mark.stat().st_mtime < PURGE_S:  # the clock may have been ahead
                    return self.discard()
            if self._index is not None:
                self._index.maintain()
            return False

    def move_to(self, place: SharedIndexPlace) -> None:
        """Use another build, which has no shared index yet; the files of the old one are removed with their build."""
        with self._lock:
            self.place, self.is_complete = place, False
            self.close()

    def use_embedder(self, embedder: Embedder) -> None:
        """Use this embedder for searches, as far as it fits the vectors of the index."""
        with self._lock:
            self.embedder = embedder
            if self._index is not None:
                self._index.use_embedder(embedder)

    def close(self) -> None:
        """Close the index; its files stay."""
        with self._lock:
            index, self._index = self._index, None
            with self._gate.drain(DRAIN_S):
                if index is not None:
                    index.close()
