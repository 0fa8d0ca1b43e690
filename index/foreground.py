"""The foreground is what somebody waits for: while calls are under way, background work gives way between two slices.

Within a slice Python's threads take turns, and a call needs several: at the usual five milliseconds for a turn it would
wait for tens of them behind a job that counts.

Law, tested: background work that gives way comes to its end however many calls there are, because a wait has a
limit. One process is one daemon, so the count is the process's."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

WAIT_S: Final = 0.5  # seconds that one slice of background work waits at most
SHORT_S: Final = 0.03  # and one of many thousand
TURN_S: Final = 0.0005  # seconds that a thread runs while others wait for their turn
CALM_S: Final = (
    0.02  # seconds without a call after which there is time: who asks one thing after another asks again sooner
)


class Foreground:
    """The calls that are under way; safe to use from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._calls = 0
        self._ended = float("-inf")  # when the last call ended, by the monotonic clock
        self._bulk = threading.local()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Inside, somebody waits for an answer."""
        with self._changed:
            self._calls += 1
        try:
            yield
        finally:
            with self._changed:
                self._calls -= 1
                self._ended = time.monotonic()
                self._changed.notify_all()

    def give_way(self, most_s: float = WAIT_S) -> None:
        """Wait until no call is under way and none has just ended, `most_s` seconds at most."""
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
        """Inside, this thread has so much to do that nobody waits for each part of it, and `pace` gives way; or it has not."""
        before, self._bulk.is_on = self.is_bulk, is_bulk
        try:
            yield
        finally:
            self._bulk.is_on = before

    @property
    def is_bulk(self) -> bool:
        """Whether this thread works at a bulk."""
        return getattr(self._bulk, "is_on", False)

    def pace(self) -> None:
        """Give way between two slices of a bulk; of less work, somebody waits for each part."""
        if self.is_bulk:
            self.give_way(SHORT_S)


foreground: Final = Foreground()


def shorten_turns() -> None:
    """Let the threads of this process change more often than Python has them, for a daemon answers beside its jobs."""
    sys.setswitchinterval(TURN_S)
