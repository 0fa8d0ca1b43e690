"""What the rim can be told: addresses, limits and what it lists."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

Names: TypeAlias = Literal["safe", "dotted"]

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class RimSettings:
    """Sizes in bytes, times in seconds, budgets in characters."""

    host: str = "127.0.0.1"
    port: int = 8765  # 0 = any free port
    allowed_hosts: tuple[str, ...] = ()  # exact `Host` values to accept besides our own
    allowed_origins: tuple[str, ...] = ()  # exact `Origin` values; a page of another origin is refused
    public_url: str | None = None  # where a proxy serves us, e.g. "https://memex.example.org"
    toolsets: tuple[str, ...] | None = None  # the families that are listed; None = all
    tool_names: Names = "safe"  # "dotted" lists the names as written; "safe" has "_" for "."
    document_budget: int = 8_000  # of all `document_content` (or `content`) of one answer together
    max_body: int = 4 * 1024 * 1024
    body_seconds: float = 10.0
    head_seconds: float = 5.0
    connections: int = 128  # open streams count
    sessions: int = 256  # of older MCP clients, per endpoint
    grace_seconds: float = 5.0


def hosts(settings: RimSettings, port: int) -> frozenset[str]:
    """The exact `Host` values that mean this server when it listens on `port`, lower-cased."""
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    own = {*_LOOPBACK} if _local(settings.host) else {name, *_LOOPBACK}
    names = {f"{host}:{port}" for host in own} | ({*own} if port == 80 else set())  # noqa: PLR2004 -- http's own port
    names.update(settings.allowed_hosts)
    if settings.public_url:
        names.add(urlsplit(settings.public_url).netloc)
    return frozenset(name.strip().lower() for name in names if name.strip())


def origins(settings: RimSettings) -> frozenset[str]:
    """The exact `Origin` values that are accepted, lower-cased."""
    return frozenset(_stripped(settings.allowed_origins))


def _stripped(values: Collection[str]) -> list[str]:
    return [value.strip().rstrip("/").lower() for value in values if value.strip()]


def _local(host: str) -> bool:
    """Whether `host` is a name of this machine only, or all of its addresses (then other names must be listed)."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    return address.is_loopback or address.is_unspecified
