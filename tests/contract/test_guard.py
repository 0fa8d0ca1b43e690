"""The guard over real sockets: who is let in, what browsers can be tricked into, sizes and times."""

import http.client
import json
import logging
import socket
import threading
import time
from urllib.parse import urlsplit

import httpx2
import pytest

from index.errors import Unavailable
from index.timings import now_ms
from mcp_server.http.allowed_hosts import allowed_hosts, allowed_origins
from mcp_server.operations.operation import READERS
from syncd.settings.server_addresses import local_url
from syncd.settings.settings import ServerSettings
from syncd.workspaces.workspace import Workspace
from tests.support.live_server import SLOW, running
from tests.support.world import until

ROUTES = [
    *(("POST", "/capture"), ("POST", "/search"), ("GET", "/thought/x"), ("DELETE", "/thought/x"), ("GET", "/thoughts")),
    *(
        ("GET", "/openapi.json"),
        ("GET", "/"),
        ("GET", "/nowhere"),
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
    ),
    *(("POST", "/mcp/thoughts"), ("GET", "/sse"), ("POST", "/sse/messages/?session_id=00")),
]


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(
        tmp_path_factory.mktemp("rim") / "state", head_s=1.0, body_s=1.5, max_body=200_000, connections=128
    ) as served:
        yield served


def raw(rim, data, *, seconds=10.0):
    """What the server answers to these bytes, until it closes or is done."""
    host, _, port = rim.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=seconds) as link:
        link.sendall(data)
        answer = http.client.HTTPResponse(link)
        answer.begin()
        return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}


def request(rim, *lines, method="POST", path="/capture", body=b'{"content": "x"}', key="full", host=None):
    own = rim.url.removeprefix("http://")
    head = [f"{method} {path} HTTP/1.1", f"Host: {own if host is None else host}", "Connection: close", *lines]
    if key:
        head.append(f"Authorization: Bearer {rim.secrets[key]}")
    if body:
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + (body or b"")


def count(rim):
    return sum(1 for _ in rim.world.vault.rglob("*.md"))


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_no_route_answers_without_a_good_key(rim, method, path):
    before, bodies = count(rim), set()
    sent = {"json": {"content": "x", "query": "x"}} if method == "POST" else {}
    tries = [
        rim.rest(method, path, key=None, **sent),
        *(rim.rest(method, path, key=key, **sent) for key in ("bad", "expired", "revoked", "nonsense")),
        *(
            rim.rest(method, path, key=None, headers={"authorization": value}, **sent)
            for value in ("Bearer", "Bearer  x", "Basic " + rim.secrets["full"], rim.secrets["full"], "Bearer \x7e")
        ),
        *(
            rim.rest(method, f"{path}{'&' if '?' in path else '?'}{name}={rim.secrets['full']}", key=None, **sent)
            for name in ("key", "token", "access_token", "api_key")
        ),
        rim.rest(method, path, key=None, headers={"x-api-key": rim.secrets["full"]}, **sent),
        rim.rest(method, path, key=None, headers={"cookie": f"key={rim.secrets['full']}"}, **sent),
    ]
    for answer in tries:
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        bodies.add(answer.content)
    assert len(bodies) == 1
    assert json.loads(bodies.pop())["error"]["code"] == "UNAUTHENTICATED"
    assert count(rim) == before


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_even_the_open_routes_refuse_a_bad_key(rim, path):
    assert rim.rest("GET", path, key=None).status_code == 200
    for key in ("bad", "expired", "revoked", "nonsense"):
        assert rim.rest("GET", path, key=key).status_code == 401
    for key in ("full", "mcp-only", "rest-only", "static-mcp", "static-rest"):
        assert rim.rest("GET", path, key=key).status_code == 200


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_key_works_on_its_surfaces_only(rim, method, path):
    other = ("rest-only", "static-rest") if path.startswith(("/mcp", "/sse")) else ("mcp-only", "static-mcp")
    sent = {"json": {"content": "x", "query": "x"}} if method == "POST" else {}
    for key in other:
        answer = rim.rest(method, path, key=key, **sent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize(
    ("key", "method", "path"),
    [
        ("reader", "POST", "/capture"),
        ("reader", "DELETE", "/thought/x"),
        ("writer", "POST", "/search"),
        ("writer", "GET", "/thought/x"),
        ("writer", "GET", "/thoughts"),
    ],
)
def test_a_key_without_the_scope_is_refused_whatever_it_sends(rim, key, method, path):
    before = count(rim)
    for sent in ({}, {"json": {"content": "x", "query": "x"}}) if method == "POST" else ({},):
        answer = rim.rest(method, path, key=key, headers={"content-type": "application/json"}, **sent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "PERMISSION_DENIED")
    assert count(rim) == before


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("POST", "/capture", {"json": {"content": "leak?"}}),
        ("POST", "/search", {"json": {"query": "secret"}}),
        ("GET", "/thought/ID", {}),
        ("DELETE", "/thought/ID", {}),
        ("GET", "/thoughts", {}),
    ],
)
def test_missing_and_forbidden_workspaces_look_the_same(rim, method, path, sent):
    note = rim.agent_access.workspace("secret").capture("a secret thing").record.id
    before = count(rim)
    answers = set()
    for name in ("secret", "nowhere", "Work", "../secret", "", "work/x", "sécret"):
        answers.add(raw_call(rim, method, path.replace("ID", note), name, sent))
    assert len(answers) == 1
    status, body = answers.pop()
    assert (status, json.loads(body)["error"]["code"]) == (404, "NOT_FOUND")
    assert count(rim) == before


