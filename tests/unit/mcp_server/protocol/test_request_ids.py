"""A request whose id is in use in its session goes no further; everything else does."""

from __future__ import annotations

import asyncio
import json

import pytest
from mcp.types import INVALID_REQUEST

from mcp_server.protocol.request_ids import UniqueRequestIds


class Held:
    """An endpoint that answers 200 when it is let, and keeps the bodies that it was given."""

    def __init__(self):
        self.bodies, self.let = [], asyncio.Event()

    async def __call__(self, _, receive, send):
        self.bodies.append((await receive())["body"])
        await self.let.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})


async def post(endpoint, body, session=b"s"):
    """The messages that answer a POST."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    headers = [(b"mcp-session-id", session)] if session else []
    await endpoint({"type": "http", "method": "POST", "headers": headers}, receive, send)
    return sent


def call(id):
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}).encode()


def statuses_of(first, second, sessions=(b"s", b"s")):
    """The status of each of two requests, where the second comes while the first is under way, and of the first again."""

    async def story():
        held = Held()
        endpoint = UniqueRequestIds(held)
        task = asyncio.create_task(post(endpoint, first, sessions[0]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        other = asyncio.create_task(post(endpoint, second, sessions[1]))
        await asyncio.sleep(0.01)
        held.let.set()
        answers = [await task, await other, await post(endpoint, first, sessions[0])]
        assert held.bodies[0] == held.bodies[-1] == first
        return [answer[0]["status"] for answer in answers]

    return asyncio.run(story())


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, "1"), ("a", "a")])
def test_an_id_in_use_is_refused_until_its_request_is_answered(first, second):
    assert statuses_of(call(first), call(second)) == [200, 400, 200]


@pytest.mark.parametrize(
    ("first", "second", "sessions"),
    [
        (call(1), call(2), (b"s", b"s")),
        (call(1), call(1), (b"s", b"t")),
        (call(1), call(1), (b"", b"")),
        (b"no json", b"no json", (b"s", b"s")),
        (b"[" * 100_000, b"[]", (b"s", b"s")),
        (b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',) * 2 + ((b"s", b"s"),),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {}}',) * 2 + ((b"s", b"s"),),
    ],
)
def test_all_else_goes_on(first, second, sessions):
    assert statuses_of(first, second, sessions) == [200, 200, 200]


@pytest.mark.parametrize("session", [b"s", b""], ids=["in a session", "without a session"])
@pytest.mark.parametrize("id", [8.0, 1e400, True, [1], {}, None], ids=repr)
def test_what_is_no_id_is_refused_instead_of_left_without_an_answer(id, session):
    started, ended = asyncio.run(post(UniqueRequestIds(Held()), call(id), session))
    assert started["status"] == 400
    assert json.loads(ended["body"])["error"]["code"] == INVALID_REQUEST


def test_a_notification_with_an_empty_id_goes_on():
    body = json.dumps({"jsonrpc": "2.0", "id": None, "method": "notifications/initialized"}).encode()
    assert statuses_of(body, body) == [200, 200, 200]
