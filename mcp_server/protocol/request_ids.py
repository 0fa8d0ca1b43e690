"""Refuse an MCP request whose id is still in use in its session: the SDK distinguishes answers only by session and id.

Without this check, the earlier of the two requests would never get an answer."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

from mcp.types import INVALID_REQUEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SESSION: Final = b"mcp-session-id"
SAID: Final = (
    "this id is in use by a request of the same session that is not answered yet; give each request its own id"
)


class UniqueRequestIds:
    """Wraps an MCP endpoint, and tracks the ids of running requests in each session."""

    def __init__(self, endpoint: ASGIApp) -> None:
        self._endpoint = endpoint
        self._open: set[tuple[bytes, str]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request unless its id is in use."""
        session = dict(scope["headers"]).get(SESSION)
        if scope["method"] != "POST" or session is None:
            await self._endpoint(scope, receive, send)
            return
        message = await receive()  # the guard has already read the whole body
        id = _request_id(message.get("body", b""))
        key = session, str(id)  # the SDK also treats 1 and "1" as equal
        if id is not None and key in self._open:
            await _refuse(id, send)
            return
        if id is not None:
            self._open.add(key)
        try:
            await self._endpoint(scope, _give_back(message, receive), send)
        finally:
            self._open.discard(key)


def _request_id(body: bytes) -> Any:
    """Return the id of the JSON-RPC request in a body, or None; the SDK handles a body without an id."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    is_request = isinstance(message, dict) and "method" in message and isinstance(message.get("id"), (str, int))
    return message["id"] if is_request else None


def _give_back(message: Message, receive: Receive) -> Receive:
    """Return a `receive` that first returns `message`, which was taken from it."""
    waiting = [message]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


async def _refuse(id: Any, send: Send) -> None:
    error = {"jsonrpc": "2.0", "id": id, "error": {"code": INVALID_REQUEST, "message": SAID}}
    body = json.dumps(error).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": HTTPStatus.BAD_REQUEST, "headers": headers})
    await send({"type": "http.response.body", "body": body})