def raw_call(rim, method, path, workspace, sent):
    body = json.dumps(sent["json"]).encode() if sent else b""
    line = "X-Memory-Workspace: " + workspace.encode().decode("latin-1")
    status, answer, _ = raw(rim, request(rim, line, method=method, path=path, body=body, key="work"))
    return status, answer


def test_an_id_of_another_workspace_is_as_unknown_as_none(rim):
    note = rim.agent_access.workspace("secret").capture("another secret").record.id
    for method in ("GET", "DELETE"):
        other = rim.rest(method, f"/thought/{note}", key="work")
        none = rim.rest(method, "/thought/" + "0" * len(note), key="work")
        assert other.status_code == none.status_code == 404
        assert other.text.replace(note, "ID") == none.text.replace("0" * len(note), "ID")
    assert rim.agent_access.workspace("secret").get(note)


def holds(workspace, note):
    return note in {record.id for record in workspace.recent(500)}


def test_the_workspace_is_the_header_or_the_only_one_or_default(rim):
    def where(key, **headers):
        answer = rim.rest("POST", "/capture", key=key, json={"content": f"where {key} {headers}"}, headers=headers)
        if answer.status_code != 200:
            return answer.status_code
        note = answer.json()["id"]
        return next(name for name in rim.agent_access.workspaces() if holds(rim.agent_access.workspace(name), note))

    assert where("work") == "work"
    assert where("full") == where("two") == "default"
    assert where("two", **{"X-Memory-Workspace": "work"}) == "work"
    assert where("full", **{"X-Memory-Workspace": "secret"}) == "secret"
    assert raw(rim, request(rim, "X-Memory-Workspace: \t work  ", body=b'{"content": "w"}', key="work"))[0] == 200
    assert where("gone") == where("work", **{"X-Memory-Workspace": "default"}) == 404


