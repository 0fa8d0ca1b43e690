"""Which public URLs, hosts and origins the settings accept: those that a client can send."""

from __future__ import annotations

import pytest

from syncd.settings.server_addresses import hosts_objection, local_url, origins_objection, url_objection


@pytest.mark.parametrize(
    "url",
    ["", "https://notes.example", "HTTP://Notes.Example:8765/x/y", "http://[::1]:8765/", "http://10.0.0.1", "http://memex_app"],
)  # fmt: skip
def test_a_public_url_is_accepted(url):
    assert url_objection(url) == ""


@pytest.mark.parametrize(
    "url",
    [
        *("notes.example", "notes.example:8765", "ftp://notes.example", "https://", "https:///x", "https:notes.example"),
        *("https://me@notes.example", "https://notes.example?x=1", "https://notes.example/#x", "https://notes.example/?"),
        *("https://notes.example:99999", "https://notes.example:x", "https://[::1", "https://[nonsense]", " https://a"),
        *("https://a b", "https://notes.example\n", "https://notes.*", "https://notes.example\\x", "https://bücher.example"),
    ],
)  # fmt: skip
def test_what_is_no_public_url_is_refused_with_an_example(url):
    assert "such as `https://notes.example`" in url_objection(url)


@pytest.mark.parametrize(
    "host",
    [
        "notes.example",
        " NAS:8765 ",
        "notes.example.",
        "192.168.1.5:8765",
        "[::1]:8765",
        "[fd00::1]",
        "memex_app:1",
        "",
        " ",
    ],
)
def test_a_host_is_accepted(host):
    assert hosts_objection(()) == hosts_objection((host,)) == ""


@pytest.mark.parametrize(
    "host",
    [
        *("*", "*.notes.example", "notes.example:*", "https://notes.example", "notes.example/x", "me@notes.example"),
        *("notes.example:0", "notes.example:65536", "notes.example:x", "notes.example:", "::1", "fd00::1", "[10.0.0.1]"),
        *("notes..example", ".example", "a b", "bücher.example", "[::1", "a,b"),
    ],
)  # fmt: skip
def test_what_no_client_can_send_as_host_is_refused_by_name(host):
    assert hosts_objection(("nas", host)).startswith(f"contains {host!r}: ")


@pytest.mark.parametrize(
    "origin",
    ["https://app.example", " HTTPS://App.Example:8443/ ", "app://obsidian.md", "http://localhost:3000", "null", ""],
)
def test_an_origin_is_accepted(origin):
    assert origins_objection((origin,)) == ""


@pytest.mark.parametrize("origin", ["*", "app.example", "https://", "https://*.example", "https://app.example/x"])
def test_what_is_no_origin_is_refused_by_name(origin):
    assert origins_objection((origin,)).startswith(f"contains {origin!r}: ")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:1"),
        ("0.0.0.0", "http://127.0.0.1:1"),
        ("::1", "http://[::1]:1"),
        ("::", "http://[::1]:1"),
        ("", "http://127.0.0.1:1"),
    ],
)
def test_an_address_is_one_that_can_be_reached(host, url):
    assert local_url(host, 1) == url
