"""A live daemon with an open port: a vault, its App, its keys, and clients for every interface. Only the model is a fake."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import numpy as np
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from index.encoders.embedder import Embedder
from index.encoders.settings import Encoder, Kind
from index.timings import now_ms
from mcp_server.server import serve
from syncd.settings.access import AccessSettings, LimitsSettings
from syncd.settings.automation import ContextSettings, ReviewSettings
from syncd.settings.knowledge_base import KbSettings
from syncd.settings.logs_and_traces import TelemetrySettings
from syncd.settings.settings import McpSettings, ServerSettings, SyncSettings
from syncd.workspaces.agent_access import AgentAccess
from syncd.workspaces.api_keys import ApiKeys
from syncd.workspaces.workspace import Workspace
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.world import PROMPT, World

T = TypeVar("T")
STATIC_MCP, STATIC_REST = "kb-mcp-secret-01", "kb-rest-secret-01"
UNLIMITED = LimitsSettings(rate=0, failures=0)  # a test asks faster than any agent
# Files change when a test changes them, not when a job is due.
UNSUGGESTED = ReviewSettings(suggest=False, table=False)
UNWRITTEN = ContextSettings(tokens=0)
SLOW, CRASH = "slowpoke", "crashpad"  # words that make the encoder wait, or fail as a bug would


class MoodyEncoder(FakeEncoder):
    """A model that blocks on one word until `gate` opens, and fails on another word."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.waiting = threading.Semaphore(0)  # released once for each call that begins to wait

    def encode(self, texts: Sequence[str], *, kind: Kind, urgent: bool) -> np.ndarray:
        if any(CRASH in text for text in texts):
            raise RuntimeError("secret of /home/owner/vault")
        if any(SLOW in text for text in texts):
            self.waiting.release()
            assert self.gate.wait(30), "nobody opened the gate"
        return super().encode(texts, kind=kind, urgent=urgent)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make every query about SLOW wait until the end of this block."""
        self.waiting = threading.Semaphore(0)
        self.gate.clear()
        try:
            yield
        finally:
            self.gate.set()


@dataclass
class Rim:
    """A running server. `secrets` contains a key of each kind by name."""

    url: str
    world: World
    encoder: MoodyEncoder
    secrets: dict[str, str] = field(default_factory=dict)
    stop: Callable[[], None] = lambda: None
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def agent_access(self) -> AgentAccess:
        return self.world.app.agent_access

    def space(self) -> Space:
        """Return a new workspace, and a key that is bound to it."""
        name = f"space {next(self._numbers)}"
        self.agent_access.create_workspace(name)
        _, self.secrets[name] = self.agent_access.keys.create(name, workspaces=(name,), now=now_ms())
        return Space(self, name)

    def headers(self, key: str = "full", **more: str) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return {"authorization": f"Bearer {self.secrets[key]}"} | named

    def rest(self, method: str, path: str, *, key: str | None = "full", **options: Any) -> httpx2.Response:
        headers = (self.headers(key) if key else {}) | options.pop("headers", {})
        return httpx2.request(method, self.url + path, headers=headers, timeout=30, **options)

    def files(self) -> dict[str, bytes]:
        """Return every file of the vault."""
        root = self.world.vault
        return {str(file.relative_to(root)): file.read_bytes() for file in sorted(root.rglob("*")) if file.is_file()}


@dataclass(frozen=True)
class Space:
    """A workspace as a client with its own key sees it."""

    rim: Rim
    name: str

    @property
    def folder(self) -> Path:
        return self.rim.world.vault / "Captures" / self.name

    @property
    def tools(self) -> Workspace:
        return self.rim.agent_access.workspace(self.name)

    def rest(self, method: str, path: str, **options: Any) -> httpx2.Response:
        return self.rim.rest(method, path, key=self.name, **options)

    def capture(self, content: str, **more: Any) -> dict[str, Any]:
        """Capture a note, which must succeed, and return the result."""
        answer = self.rest("POST", "/capture", json={"content": content, **more})
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def file_of(self, id: str) -> Path:
        """Return the file of a note."""
        return self.rim.world.vault / self.tools.get(id).record.path

    @contextmanager
    def clock(self, now: Callable[[], int]) -> Iterator[None]:
        """Set the time of captures in all workspaces to `now`."""
        agent_access = self.rim.agent_access
        before = agent_access._inbox
        agent_access._inbox = replace(before, now=now)
        try:
            yield
        finally:
            agent_access._inbox = before


@contextmanager
def running(
    folder: Path,
    *,
    mcp: McpSettings | None = None,
    telemetry: TelemetrySettings | None = None,
    limits: LimitsSettings = UNLIMITED,
    access: AccessSettings | None = None,
    kb: KbSettings | None = None,
    review: ReviewSettings = UNSUGGESTED,
    context: ContextSettings = UNWRITTEN,
    sync: SyncSettings = PROMPT,
    encoder: Encoder | None = None,
    fill: Callable[[World], object] | None = None,
    **server: Any,
) -> Iterator[Rim]:
    """Serve a vault on a free loopback port, with everything that a daemon runs. `fill` puts notes into it first.

    `encoder`: a real model instead of the fake."""
    with ExitStack() as opened:
        rim = _opened(
            opened,
            folder,
            mcp,
            server,
            limits=limits,
            access=access or AccessSettings(),
            kb=kb or KbSettings(),
            review=review,
            context=context,
            sync=sync,
            telemetry=telemetry or TelemetrySettings(),
            embedder=encoder and fake_embedder(encoder),
        )
        if fill:
            fill(rim.world)
        _listen(opened, rim, lambda told, stop: rim.world.app.serve(lambda ready: told(ready.url), stop))
        assert rim.world.app.opened.sync.ready.wait(60)
        yield rim


@contextmanager
def listed(folder: Path) -> Iterator[Rim]:
    """Open a vault that Memex has listed once, with its keys, but without a server, jobs or a watcher."""
    with ExitStack() as opened:
        rim = _opened(opened, folder, None, {"port": 7801}, limits=UNLIMITED)
        rim.world.run()
        yield rim


@contextmanager
def unlisted(folder: Path) -> Iterator[Rim]:
    """Serve a vault that Memex never lists."""
    with ExitStack() as opened:
        rim = _opened(opened, folder, None, {}, limits=UNLIMITED)
        _listen(
            opened, rim, lambda told, stop: serve(rim.agent_access, rim.world.app.settings, on_bound=told, stop=stop)
        )
        yield rim


def _opened(
    opened: ExitStack,
    folder: Path,
    mcp: McpSettings | None,
    server: dict[str, Any],
    *,
    embedder: Embedder | None = None,
    **sections: Any,
) -> Rim:
    encoder = MoodyEncoder()
    encoder.gate.set()
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("KB_MCP_API_KEY", STATIC_MCP)
        environ.setenv("KB_API_KEY", STATIC_REST)
        world = World(
            folder,
            embedder=embedder or fake_embedder(encoder),
            server=ServerSettings(**{"port": 0, "grace_s": 1.0} | server),
            mcp=mcp or McpSettings(),
            **sections,
        )
    opened.callback(world.close)
    for name in ("default", "work", "secret"):
        world.app.agent_access.create_workspace(name)
    return Rim("", world, encoder, _secrets(world.app.opened.keys))


def _listen(opened: ExitStack, rim: Rim, work: Callable[[Callable[[str], None], threading.Event], object]) -> None:
    bound, stop = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def told(url: str) -> None:
        rim.url = url
        bound.set()

    def serving() -> None:
        try:
            work(told, stop)
        except BaseException as error:
            errors.append(error)
        finally:
            bound.set()

    thread = threading.Thread(target=serving, daemon=True)
    thread.start()
    assert bound.wait(30)
    if not rim.url:
        raise errors[0]

    def put_away() -> None:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()
        assert not errors, errors

    rim.stop = put_away
    opened.callback(put_away)


def _secrets(keys: ApiKeys) -> dict[str, str]:
    now = now_ms()
    made: dict[str, str] = {"static-mcp": STATIC_MCP, "static-rest": STATIC_REST}
    for name, options in {
        "full": {"workspaces": None},
        "owner": {"workspaces": None, "scopes": ("read", "write", "admin")},
        "work": {"workspaces": ("work",)},
        "two": {"workspaces": ("work", "default")},
        "gone": {"workspaces": ("nowhere",)},
        "reader": {"workspaces": None, "scopes": ("read",)},
        "writer": {"workspaces": None, "scopes": ("write",)},
        "mcp-only": {"workspaces": None, "surfaces": ("mcp",)},
        "rest-only": {"workspaces": None, "surfaces": ("rest",)},
        "expired": {"workspaces": None, "expires_at": now + 1},
        "revoked": {"workspaces": None},
    }.items():
        _, made[name] = keys.create(name, now=now, **options)
    keys.revoke("revoked", now=now)
    made["bad"] = made["full"][:-1] + ("0" if made["full"][-1] != "0" else "1")
    made["nonsense"] = "mx_nosuch_secret"
    return made


@asynccontextmanager
async def client(
    rim: Rim,
    *,
    key: str = "full",
    mode: str = "legacy",
    path: str = "/mcp",
    way: str = "http",
    heard: Callable[[Any], Coroutine[Any, Any, None]] | None = None,
    **headers: str,
) -> AsyncIterator[Client]:
    """Yield a public MCP client over HTTP, SSE or the bridge, in one of the protocol's two eras.

    `heard` receives the server's notifications."""
    sent = rim.headers(key, **headers)
    options: dict[str, Any] = {"mode": mode, "message_handler": heard}
    if way == "stdio":
        workspace = headers.get("X_Memory_Workspace")
        asked = f"workspace={workspace!r}, toolset={path.removeprefix('/mcp').lstrip('/') or None!r}"
        code = f"import sys; from mcp_server.stdio_bridge import run; sys.exit(run({rim.url!r}, {rim.secrets[key]!r}, {asked}))"
        async with Client(StdioServerParameters(command=sys.executable, args=["-c", code], cwd="."), **options) as made:
            yield made
    elif way == "sse":
        async with Client(sse_client(rim.url + "/sse", headers=sent), **options) as made:
            yield made
    else:
        async with (
            httpx2.AsyncClient(headers=sent, timeout=30) as http,
            Client(streamable_http_client(rim.url + path, http_client=http), **options) as made,
        ):
            yield made


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run `work`, and return its result."""
    return asyncio.run(asyncio.wait_for(work, 60))