@pytest.mark.parametrize(
    ("lines", "host", "status"),
    [
        pytest.param([], "evil.example", 421, id="rebinding"),
        pytest.param([], "evil.example:{port}", 421, id="rebinding with our port"),
        pytest.param([], "127.0.0.1", 421, id="no port"),
        pytest.param([], "127.0.0.1:1", 421, id="other port"),
        pytest.param([], "127.0.0.1:{port}.evil.example", 421, id="a prefix of ours"),
        pytest.param([], "127.0.0.1:{port}@evil.example", 421, id="user part"),
        pytest.param([], "localhost.evil.example:{port}", 421, id="subdomain"),
        pytest.param([], "", 421, id="empty"),
        pytest.param([], "LOCALHOST:{port}", 200, id="localhost in capitals"),
        pytest.param([], "[::1]:{port}", 200, id="ipv6 loopback name"),
        pytest.param(["Host: 127.0.0.1:{port}"], "127.0.0.1:{port}", 400, id="host twice"),
        pytest.param(["Origin: http://evil.example"], None, 403, id="origin"),
        pytest.param(["Origin: null"], None, 403, id="origin null"),
        pytest.param(["Origin: "], None, 403, id="origin empty"),
        pytest.param(["Origin: http://localhost:3000"], None, 403, id="a page on another local port"),
        pytest.param(["Origin: http://127.0.0.1:{port}"], None, 403, id="our own origin is listed by nobody"),
        pytest.param(["Origin: http://a.example", "Origin: http://a.example"], None, 400, id="origin twice"),
        pytest.param(["Sec-Fetch-Site: cross-site"], None, 403, id="cross-site"),
        pytest.param(["Sec-Fetch-Site: same-site"], None, 403, id="same-site"),
        pytest.param(["Sec-Fetch-Site: none"], None, 200, id="typed by the user"),
        pytest.param(["Sec-Fetch-Site: same-origin"], None, 200, id="same-origin"),
        pytest.param(["Authorization: Bearer x"], None, 400, id="authorization twice"),
        pytest.param(["X-Memory-Workspace: a", "X-Memory-Workspace: b"], None, 400, id="workspace twice"),
        pytest.param(["Content-Type: text/plain"], None, 400, id="type twice"),
        pytest.param(["Cache-Control: no-cache", "Cache-Control: no-store"], None, 200, id="another header twice"),
    ],
)
@pytest.mark.parametrize("path", ["/capture", "/mcp", "/healthz"])
def test_a_web_page_gets_nothing(rim, lines, host, status, path):
    port = rim.url.rpartition(":")[2]
    before = count(rim)
    method = "GET" if path == "/healthz" else "POST"
    body = b"" if path == "/healthz" else json.dumps({"content": f"{lines}{host}{path}"}).encode()
    if path == "/healthz" and "Content-Type" in str(lines):
        return
    got, answer, headers = raw(
        rim,
        request(
            rim,
            *(line.format(port=port) for line in lines),
            method=method,
            path=path,
            body=body,
            host=None if host is None else host.format(port=port),
        ),
    )
    if status == 200:
        assert got not in (400, 401, 403, 421) or path == "/mcp"
        return
    assert got == status
    assert not any(name.startswith("access-control") for name in headers)
    # A second Host is no HTTP, and is refused below us.
    assert answer == b"Invalid HTTP request received." or json.loads(answer)["error"]["code"]
    assert count(rim) == before


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
@pytest.mark.parametrize("path", ["/capture", "/search", "/mcp"])
def test_what_a_form_can_send_is_no_json(rim, kind, path):
    before = count(rim)
    answer = rim.rest("POST", path, content=b'{"content": "x"}', headers={"content-type": kind})
    assert answer.status_code == 415
    assert count(rim) == before


@pytest.mark.parametrize("path", ["/capture", "/mcp", "/sse", "/healthz"])
@pytest.mark.parametrize("key", ["full", None])
def test_a_preflight_is_refused(rim, path, key):
    answer = rim.rest("OPTIONS", path, key=key, headers={"access-control-request-method": "POST"})
    assert answer.status_code == 405
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_every_answer_carries_the_security_headers(rim):
    answers = [
        rim.rest("GET", "/healthz", key=None),
        rim.rest("GET", "/thoughts"),
        rim.rest("GET", "/nowhere"),
        rim.rest("GET", "/thoughts", key=None),
        rim.rest("POST", "/capture", json={}),
        rim.rest("POST", "/mcp", json={}),
    ]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "no-store" in answer.headers["cache-control"]
        assert "server" not in answer.headers
        assert answer.headers["date"].endswith(" GMT")
        assert len(answer.headers.get_list("cache-control")) == 1


