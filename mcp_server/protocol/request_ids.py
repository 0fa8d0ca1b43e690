"""Refuse an MCP request whose id is still in use in its session, or is neither a string nor an integer.

The SDK distinguishes answers only by session and id, so the earlier of two requests with one id would never get an answer. It
takes a request with another id, such as 8.0, for a notification, which gets no answer either."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

from mcp.types import INVALID_REQUEST
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_server.http.body_limits import receive_again

SESSION: Final = b"mcp-session-id"
IN_USE: Final = (
    "this id is in use by a request of the same session that is not answered yet; give each request its own id"
)
NO_ID: Final = "the id of a request must be a string or an integer"


class UniqueRequestIds:
    """Wraps an MCP endpoint, and tracks the ids of running requests in each session."""

    def __init__(self, endpoint: ASGIApp) -> None:
        self._endpoint = endpoint
        self._open: set[tuple[bytes, str]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request unless its id is in use, or is neither a string nor an integer."""
        if scope["method"] != "POST":
            await self._endpoint(scope, receive, send)
            return
        message = await receive()  # the guard has already read the whole body
        request = _read_request(message.get("body", b""))
        id = request.get("id")
        if request and (isinstance(id, bool) or not isinstance(id, (str, int))):
            await _refuse(None, NO_ID, send)
            return
        session = dict(scope["headers"]).get(SESSION)
        key = None if id is None or session is None else (session, str(id))  # the SDK also treats 1 and "1" as equal
        if key in self._open:
            await _refuse(id, IN_USE, send)
            return
        if key:
            self._open.add(key)
        try:
            await self._endpoint(scope, receive_again([message], receive), send)
        finally:
            if key:
                self._open.discard(key)


def _read_request(body: bytes) -> dict[str, Any]:
    """Return the JSON-RPC request in a body; {} for another message, which the SDK handles, also one without an id.

    Some clients send notifications with an id that is null."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(message, dict) or "method" not in message or "id" not in message:
        return {}
    is_notification = message["id"] is None and str(message["method"]).startswith("notifications/")
    return {} if is_notification else message


async def _refuse(id: Any, reason: str, send: Send) -> None:
    error = {"jsonrpc": "2.0", "id": id, "error": {"code": INVALID_REQUEST, "message": reason}}
    body = json.dumps(error).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": HTTPStatus.BAD_REQUEST, "headers": headers})
    await send({"type": "http.response.body", "body": body})
