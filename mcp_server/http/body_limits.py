"""Enforce limits on a request body that is not read ahead: its size, and the pace at which it arrives.

Law, tested: only the time in which Memex waits for the client counts, never Memex's own work."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from starlette.types import Message, Receive

from index.errors import ResourceExhausted

PACE_BYTES: Final = 16_384  # bytes that must arrive in each period: a slower client would hold its connection for days


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """Limits the size of a POST body on one route that differs from the general limit.

    With a content type, the limit applies only to bodies of this type, which are not read ahead."""

    path: str
    largest: int
    content_type: bytes = b""

    def covers(self, method: str, path: str, content_type: bytes) -> bool:
        """Return whether the limit applies to the body of such a request."""
        kind = content_type.partition(b";")[0].strip().lower()
        return (method, path) == ("POST", self.path) and self.content_type in (b"", kind)


class TooSlow(ResourceExhausted):
    """Reports that the client sends too slowly."""

    _retryable = True


def receive_again(received: list[Message], receive: Receive) -> Receive:
    """Wrap `receive` so that it first returns the messages in `received`, which were taken from it."""

    async def receive_rest() -> Message:
        return received.pop(0) if received else await receive()

    return receive_rest


def limit_body(receive: Receive, *, largest: int, seconds: float) -> Receive:
    """Wrap `receive` for a body of up to `largest` bytes. The wrapper raises ResourceExhausted for a longer body, and TooSlow.

    It raises only once; later calls read the rest of the body without a limit, to discard it."""
    size, since, waited, more = 0, 0, 0.0, True

    async def receive_in_limits() -> Message:
        nonlocal size, since, waited, more
        if not more:
            return await receive()  # waiting for the end of a connection has no limit
        begun = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, seconds - waited)):
                message = await receive()
        except TimeoutError:
            more = False
            raise TooSlow(f"less than {PACE_BYTES:,} bytes came within {seconds:g} s") from None
        waited += time.monotonic() - begun
        got = len(message.get("body", b""))
        size, since = size + got, since + got
        if size > largest:
            more = False
            raise ResourceExhausted(f"the body is larger than {largest:,} bytes", limit=largest)
        if since >= PACE_BYTES:
            since, waited = 0, 0.0
        more = message["type"] == "http.request" and message.get("more_body", False)
        return message

    return receive_in_limits
