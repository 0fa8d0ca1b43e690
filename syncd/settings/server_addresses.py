"""Check the addresses in the settings of the server: its public URL, the hosts that it answers to, and the origins of web pages.

Law, tested: an accepted host or origin is one that a client can send in the header `Host` or `Origin`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

_HOST: Final = re.compile(r"(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[([0-9a-f:.]+)\])(?::([0-9]{1,5}))?")
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://([^/]+)/?")


def url_objection(url: str) -> str:
    """Return why `url` is no public address of the daemon; "" = it is one, or empty, which means none."""
    if url and not _is_web_address(url):
        return "must have http:// or https:// and a host, and no query or fragment, such as `https://notes.example`"
    return ""


def hosts_objection(hosts: Sequence[str]) -> str:
    """Return why no client can send one of `hosts` as the host of its request; "" = each can be sent."""
    for host in hosts:
        if host.strip() and not _is_host(host.strip().lower()):  # a blank one, as of an unset variable, is left out
            return (
                f"contains {host[:64]!r}: name hosts or addresses as in a URL, with the port unless it is 80 or 443, such as "
                "`notes.example:8765` or `[fd00::1]:8765`; wildcards are not supported"
            )
    return ""


def origins_objection(origins: Sequence[str]) -> str:
    """Return why no web page can have one of `origins`; "" = each can exist."""
    for origin in origins:
        text = origin.strip().lower()
        match = _ORIGIN.fullmatch(text)
        if text not in ("", "null") and not (match and _is_host(match[1])):
            return (
                f"contains {origin[:64]!r}: name origins with their scheme and without a path, such as "
                "`https://app.example`; wildcards are not supported"
            )
    return ""


def bracket_ipv6(host: str) -> str:
    """Return `host` as it is written in a URL."""
    return f"[{host}]" if ":" in host else host


def local_url(host: str, port: int) -> str:
    """Return the URL at which this machine reaches a server that listens on `host`: a request can't name "all addresses" as its host."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - only what it is reached by
    return f"http://{bracket_ipv6(reached)}:{port}"


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # for example a bracket without its counterpart
        return False
    is_plain = not any(mark in url for mark in "?#\\") and url.isprintable() and " " not in url
    return is_plain and parts.scheme in ("http", "https") and _is_host(parts.netloc.lower())


def _is_host(text: str) -> bool:
    match = _HOST.fullmatch(text)
    if match is None or not 0 < int(match[2] or 80) < 65_536:
        return False
    try:
        return match[1] is None or ipaddress.ip_address(match[1]).version == 6
    except ValueError:
        return False
