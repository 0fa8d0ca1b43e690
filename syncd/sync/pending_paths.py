"""Hold the pending paths of the sync pipeline: hints that settle, paths to check again, requests for a listing.

Law: every path put here is returned at least once afterwards, and counts as pending until the pipeline has finished
with it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from syncd.sync.debounce import Pending, add_hints, next_due_at, settle

LONGEST = 60.0  # longest sleep in seconds when nothing is pending


class PendingPaths:
    """Holds the paths shared by the watcher, the jobs and the pipeline's thread."""

    def __init__(self, *, quiet: float, patience: float) -> None:
        self._quiet, self._patience = quiet, patience
        self._changed = threading.Condition()
        self._hints: set[str] = set()
        self._settling: Pending = {}
        self._later: dict[str, float] = {}  # path → when to check again
        self._listing = True
        self._working: Counter[str] = Counter()  # path → number of threads working on it
        self.stopped = False

    def hint(self, paths: Iterable[str]) -> None:
        """Add paths that may have changed."""
        with self._changed:
            self._hints.update(paths)
            self._changed.notify_all()

    def request_listing(self) -> None:
        """Request a listing of the whole vault."""
        with self._changed:
            self._listing = True
            self._changed.notify_all()

    def recheck(self, path: str, after: float) -> None:
        """Check `path` again in this many seconds."""
        with self._changed:
            self._later[path] = time.monotonic() + max(after, 0.05)
            self._changed.notify_all()

    def stop(self) -> None:
        """Wake all waiting threads, and return no more paths."""
        with self._changed:
            self.stopped = True
            self._changed.notify_all()

    def resume(self) -> None:
        """Return paths again."""
        with self._changed:
            self.stopped = False

    def pause(self, seconds: float) -> None:
        """Wait, at most until `stop`."""
        with self._changed:
            self._changed.wait_for(lambda: self.stopped, seconds)

    def wait(self, other: Callable[[], bool], every: float = 5.0) -> bool:
        """Wait for a due path, a requested listing, or `other` to hold, which is called regularly.

        Returns True when a listing is requested, and clears the request."""
        while True:
            also = other()  # it may take a while, and hints arrive meanwhile
            with self._changed:
                if self.stopped or self._listing or self._seconds_until_due() <= 0 or also:
                    wanted, self._listing = self._listing, False
                    return wanted
                self._changed.wait(min(self._seconds_until_due(), every))

    @contextmanager
    def processing_due(self) -> Iterator[list[str]]:
        """Yield the paths to check now, sorted; they count as pending until the block ends, and after it if it fails."""
        with self._changed:  # in one step: a reader in between would take them for finished
            due = self._take_due()
            self._working.update(due)
        try:
            yield due
        except BaseException:
            for path in due:
                self.recheck(path, 0)
            raise
        finally:
            self._finish(due)

    @contextmanager
    def processing(self, paths: Iterable[str]) -> Iterator[Callable[[Iterable[str]], None]]:
        """Count `paths` as pending until they are processed; call the yielded function with the finished ones."""
        left = set(paths)

        def finish(some: Iterable[str]) -> None:
            finished = left.intersection(some)
            left.difference_update(finished)
            self._finish(finished)

        with self._changed:
            self._working.update(left)
        try:
            yield finish
        finally:
            finish(tuple(left))

    @property
    def paths(self) -> set[str]:
        """Return the changed paths that are not indexed yet."""
        with self._changed:
            return self._hints | self._settling.keys() | self._later.keys() | self._working.keys()

    def _take_due(self) -> list[str]:
        now = self._take_hints()
        ready, self._settling = settle(self._settling, now, quiet=self._quiet, patience=self._patience)
        later = [path for path, moment in self._later.items() if moment <= now]
        for path in later:
            del self._later[path]
        return sorted({*ready, *later})

    def _finish(self, paths: Iterable[str]) -> None:
        with self._changed:
            for path in paths:
                self._working[path] -= 1
                if not self._working[path]:
                    del self._working[path]

    def _take_hints(self) -> float:
        now = time.monotonic()
        if self._hints:
            self._settling = add_hints(self._settling, self._hints, now)
            self._hints = set()
        return now

    def _seconds_until_due(self) -> float:
        now = self._take_hints()
        first = next_due_at(self._settling, quiet=self._quiet, patience=self._patience)
        moments = [*self._later.values(), *([] if first is None else [first])]
        return min(moments, default=now + LONGEST) - now
