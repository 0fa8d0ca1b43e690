"""Webhooks of forges, over real HTTP: what opens the route, and that nothing else comes of it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import socket
from contextlib import contextmanager
from dataclasses import replace

import httpx2
import pytest

from index.errors import InvalidArgument
from mcp_server.rest.git_webhook import BODY_LIMIT
from mcp_server.server import build_app
from syncd.remote.push_webhook import PushWebhook, drop_secret, make_secret
from syncd.settings.access import LimitsSettings
from syncd.state.ledger import Ledger
from tests.support.live_server import running

PAYLOAD = json.dumps(
    {"ref": "refs/heads/--upload-pack=x", "repository": {"clone_url": "https://evil.example/"}}
).encode()
FORGES = {
    "github": ("x-hub-signature-256", "sha256=", "x-github-event", "x-github-delivery"),
    "gitea": ("x-gitea-signature", "", "x-gitea-event", "x-gitea-delivery"),
    "forgejo": ("x-forgejo-signature", "", "x-forgejo-event", "x-forgejo-delivery"),
}


def headers(secret, body=PAYLOAD, *, forge="github", event="push", delivery="d-1"):
    signature, prefix, kind, id = FORGES[forge]
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {signature: prefix + digest, kind: event, id: delivery, "content-type": "application/json"}


def post(rim, sent, body=PAYLOAD, **options):
    return httpx2.post(rim.url + "/hooks/git", content=body, headers=sent, timeout=30, **options)


class Told:
    """Counts what it is told."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


@pytest.fixture
def told(rim, monkeypatch):
    told = Told()
    monkeypatch.setattr(rim.agent_access.push_webhook, "_on_push", told)
    return told


@pytest.fixture
def secret(rim):
    yield make_secret(rim.world.state, rotate=True)
    (rim.world.state / "hook-secret").unlink(missing_ok=True)


@pytest.mark.parametrize("forge", FORGES)
def test_a_signed_push_of_each_forge_makes_the_daemon_look_once(rim, secret, told, forge):
    body = json.dumps({"before": forge}).encode()
    sent = headers(secret, body, forge=forge, delivery=f"{forge}-1")
    first = post(rim, sent, body)
    assert (first.status_code, first.json(), told.times) == (202, {"status": "looking"}, 1)
    again = post(rim, sent, body)
    assert (again.status_code, again.json(), told.times) == (200, {"status": "known"}, 1)
    other = json.dumps({"after": forge}).encode()
    assert post(rim, headers(secret, other, forge=forge, delivery=f"{forge}-2"), other).status_code == 202
    assert told.times == 2


@pytest.mark.parametrize("first", ["push", "ping", "issues"])
def test_a_signed_body_is_acted_on_once_whatever_its_headers_say(rim, secret, told, first):
    body = json.dumps({"hook_id": first}).encode()
    assert post(rim, headers(secret, body, event=first, delivery=f"{first}-1"), body).status_code in (200, 202)
    before = told.times
    assert before == (first == "push")
    for number, forge in enumerate(FORGES):
        sent = headers(secret, body, forge=forge, delivery=f"{first}-{number}-again")
        again = post(rim, sent, body)
        assert (again.status_code, again.json()) == (200, {"status": "known"})
    assert told.times == before


class Front:
    """The application in this process, at a small rate, for deliveries from any address."""

    def __init__(self, rim):
        settings = replace(rim.world.app.settings, limits=LimitsSettings(rate=0.01, burst=2))
        self._app, self._host = build_app(rim.agent_access, settings), f"127.0.0.1:{settings.server.port}"

    def deliver(self, sent, body=PAYLOAD, *, address="192.0.2.1"):
        """The status of the answer, and whether any of the body was read before it."""
        headers = {"host": self._host, "content-length": str(len(body))} | sent
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/hooks/git",
            "raw_path": b"/hooks/git",
            "query_string": b"",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
            "client": (address, 1),
        }
        told = []

        async def receive():
            told.append("read")
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            told.append(message.get("status", ""))

        asyncio.run(self._app(scope, receive, send))
        return next(status for status in told if isinstance(status, int)), told[0] == "read"


@pytest.fixture
def front(rim):
    return Front(rim)


