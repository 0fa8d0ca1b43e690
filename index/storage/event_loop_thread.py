"""Run LanceDB's coroutines on an event loop that has a thread of its own, so that any thread may call the store.

LanceDB panics at times before 1970, so at such a time nothing is started."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from index.errors import EARLY_CLOCK, Unavailable
from index.storage.lancedb_table import PanicAsFailure

T = TypeVar("T")


class EventLoopThread:
    """Runs an event loop on a separate thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="lancedb", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` and return its result."""
        with PanicAsFailure():
            return self.start(work).result()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start `work`, which completes even if the caller is interrupted."""
        if self._loop.is_closed():
            work.close()
            raise Unavailable("the store is closed", retryable=False)
        if time.time() < 0:
            work.close()
            raise Unavailable(EARLY_CLOCK)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Stop the event loop and its thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
