"""Send the refusals of the guard as answers, and add the headers that every answer carries."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import sys
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.types import Message, Receive, Send

from index.errors import ResourceExhausted
from mcp_server.http.body_limits import TooSlow, limit_body

HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
CLOSE: Final = (b"connection", b"close")  # for clients without a valid key: idle connections would fill the server
DRAIN_BYTES: Final = 8 * 1024 * 1024  # bytes that are read and discarded from a client without a valid key
DRAIN_SECONDS: Final = 2.0
KEYED_DRAIN_SECONDS: Final = 30.0  # a client with a key may send a whole file before it reads the answer
PACE_SECONDS: Final = 5.0  # in which PACE_BYTES must arrive


class Refusal(NamedTuple):
    """Describes why Memex refuses a request."""

    status: int
    code: str
    message: str
    wait: float = 0.0  # seconds after which the client may repeat the request
    allow: str = ""  # for a wrong method, the methods that the path serves


def with_headers(send: Send, *, keyed: bool) -> Send:
    """Wrap `send` so that it adds the headers of every answer, and those of an answer without a valid key."""
    further = HEADERS if keyed else (*HEADERS, CLOSE)

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [pair for pair in message.get("headers", ()) if pair[0].lower() != b"cache-control"]
            message = {
                **message,
                "headers": [*headers, *further, _date_header(), (b"cache-control", b"no-store, no-transform")],
            }
        await send(message)

    return send_with_headers


def _date_header() -> tuple[bytes, bytes]:
    return b"date", formatdate(usegmt=True).encode()


async def refuse(refusal: Refusal, receive: Receive, send: Send, *, keyed: bool, drain: bool) -> None:
    """Send the refusal, then let the client finish sending: a reset would destroy our answer. `keyed`: it has a valid key.

    Without `drain`, the connection ends with the answer unless the client has already sent everything."""
    error = {
        "code": refusal.code,
        "message": refusal.message,
        "retryable": refusal.status == HTTPStatus.REQUEST_TIMEOUT or bool(refusal.wait),
        "details": {"retry_after": math.ceil(refusal.wait * 10) / 10} if refusal.wait else {},
    }
    body = json.dumps({"error": error}, separators=(",", ":")).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *HEADERS]
    headers += [_date_header(), (b"cache-control", b"no-store")]
    if not keyed:
        headers.append(CLOSE)
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.allow:
        headers.append((b"allow", refusal.allow.encode()))
    if refusal.wait:
        headers.append((b"retry-after", b"%d" % math.ceil(refusal.wait)))
    await answer_and_drain(refusal.status, headers, body, receive, send, keyed=keyed, drain=drain)


async def answer_and_drain(
    status: int,
    headers: list[tuple[bytes, bytes]],
    body: bytes,
    receive: Receive,
    send: Send,
    *,
    keyed: bool,
    drain: bool = True,
) -> None:
    """Answer a request whose body may be incomplete, then read and discard the rest for a while, longer for a valid key."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    if drain and status != HTTPStatus.REQUEST_TIMEOUT:
        seconds, most = (KEYED_DRAIN_SECONDS, math.inf) if keyed else (DRAIN_SECONDS, DRAIN_BYTES)
        await _drain_body(limit_body(receive, largest=sys.maxsize, seconds=PACE_SECONDS), seconds, most)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _drain_body(receive: Receive, seconds: float, most: float) -> None:
    left = most
    with contextlib.suppress(TimeoutError, TooSlow):
        async with asyncio.timeout(seconds):
            while left > 0:
                try:
                    message = await receive()
                except TooSlow:
                    raise
                except ResourceExhausted:
                    continue  # larger than the route allows; the limit raises only once
                left -= len(message.get("body", b"")) + 1
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
