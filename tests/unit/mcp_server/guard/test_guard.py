"""What one client may hold of the server while it is refused: bytes of bodies, connections, and whose doing it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mcp_server.guard import admission, guard
from mcp_server.guard.guard import OVERDRAFT_BYTES
from mcp_server.server import build_app
from syncd.remote.push_webhook import make_secret
from tests.support.live_server import listed

HOST, PORT = "127.0.0.1", 7801


class Exchange:
    """One request: the pieces of its body, and what came of it. Its client leaves when it has the answer, or `stays`."""

    def __init__(self, app: Any, pieces: Sequence[bytes], *, whole: bool = True, stays: bool = False) -> None:
        self._app, self._taken, self._answered, self._stays = app, 0, asyncio.Event(), stays
        self.status, self.body, self.headers = 0, b"", dict[bytes, bytes]()
        self.kept = 0  # bytes of its body that were taken before it was answered
        last = len(pieces) - 1
        self._waiting = [
            {"type": "http.request", "body": piece, "more_body": at < last or not whole}
            for at, piece in enumerate(pieces)
        ]

    async def send(self, method: str, path: str, *, client: str = HOST, **headers: str) -> Exchange:
        named = {"host": f"{HOST}:{PORT}"} | {name.replace("_", "-"): value for name, value in headers.items()}
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "http_version": "1.1",
            "scheme": "http",
            "headers": [(name.encode(), value.encode()) for name, value in named.items()],
            "client": (client, 1),
            "server": (HOST, PORT),
        }
        await self._app(scope, self._receive, self._note)
        return self

    async def _receive(self) -> dict[str, Any]:
        if not self._waiting:
            await self._answered.wait()
            return {"type": "http.disconnect"}
        self._taken += len(self._waiting[0]["body"])
        return self._waiting.pop(0)

    async def _note(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
            self.kept = self._taken
            if not self._stays:
                self._answered.set()
        self.body += message.get("body", b"")


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with listed(tmp_path_factory.mktemp("rim")) as made:
        yield made


@pytest.fixture
def make(rim):
    """Makes an application with other limits and other settings of the server."""

    def make_app(limits=None, **server):
        settings = rim.world.app.settings
        limited = replace(settings.limits, **limits or {})
        return build_app(
            rim.agent_access, replace(settings, limits=limited, server=replace(settings.server, **server)), port=PORT
        )

    return make_app


# A tool call that can't have its turn


@pytest.mark.parametrize("announced", [True, False])
def test_a_call_without_a_place_brings_no_large_body(rim, make, announced):
    app = make({"rate": 0.001, "burst": 1, "wait_s": 0.0})
    sent = rim.headers("full", content_type="application/json")
    pieces = [b"x" * 32_768] * 32
    more = {"content_length": str(32 * 32_768)} if announced else {"transfer_encoding": "chunked"}

    async def story():
        first = await Exchange(app, [b"{}"]).send("POST", "/mcp/none", content_length="2", **sent)
        return first, await Exchange(app, pieces).send("POST", "/mcp/none", **more, **sent)

    first, late = asyncio.run(story())
    assert first.status == 404
    assert (late.status, b"RESOURCE_EXHAUSTED" in late.body) == (429, True)
    assert late.kept <= (0 if announced else OVERDRAFT_BYTES + 32_768)


@pytest.mark.parametrize(("kind", "status"), [("application/json", 404), ("text/plain", 415)])
def test_a_request_gives_its_place_back_however_it_ends(rim, make, monkeypatch, kind, status):
    monkeypatch.setattr(admission, "PLACES", 1)
    app = make({"rate": 0.0, "wait_s": 1.0})
    sent = rim.headers("full", content_type=kind, content_length="2")

    async def story():
        return [(await Exchange(app, [b"{}"]).send("POST", "/none", **sent)).status for _ in range(3)]

    assert asyncio.run(story()) == [status] * 3


@pytest.mark.parametrize(
    ("method", "path", "holds"),
    [("POST", "/mcp", True), ("DELETE", "/mcp", True), ("GET", "/thoughts", True), ("GET", "/mcp", False)],
)
def test_everything_but_a_listening_stream_holds_a_place(rim, make, monkeypatch, method, path, holds):
    monkeypatch.setattr(admission, "PLACES", 1)
    app = make({"rate": 0.0, "wait_s": 0.1})

    async def story():
        started, ended = asyncio.Event(), asyncio.Event()

        async def answer_late(_scope, _receive, send):
            started.set()
            await ended.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        app._app = answer_late
        sent = rim.headers("full", content_type="application/json", content_length="2")
        first = asyncio.create_task(Exchange(app, [b"{}"]).send(method, path, **sent))
        await started.wait()
        second = asyncio.create_task(Exchange(app, [b""]).send("GET", "/thoughts", **rim.headers("full")))
        await asyncio.wait({second}, timeout=0.3)
        ended.set()
        return (await first).status, (await second).status

    assert asyncio.run(story()) == (200, 429 if holds else 200)


def test_a_call_without_a_place_is_not_waited_for(rim, make, monkeypatch):
    app = make({"rate": 0.001, "burst": 1, "wait_s": 0.0})
    monkeypatch.setattr(guard, "OVERDRAFT_SECONDS", 0.05)
    sent = rim.headers("full", content_type="application/json", content_length="100")

    async def story():
        await Exchange(app, [b"{}"]).send("POST", "/mcp/none", **sent)
        return await asyncio.wait_for(Exchange(app, [b"{"], whole=False).send("POST", "/mcp/none", **sent), 1)

    assert asyncio.run(story()).status == 429


# Those that go on sending after their refusal


@pytest.mark.parametrize(("key", "status"), [("full", 415), (None, 401)])
def test_few_refused_requests_of_one_sender_go_on_sending_at_once(rim, make, key, status):
    app = make({"failures": 0})
    sent = (rim.headers(key) if key else {}) | {"content_type": "text/plain", "transfer_encoding": "chunked"}
    exchanges = [Exchange(app, [b"x"], whole=False, stays=True) for _ in range(guard.DRAINS + 1)]

    async def story():
        tasks = [asyncio.create_task(exchange.send("POST", "/capture", **sent)) for exchange in exchanges]
        done, listened_to = await asyncio.wait(tasks, timeout=0.3)
        for task in listened_to:
            task.cancel()
        await asyncio.gather(*listened_to, return_exceptions=True)
        return len(done), (await Exchange(app, [b"x"]).send("POST", "/capture", **sent)).status

    assert asyncio.run(story()) == (1, status)
    assert {exchange.status for exchange in exchanges} == {status}


# Streams


@pytest.mark.parametrize("path", ["/sse", "/mcp"])
def test_a_key_holds_so_many_streams_whatever_their_kind(rim, make, monkeypatch, path):
    monkeypatch.setattr(admission, "STREAMS", 0)
    refused = asyncio.run(Exchange(make(), [b""]).send("GET", path, **rim.headers("full")))
    assert (refused.status, b"close one first" in refused.body) == (429, True)
    assert b"retry-after" in refused.headers


# Who is slowed for requests without a valid key

FORGED = {"x_hub_signature_256": "sha256=" + "0" * 64, "x_github_event": "push", "x_github_delivery": "d-1"}


def statuses_of(app, clients, path="/capture", **headers):
    """The status of one request without a key for each (peer, X-Forwarded-For)."""

    async def story():
        return [
            (await Exchange(app, [b"{}"]).send("POST", path, client=peer, **headers, **forwarded)).status
            for peer, forwarded in ((peer, {"x_forwarded_for": hops} if hops else {}) for peer, hops in clients)
        ]

    return asyncio.run(story())


@pytest.mark.parametrize(
    ("proxies", "clients", "statuses"),
    [
        pytest.param((HOST,), [(HOST, "192.0.2.1")] * 2 + [(HOST, "192.0.2.2")], [401, 429, 401], id="proxy"),
        pytest.param((HOST,), [(HOST, f"192.0.2.{n}, 198.51.100.1") for n in (1, 2)], [401, 429], id="forged hop"),
        pytest.param((), [(HOST, "192.0.2.1"), (HOST, "192.0.2.2")], [401, 429], id="nobody trusted"),
        pytest.param((), [("::ffff:192.0.2.1", ""), ("::ffff:192.0.2.2", "")], [401, 401], id="IPv4 as IPv6"),
        pytest.param((), [("2001:db8::1", ""), ("2001:db8::2", "")], [401, 429], id="one network"),
    ],
)
def test_failures_count_for_the_client_behind_the_proxies(make, proxies, clients, statuses):
    app = make({"failures": 1}, trusted_proxies=proxies)
    assert statuses_of(app, clients) == statuses


def test_a_sender_of_forged_deliveries_keeps_no_forge_behind_the_same_proxy_out(rim, make):
    make_secret(rim.world.state, rotate=True)
    app = make({"rate": 0.001, "burst": 1}, trusted_proxies=(HOST,))
    clients = [(HOST, "192.0.2.1"), (HOST, "192.0.2.1"), (HOST, "192.0.2.2")]
    sent = FORGED | {"content_type": "application/json", "content_length": "2"}
    assert statuses_of(app, clients, "/hooks/git", **sent) == [401, 429, 401]


# Connections that nobody uses


@pytest.mark.parametrize(
    ("key", "path", "status", "closes"),
    [
        (None, "/status", 401, True),
        ("bad", "/status", 401, True),
        (None, "/healthz", 200, True),
        (None, "/hooks/git", 405, True),
        ("full", "/healthz", 200, False),
        ("full", "/none", 404, False),
        ("mcp-only", "/status", 403, True),  # it is no key for this surface
    ],
)
def test_the_connection_of_who_has_no_valid_key_ends_with_the_answer(rim, make, key, path, status, closes):
    answer = asyncio.run(Exchange(make(), [b""]).send("GET", path, **(rim.headers(key) if key else {})))
    assert (answer.status, answer.headers.get(b"connection")) == (status, b"close" if closes else None)


@pytest.mark.parametrize(
    ("path", "status"), [("/sse", 503), ("/mcp", 503), ("/thoughts", 200), ("/api/v1/documents", 200)]
)
def test_a_stop_ends_listeners_and_lets_a_read_finish(rim, make, path, status):
    app = make()

    async def story():
        started, stopped = asyncio.Event(), asyncio.Event()

        async def answer_late(_scope, _receive, send):
            started.set()
            await stopped.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"read"})

        app._app = answer_late
        running = asyncio.create_task(Exchange(app, [b""]).send("GET", path, **rim.headers("full")))
        await started.wait()
        app.close_streams()
        stopped.set()
        return (await asyncio.wait_for(running, 5)).status

    assert asyncio.run(story()) == status


def test_a_stop_ends_a_stream_that_has_sent_nothing_yet_without_a_second_answer(rim, make):
    app = make()

    async def story():
        started = asyncio.Event()

        async def begin(_scope, _receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            started.set()
            await asyncio.Event().wait()

        app._app = begin
        running = asyncio.create_task(Exchange(app, [b""]).send("GET", "/mcp", **rim.headers("full")))
        await started.wait()
        app.close_streams()
        return await asyncio.wait_for(running, 5)

    answer = asyncio.run(story())
    assert (answer.status, answer.body) == (200, b"")


def test_a_read_that_takes_longer_than_a_stop_waits_gets_a_reason(rim, make):
    app = make()

    async def story():
        started = asyncio.Event()

        async def answer_never(_scope, _receive, _send):
            started.set()
            await asyncio.Event().wait()

        app._app = answer_never
        running = asyncio.create_task(Exchange(app, [b""]).send("GET", "/thoughts", **rim.headers("full")))
        await started.wait()
        app.close_reads()
        return await asyncio.wait_for(running, 5)

    answer = asyncio.run(story())
    assert answer.status == 503
    assert b"the daemon is stopping" in answer.body
