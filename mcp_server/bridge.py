"""`memex mcp`: JSON-RPC lines on stdin and stdout, carried to the running daemon and back.

Law: it never hangs and never crashes on a bad answer: every request gets exactly one reply, if only an error.
It imports no MCP SDK, so a host has its tools a tenth of a second after it starts us."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, BinaryIO, Final

import httpx2

from index.errors import CODES, Unauthenticated, Unavailable

MODERN: Final = "2026-07-28"  # the first revision without sessions; revisions are dates, so they compare as text
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
SERVER_ERROR, PARSE_ERROR, INVALID_REQUEST = -32000, -32700, -32600
QUIET_SECONDS: Final = 45.0  # the daemon pings a stream every 15 s
CONNECT_SECONDS: Final = 5.0
_PLAIN: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")

Message = dict[str, Any]


def run(url: str, key: str, *, workspace: str | None = None, toolset: str | None = None) -> int:
    """Carry messages between this process's stdin and stdout and the daemon at `url` until stdin ends."""
    path = f"/mcp/{toolset}" if toolset else "/mcp"
    headers = {"authorization": f"Bearer {key}"}
    if workspace:
        headers["x-memory-workspace"] = workspace.encode()  # type: ignore[assignment]  # httpx2 takes bytes: a name in any script
    asyncio.run(_Bridge(url.rstrip("/") + path, headers, sys.stdout.buffer).carry(sys.stdin.buffer))
    return 0


