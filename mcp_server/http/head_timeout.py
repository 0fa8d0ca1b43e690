"""Add a timeout for the head of a request to uvicorn's HTTP protocol.

Without it, a few hundred half-sent heads lock out every other client permanently."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol


class TimedH11(H11Protocol):
    """Closes a connection whose head is not complete in time; it does not limit streams and keep-alive."""

    seconds: ClassVar[float]
    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the timer for the first head."""
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Start the timer when a head begins between two answers; stop it when a new cycle runs."""
        if self.cycle is None or self.cycle.response_complete:
            self._start_timer()
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()

    def on_response_complete(self) -> None:
        """Leave the connection to uvicorn's own keep-alive limit."""
        self._stop_timer()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        if self._head is None:
            self._head = self.loop.call_later(self.seconds, self.transport.close)

    def _stop_timer(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


def with_head_timeout(seconds: float) -> type[TimedH11]:
    """Return the protocol class for `uvicorn.Config(http=…)` that gives each head `seconds`."""
    return type("TimedH11", (TimedH11,), {"seconds": seconds})
