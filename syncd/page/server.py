"""Run the server of the page on a loopback port until it is idle, stopped through its control socket, or without a state folder.

Laws, tested: one page runs for a state folder. Links, sessions and the end of the page are reached only through a
socket that the owner's commands can open, never over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import uvicorn

from index.errors import InvalidArgument, NotFound, Unavailable
from syncd.daemon.control_socket import ControlServer, Operation
from syncd.page.application import VIEWS, build_application
from syncd.page.web.access_guard import LINK
from syncd.page.web.sessions import Sessions
from syncd.settings.settings import Settings
from syncd.state.process_lock import ProcessLock
from syncd.version import installed

FOLDER: Final = "page"  # of the state folder: the page's lock and control socket
HOST: Final = "127.0.0.1"
IDLE_S: Final = 30 * 60.0  # without a request and without an open page
LOOK_S: Final = 5.0  # between two looks at the clock
CONNECTIONS: Final = 128


def serve(
    settings: Settings, *, command: Sequence[str], on_bound: Callable[[str], None], idle_s: float = IDLE_S
) -> None:
    """Serve until the page is idle or stopped; `command` starts `memex` for this vault, and `on_bound` gets the address.

    Raises Conflict if another process serves this page, Unavailable if its port is taken."""
    folder = settings.state / FOLDER
    with ProcessLock.acquire(folder), contextlib.closing(_bind(settings.page.port)) as listener:
        asyncio.run(_Page(settings, command, folder, listener, idle_s=idle_s).run(on_bound))


class _Page:
    """Holds the parts of a running page, and when it was used last."""

    def __init__(
        self, settings: Settings, command: Sequence[str], folder: Path, listener: socket.socket, *, idle_s: float
    ) -> None:
        self._folder, self._listener, self._port = folder, listener, int(listener.getsockname()[1])
        self._url = f"http://{HOST}:{self._port}"
        self._idle_s = float("inf") if settings.page.always else idle_s
        self._used = time.monotonic()
        self._sessions = Sessions(time.time)
        self._stop = asyncio.Event()
        self._guard, self._events = build_application(
            settings, self._sessions, port=self._port, command=command, on_use=self._note_use
        )
        self._control = ControlServer(folder, self._operations())

    async def run(self, on_bound: Callable[[str], None]) -> None:
        """Serve until the end."""
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop.set)
        config = uvicorn.Config(
            self._guard, http="h11", ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
            proxy_headers=False, h11_max_incomplete_event_size=16_384, limit_concurrency=CONNECTIONS,
            timeout_keep_alive=30, timeout_graceful_shutdown=2,
        )  # fmt: skip
        self._control.start()
        try:
            await _Server(config, self._wait_for_end, lambda: on_bound(self._url)).serve(sockets=[self._listener])
        finally:
            await asyncio.to_thread(self._control.stop)

    def _note_use(self) -> None:
        self._used = time.monotonic()

    async def _wait_for_end(self) -> None:
        """Return when the page is stopped, was idle for long, or its state folder is gone, as after `memex demo`."""
        while not self._stop.is_set() and time.monotonic() - self._used < self._idle_s and self._folder.exists():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), min(LOOK_S, self._idle_s))
            self._sessions.drop_overdue()
        await self._events.close()

    def _operations(self) -> dict[str, Operation]:
        """Return what `memex open` asks for."""

        def link(arguments: Mapping[str, Any], _: Any) -> dict[str, Any]:
            names = {view.name: view.path for view in VIEWS}
            name = str(arguments.get("view") or "home")
            if name not in names:
                raise InvalidArgument(f"no view {name[:64]!r}; the page has {', '.join(names)}")
            self._note_use()
            query = urlencode({"link": self._sessions.make_link(), "to": names[name]})
            return {"url": f"{self._url}{LINK}?{query}", "page": self._url, "version": installed(), "pid": os.getpid()}

        def revoke(arguments: Mapping[str, Any], _: Any) -> dict[str, Any]:
            id = str(arguments.get("id"))
            if not self._sessions.revoke(id):
                raise NotFound(f"no session {id[:64]!r}; to list the sessions: memex open --sessions")
            self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._events.wake()))
            return {"revoked": id}

        def stop(_: Mapping[str, Any], __: Any) -> dict[str, Any]:
            self._loop.call_soon_threadsafe(self._stop.set)
            return {"stopped": os.getpid()}

        return {"link": link, "sessions": lambda _, __: self._sessions.list_open(), "revoke": revoke, "stop": stop}


class _Server(uvicorn.Server):
    """Runs uvicorn until a coroutine returns, instead of waking ten times a second."""

    def __init__(self, config: uvicorn.Config, wait_for_end: Callable[[], Any], on_bound: Callable[[], None]) -> None:
        super().__init__(config)
        self._wait_for_end, self._on_bound = wait_for_end, on_bound

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals: uvicorn would raise each signal again at the end."""
        yield

    async def main_loop(self) -> None:
        """Serve until the end."""
        self._on_bound()
        await self._wait_for_end()
        self.should_exit = True


def _bind(port: int) -> socket.socket:
    """Bind the port on the loopback address; an error names the setting to change."""
    # With the protocol named, asyncio sets TCP_NODELAY on each connection: without it, every answer waits 40 ms for an ACK.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(CONNECTIONS)
    except OSError as error:
        listener.close()
        taken = error.errno == errno.EADDRINUSE
        reason = "is taken by another process" if taken else f"can't be opened ({error.strerror})"
        raise Unavailable(f"{HOST}:{port} {reason}: choose another port with page.port", retryable=False) from error
    return listener
