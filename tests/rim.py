"""A rim that really listens: the desk, its keys, and clients for every way in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from mcp_server.server import now_ms, serve
from syncd.config import McpSettings, SearchSettings, ServerSettings, Settings, VaultSettings
from syncd.keys import Keys
from syncd.ledger import Ledger
from tests.fakes_desk import FakeDesk

STATIC_MCP, STATIC_REST = "kb-mcp-secret", "kb-rest-secret"


@dataclass
class Rim:
    """A running server. `secrets` has a key of each kind by name."""

    url: str
    desk: FakeDesk
    secrets: dict[str, str] = field(default_factory=dict)
    stop: Callable[[], None] = lambda: None

    def headers(self, key: str = "full", **more: str) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return {"authorization": f"Bearer {self.secrets[key]}"} | named

    def rest(self, method: str, path: str, *, key: str | None = "full", **options: Any) -> httpx2.Response:
        headers = (self.headers(key) if key else {}) | options.pop("headers", {})
        return httpx2.request(method, self.url + path, headers=headers, timeout=30, **options)


@contextmanager
def running(
    folder: Path, *, mcp: McpSettings | None = None, make_desk: Callable[[Path, Keys], Any] = FakeDesk, **server: Any
) -> Iterator[Rim]:
    """Serve a fresh desk (any that keeps the contract of `syncd.workspace.Desk`) on a free loopback port."""
    folder.mkdir(mode=0o700, exist_ok=True)
    ledger = Ledger.open(folder / "ledger.db")
    keys = Keys(ledger, static={"mcp": STATIC_MCP, "rest": STATIC_REST})
    desk = make_desk(folder / "vault", keys)
    settings = Settings(
        vault=VaultSettings(path=folder / "vault"),
        state=folder,
        server=ServerSettings(**{"port": 0, "grace_s": 1.0} | server),
        mcp=mcp or McpSettings(),
        search=SearchSettings(),
    )
    bound, stop, urls, errors = threading.Event(), threading.Event(), [], []

    def on_bound(url: str) -> None:
        urls.append(url)
        bound.set()

    def work() -> None:
        try:
            serve(desk, settings, on_bound=on_bound, stop=stop)
        except BaseException as error:  # noqa: BLE001 - raised again where the test sees it
            errors.append(error)
        finally:
            bound.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert bound.wait(20)
    if not urls:
        ledger.close()
        raise errors[0]

    def put_away() -> None:
        stop.set()
        thread.join(20)

    rim = Rim(urls[0], desk, _secrets(keys), put_away)
    try:
        yield rim
    finally:
        put_away()
        ledger.close()
        assert not thread.is_alive()
        assert not errors, errors


def _secrets(keys: Keys) -> dict[str, str]:
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
