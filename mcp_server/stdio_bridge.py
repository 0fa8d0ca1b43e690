"""The stdio bridge (`memex mcp`) carries JSON-RPC lines from stdin to the running daemon, and its answers to stdout.

Law: the bridge never hangs and never crashes on a bad answer: every request gets exactly one reply, at least an error. It
does not import the MCP SDK, so a host gets its tools a tenth of a second after it starts the bridge."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any, BinaryIO, Final

import httpx2

from index.errors import CODES, Unauthenticated, Unavailable

log = logging.getLogger(__name__)

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
SERVER_ERROR, PARSE_ERROR, INVALID_REQUEST = -32000, -32700, -32600
QUIET_SECONDS: Final = 45.0  # the daemon pings a stream every 15 s
CONNECT_SECONDS: Final = 5.0
_PLAIN: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")

Id = str | int | float  # of a request
Message = dict[str, Any]
Headers = dict[bytes, bytes]


def run(url: str, key: str, workspace: str | None = None, *, toolset: str | None = None) -> int:
    """Carry messages between this process's stdin and stdout and the daemon at `url` until stdin ends."""
    path = f"/mcp/{toolset}" if toolset else "/mcp"
    headers = {"authorization": f"Bearer {key}"} | ({"x-memory-workspace": workspace} if workspace else {})
    asyncio.run(_Bridge(url.rstrip("/") + path, headers, sys.stdout.buffer).carry_messages(sys.stdin.buffer))
    return 0


