"""Manage write reservations: while files are reserved, writers of them wait.

A reservation begins when nobody writes these files. Until then it stops no writer, because a writer at work may write a second
file before it finishes the first."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager


class WriteReservations:
    """Manages the reservations of one process. Safe from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._writing: Counter[str] = Counter()
        self._reserved: frozenset[str] = frozenset()

    @contextmanager
    def reserve(self, paths: Collection[str]) -> Iterator[None]:
        """Keep writers away from these files, as soon as nobody writes one of them."""
        wanted = frozenset(paths)
        with self._changed:
            self._changed.wait_for(lambda: not self._reserved and wanted.isdisjoint(self._writing))
            self._reserved = wanted
        try:
            yield
        finally:
            with self._changed:
                self._reserved = frozenset()
                self._changed.notify_all()

    @contextmanager
    def writing(self, *paths: str) -> Iterator[None]:
        """Write files while nobody has reserved one of them."""
        with self._changed:
            self._changed.wait_for(lambda: self._reserved.isdisjoint(paths))
            self._writing.update(paths)
        try:
            yield
        finally:
            with self._changed:
                self._writing -= Counter(paths)  # which keeps no zeros
                self._changed.notify_all()
