"""Timings count how long the slow kinds of work take, and why they fail, for the metrics page. `now_ms` is the clock.

Law: the counts are numbers under fixed words, never text of a note or of an error. One process is one daemon, so
these counts are the process's."""

from __future__ import annotations

import errno
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from index.errors import MemexError

BOUNDS: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds


@dataclass(frozen=True, slots=True)
class TimingCounts:
    """Hold what was counted so far."""

    at_most: tuple[int, ...]  # how many took at most each of BOUNDS, and last how many there were
    seconds: float  # of all together
    failures: Mapping[str, int]  # by cause; they are among those that were timed


class Stopwatch:
    """Measure one kind of work; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * (len(BOUNDS) + 1)
        self._seconds = 0.0
        self._failures: Counter[str] = Counter()

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Time the block, and count an error that leaves it as a failure."""
        begun, cause = time.perf_counter(), ""
        try:
            yield
        except BaseException as error:
            cause = find_cause(error)
            raise
        finally:
            seconds = time.perf_counter() - begun
            with self._lock:
                self._counts[bisect_left(BOUNDS, seconds)] += 1
                self._seconds += seconds
                if cause:
                    self._failures[cause] += 1

    def counts(self) -> TimingCounts:
        """Return the present counts."""
        with self._lock:
            failures = dict.fromkeys(CAUSES, 0) | self._failures  # from 0 on, or nobody sees the first one rise
            return TimingCounts(tuple(accumulate(self._counts)), self._seconds, failures)


EMBEDDING: Final = {"query": Stopwatch(), "document": Stopwatch()}
STORE: Final = {"search": Stopwatch(), "write": Stopwatch()}
ENRICHMENT: Final = Stopwatch()
CAUSES: Final = ("timeout", "connection", "disk_full", "system", "unavailable", "bug")  # and the codes of other errors


def find_cause(error: BaseException) -> str:
    """Return the cause of a failure as a fixed word: from the innermost error, or else the code of Memex's own error."""
    if error.__cause__ is not None and (cause := find_cause(error.__cause__)) != "bug":
        return cause
    name = type(error).__name__
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return "timeout"
    if isinstance(error, ConnectionError) or "Connect" in name:
        return "connection"
    if isinstance(error, OSError):
        return "disk_full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "system"
    return error.code.lower() if isinstance(error, MemexError) else "bug"


def now_ms() -> int:
    """Return the current time in epoch milliseconds."""
    return time.time_ns() // 1_000_000