class _Bridge:
    """Serves one client on stdin. Older protocol revisions have a session, which it opens again after a restart of the daemon."""

    def __init__(self, url: str, headers: dict[str, str], out: BinaryIO) -> None:
        self._url = url
        kinds = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        self._headers: Headers = {name.encode(): value.encode() for name, value in (headers | kinds).items()}
        self._out = out
        self._nowhere = os.open(os.devnull, os.O_WRONLY)
        self._hello: Message | None = None  # the handshake, for reopening the session
        self._opening = asyncio.Lock()
        self._session: bytes | None = None
        self._version: bytes | None = None
        self._under_way: dict[str, asyncio.Task[None]] = {}  # request id as JSON -> its task
        self._listening: asyncio.Task[None] | None = None

    async def carry_messages(self, source: BinaryIO) -> None:
        """Carry messages until `source` ends and all requests are answered."""
        timeout = httpx2.Timeout(QUIET_SECONDS, connect=CONNECT_SECONDS)
        limits = httpx2.Limits(max_connections=64)
        # trust_env: a proxy in the environment must never see a key for this machine
        async with httpx2.AsyncClient(timeout=timeout, limits=limits, trust_env=False) as self._http:
            async for line in _read_lines(source):
                if line.strip():
                    await self._handle_line(line)
            if self._under_way:
                await asyncio.wait(self._under_way.values(), timeout=QUIET_SECONDS)
            if self._listening:
                self._listening.cancel()
            await self._end_session()

    async def _handle_line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._write_error(None, PARSE_ERROR, "the line is not JSON")
            return
        if not isinstance(message, dict):
            self._write_error(None, INVALID_REQUEST, "send one JSON-RPC message per line; batches are not supported")
            return
        method, asked = message.get("method"), message.get("id")
        if not isinstance(asked, Id | None):
            self._write_error(None, INVALID_REQUEST, "the id of a request must be a text or a number")
            return
        if method == "notifications/cancelled" and (_protocol_revision(message) or not self._session):
            # This revision cancels by closing the request, so the daemon needs no message.
            params = message.get("params")
            cancelled = params.get("requestId") if isinstance(params, dict) else None
            if isinstance(cancelled, Id) and (task := self._under_way.get(json.dumps(cancelled))):
                task.cancel()
            return
        if method == "initialize" or method is None or asked is None:
            await self._exchange(message)  # in order: later messages depend on it
            return
        number = json.dumps(asked)
        if number in self._under_way:
            self._write_error(asked, INVALID_REQUEST, "a request with this id is not answered yet")
            return
        task = self._under_way[number] = asyncio.create_task(self._exchange(message))
        task.add_done_callback(lambda _: self._under_way.pop(number))

    async def _exchange(self, message: Message) -> None:
        """Send one message and write every message of the answer, or an error if no answer arrives."""
        asked = message.get("id") if "method" in message else None
        session = self._session
        try:
            try:
                await self._post(message)
            except _ForeignAnswer as refused:
                if refused.status != HTTPStatus.NOT_FOUND or not session or not self._hello:
                    raise
                await self._reopen_session(session)
                await self._post(message)
        except _ForeignAnswer as refused:
            if asked is not None:
                self._write_refusal(asked, refused.status, refused.body)
        except _BrokenAfterAnswer:
            pass
        except httpx2.HTTPError as error:
            self._write_failure(asked, error)
        except RecursionError:  # Python reads JSON a few levels deeper than it writes it
            if asked is not None:
                self._write_error(asked, INVALID_REQUEST, "the message or its answer is nested too deeply")
        except Exception as error:  # the top of each message: the client gets an answer in every case
            log.exception("can't forward a message of the client to the daemon")
            self._write_failure(asked, error)
        if message.get("method") == "notifications/initialized":
            self._start_listening()

    def _write_failure(self, asked: Any, error: Exception) -> None:
        """Answer the request `asked`, if any, with an error: the daemon could not be reached."""
        if asked is not None:
            self._write_error(asked, SERVER_ERROR, _explain_failure(self._url, error), Unavailable.code, retryable=True)

    async def _post(self, message: Message, *, silent: bool = False) -> None:
        asked, hello = message.get("id") if "method" in message else None, message.get("method") == "initialize"
        answered = False
        try:
            async with self._http.stream(
                "POST", self._url, content=json.dumps(message).encode(), headers=self._headers_of(message)
            ) as response:
                async for answer in _read_messages(response):
                    answered = answered or ("method" not in answer and answer.get("id") == asked)
                    result = answer.get("result")
                    if hello and isinstance(result, dict):
                        self._hello = message
                        self._session = response.headers.get("mcp-session-id", "").encode() or None
                        self._version = str(result.get("protocolVersion", "")).encode()
                    if not silent:
                        self._write_message(answer)
                if asked is not None and not answered:
                    if response.status_code == HTTPStatus.OK:  # the daemon was stopped, and ended its streams
                        raise httpx2.RemoteProtocolError("the stream ended without an answer")
                    raise _ForeignAnswer(response.status_code, b"")
        except httpx2.RequestError as error:
            if answered:
                raise _BrokenAfterAnswer from error
            raise

    async def _reopen_session(self, session: bytes) -> None:
        """Repeat the handshake: the daemon was restarted and no longer knows the session."""
        async with self._opening:
            if self._session != session or self._hello is None:
                return  # another request has already reopened the session
            await self._post(self._hello, silent=True)
            await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, silent=True)
            self._start_listening()

    def _start_listening(self) -> None:
        if self._session:
            if self._listening:
                self._listening.cancel()
            self._listening = asyncio.create_task(self._carry_notifications())

    async def _carry_notifications(self) -> None:
        """Carry the daemon's notifications in the session of an older client. They are optional, so a failure is not reported."""
        with contextlib.suppress(httpx2.RequestError, _ForeignAnswer):
            quiet = httpx2.Timeout(None, connect=CONNECT_SECONDS)
            headers = self._headers_of({}) | {b"accept": b"text/event-stream"}
            async with self._http.stream("GET", self._url, headers=headers, timeout=quiet) as response:
                async for message in _read_messages(response):
                    self._write_message(message)

    async def _end_session(self) -> None:
        if self._session:
            with contextlib.suppress(httpx2.RequestError):
                await self._http.delete(self._url, headers=self._headers_of({}), timeout=2.0)

    def _headers_of(self, message: Message) -> Headers:
        headers = dict(self._headers)
        if version := _protocol_revision(message):
            params, method = message["params"], str(message["method"])
            headers[b"mcp-protocol-version"] = _encode_header(version)
            headers[b"mcp-method"] = _encode_header(method)
            name = params.get(NAMED.get(method, ""))
            if isinstance(name, str):
                headers[b"mcp-name"] = _encode_header(name)
        elif message.get("method") != "initialize":
            if self._session:
                headers[b"mcp-session-id"] = self._session
            if self._version:
                headers[b"mcp-protocol-version"] = self._version
        return headers

    def _write_refusal(self, asked: Any, status: int, body: bytes) -> None:
        """Write the daemon's refusal as the answer to its request."""
        code, message, retryable = (
            Unavailable.code,
            f"the daemon answered HTTP {status}",
            status >= HTTPStatus.INTERNAL_SERVER_ERROR,
        )
        with contextlib.suppress(KeyError, TypeError, RecursionError):
            error = (_parse_object(body) or {})["error"]
            if isinstance(error["code"], int):  # already a JSON-RPC error
                self._write_message({"jsonrpc": "2.0", "id": asked, "error": error})
                return
            if error["code"] in CODES:
                code, message, retryable = error["code"], f"{error['message']} (HTTP {status})", error["retryable"]
        if status == HTTPStatus.UNAUTHORIZED:
            code = Unauthenticated.code
        self._write_error(asked, SERVER_ERROR, message, code, status=status, retryable=retryable)

    def _write_error(self, asked: Any, number: int, message: str, code: str = "INVALID_ARGUMENT", **data: Any) -> None:
        error = {"code": number, "message": message, "data": {"code": code, **data}}
        self._write_message({"jsonrpc": "2.0", "id": asked, "error": error})

    def _write_message(self, message: Message) -> None:
        # ASCII only, so that no character can be mistaken for a line end
        try:
            self._out.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            self._out.flush()
        except BrokenPipeError:  # the client is gone, and stdin will end too
            os.dup2(self._nowhere, self._out.fileno())


