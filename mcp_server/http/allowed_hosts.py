"""Decide from the settings which hosts are allowed: the exact `Host` and `Origin` values that the server accepts."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from syncd.settings.server_addresses import bracket_ipv6
from syncd.settings.settings import ServerSettings

HTTP = 80  # the port that a Host leaves out
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def allowed_hosts(settings: ServerSettings, port: int) -> frozenset[str]:
    """Return the `Host` values, in lower case, that mean this server when it listens on `port`.

    They are never patterns: a prefix match would accept a name like `127.0.0.1:1.evil.example`.
    """
    addresses = {*_LOOPBACK} if _is_local(settings.host) else {bracket_ipv6(settings.host), *_LOOPBACK}
    names = {f"{host}:{port}" for host in addresses} | ({*addresses} if port == HTTP else set())
    names.update(settings.allowed_hosts)
    if settings.public_url:
        names.add(urlsplit(settings.public_url).netloc)
    return frozenset(name.strip().lower() for name in names if name.strip())


def allowed_origins(settings: ServerSettings) -> frozenset[str]:
    """Return the accepted `Origin` values in lower case; none by default."""
    return frozenset(value.strip().rstrip("/").lower() for value in settings.allowed_origins if value.strip())


def _is_local(host: str) -> bool:
    """Return whether `host` is a name of this machine only, or all its addresses (then the settings must list other names)."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    return address.is_loopback or address.is_unspecified
