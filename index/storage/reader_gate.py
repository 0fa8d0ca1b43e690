"""The reader gate admits readers in parallel, and keeps them out while data that they read is removed.

Law, tested: while the gate is drained, no reader is inside; readers that arrive in the meantime wait for the drain."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class ReaderGate:
    """Counts the readers inside; a drain has priority over readers that arrive later."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._draining = False

    @contextlib.contextmanager
    def enter(self) -> Iterator[None]:
        """Enter for the block. A thread must not nest calls."""
        with self._changed:
            self._changed.wait_for(lambda: not self._draining)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def drain(self, timeout: float) -> Iterator[bool]:
        """Keep readers out during the block; yield False, with an open gate, if a reader was still inside after `timeout` seconds."""
        with self._changed:
            self._draining = True
            empty = self._changed.wait_for(lambda: not self._inside, timeout)
            if not empty:
                self._open()
        try:
            yield empty
        finally:
            with self._changed:
                self._open()

    def _open(self) -> None:
        self._draining = False
        self._changed.notify_all()
