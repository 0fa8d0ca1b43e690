"""Serve subscriptions to notes and contexts: streams of 2026's `subscriptions/listen`, sessions of the older `resources/subscribe`.

Laws: a caller can watch only what it could read. Every change of a workspace's notes may change its context, so each, the
owner's too, is an update of it, and so is what the owner decides in the context's own note. An update says "read it again"
and nothing more, so updates for a slow client wait as a set, and no writer waits for a listener."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ServerEvent
from mcp.types import (
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from index.errors import ResourceExhausted, Unavailable
from index.model import Record
from mcp_server.operations.caller import CALLER, Caller, check_scope
from mcp_server.operations.operation import OperationRunner
from mcp_server.protocol.resources import find_watched

STREAMS: Final = 32  # open streams and sessions of one key that watch something
WATCHED: Final = 100  # notes and contexts in each of them
SECONDS: Final = 15.0

Context = ServerRequestContext[Any, Any]


@dataclass(eq=False, slots=True)
class _Session:
    """Describes a session of an older client that watches notes."""

    connection: Connection
    paths: dict[str, str] = field(default_factory=dict)  # URI -> path of the note or the folder
    waiting: dict[str, None] = field(default_factory=dict)  # URIs whose updates are not sent yet, in order
    task: asyncio.Task[None] | None = None


class Updates:
    """Sends updates for all endpoints of a server. Everything except `note_changes` belongs to its event loop."""

    def __init__(self, runner: OperationRunner) -> None:
        self._runner = runner
        self._bus = InMemorySubscriptionBus()
        self._handler = ListenHandler(self._bus)
        self._watched: dict[str, Counter[str]] = {}  # path of a note or a folder -> the URIs under which it is watched
        self._seen: dict[str, Record | None] = {}  # path of a watched note -> its record when it was last compared
        self._noting = threading.Lock()
        self._due: frozenset[str] = frozenset()  # paths of watched notes whose updates are not sent yet
        self._held: Counter[str] = Counter()  # id of a key -> its streams and sessions
        self._sessions: dict[Connection, _Session] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen for changes and send updates during this block."""
        self._loop = asyncio.get_running_loop()
        end = self._runner.agent_access.on_change(self.note_changes)
        try:
            yield
        finally:
            end()
            self.close()

    def close(self) -> None:
        """End all streams cleanly: send each its final result."""
        self._handler.close()

    def note_changes(self, paths: Collection[str] | None) -> None:
        """Note that captures at these paths changed; None = perhaps all. Safe to call from any thread; returns immediately.

        Raises nothing, because the change itself is already written."""
        seen = list(self._watched) if paths is None else self._find_touched(paths)
        touched = [path for path in seen if self._has_changed(path) or paths is None]
        if not touched or self._loop is None:
            return
        with self._noting:
            first, self._due = not self._due, self._due.union(touched)
        if first:  # otherwise a publication is already scheduled, which sends these updates too
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._publish)

    def _find_touched(self, paths: Collection[str]) -> list[str]:
        """Return the watched notes at these paths, and the watched folders that contain one of them."""
        watched = self._watched
        folders = [
            path for path in list(watched) if path.endswith("/") and any(each.startswith(path) for each in paths)
        ]
        return [path for path in paths if path in watched] + folders

    def _has_changed(self, path: str) -> bool:
        """Return whether agents see a change of a watched note since the last call; the owner's properties don't count.

        A folder has always changed, and so has a note that can't be read now."""
        if path.endswith("/"):
            return True
        try:
            now = self._runner.agent_access.record_at(path)
        except Unavailable:  # the client that reads the note again gets the reason
            return True
        with self._noting:
            differs = path not in self._seen or self._seen[path] != now
            self._seen[path] = now
        return differs

    def _publish(self) -> None:
        with self._noting:
            paths, self._due = sorted(self._due), frozenset()
        uris = [uri for path in paths for uri in self._watched.get(path, ())]
        if uris:
            self._spawn(self._publish_uris(uris))

    async def _publish_uris(self, uris: Iterable[str]) -> None:
        for uri in uris:
            await self._bus.publish(ResourceUpdated(uri=uri))

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # 2026: a stream of its own

    async def listen(self, ctx: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Serve one stream until its client leaves."""
        caller = CALLER.get()
        uris = dict.fromkeys(params.notifications.resource_subscriptions or ())
        with self._stream_slot(caller), self._watching(await self._find_paths(caller, uris)):
            caller.give_up_place()
            return await self._handler(ctx, params)

    @contextlib.contextmanager
    def _stream_slot(self, caller: Caller) -> Iterator[None]:
        key = caller.key.id
        if self._held[key] >= STREAMS:
            raise ResourceExhausted(f"this key already has {STREAMS} subscriptions; close one first")
        self._held[key] += 1
        try:
            yield
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]

    # Older clients: a session, which gets updates on its standing stream

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        """Watch one more note for this session."""
        caller = CALLER.get()
        paths = await self._find_paths(caller, [params.uri])
        connection = ctx.session._connection  # noqa: SLF001 - the SDK has no public way to the session behind a request
        session = self._sessions.get(connection)
        if session is None:
            connection.exit_stack.enter_context(self._stream_slot(caller))
            session = self._sessions[connection] = _Session(connection)
            connection.exit_stack.callback(
                self._end_session, session, self._bus.subscribe(self._make_listener(session))
            )
        if params.uri in session.paths:
            return EmptyResult()
        if len(session.paths) >= WATCHED:
            raise _too_many_watched()
        session.paths |= paths
        self._watch(paths)
        return EmptyResult()

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        """Stop watching a note for this session."""
        session = self._sessions.get(ctx.session._connection)  # noqa: SLF001 - as above
        if session and params.uri in session.paths:
            self._unwatch({params.uri: session.paths.pop(params.uri)})
            session.waiting.pop(params.uri, None)
        return EmptyResult()

    def _make_listener(self, session: _Session) -> Callable[[ServerEvent], None]:
        def queue_update(event: ServerEvent) -> None:
            if isinstance(event, ResourceUpdated) and event.uri in session.paths:
                session.waiting[event.uri] = None
                if session.task is None or session.task.done():
                    session.task = self._spawn(_deliver_updates(session))

        return queue_update

    def _end_session(self, session: _Session, unhear: Callable[[], None]) -> None:
        unhear()
        del self._sessions[session.connection]
        self._unwatch(session.paths)
        if session.task:
            session.task.cancel()

    # Which notes are watched

    async def _find_paths(self, caller: Caller, uris: Collection[str]) -> dict[str, str]:
        """Return the path that each URI follows. Raises NotFound unless the caller may read all of them."""
        if not uris:
            return {}
        if len(uris) > WATCHED:
            raise _too_many_watched()
        check_scope(caller, "read")
        agent_access = self._runner.agent_access
        return await self._runner.run_in_thread(
            "subscribe", "read", SECONDS, lambda: find_watched(agent_access, caller, uris)
        )

    @contextlib.contextmanager
    def _watching(self, paths: Mapping[str, str]) -> Iterator[None]:
        self._watch(paths)
        try:
            yield
        finally:
            self._unwatch(paths)

    def _watch(self, paths: Mapping[str, str]) -> None:
        for uri, path in paths.items():
            is_new = path not in self._watched
            self._watched.setdefault(path, Counter())[uri] += 1
            if is_new:
                self._has_changed(path)  # compare with its present row from now on

    def _unwatch(self, paths: Mapping[str, str]) -> None:
        for uri, path in paths.items():
            uris = self._watched[path]
            uris[uri] -= 1
            if not uris[uri]:
                del uris[uri]
            if not uris:
                del self._watched[path]
                with self._noting:
                    self._seen.pop(path, None)


async def _deliver_updates(session: _Session) -> None:
    while session.waiting:
        uri = next(iter(session.waiting))
        del session.waiting[uri]
        await session.connection.send_resource_updated(uri)


def _too_many_watched() -> ResourceExhausted:
    return ResourceExhausted(f"at most {WATCHED} notes can be watched by one stream or session")