@pytest.mark.parametrize("path", ["/capture", "/mcp"])
def test_a_body_that_is_too_large_is_refused(rim, path):
    before = count(rim)
    large = json.dumps({"content": "x" * 5_000_000}).encode()
    answer = rim.rest("POST", path, content=large, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "RESOURCE_EXHAUSTED")

    def chunks():
        for _ in range(50):
            yield b"x" * 10_000

    answer = rim.rest("POST", path, content=chunks(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert count(rim) == before


def test_a_stranger_is_refused_before_the_body(rim):
    """Only the head is sent; the answer must not wait for the rest."""
    started = time.monotonic()
    data = request(rim, key=None, body=b"").replace(
        b"\r\n\r\n", b"\r\nContent-Length: 100000\r\nContent-Type: application/json\r\n\r\n"
    )
    host, _, port = rim.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as link:
        link.sendall(data)
        first = link.recv(100)
    assert first.startswith(b"HTTP/1.1 401")
    assert time.monotonic() - started < 1.0


@pytest.mark.parametrize("length", [b"-1", b"abc", b"1e3", b"9" * 40])
def test_a_strange_length_is_refused(rim, length):
    data = request(rim).replace(b"Content-Length: 16", b"Content-Length: " + length)
    status, _, _ = raw(rim, data)
    assert status in (400, 413)


def test_headers_that_are_too_large_are_refused(rim):
    try:
        status, _, _ = raw(rim, request(rim, "X-Junk: " + "x" * 64_000))
    except ConnectionError:
        return  # refused before we were done sending
    assert status in (400, 431)


def test_a_slow_body_is_given_up(rim):
    started = time.monotonic()
    data = request(rim, body=b"x" * 1_000)[:-900]
    status, answer, _ = raw(rim, data)
    assert status == 408
    assert json.loads(answer)["error"]["code"] == "RESOURCE_EXHAUSTED"
    assert 1.0 < time.monotonic() - started < 4.0


def test_slow_heads_do_not_keep_honest_clients_out(rim):
    host, _, port = rim.url.removeprefix("http://").partition(":")
    links = [socket.create_connection((host, int(port)), timeout=10) for _ in range(140)]
    try:
        for link in links:
            link.sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
        deadline = time.monotonic() + 8
        while (answer := rim.rest("GET", "/healthz", key=None)).status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert answer.json()["status"] == "ok"
    finally:
        for link in links:
            link.close()


def test_a_connection_without_a_valid_key_does_not_stay_open(rim):
    host, _, port = rim.url.removeprefix("http://").partition(":")
    for path in ("/healthz", "/thoughts"):
        with socket.create_connection((host, int(port)), timeout=5) as link:
            link.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            while link.recv(65_536):  # until the server has closed it
                pass


def test_aborted_uploads_do_not_stop_the_others(rim):
    """The MCP SDK's own log handler would render 200 coloured tracebacks here, for a minute."""
    host, _, port = rim.url.removeprefix("http://").partition(":")
    for path in ("/mcp", "/capture"):
        for _ in range(100):
            with socket.create_connection((host, int(port)), timeout=10) as link:
                link.sendall(request(rim, path=path, body=b"x" * 1_000)[:-700])
    started = time.monotonic()
    until(lambda: rim.rest("GET", "/healthz", key=None).status_code == 200)  # as soon as the last of them are put away
    assert time.monotonic() - started < 20
    assert not any("rich" in type(handler).__module__ for handler in logging.getLogger().handlers)


def test_health_answers_while_all_threads_are_busy(rim):
    asked = {"query": f"where is the {SLOW} now"}
    threads = [
        threading.Thread(target=rim.rest, args=("POST", "/search"), kwargs={"key": "work", "json": asked})
        for _ in range(40)
    ]
    with rim.encoder.held():
        for thread in threads:
            thread.start()
        for _ in range(READERS):
            assert rim.encoder.waiting.acquire(timeout=20)
        started = time.monotonic()
        assert rim.rest("GET", "/healthz", key=None).status_code == 200
        assert time.monotonic() - started < 1.0
    for thread in threads:
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/sse", "/mcp"])
def test_an_open_stream_ends_when_its_key_is_revoked(tmp_path, path):
    with running(tmp_path / "state") as rim:
        key, secret = rim.agent_access.keys.create("stream", workspaces=None, now=now_ms())
        headers = {"authorization": f"Bearer {secret}", "accept": "text/event-stream", "x-memory-workspace": "default"}
        if path == "/mcp":
            hello = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "t", "version": "1"},
                },
            }
            opened = httpx2.post(
                rim.url + path,
                json=hello,
                headers=headers | {"accept": "application/json, text/event-stream"},
                timeout=10,
            )
            headers |= {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        with httpx2.stream("GET", rim.url + path, headers=headers, timeout=10) as stream:
            assert stream.status_code == 200
            rim.agent_access.keys.revoke(key.id, now=now_ms())
            for _ in stream.iter_bytes():
                pass  # ends by itself


def test_a_stop_does_not_wait_for_listeners(tmp_path):
    with running(tmp_path / "state", grace_s=8.0) as rim:
        stream = httpx2.stream(
            "GET", rim.url + "/sse", headers=rim.headers("work") | {"accept": "text/event-stream"}, timeout=10
        )
        opened = stream.__enter__()
        assert opened.status_code == 200
        started = time.monotonic()
    assert time.monotonic() - started < 4
    stream.__exit__(None, None, None)


def test_a_stop_waits_for_work_under_way(tmp_path):
    answers = []
    with running(tmp_path / "state", grace_s=8.0) as rim:
        rim.encoder.gate.clear()
        sent = {"content": f"the {SLOW} is just in time"}
        thread = threading.Thread(target=lambda: answers.append(rim.rest("POST", "/capture", json=sent).status_code))
        thread.start()
        assert rim.encoder.waiting.acquire(timeout=20)
        threading.Timer(1.0, rim.encoder.gate.set).start()
    thread.join(60)
    assert answers == [200]


def test_a_read_that_outlasts_a_stop_is_refused_with_its_reason(tmp_path, monkeypatch):
    answers, reading, ended = [], threading.Event(), threading.Event()

    def read_slowly(*_, **__):
        reading.set()
        assert ended.wait(30)
        return []

    monkeypatch.setattr(Workspace, "recent", read_slowly)
    with running(tmp_path / "state", grace_s=1.0) as rim:
        thread = threading.Thread(target=lambda: answers.append(rim.rest("GET", "/thoughts")))
        thread.start()
        assert reading.wait(20)
        threading.Timer(4.0, ended.set).start()
    thread.join(60)
    assert answers[0].status_code == 503
    assert "the daemon is stopping" in answers[0].text


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        pytest.param(
            {},
            "is taken by another process; `memex serve --any-port` picks a free port, or set server.port",
            id="taken",
        ),
        pytest.param({"host": "192.0.2.1"}, "set server.host", id="not this machine's"),
        pytest.param({"host": "no.such.name.invalid"}, "set server.host", id="not an address"),
    ],
)
def test_an_address_that_can_not_be_had_is_told_with_the_setting(tmp_path, rim, settings, words):
    port = int(rim.url.rpartition(":")[2])
    with pytest.raises(Unavailable, match=words) as caught, running(tmp_path / "state", **{"port": port} | settings):
        pass
    assert caught.value.retryable is ("taken" in words)  # another process may end; an address will not appear


