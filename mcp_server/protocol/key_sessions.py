"""Limit the sessions that one key holds open: a further one ends the key's own session that was idle for longest.

Without this one key could take all sessions for half an hour. Clients that never end theirs are common, so the key is
not refused a new one; who comes back to a session that was ended gets 404 and opens another, as MCP has it."""

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

MOST: Final = 64  # sessions of one key at all endpoints; more only while all of them are in use


@dataclass(slots=True)
class _Session:
    """A session at its endpoint, with the number of its requests under way."""

    endpoint: ASGIApp
    busy: int = 0


class KeySessions:
    """One for all endpoints of a server."""

    def __init__(self) -> None:
        self._open: defaultdict[str, dict[bytes, _Session]] = defaultdict(dict)  # key -> id -> session, last used last

    def limit(self, endpoint: ASGIApp) -> ASGIApp:
        """An MCP endpoint whose sessions are counted."""

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
    """`send`, noting the session that an answer opens."""

    async def send_and_note_session(message: Message) -> None:
        headers: Mapping[bytes, bytes] = dict(message.get("headers", ()))
        if SESSION in headers and message["status"] < 400:
            sessions[headers[SESSION]] = _Session(endpoint)
        await send(message)

    return send_and_note_session


@contextmanager
def _in_use(sessions: dict[bytes, _Session], id: bytes) -> Iterator[None]:
    """The session, if the key has it, is in use in this block."""
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
    """End sessions that nothing uses until there are no more than MOST. One that has ended by itself only leaves the count."""
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
