"""A fair queue gives out a number of places; who finds none waits, and the names that wait take turns.

Law, tested: no place is given twice. A name with many requests delays another name by one turn at most. The number
that wait is bounded, and one that gives up leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

MOST: Final = 512  # that wait for one queue, of all names together


class QueueFull(Exception):
    """So many wait already that one more is not taken on."""


class FairQueue:
    """`places` in all, `each` of them for one name at most; up to `waiting` of one name wait. Belongs to one event loop."""

    def __init__(self, places: int, *, waiting: int, each: int | None = None) -> None:
        self._free, self._each, self._most = places, each or places, waiting
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # in the order of their turns

    @asynccontextmanager
    async def place(self, name: str) -> AsyncIterator[None]:
        """A place for this block. Raises QueueFull."""
        await self.take(name)
        try:
            yield
        finally:
            self.release(name)

    def take_free(self, name: str) -> bool:
        """Take a place if there is one at once."""
        if not self._is_free_for(name):
            return False
        self._give(name)
        return True

    async def take(self, name: str) -> None:
        """Take a place, when it is the turn of `name`. Raises QueueFull."""
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
            else:  # it came at the very moment when nobody wanted it any more
                self.release(name)
            raise

    def release(self, name: str) -> None:
        """Give a place of `name` back, for whoever is next."""
        self._held[name] -= 1
        if not self._held[name]:
            del self._held[name]
        self._free += 1
        while following := next(filter(self._is_free_for, self._waiting), None):
            line = self._waiting.pop(following)
            turn = line.popleft()
            if line:
                self._waiting[following] = line  # behind all others
            if not turn.done():
                self._give(following)
                turn.set_result(None)

    def waiting(self) -> int:
        """How many wait."""
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