class _BrokenAfterAnswer(Exception):
    """Reports that the connection broke after the answer."""


class _ForeignAnswer(Exception):
    """Reports an answer that is not a JSON-RPC message."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status, self.body = status, body


async def _read_messages(response: httpx2.Response) -> AsyncIterator[Message]:
    """Yield the JSON-RPC messages of an answer, whether it is JSON or an event stream."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if kind == "text/event-stream" and response.status_code == HTTPStatus.OK:
        data: list[bytes] = []
        rest = b""
        async for piece in response.aiter_bytes():
            # Not aiter_lines(), which also splits at U+2028 and other characters that a note may contain.
            *lines, rest = (rest + piece).split(b"\n")
            for line in (line.removesuffix(b"\r") for line in lines):
                if line.startswith(b"data:"):
                    data.append(line[5:].removeprefix(b" "))
                elif not line and data:
                    if message := _parse_object(b"\n".join(data)):
                        yield message
                    data = []
        return
    body = await response.aread()
    if response.status_code == HTTPStatus.ACCEPTED:  # a notification
        return
    message = _parse_object(body) if kind == "application/json" else None
    if message is None or message.get("jsonrpc") != "2.0" or message.get("id") is None:
        raise _ForeignAnswer(response.status_code, body)
    yield message


def _parse_object(text: bytes) -> Message | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _protocol_revision(message: Message) -> str | None:
    """Return the protocol revision that a message names; None for an older revision, which uses sessions."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    return version if isinstance(version, str) and isinstance(message.get("method"), str) else None


def _encode_header(value: str) -> bytes:
    """Encode a value for a header: unchanged, or in base64 if a header can't carry it."""
    if _PLAIN.fullmatch(value) and not value.startswith("=?base64?"):
        return value.encode()
    return b"=?base64?" + base64.b64encode(value.encode("utf-8", "replace")) + b"?="


def _explain_failure(url: str, error: Exception) -> str:
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return f"no daemon answers at {url}; start it with `memex serve`"
    if isinstance(error, httpx2.TimeoutException):
        return f"the daemon did not answer within {QUIET_SECONDS:g} s"
    if isinstance(error, httpx2.RequestError):
        return "the connection to the daemon was lost; the daemon may have completed the request"
    return f"can't send the request to the daemon: {type(error).__name__}"


async def _read_lines(source: BinaryIO) -> AsyncIterator[bytes]:
    """Yield the lines of a blocking stream. A daemon thread reads it, so that a blocked read can't keep the process alive."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def put_line(line: bytes) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lines.put_nowait, line)

    threading.Thread(target=_pump_lines, args=(source, put_line), name="bridge-stdin", daemon=True).start()
    while line := await lines.get():
        yield line


def _pump_lines(source: BinaryIO, put: Callable[[bytes], None]) -> None:
    # With a buffer of its own: Python aborts if the one of stdin is in use when the process ends, as after Ctrl-C.
    with open(source.fileno(), "rb", closefd=False) as lines:
        while line := lines.readline():
            put(line)
    put(b"")