def test_unsigned_badly_signed_and_repeated_deliveries_take_nothing_of_a_forge_s_rate(front, secret, told):
    assert front.deliver(headers(secret, delivery="first"))[0] == 202
    floods = [{"content-type": "application/json"}, headers("guess"), headers(secret, delivery="again")]
    codes = [
        [front.deliver(sent, address=f"198.51.100.{number}")[0] for _ in range(3)] for number, sent in enumerate(floods)
    ]
    assert codes == [[401, 401, 429], [401, 401, 429], [200, 200, 429]]
    bodies = [b"{}", b"[]"]
    fresh = [
        front.deliver(headers(secret, body, delivery=f"f-{body[0]}"), body, address=f"203.0.113.{number}")[0]
        for number, body in enumerate(bodies)
    ]
    assert fresh == [202, 429]  # the forge's own rate
    assert told.times == 2


def test_a_made_up_signature_is_read_at_a_limited_rate_of_each_address(front, secret, told):
    assert [front.deliver(headers("guess")) for _ in range(4)] == [(401, True)] * 2 + [(429, False)] * 2
    assert front.deliver(headers("guess"), address="198.51.100.1") == (401, True)
    assert front.deliver(headers(secret, b"[2]", delivery="read"), b"[2]", address="198.51.100.2") == (202, True)


@pytest.mark.parametrize("made_up", ["", "x", "sha256=", "sha256=" + "g" * 64, "0" * 63, "sha256=" + "0" * 65])
def test_what_is_no_signature_is_not_read(front, secret, told, made_up):
    assert front.deliver(headers(secret) | {"x-hub-signature-256": made_up}) == (401, False)
    assert front.deliver(headers(secret) | {"x-gitea-signature": made_up}) == (401, False)


def test_a_ping_is_answered_and_other_events_are_let_be(rim, secret, told):
    ping = post(rim, headers(secret, event="ping"))
    assert (ping.status_code, ping.json()) == (200, {"status": "pong"})
    other = post(rim, headers(secret, event="issues"))
    assert (other.status_code, other.json()) == (202, {"status": "ignored"})
    assert told.times == 0


def test_without_a_secret_there_is_no_such_route(rim, told):
    for sent in (headers("guess"), {"content-type": "application/json"}, rim.headers()):
        answer = post(rim, sent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")
    missing = rim.rest("POST", "/hooks/nothing", json={})
    assert answer.json() == missing.json()
    assert told.times == 0


def wrong(secret):
    right = headers(secret)
    digest = right["x-hub-signature-256"].removeprefix("sha256=")
    return {
        "none": {**right, "x-hub-signature-256": None},
        "another secret": headers("guess"),
        "another body": headers(secret, b"{}"),
        "one digit": right | {"x-hub-signature-256": "sha256=" + digest[:-1] + ("0" if digest[-1] != "0" else "1")},
        "short": right | {"x-hub-signature-256": "sha256=" + digest[:-2]},
        "long": right | {"x-hub-signature-256": f"sha256={digest}00"},
        "empty": right | {"x-hub-signature-256": ""},
        "sha1": right | {"x-hub-signature-256": None, "x-hub-signature": "sha1=" + "0" * 40},
        "not hex": right | {"x-hub-signature-256": "sha256=" + "g" * 64},
        "not ASCII": right | {"x-hub-signature-256": "sha256=" + "é" * 64},
        "one right and one wrong": right | {"x-gitea-signature": "0" * 64},
        "a good key instead": None,
    }


@pytest.mark.parametrize("kind", wrong("x"))
def test_nothing_but_the_signature_opens_it(rim, secret, told, kind):
    sent = wrong(secret)[kind]
    sent = rim.headers("owner") | {"content-type": "application/json"} if sent is None else sent
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in sent.items() if value is not None]
    answer = post(rim, pairs)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHENTICATED")
    assert told.times == 0


def test_a_signature_that_stands_twice_is_refused(rim, secret, told):
    pairs = [*headers(secret).items(), ("x-hub-signature-256", "sha256=" + "0" * 64)]
    assert post(rim, pairs).status_code == 400
    assert told.times == 0


def test_a_new_secret_is_in_force_at_once_and_the_old_one_ends(rim, secret, told):
    other = make_secret(rim.world.state, rotate=True)
    assert post(rim, headers(secret, delivery="r-1")).status_code == 401
    assert post(rim, headers(other, b"[1]", delivery="r-1"), b"[1]").status_code == 202
    drop_secret(rim.world.state)
    assert post(rim, headers(other, delivery="r-2")).status_code == 404
    assert told.times == 1


def test_a_secret_that_others_can_read_is_none_and_that_is_told(rim, secret, told):
    (rim.world.state / "hook-secret").chmod(0o644)
    assert post(rim, headers(secret)).status_code == 404
    degraded = httpx2.get(rim.url + "/healthz", timeout=30).json()["degraded"]
    assert any(text.startswith("webhooks: off") for text in degraded)
    assert not any(str(rim.world.state) in text for text in degraded)