@pytest.mark.parametrize(
    ("settings", "port", "expected"),
    [
        pytest.param({}, 8765, {"127.0.0.1:8765", "localhost:8765", "[::1]:8765"}, id="loopback"),
        pytest.param(
            {"host": "::1"},
            80,
            {"127.0.0.1:80", "localhost:80", "[::1]:80", "127.0.0.1", "localhost", "[::1]"},
            id="port 80",
        ),
        pytest.param({"host": "0.0.0.0"}, 1, {"127.0.0.1:1", "localhost:1", "[::1]:1"}, id="all addresses"),
        pytest.param(
            {"host": "192.168.1.5"}, 1, {"127.0.0.1:1", "localhost:1", "[::1]:1", "192.168.1.5:1"}, id="one address"
        ),
        pytest.param(
            {"allowed_hosts": (" NAS:8765 ", ""), "public_url": "https://Memex.Example.org/x"},
            1,
            {"127.0.0.1:1", "localhost:1", "[::1]:1", "nas:8765", "memex.example.org"},
            id="listed",
        ),
    ],
)
def test_the_names_of_the_server_are_exact(settings, port, expected):
    assert allowed_hosts(ServerSettings(**settings), port) == expected


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::", "::1", "192.0.2.7", "localhost"])
def test_the_address_that_the_daemon_names_is_one_that_it_answers_to(host):
    assert urlsplit(local_url(host, 8765)).netloc in allowed_hosts(ServerSettings(host=host), 8765)


def test_origins_are_those_listed():
    assert allowed_origins(ServerSettings()) == frozenset()
    assert allowed_origins(ServerSettings(allowed_origins=("https://A.example/",))) == {"https://a.example"}


def test_a_listed_origin_is_let_in_but_needs_a_key_too(tmp_path):
    with running(tmp_path / "state", allowed_origins=("https://app.example",)) as rim:
        headers = {"origin": "https://app.example", "sec-fetch-site": "cross-site"}
        assert rim.rest("GET", "/thoughts", headers=headers).status_code == 200
        assert rim.rest("GET", "/thoughts", key=None, headers=headers).status_code == 401
