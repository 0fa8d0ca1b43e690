"""Limit the open sessions of one key: a new session ends the key's own session that was idle for the longest time.

Without this limit, one key could take all sessions for half an hour. Many clients never end their sessions, so Memex does
not refuse a new one. A client that returns to an ended session gets 404 and opens another one, as MCP specifies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_server.protocol.request_ids import SESSION

if TYPE_CHECKING:
    from mcp_server.operations.caller import Caller

MOST: Final = 64  # sessions of one key at all endpoints together; more only while all of them are in use


@dataclass(slots=True)
class _Session:
    """Describes a session of an endpoint, with the number of its running requests."""

    endpoint: ASGIApp
    busy: int = 0


class KeySessions:
    """Tracks the sessions of all endpoints of a server."""

    def __init__(self) -> None:
        self._open: defaultdict[str, dict[bytes, _Session]] = defaultdict(dict)  # key -> id -> session, last used last

    def limit(self, endpoint: ASGIApp) -> ASGIApp:
        """Wrap an MCP endpoint so that its sessions are counted."""

        async def limited_endpoint(scope: Scope, receive: Receive, send: Send) -> None:
            caller: Caller = scope["memex.caller"]
            sessions, id = self._open[caller.key.id], dict(scope["headers"]).get(SESSION)
            if id is None:
                await endpoint(scope, receive, _note_session(send, sessions, endpoint))
                await _end_oldest(sessions, scope)
            elif scope["method"] == "DELETE":
                sessions.pop(id, None)
                await endpoint(scope, receive, send)
            else:
                with _in_use(sessions, id):
                    await endpoint(scope, receive, send)

        return limited_endpoint


def _note_session(send: Send, sessions: dict[bytes, _Session], endpoint: ASGIApp) -> Send:
    """Wrap `send` so that it records the session that an answer opens."""

    async def send_and_note_session(message: Message) -> None:
        headers: Mapping[bytes, bytes] = dict(message.get("headers", ()))
        if SESSION in headers and message["status"] < 400:
            sessions[headers[SESSION]] = _Session(endpoint)
        await send(message)

    return send_and_note_session


@contextmanager
def _in_use(sessions: dict[bytes, _Session], id: bytes) -> Iterator[None]:
    """Mark the session as in use during this block, if the key owns it."""
    session = sessions.get(id)
    if session is None:
        yield
        return
    session.busy += 1
    try:
        yield
    finally:
        session.busy -= 1
        if sessions.pop(id, None):
            sessions[id] = session


async def _end_oldest(sessions: dict[bytes, _Session], scope: Scope) -> None:
    """End unused sessions until at most `MOST` remain. A session that has already ended is only removed from the count."""
    while len(sessions) > MOST and (id := next((id for id, session in sessions.items() if not session.busy), None)):
        headers = [
            (name, value) for name, value in scope["headers"] if name not in (b"content-length", b"content-type")
        ]
        ending = {**scope, "method": "DELETE", "headers": [*headers, (SESSION, id)]}
        await sessions.pop(id).endpoint(ending, _receive_nothing, _send_nothing)


async def _receive_nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _send_nothing(_: Message) -> None:
    pass
