"""Find the address of the client that makes a request, also behind proxies that the owner trusts.

Law, tested: Memex reads `X-Forwarded-For` from the right, only as far as trusted proxies have written it, and never
believes what the client wrote there."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from starlette.types import Scope

from index.errors import InvalidArgument

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_proxies(texts: Iterable[str]) -> list[Network]:
    """Parse these texts as networks. Raises InvalidArgument."""
    networks: list[Network] = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text.strip(), strict=False))
        except ValueError as error:
            raise InvalidArgument(
                f"server.trusted_proxies holds {text[:64]!r}, which is not an address or network such as 127.0.0.1 or 10.0.0.0/8"
            ) from error
    return networks


def find_client(scope: Scope, proxies: Sequence[Network]) -> str:
    """Return the address of the client, or of the nearest hop that is not a trusted proxy; "" if unknown."""
    address = _find_address(scope, proxies)
    return "" if address is None else str(address)


def find_sender(scope: Scope, proxies: Sequence[Network]) -> str:
    """Return the name under which requests without a key are counted: the client's IPv4 address or IPv6 network."""
    address = _find_address(scope, proxies)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, 64), strict=False))
    return "" if address is None else str(address)


def _find_address(scope: Scope, proxies: Sequence[Network]) -> Address | None:
    host, _ = scope.get("client") or ("", 0)
    address = _parse_address(host.partition("%")[0])  # without the interface of a link-local address
    if address is None:
        return None
    for hop in reversed(_forwarded_hops(scope) if _is_trusted(address, proxies) else []):
        named = _parse_address(hop)
        if named is None:
            break  # `unknown`, or a name that the proxy invented: the hop that wrote it is the last known one
        address = named
        if not _is_trusted(address, proxies):
            break
    return address


def _is_trusted(address: Address, proxies: Sequence[Network]) -> bool:
    return any(address in network for network in proxies)


def _forwarded_hops(scope: Scope) -> list[str]:
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return [hop for value in values for hop in value.split(",")]


def _parse_address(text: str) -> Address | None:
    """Parse the address in `text`, without port and brackets; an IPv4 address in IPv6 notation becomes IPv4."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return address
    return None if address.scope_id else address.ipv4_mapped or address  # an interface means nothing on another machine
