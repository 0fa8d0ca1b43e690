"""Enforce limits on a request body that is not read ahead: no larger than allowed, and at no time too slow.

Law, tested: only the time in which Memex waits for the client counts, never the time that Memex takes itself."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from starlette.types import Message, Receive

from index.errors import ResourceExhausted

PACE_BYTES: Final = 16_384  # must come in each so many seconds: a drip would hold its connection for days


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """The bytes that a body may have on one route, where they are not those of all routes.

    With a content type it is meant for bodies of this type alone, which are not read ahead."""

    method: str
    path: str
    largest: int
    content_type: bytes = b""

    def covers(self, method: str, path: str, content_type: bytes) -> bool:
        """Whether it is meant for the body of such a request."""
        kind = content_type.partition(b";")[0].strip().lower()
        return (method, path) == (self.method, self.path) and self.content_type in (b"", kind)


class TooSlow(ResourceExhausted):
    """The client sends too little to be waited for."""

    _retryable = True


def limit_body(receive: Receive, *, largest: int, seconds: float) -> Receive:
    """`receive` for a body of up to `largest` bytes; raises ResourceExhausted for a longer one, and TooSlow.

    It raises once: whoever goes on then only reads the rest away."""
    size, since, waited, more = 0, 0, 0.0, True

    async def receive_in_limits() -> Message:
        nonlocal size, since, waited, more
        if not more:
            return await receive()  # whoever waits for the end of a connection may wait
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
