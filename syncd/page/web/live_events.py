"""Send server-sent events to open pages, live: that something changed, and that the daemon is gone or back.

Law, tested: while no page is open, nobody asks the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from index.errors import MemexError
from syncd.page.web.sessions import Sessions

LOOK_S: Final = 0.4  # between two looks at the daemon
PING_S: Final = 15.0  # silence after which a comment shows that the stream is alive

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DaemonState:
    """Holds what open pages need to know: whether the daemon answers, and a stamp that changes with its data."""

    answers: bool
    stamp: str


GONE: Final = DaemonState(False, "")


class LiveEvents:
    """Follows the daemon while a page is open, and informs every open page. Belongs to one event loop.

    `ask_stamp` asks the daemon for its stamp."""

    def __init__(self, ask_stamp: Callable[[], object], sessions: Sessions, on_use: Callable[[], None]) -> None:
        self._ask_stamp, self._sessions, self._on_use = ask_stamp, sessions, on_use
        self.state: DaemonState | None = None
        self.closing = asyncio.Event()
        self._pages = self._version = 0
        self._changed = asyncio.Condition()
        self._follower: asyncio.Task[None] | None = None

    @property
    def stamp(self) -> str:
        """Return the daemon's last known stamp; "" while no page is open."""
        return self.state.stamp if self.state else ""

    async def answer(self, request: Request) -> Response:
        """Answer `/events` with the stream of events; HEAD gets its headers alone, and no connection stays open for it."""
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return StreamingResponse(self._stream(request), media_type="text/event-stream")

    async def _stream(self, request: Request) -> AsyncIterator[str]:
        session, shown = request.scope["session"], None
        with self._follow():
            while not self.closing.is_set() and self._sessions.keep_open(session):
                self._on_use()
                version, state = self._version, self.state
                if state is not None and state != shown:
                    shown = state
                    yield f"data: {json.dumps({'answers': state.answers, 'stamp': state.stamp})}\n\n"
                elif not await self._wait(version):
                    yield ": alive\n\n"

    async def _wait(self, version: int) -> bool:
        """Wait until `publish` is called after this version; return False when it was not for a while."""
        try:
            async with asyncio.timeout(PING_S), self._changed:
                await self._changed.wait_for(lambda: self._version != version)
        except TimeoutError:
            return False
        return True

    @contextlib.contextmanager
    def _follow(self) -> Iterator[None]:
        """Keep the follower running while at least one page is open."""
        self._pages += 1
        if self._follower is None or self._follower.done():
            self._follower = asyncio.create_task(self._look_repeatedly())
        try:
            yield
        finally:
            self._pages -= 1
            if self._pages == 0:
                self._follower.cancel()
                self._follower = self.state = None

    async def _look_repeatedly(self) -> None:
        while not self.closing.is_set():
            state = await self._look()
            if state != self.state:
                self.state = state
                await self.wake()
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> DaemonState:
        try:
            stamp = await run_in_threadpool(self._ask_stamp)
        except MemexError:
            return GONE
        except (OSError, RuntimeError) as error:  # no file descriptor or thread is free
            if self.state != GONE:
                log.warning("the page can't connect to the daemon now: %s", error)
            return GONE
        return DaemonState(True, json.dumps(stamp, sort_keys=True))

    async def wake(self) -> None:
        """Let every stream look at the state, and whether its session is still open."""
        async with self._changed:
            self._version += 1
            self._changed.notify_all()

    async def close(self) -> None:
        """End all streams."""
        self.closing.set()
        await self.wake()
