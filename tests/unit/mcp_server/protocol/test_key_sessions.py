"""A key that opens session after session ends its own idle ones, and takes none from the others; the SDK is the real one."""

from __future__ import annotations

import pytest

from mcp_server.protocol import key_sessions
from mcp_server.server import build_app
from tests.support.live_server import listed
from tests.support.local_app import opened

PORT = 7801
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "many", "version": "1"}},
}


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with listed(tmp_path_factory.mktemp("rim")) as made:
        yield made


@pytest.fixture
def app(rim, monkeypatch):
    monkeypatch.setattr(key_sessions, "MOST", 3)
    with opened(build_app(rim.agent_access, rim.world.app.settings, port=PORT), PORT) as made:
        yield made


def open_session(app, rim, key="full", path="/mcp"):
    answer = app.send("POST", path, json=INITIALIZE, headers=rim.headers(key) | ACCEPT)
    assert answer.status_code == 200, answer.text
    return answer.headers["mcp-session-id"]


def is_open(app, rim, session, key="full", path="/mcp"):
    """Whether a ping in this session is answered."""
    sent = rim.headers(key) | ACCEPT | {"mcp-session-id": session}
    answer = app.send("POST", path, json={"jsonrpc": "2.0", "id": 2, "method": "ping"}, headers=sent)
    assert answer.status_code in (200, 404), answer.text
    return answer.status_code == 200


def test_a_further_session_ends_the_key_s_own_that_was_idle_for_longest(rim, app):
    other = open_session(app, rim, "owner")
    first, second, third = open_session(app, rim), open_session(app, rim, path="/mcp/memory"), open_session(app, rim)
    assert is_open(app, rim, first)  # so the second is idle for longest
    fourth = open_session(app, rim)
    assert not is_open(app, rim, second, path="/mcp/memory")
    assert all(is_open(app, rim, session) for session in (first, third, fourth))
    assert is_open(app, rim, other, "owner")


def test_a_session_that_its_client_ended_counts_no_more(rim, app):
    first, second, third = (open_session(app, rim) for _ in range(3))
    gone = rim.headers("full") | ACCEPT | {"mcp-session-id": second}
    assert app.send("DELETE", "/mcp", headers=gone).status_code == 200
    fourth = open_session(app, rim)
    assert all(is_open(app, rim, session) for session in (first, third, fourth))
