"""Refuse an MCP request whose id is still in use in its session: the SDK tells answers apart by session and id alone.

Without this the earlier of the two would never be answered."""

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
    """An MCP endpoint, with the ids of the requests under way in each session."""

    def __init__(self, endpoint: ASGIApp) -> None:
        self._endpoint = endpoint
        self._open: set[tuple[bytes, str]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, unless its id is in use."""
        session = dict(scope["headers"]).get(SESSION)
        if scope["method"] != "POST" or session is None:
            await self._endpoint(scope, receive, send)
            return
        message = await receive()  # the guard has read the body ahead
        id = _request_id(message.get("body", b""))
        key = session, str(id)  # the SDK, too, takes 1 and "1" for the same
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
    """The id of the JSON-RPC request in a body; None when there is none, which the SDK answers as it does."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    is_request = isinstance(message, dict) and "method" in message and isinstance(message.get("id"), (str, int))
    return message["id"] if is_request else None


def _give_back(message: Message, receive: Receive) -> Receive:
    """`receive`, beginning with a message that was taken from it."""
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