def test_a_body_has_its_limits_of_size_and_kind(rim, secret, told):
    fits, large = b"x" * BODY_LIMIT.largest, b"x" * (BODY_LIMIT.largest + 1)
    assert post(rim, headers(secret, fits, delivery="l-1"), fits).status_code == 202
    answer = post(rim, headers(secret, large), large)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "RESOURCE_EXHAUSTED")
    assert post(rim, headers(secret) | {"content-type": "application/x-www-form-urlencoded"}).status_code == 415
    assert post(rim, headers(secret, delivery="bad id"), PAYLOAD).status_code == 400
    assert told.times == 1


def test_the_other_guards_stand_before_it(rim, secret, told):
    assert post(rim, headers(secret) | {"host": "evil.example"}).status_code == 421
    assert post(rim, headers(secret) | {"origin": "https://evil.example"}).status_code == 403
    assert httpx2.get(rim.url + "/hooks/git", headers=headers(secret), timeout=30).status_code == 405
    assert rim.rest("POST", "/search", key=None, headers=headers(secret), json={"query": "x"}).status_code == 401
    assert told.times == 0


def test_the_body_of_an_unsigned_delivery_is_not_waited_for(rim, secret):
    host = rim.url.removeprefix("http://")
    name, _, port = host.rpartition(":")
    with socket.create_connection((name, int(port)), timeout=30) as client:
        head = (
            f"POST /hooks/git HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n"
        )
        client.sendall(head.encode())
        assert client.recv(1000).startswith(b"HTTP/1.1 401 ")


@contextmanager
def pushes(folder, told, **options):
    folder.chmod(0o700)
    ledger = Ledger.open(folder / "ledger.db")
    try:
        yield PushWebhook(ledger, folder, told, **options), ledger
    finally:
        ledger.close()


def test_deliveries_are_remembered_over_restarts_and_the_latest_alone(tmp_path):
    told = Told()
    with pushes(tmp_path, told) as (hook, ledger):
        assert hook.accept_delivery("a", b"1", now=0)
        assert not hook.accept_delivery("a", b"2", now=1)
        assert not hook.accept_delivery("b", b"1", now=2)
        assert not hook.accept_delivery("c", b"2", now=3)  # it came with the id of another one
        assert hook.accept_delivery("d", b"3", now=4)
        assert told.times == 2
        with pytest.raises(InvalidArgument):
            hook.accept_delivery("", b"4", now=5)
        with pytest.raises(InvalidArgument):
            hook.accept_delivery("body/" + "0" * 64, b"4", now=5)
    with pushes(tmp_path, told) as (hook, _):
        assert hook.is_known(b"1")
        assert not hook.is_known(b"4")
        assert not hook.accept_delivery("d", b"4", now=6)
    with pushes(tmp_path, told, kept=4) as (hook, ledger):
        for number in range(10):
            assert hook.accept_delivery(f"n{number}", b"n%d" % number, now=7)
        assert len(ledger.query("SELECT id FROM deliveries")) == 4
        assert not hook.accept_delivery("n8", b"n8", now=8)
        assert hook.accept_delivery("n1", b"n1", now=8)


def test_no_number_of_replays_makes_a_body_new(tmp_path):
    told = Told()
    with pushes(tmp_path, told, kept=4) as (hook, _):
        assert hook.accept_delivery("a", b"1", now=0)
        hook.remember(b"ping", now=0)
        for number in range(10):
            assert not hook.accept_delivery(f"r{number}", b"1", now=1)
            assert not hook.accept_delivery(f"p{number}", b"ping", now=1)
            hook.remember(b"1", now=1)
        assert told.times == 1
        assert hook.accept_delivery("b", b"2", now=2)  # a new one still counts


def test_a_signature_is_the_one_that_github_documents(tmp_path):
    with pushes(tmp_path, Told()) as (hook, _):
        (tmp_path / "hook-secret").write_text("It's a Secret to Everybody\n")
        (tmp_path / "hook-secret").chmod(0o600)
        known = b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        assert hook.is_signed(b"Hello, World!", [known])
        assert not hook.is_signed(b"Hello, World?", [known])
        assert not hook.is_signed(b"Hello, World!", [])


def test_a_secret_that_is_a_link_or_a_pipe_is_none(tmp_path):
    with pushes(tmp_path, Told()) as (hook, _):
        make_secret(tmp_path, rotate=False)
        assert hook.is_on
        (tmp_path / "hook-secret").rename(tmp_path / "elsewhere")
        (tmp_path / "hook-secret").symlink_to(tmp_path / "elsewhere")
        assert (hook.is_on, bool(hook.problem)) == (False, True)
