"""Bind each SSE connection to one workspace when it opens; every message of the connection uses this workspace.

Law, tested: before a stream begins, Memex refuses an unknown workspace, a workspace that the key may not see, and a missing
workspace that the key does not imply. No message reaches another workspace than that of its connection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from index.errors import InvalidArgument
from mcp_server.operations.caller import CALLER, Caller, compose_name, imply_workspace, resolve_workspace

if TYPE_CHECKING:
    from syncd.workspaces.agent_access import AgentAccess

SESSION: Final = re.compile(rb"[?&]session_id=([0-9a-f]{32})\b")  # in the first event, which names the path of messages
OTHER_WORKSPACE: Final = (
    "this connection is for another workspace: leave out X-Memory-Workspace, or open a connection that names this one"
)


@dataclass(frozen=True, slots=True)
class _Connection:
    """Describes an open connection: its key, its workspace, and whether a header named the workspace."""

    key: str
    workspace: str
    named: str | None


class SseConnections:
    """Wraps the SDK's routes for SSE, with a workspace for each connection."""

    def __init__(self, routes: Sequence[BaseRoute], agent_access: AgentAccess) -> None:
        self._stream = next(route for route in routes if isinstance(route, Route))
        self._messages = next(route for route in routes if isinstance(route, Mount))
        self._agent_access = agent_access
        self._open: dict[str, _Connection] = {}  # session -> connection

    def routes(self) -> list[BaseRoute]:
        """Return the route that opens a connection and the route that receives its messages."""
        return [
            Route(self._stream.path, self._connect, methods=["GET"]),
            Mount(self._messages.path, app=self._take_message),
        ]

    async def _connect(self, request: Request) -> ASGIApp:
        """Open the stream for a caller whose workspace exists; HEAD gets its headers alone. Raises NotFound."""
        caller: Caller = request.scope["memex.caller"]
        find = partial(resolve_workspace, self._agent_access, imply_workspace(caller), named=True)
        workspace = await anyio.to_thread.run_sync(find, abandon_on_cancel=True)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return partial(self._serve, _Connection(caller.key.id, compose_name(workspace.name), caller.workspace))

    async def _serve(self, connection: _Connection, scope: Scope, receive: Receive, send: Send) -> None:
        session = ""

        async def send_and_note_session(message: Message) -> None:
            nonlocal session
            if not session and (named := SESSION.search(message.get("body", b""))):
                session = named[1].decode()
                self._open[session] = connection
            await send(message)

        try:
            await self._stream.app(scope, receive, send_and_note_session)
        finally:
            self._open.pop(session, None)

    async def _take_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a message to its connection, with the connection's workspace. Raises InvalidArgument."""
        caller: Caller = scope["memex.caller"]
        connection = self._open.get(_session_of(scope))
        if connection is None or connection.key != caller.key.id:  # the SDK gives the same answer in both cases
            await self._messages.app(scope, receive, send)
            return
        if caller.workspace not in (None, connection.workspace):
            raise InvalidArgument(OTHER_WORKSPACE)
        reset = CALLER.set(replace(caller, workspace=caller.workspace or connection.named))
        try:
            await self._messages.app(scope, receive, send)
        finally:
            CALLER.reset(reset)


def _session_of(scope: Scope) -> str:
    """Return the session that a message names, parsed as the SDK parses it."""
    try:
        return UUID(hex=Request(scope).query_params.get("session_id", "")).hex
    except ValueError:
        return ""
