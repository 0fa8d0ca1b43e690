"""Find the address of the client that makes a request, also behind proxies that the owner trusts.

Law, tested: `X-Forwarded-For` counts only as far as trusted proxies have written it, from the right; what a client
writes there itself is never believed."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from starlette.types import Scope

from index.errors import InvalidArgument

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_proxies(texts: Iterable[str]) -> list[Network]:
    """The networks that these texts name. Raises InvalidArgument."""
    networks: list[Network] = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text.strip(), strict=False))
        except ValueError as error:
            raise InvalidArgument(
                f"server.trusted_proxies holds {text[:64]!r}, which is no address or network such as 127.0.0.1 or 10.0.0.0/8"
            ) from error
    return networks


def find_client(scope: Scope, proxies: Sequence[Network]) -> str:
    """The client's address, or that of the nearest hop that nobody trusted vouches for; "" where there is none."""
    address = _parse_address((scope.get("client") or ("", 0))[0])
    if address is None:
        return ""
    for hop in reversed(_forwarded_hops(scope) if _is_trusted(address, proxies) else []):
        named = _parse_address(hop)
        if named is None:
            break  # `unknown`, or a name that the proxy made up: the hop that said so is the last that is known
        address = named
        if not _is_trusted(address, proxies):
            break
    return str(address)


def _is_trusted(address: Address, proxies: Sequence[Network]) -> bool:
    return any(address in network for network in proxies)


def _forwarded_hops(scope: Scope) -> list[str]:
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return [hop for value in values for hop in value.split(",")]


def _parse_address(text: str) -> Address | None:
    """The address in `text`, less a port and brackets; one of IPv4 that is written as IPv6 is one of IPv4."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
