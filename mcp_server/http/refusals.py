"""Send the refusals of the guard as answers, and add the headers that every answer carries."""

from __future__ import annotations

import asyncio
import json
import math
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, NamedTuple

from starlette.types import Message, Receive, Send

from index.errors import ResourceExhausted

HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
DRAIN_BYTES: Final = 8 * 1024 * 1024
DRAIN_SECONDS: Final = 2.0


class Refusal(NamedTuple):
    """Why a request goes no further."""

    status: int
    code: str
    message: str
    wait: float = 0.0  # seconds after which the same request may be made again
    allow: str = ""  # the methods that are served there, for one that is not


def with_headers(send: Send) -> Send:
    """`send`, adding what every answer must carry."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [pair for pair in message.get("headers", ()) if pair[0].lower() != b"cache-control"]
            message = {
                **message,
                "headers": [*headers, *HEADERS, _date_header(), (b"cache-control", b"no-store, no-transform")],
            }
        await send(message)

    return send_with_headers


def _date_header() -> tuple[bytes, bytes]:
    return b"date", formatdate(usegmt=True).encode()


async def refuse(refusal: Refusal, receive: Receive, send: Send) -> None:
    """Answer, then let the client finish what it is sending for a moment: a reset would cost it our answer."""
    error = {
        "code": refusal.code,
        "message": refusal.message,
        "retryable": refusal.status == HTTPStatus.REQUEST_TIMEOUT or bool(refusal.wait),
        "details": {"retry_after": math.ceil(refusal.wait * 10) / 10} if refusal.wait else {},
    }
    body = json.dumps({"error": error}, separators=(",", ":")).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *HEADERS]
    headers += [_date_header(), (b"cache-control", b"no-store")]
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.allow:
        headers.append((b"allow", refusal.allow.encode()))
    if refusal.wait:
        headers.append((b"retry-after", b"%d" % math.ceil(refusal.wait)))
    await answer_and_drain(refusal.status, headers, body, receive, send)


async def answer_and_drain(
    status: int, headers: list[tuple[bytes, bytes]], body: bytes, receive: Receive, send: Send
) -> None:
    """Answer a request whose body may not have come to its end, and read on for a moment."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    if status != HTTPStatus.REQUEST_TIMEOUT:
        await _drain_body(receive)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _drain_body(receive: Receive) -> None:
    left = DRAIN_BYTES
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b"")) + 1
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
    except (TimeoutError, ResourceExhausted):
        return  # it is too slow, or sends more than it may