class _Bridge:
    """One client on stdin. Older protocol revisions have a session, which lives as long as the bridge."""

    def __init__(self, url: str, headers: dict[str, str], out: BinaryIO) -> None:
        self._url = url
        self._headers = headers | {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        self._out = out
        self._session: str | None = None
        self._version: str | None = None
        self._under_way: dict[str, asyncio.Task[None]] = {}  # request id as JSON -> its task
        self._listening: asyncio.Task[None] | None = None

    async def carry(self, source: BinaryIO) -> None:
        """Until `source` ends, and then until what was asked is answered."""
        timeout = httpx2.Timeout(QUIET_SECONDS, connect=CONNECT_SECONDS)
        limits = httpx2.Limits(max_connections=64)
        # trust_env: a proxy in the environment must never see a key for this machine
        async with httpx2.AsyncClient(timeout=timeout, limits=limits, trust_env=False) as self._http:
            async for line in _lines(source):
                if line.strip():
                    await self._take(line)
            if self._under_way:
                await asyncio.wait(self._under_way.values(), timeout=QUIET_SECONDS)
            if self._listening:
                self._listening.cancel()
            await self._goodbye()

    async def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._fail(None, PARSE_ERROR, "the line is not JSON")
            return
        if not isinstance(message, dict):
            self._fail(None, INVALID_REQUEST, "one JSON-RPC message per line, please; batches are not served")
            return
        method, id = message.get("method"), message.get("id")  # noqa: A001 - the protocol's own word
        if method == "notifications/cancelled" and self._modern(message):
            # This revision cancels by closing the request; there is nothing to tell the daemon.
            cancelled = (message.get("params") or {}).get("requestId")
            if task := self._under_way.get(json.dumps(cancelled)):
                task.cancel()
            return
        if method == "initialize" or method is None or id is None:
            await self._exchange(message)  # in order: what follows depends on it
            return
        task = asyncio.create_task(self._exchange(message))
        self._under_way[json.dumps(id)] = task
        task.add_done_callback(lambda _: self._under_way.pop(json.dumps(id), None))

    async def _exchange(self, message: Message) -> None:
        """Send one message; write every message of the answer; make one up when there is none."""
        id = message.get("id") if "method" in message else None  # noqa: A001 - the protocol's own word
        answered = False
        try:
            async with self._http.stream(
                "POST", self._url, content=json.dumps(message).encode(), headers=self._headers_of(message)
            ) as response:
                if message.get("method") == "initialize":
                    self._session = response.headers.get("mcp-session-id")
                async for answer in _messages(response):
                    answered = answered or ("method" not in answer and answer.get("id") == id)
                    self._note(message, answer)
                    self._write(answer)
                if id is not None and not answered:
                    self._refused(id, response.status_code, b"")
        except _Refused as refused:
            if id is not None:
                self._refused(id, refused.status, refused.body)
        except httpx2.TransportError as error:
            if id is not None and not answered:
                self._fail(id, SERVER_ERROR, _unreachable(self._url, error), Unavailable.code, retryable=True)
        if message.get("method") == "notifications/initialized" and self._session and not self._listening:
            self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        """What the daemon says unasked, in the session of an older client. Optional, so a failure is not told."""
        with contextlib.suppress(httpx2.TransportError, _Refused):
            quiet = httpx2.Timeout(None, connect=CONNECT_SECONDS)
            headers = self._headers_of({}) | {"accept": "text/event-stream"}
            async with self._http.stream("GET", self._url, headers=headers, timeout=quiet) as response:
                async for message in _messages(response):
                    self._write(message)

    async def _goodbye(self) -> None:
        if self._session:
            with contextlib.suppress(httpx2.TransportError):
                await self._http.delete(self._url, headers=self._headers_of({}), timeout=2.0)

    def _headers_of(self, message: Message) -> dict[str, str]:
        headers = dict(self._headers)
        if self._modern(message):
            params = message.get("params") or {}
            headers["mcp-protocol-version"] = str(params["_meta"][VERSION_KEY])
            headers["mcp-method"] = _header(str(message["method"]))
            name = params.get(NAMED.get(message["method"], ""))
            if isinstance(name, str):
                headers["mcp-name"] = _header(name)
            return headers
        if message.get("method") != "initialize":
            if self._session:
                headers["mcp-session-id"] = self._session
            if self._version:
                headers["mcp-protocol-version"] = self._version
        return headers

    def _modern(self, message: Message) -> bool:
        """Whether the message is of a revision without sessions, which each message says for itself."""
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
        if version is None and message.get("method") == "notifications/cancelled":
            return self._session is None
        return isinstance(version, str) and isinstance(message.get("method"), str)

    def _note(self, asked: Message, answer: Message) -> None:
        """Remember the revision that a handshake agreed on."""
        result = answer.get("result")
        if asked.get("method") == "initialize" and isinstance(result, dict):
            self._version = result.get("protocolVersion")

    def _refused(self, id: Any, status: int, body: bytes) -> None:  # noqa: A002 - the protocol's own word
        """The daemon's own refusal, as an answer to the request it was meant for."""
        code, message, retryable = Unavailable.code, f"the daemon answered HTTP {status}", status >= 500  # noqa: PLR2004 - its fault
        with contextlib.suppress(ValueError, KeyError, TypeError):
            error = json.loads(body)["error"]
            if isinstance(error["code"], int):  # JSON-RPC already
                self._write({"jsonrpc": "2.0", "id": id, "error": error})
                return
            if error["code"] in CODES:
                code, message, retryable = error["code"], f"{error['message']} (HTTP {status})", error["retryable"]
        if status == 401:  # noqa: PLR2004 - unauthorized
            code = Unauthenticated.code
        if status == 404 and self._session:  # noqa: PLR2004 - not found
            message = "the daemon was restarted and has forgotten this session; start the client again"
        self._fail(id, SERVER_ERROR, message, code, status=status, retryable=retryable)

    def _fail(self, id: Any, number: int, message: str, code: str = "INVALID_ARGUMENT", **data: Any) -> None:  # noqa: A002 - the protocol's own word
        error = {"code": number, "message": message, "data": {"code": code, **data}}
        self._write({"jsonrpc": "2.0", "id": id, "error": error})

    def _write(self, message: Message) -> None:
        # ASCII only, so that no character can be taken for the end of the line
        self._out.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self._out.flush()


class _Refused(Exception):
    """An answer that is not a JSON-RPC message."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status, self.body = status, body


async def _messages(response: httpx2.Response) -> AsyncIterator[Message]:
    """The JSON-RPC messages of an answer, whether it is JSON or an event stream."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if kind == "text/event-stream" and response.status_code == 200:  # noqa: PLR2004 - OK
        data: list[bytes] = []
        rest = b""
        async for piece in response.aiter_bytes():
            # Not aiter_lines(), which also cuts at U+2028 and other characters that a note may hold.
            *lines, rest = (rest + piece).split(b"\n")
            for line in (line.removesuffix(b"\r") for line in lines):
                if line.startswith(b"data:"):
                    data.append(line[5:].removeprefix(b" "))
                elif not line and data:
                    if message := _object(b"\n".join(data)):
                        yield message
                    data = []
        return
    body = await response.aread()
    if response.status_code == 202:  # noqa: PLR2004 - Accepted: a notification
        return
    message = _object(body) if kind == "application/json" else None
    if message is None or message.get("jsonrpc") != "2.0" or message.get("id") is None:
        raise _Refused(response.status_code, body)
    yield message


def _object(text: bytes) -> Message | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _header(value: str) -> str:
    """A value as the protocol carries it in a header: as it is, or in base64 when it would not survive."""
    if _PLAIN.fullmatch(value) and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def _unreachable(url: str, error: httpx2.TransportError) -> str:
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return f"no daemon answers at {url}; start it with `memex serve`"
    if isinstance(error, httpx2.TimeoutException):
        return f"the daemon did not answer within {QUIET_SECONDS:g} s"
    return "the connection to the daemon was lost; what was asked may still have been done"


async def _lines(source: BinaryIO) -> AsyncIterator[bytes]:
    """The lines of a blocking stream. A daemon thread reads it, so that a stuck read can't keep the process alive."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def put(line: bytes) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lines.put_nowait, line)

    threading.Thread(target=_read, args=(source, put), name="bridge-stdin", daemon=True).start()
    while line := await lines.get():
        yield line


def _read(source: BinaryIO, put: Callable[[bytes], None]) -> None:
    while line := source.readline():
        put(line)
    put(b"")
