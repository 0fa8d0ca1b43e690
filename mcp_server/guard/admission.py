"""Admission lets a key's requests in: a request that comes too fast, or finds all places taken, waits for its turn.

Law, tested: a request waits before its body is read, so only the part that the server has already received is in memory. A
key that sends without end delays only its own requests, and holds a bounded number of streams. A client that disconnects
leaves the queue."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import ExitStack
from typing import Any, Final, TypeAlias

from starlette.types import Message, Receive

from mcp_server.guard.token_bucket import TokenBuckets
from mcp_server.http.body_limits import receive_again
from mcp_server.operations.caller import TOO_FAST
from mcp_server.operations.fair_queue import FairQueue, QueueFull
from syncd.settings.access import LimitsSettings

PLACES: Final = 64  # requests that run at once, each with its body in memory
EACH: Final = 48  # of these, requests of one key, so that other keys always find a place
STREAMS: Final = 32  # listening streams of one key: each holds a connection for hours
FULL_SECONDS: Final = 1.0  # wait time for a key whose queue is full


class TooBusy(Exception):
    """Reports that a request can't wait for its turn; it may come again in `wait` seconds, and `receive` returns its unread rest."""

    def __init__(self, wait: float, receive: Receive, message: str = TOO_FAST) -> None:
        super().__init__(message)
        self.wait, self.receive, self.message = wait, receive, message


class ClientLeft(Exception):
    """Reports that the client disconnected while its request waited."""


# What an admitted request holds: `close` gives the place to the next request, and a second call does nothing.
Place: TypeAlias = ExitStack


class Admission:
    """Admits the requests of one server. `rates` limits how fast the requests of a key follow each other."""

    def __init__(self, limits: LimitsSettings, rates: TokenBuckets) -> None:
        self._rates, self._most, self._patience = rates, limits.queue, limits.wait_s
        self._places = FairQueue(PLACES, each=EACH, waiting=limits.queue)
        self._waiting: Counter[str] = Counter()  # key -> its waiting requests
        self._streams: Counter[str] = Counter()  # key -> its streams, including waiting ones

    async def admit(self, key: str, receive: Receive, *, is_stream: bool) -> tuple[Place, Receive]:
        """Wait for a place for a request of `key`; return it with the `receive` to use from now on. Raises TooBusy and ClientLeft.

        A listening stream gets a separate kind of place, because it would block an ordinary one for hours."""
        if not is_stream:
            return await self._wait_for_place(key, receive, is_stream=False)
        if self._streams[key] >= STREAMS:
            raise TooBusy(FULL_SECONDS, receive, f"this key already has {STREAMS} open streams; close one first")
        stream = Place()
        self._streams[key] += 1
        stream.callback(self._streams.subtract, [key])
        try:
            _, receive = await self._wait_for_place(key, receive, is_stream=True)
        except BaseException:
            stream.close()
            raise
        return stream, receive

    async def _wait_for_place(self, key: str, receive: Receive, *, is_stream: bool) -> tuple[Place, Receive]:
        if self._waiting[key] >= self._most:
            raise TooBusy(FULL_SECONDS, receive)
        pause = self._rates.take(key, time.monotonic(), patience=self._patience)
        if pause > self._patience:
            raise TooBusy(pause, receive)
        if not pause and (is_stream or self._places.take_free(key)):
            return self._make_place(key, is_stream), receive
        self._waiting[key] += 1
        try:
            return await _wait_unless_left(self._come_up(key, pause, is_stream), receive, self._patience)
        finally:
            self._waiting[key] -= 1

    async def _come_up(self, key: str, pause: float, is_stream: bool) -> Place:
        """Wait for the request's turn, then return its place."""
        await asyncio.sleep(pause)
        if not is_stream:
            await self._places.take(key)
        return self._make_place(key, is_stream)

    def _make_place(self, key: str, is_stream: bool) -> Place:
        place = Place()
        if not is_stream:
            place.callback(self._places.release, key)
        return place


async def _wait_unless_left(
    turn: Coroutine[Any, Any, Place], receive: Receive, seconds: float
) -> tuple[Place, Receive]:
    """Wait for `turn`, and return its place with a `receive` that repeats the messages received meanwhile. Raises as `Admission.admit`.

    The wait only listens for the end of the connection. It does not take a second piece of a body, which would let the client send more."""
    received: list[Message] = []

    async def hear_the_end() -> None:
        while not received or (received[-1]["type"] == "http.request" and not received[-1].get("more_body", False)):
            received.append(await receive())
        if received[-1]["type"] == "http.request":
            await asyncio.Event().wait()  # the rest of the body stays unread

    whole = receive_again(received, receive)
    coming, hearing = asyncio.ensure_future(turn), asyncio.ensure_future(hear_the_end())
    is_admitted = False
    try:
        await asyncio.wait({coming, hearing}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            place, is_admitted = coming.result(), True
            return place, whole
        if hearing.done():
            raise ClientLeft
        raise TooBusy(FULL_SECONDS, whole)
    except QueueFull:
        raise TooBusy(FULL_SECONDS, whole) from None
    finally:
        for task in (coming, hearing):
            task.cancel()
        ended, _ = await asyncio.gather(coming, hearing, return_exceptions=True)
        if isinstance(ended, Place) and not is_admitted:
            ended.close()
