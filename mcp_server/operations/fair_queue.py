"""A fair queue gives out a limited number of places; requests that find no place wait, and the names take turns.

Law, tested: the queue gives no place twice. A name with many requests delays another name by one turn at most. The
number of waiting requests is bounded, and a request that gives up leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

MOST: Final = 512  # waiting requests of one queue, of all names together


class QueueFull(Exception):
    """Reports that too many requests wait already."""


class FairQueue:
    """Holds `places` places, at most `each` of them for one name; up to `waiting` requests of one name wait. Belongs to one event loop."""

    def __init__(self, places: int, *, waiting: int, each: int | None = None) -> None:
        self._free, self._each, self._most = places, each or places, waiting
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # in the order of their turns

    @asynccontextmanager
    async def place(self, name: str) -> AsyncIterator[None]:
        """Hold a place during this block. Raises QueueFull."""
        await self.take(name)
        try:
            yield
        finally:
            self.release(name)

    def take_free(self, name: str) -> bool:
        """Take a place if one is free."""
        if not self._is_free_for(name):
            return False
        self._give(name)
        return True

    async def take(self, name: str) -> None:
        """Wait for the turn of `name`, then take a place. Raises QueueFull."""
        if self.take_free(name):
            return
        line = self._waiting.get(name, ())
        if len(line) >= self._most or self.waiting() >= MOST:
            raise QueueFull
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(name, turn)
            else:  # the turn arrived in the moment of the cancellation
                self.release(name)
            raise

    def release(self, name: str) -> None:
        """Give back a place of `name`, and pass it to the next waiting request."""
        self._held[name] -= 1
        if not self._held[name]:
            del self._held[name]
        self._free += 1
        while following := next(filter(self._is_free_for, self._waiting), None):
            line = self._waiting.pop(following)
            turn = line.popleft()
            if line:
                self._waiting[following] = line  # after all other names
            if not turn.done():
                self._give(following)
                turn.set_result(None)

    def waiting(self) -> int:
        """Count the waiting requests."""
        return sum(len(line) for line in self._waiting.values())

    def _is_free_for(self, name: str) -> bool:
        return self._free > 0 and self._held[name] < self._each

    def _give(self, name: str) -> None:
        self._free -= 1
        self._held[name] += 1

    def _forget(self, name: str, turn: asyncio.Future[None]) -> None:
        line = self._waiting.get(name)
        if line and turn in line:
            line.remove(turn)
            if not line:
                del self._waiting[name]
