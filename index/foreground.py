"""Count the calls in the foreground, for which a caller waits: background work gives way to them, and a lone call may use two cores.

Within a slice, Python's threads take turns, and a call needs several turns. With Python's default of five milliseconds a
turn, a call would wait for tens of turns behind a computing job.

Law, tested: background work that gives way finishes however many calls arrive, because each wait has a limit. One process
is one daemon, so the count belongs to the process."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Final, TypeVar

WAIT_S: Final = 0.5  # maximum seconds that one slice of background work waits
SHORT_S: Final = 0.03  # the same for one of many thousand slices
TURN_S: Final = 0.0005  # seconds that a thread runs while others wait for their turn
CALM_S: Final = 0.02  # seconds without a call after which background work continues: a caller with several calls sends the next one sooner

T = TypeVar("T")
U = TypeVar("U")


class Foreground:
    """Counts the running calls; safe to use from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._calls = 0
        self._ended = float("-inf")  # when the last call ended, by the monotonic clock
        self._bulk = threading.local()
        self._second = ThreadPoolExecutor(1, "second-core")  # starts its thread when it is first used

    @contextmanager
    def call(self) -> Iterator[None]:
        """Mark the block as a call for whose answer a caller waits."""
        with self._changed:
            self._calls += 1
        try:
            yield
        finally:
            with self._changed:
                self._calls -= 1
                self._ended = time.monotonic()
                self._changed.notify_all()

    def begin(self, work: Callable[[], T]) -> Callable[[], T]:
        """Start `work` in a second thread, if at most one call runs and there are several cores; return a function for its result.

        That function does the work itself if the thread has not begun with it. Bulk work gets no second thread."""
        future = self._submit(work)
        return work if future is None else lambda: work() if future.cancel() else future.result()

    def run_both(self, first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
        """Run `first` in this thread, and `second` as `begin` runs it; return both results after both have ended.

        If `first` fails, its error is raised, and `second` is not begun any more."""
        future = self._submit(second)
        try:
            done = first()
        except BaseException:
            if future is not None and not future.cancel():
                wait([future])
            raise
        return done, second() if future is None or future.cancel() else future.result()

    def _submit(self, work: Callable[[], T]) -> Future[T] | None:
        if self._calls > 1 or self.is_bulk or count_cores() == 1:
            return None
        pending = [work]

        def run() -> T:
            return pending.pop()()

        try:
            return self._second.submit(run)
        except RuntimeError:  # the system allows no more threads; the executor keeps what it could not start
            pending.clear()
            return None

    def give_way(self, most_s: float = WAIT_S) -> None:
        """Wait until no call is running and none has just ended, for at most `most_s` seconds."""
        end = time.monotonic() + most_s
        with self._changed:
            while True:
                now = time.monotonic()
                calm = self._ended + CALM_S if not self._calls else float("inf")
                if now >= min(calm, end):
                    return
                self._changed.wait(min(calm, end) - now)

    @contextmanager
    def bulk(self, is_bulk: bool) -> Iterator[None]:
        """Mark the block as bulk work of this thread, in which `pace` gives way to calls; without `is_bulk`, as ordinary work."""
        before, self._bulk.is_on = self.is_bulk, is_bulk
        try:
            yield
        finally:
            self._bulk.is_on = before

    @property
    def is_bulk(self) -> bool:
        """Return whether this thread does bulk work."""
        return getattr(self._bulk, "is_on", False)

    def pace(self) -> None:
        """Give way between two slices of bulk work; do nothing for other work, for which a caller waits."""
        if self.is_bulk:
            self.give_way(SHORT_S)


foreground: Final = Foreground()


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shorten_turns() -> None:
    """Make the threads of this process switch more often than Python's default, because a daemon answers calls beside its jobs."""
    sys.setswitchinterval(TURN_S)
