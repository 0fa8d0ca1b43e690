"""mcp_server/http/client_address.py: whose address a request counts for, behind proxies that are trusted and others."""

from __future__ import annotations

import pytest

from index.errors import InvalidArgument
from mcp_server.http.client_address import find_client, find_sender, parse_proxies

TRUSTED = ("127.0.0.1", "10.0.0.0/8", "fd00::/8")


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        pytest.param("192.0.2.7", [], "192.0.2.7", id="no proxy"),
        pytest.param("192.0.2.7", ["198.51.100.1"], "192.0.2.7", id="what a stranger forwards is not believed"),
        pytest.param("127.0.0.1", ["198.51.100.1"], "198.51.100.1", id="what a trusted proxy forwards is"),
        pytest.param("127.0.0.1", ["203.0.113.9, 198.51.100.1"], "198.51.100.1", id="not what its client wrote"),
        pytest.param("127.0.0.1", ["198.51.100.1, 10.1.2.3"], "198.51.100.1", id="two proxies"),
        pytest.param("127.0.0.1", ["198.51.100.1", "10.1.2.3"], "198.51.100.1", id="two headers"),
        pytest.param("127.0.0.1", ["10.1.2.3"], "10.1.2.3", id="a proxy that asks itself"),
        pytest.param("127.0.0.1", [], "127.0.0.1", id="a proxy that says nothing"),
        pytest.param("127.0.0.1", ["198.51.100.1, unknown"], "127.0.0.1", id="not an address"),
        pytest.param("127.0.0.1", ["198.51.100.1:4711"], "198.51.100.1", id="with a port"),
        pytest.param("fd00::1", ["[2001:db8::1]:4711"], "2001:db8::1", id="IPv6"),
        pytest.param("::ffff:127.0.0.1", ["2001:DB8:0::1"], "2001:db8::1", id="IPv4 as IPv6, and one spelling"),
        pytest.param("", ["198.51.100.1"], "", id="a Unix socket"),
        pytest.param("127.0.0.1", ["<script>\n", ","], "127.0.0.1", id="nonsense"),
        pytest.param("127.0.0.1", ["198.51.100.1, fe80::1%eth0"], "127.0.0.1", id="an interface of another machine"),
        pytest.param("fe80::1%eth0", [], "fe80::1", id="a neighbour"),
    ],
)
def test_the_address_is_the_nearest_that_nobody_trusted_vouches_for(peer, forwarded, client):
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    scope = {"client": (peer, 1) if peer else None, "headers": headers}
    assert find_client(scope, parse_proxies(TRUSTED)) == client


def test_without_a_trusted_proxy_the_header_means_nothing():
    scope = {"client": ("127.0.0.1", 1), "headers": [(b"x-forwarded-for", b"198.51.100.1")]}
    assert find_client(scope, parse_proxies(())) == "127.0.0.1"


def test_what_is_no_network_is_refused_by_the_setting_s_name():
    with pytest.raises(InvalidArgument, match=r"server\.trusted_proxies holds 'proxy\.example'"):
        parse_proxies(["proxy.example"])


@pytest.mark.parametrize(
    ("client", "sender"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_a_network_of_ipv6_is_one_sender_and_an_address_of_ipv4_is_one(client, sender):
    assert find_sender({"client": (client, 1), "headers": []}, []) == sender
