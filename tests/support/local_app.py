"""Call the app in this local process, without a socket, on a separate event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

HOST = "127.0.0.1"


class LocalApp:
    """Sends requests to an ASGI application, one after the other."""

    def __init__(self, app: Any, port: int, runner: asyncio.Runner) -> None:
        self._app, self._runner = app, runner
        self._url = f"http://{HOST}:{port}"

    def send(self, method: str, path: str, *, endless: bool = False, **options: Any) -> httpx2.Response:
        """Return the answer; for an `endless` stream of events, only the head."""
        return self._runner.run(self._send(httpx2.Request(method, self._url + path, **options), endless=endless))

    async def _send(self, request: httpx2.Request, *, endless: bool) -> httpx2.Response:
        messages: list[dict[str, Any]] = [{"type": "http.request", "body": request.read(), "more_body": False}]
        status, body, streaming = 0, bytearray(), asyncio.Event()
        headers: list[tuple[bytes, bytes]] = []

        async def receive() -> dict[str, Any]:
            if not messages:
                await asyncio.Event().wait()
            return messages.pop()

        async def send(message: dict[str, Any]) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], message["headers"]
                if endless and dict(headers).get(b"content-type", b"").startswith(b"text/event-stream"):
                    streaming.set()
            body.extend(message.get("body", b""))

        begun = asyncio.create_task(streaming.wait())
        answering = asyncio.create_task(self._app(_scope_of(request), receive, send))
        async with asyncio.timeout(30):
            await asyncio.wait({begun, answering}, return_when=asyncio.FIRST_COMPLETED)
            begun.cancel()
            answering.cancel()  # where it is done, nothing comes of that
            results = await asyncio.gather(begun, answering, return_exceptions=True)
        if isinstance(results[1], Exception):
            raise results[1]
        return httpx2.Response(status, headers=headers, content=b"" if streaming.is_set() else bytes(body))


def _scope_of(request: httpx2.Request) -> dict[str, Any]:
    path, _, query = request.url.raw_path.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.url.path,
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": (HOST, 1),
        "server": (HOST, request.url.port),
    }


@contextmanager
def opened(app: Any, port: int) -> Iterator[LocalApp]:
    """Yield the application between its start and its end."""
    with asyncio.Runner() as runner:
        calls: asyncio.Queue[str] = asyncio.Queue()
        told: asyncio.Queue[str] = asyncio.Queue()

        async def receive() -> dict[str, Any]:
            return {"type": await calls.get()}

        async def send(message: dict[str, Any]) -> None:
            told.put_nowait(message["type"])

        async def begin() -> asyncio.Task[None]:
            task = asyncio.create_task(app({"type": "lifespan", "asgi": {"version": "3.0"}}, receive, send))
            calls.put_nowait("lifespan.startup")
            assert await told.get() == "lifespan.startup.complete"
            return task

        async def end(task: asyncio.Task[None]) -> None:
            calls.put_nowait("lifespan.shutdown")
            await task

        lifespan = runner.run(begin())
        try:
            yield LocalApp(app, port, runner)
        finally:
            runner.run(end(lifespan))
