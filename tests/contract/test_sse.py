"""SSE for older clients: a connection has one workspace, which must be there, and its messages have no other."""

import itertools
import json
import re
from contextlib import contextmanager
from uuid import UUID

import httpx2
import pytest

from tests.support.live_server import running

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "older", "version": "1"},
}


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim") / "state") as served:
        yield served


class Connection:
    """An open connection; the header on each message is the caller's choice."""

    def __init__(self, rim, key, stream):
        self._rim, self._key, self._lines, self._ids = rim, key, stream.iter_lines(), itertools.count(1)
        self.path = self._next_data()
        self.session = re.search("session_id=(.*)", self.path)[1]
        self.ask("initialize", HELLO)
        self.post({"method": "notifications/initialized"})

    def post(self, message, *, key=None, session=None, **headers):
        """The answer to the POST itself."""
        path = self.path.replace(self.session, session or self.session)
        sent = self._rim.headers(key or self._key, **headers)
        return httpx2.post(self._rim.url + path, json={"jsonrpc": "2.0"} | message, headers=sent)

    def ask(self, method, params, **headers):
        """What the stream tells of a request."""
        answer = self.post({"id": next(self._ids), "method": method, "params": params}, **headers)
        assert answer.status_code == 202, answer.text
        return json.loads(self._next_data())["result"]

    def call(self, tool, headers=None, **arguments):
        """The data of a tool's answer, or its error."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments}, **headers or {})
        return json.loads(result["content"][0]["text"]) | {"failed": result.get("isError", False)}

    def _next_data(self):
        return next(line for line in self._lines if line.startswith("data: ")).removeprefix("data: ")


@contextmanager
def connected(rim, key, **headers):
    sent = rim.headers(key, **headers) | {"accept": "text/event-stream"}
    with httpx2.stream("GET", rim.url + "/sse", headers=sent, timeout=20) as stream:
        assert stream.status_code == 200
        yield Connection(rim, key, stream)


def contents(rim, workspace):
    notes = rim.agent_access.workspace(workspace)
    return {notes.get(record.id).content for record in notes.recent(500)}


@pytest.mark.parametrize(
    ("key", "workspace"),
    [
        *(("full", name) for name in ("nowhere", "", None)),
        *(("work", name) for name in ("secret", "nowhere")),
        *(("gone", name) for name in ("nowhere", None)),
        ("two", None),
    ],
)
def test_a_connection_without_a_workspace_that_is_there_is_refused_in_one_way(rim, key, workspace):
    sent = {} if workspace is None else {"x-memory-workspace": workspace}
    with httpx2.stream("GET", rim.url + "/sse", headers=rim.headers(key) | sent, timeout=5) as stream:
        assert stream.status_code == 404
        error = json.loads(stream.read())["error"]
    assert error["code"] == "NOT_FOUND"
    assert error["message"].startswith(
        "no such workspace, or the key may not see it, or the request must name a workspace"
    )


def test_a_question_for_the_headers_alone_opens_no_connection(rim):
    sent = rim.headers("work") | {"accept": "text/event-stream"}
    with httpx2.Client(base_url=rim.url, headers=sent, timeout=20) as client:
        assert client.head("/sse").headers["content-type"].startswith("text/event-stream")
        assert client.get("/healthz").status_code == 200  # over the same connection


def test_messages_without_a_header_are_about_the_workspace_of_the_connection(rim):
    with connected(rim, "full", X_Memory_Workspace="work") as sse:
        assert not sse.call("capture_thought", content="Held by the connection.")["failed"]
        named = {"X_Memory_Workspace": "work"}
        assert not sse.call("capture_thought", named, content="Named again.")["failed"]
        made = sse.call("create_entities", entities=[{"name": "Pier", "entity_type": "place"}])
        assert made["results"][0]["name"] == "Pier"
    assert {"Held by the connection.", "Named again."} <= contents(rim, "work")
    assert "Held by the connection." not in contents(rim, "default")


def test_a_key_for_one_workspace_implies_it_but_not_for_the_graph(rim):
    with connected(rim, "work") as sse:
        assert not sse.call("capture_thought", content="Implied by the key.")["failed"]
        assert sse.call("get_stats")["error"]["code"] == "NOT_FOUND"
        assert not sse.call("get_stats", {"X_Memory_Workspace": "work"})["failed"]
    assert "Implied by the key." in contents(rim, "work")


@pytest.mark.parametrize("other", ["secret", "default", "nowhere", ""])
def test_a_message_that_names_another_workspace_is_refused(rim, other):
    arguments = {"name": "capture_thought", "arguments": {"content": f"Strayed to {other!r}."}}
    message = {"id": 9, "method": "tools/call", "params": arguments}
    with connected(rim, "full", X_Memory_Workspace="work") as sse:
        for session in (sse.session, str(UUID(sse.session)), sse.session.upper()):
            answer = sse.post(message, session=session, X_Memory_Workspace=other)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_ARGUMENT")
        assert sse.call("list_recent", limit=1)["failed"] is False  # the connection goes on
    assert not any(f"Strayed to {other!r}." in contents(rim, name) for name in rim.agent_access.workspaces())


def test_another_key_learns_nothing_of_a_connection(rim):
    message = {"id": 1, "method": "ping"}
    with connected(rim, "full", X_Memory_Workspace="work") as sse:
        own = [sse.post(message, key="two", X_Memory_Workspace=name) for name in ("work", "secret")]
        none = sse.post(message, key="two", session="0" * 32)
    assert {(answer.status_code, answer.content) for answer in [*own, none]} == {(404, b"Could not find session")}
