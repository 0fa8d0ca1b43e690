"""`memex mcp` as a host runs it: a child process, lines on its pipes."""

import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.live_server import SLOW, running

VERSION = "io.modelcontextprotocol/protocolVersion"
META = {VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


class Host:
    """A host that talks to the bridge."""

    def __init__(self, child):
        self.child = child

    def send(self, message):
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.child.stdin.write(raw + b"\n")
        self.child.stdin.flush()

    def hear(self):
        return json.loads(self.child.stdout.readline())

    def ask(self, message):
        self.send(message)
        return self.hear()

    def call(self, number, tool, arguments, *, modern=True):
        params = {"name": tool, "arguments": arguments} | ({"_meta": META} if modern else {})
        return self.ask({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


@contextmanager
def bridge(url, key, workspace=None, toolset=None):
    code = f"import sys; from mcp_server.stdio_bridge import run; sys.exit(run({url!r}, {key!r}, workspace={workspace!r}, toolset={toolset!r}))"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    watchdog = threading.Timer(40, child.kill)
    watchdog.start()
    try:
        yield Host(child)
    finally:
        child.stdin.close()
        assert child.wait(60) == 0, child.stderr.read()
        assert child.stdout.read() == b""
        assert child.stderr.read() == b""
        watchdog.cancel()


@contextmanager
def answering(status, kind, body):
    """A server that answers everything alike, to stand for a daemon that is not well."""

    class Odd(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body) + (50 if status == 299 else 0)))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim") / "state") as served:
        yield served


def test_it_starts_without_the_sdk():
    code = "import sys, mcp_server.stdio_bridge; print([name for name in sys.modules if name.split('.')[0] in ('mcp', 'mcp_types', 'starlette', 'uvicorn', 'pydantic', 'lancedb')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_daemon_that_is_down_is_told_at_once():
    with bridge("http://127.0.0.1:9", "k") as host:
        started = time.monotonic()
        told = host.ask(HELLO)
        assert time.monotonic() - started < 5
    assert told["id"] == 0
    assert told["error"]["code"] == -32000
    assert told["error"]["data"] == {"code": "UNAVAILABLE", "retryable": True}
    assert "memex serve" in told["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["bad", "expired", "rest-only"])
def test_a_refused_key_is_told_with_the_status(rim, key):
    with bridge(rim.url, rim.secrets[key]) as host:
        told = host.ask(HELLO)["error"]
    status = 403 if key == "rest-only" else 401
    assert told["data"]["status"] == status
    assert told["data"]["code"] == ("PERMISSION_DENIED" if status == 403 else "UNAUTHENTICATED")


def test_strange_keys_and_messages_get_an_answer(rim):
    with bridge(rim.url, "kéy\n") as host:
        assert host.ask(HELLO)["error"]["data"]["code"] == "UNAVAILABLE"
    with bridge(rim.url, rim.secrets["full"]) as host:
        assert host.ask(b"{nonsense")["error"]["code"] == -32700
        assert host.ask(b"[]")["error"]["code"] == -32600
        assert host.ask(b"[" * 100_000)["error"]["code"] == -32700
        host.send(b"")
        odd = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/list",
            "params": {"_meta": META | {VERSION: "2099 \u00e9\n"}},
        }
        assert "error" in host.ask(odd)
        assert (
            host.ask({"jsonrpc": "2.0", "id": 2, "method": "no/such", "params": {"_meta": META}})["error"]["code"]
            == -32601
        )
        assert (
            host.ask({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "日本", "_meta": META}})[
                "id"
            ]
            == 3
        )


def test_a_cancellation_of_any_shape_ends_nothing(rim):
    with bridge(rim.url, rim.secrets["full"], workspace="work") as host:
        for params in (None, [1], "x", 5, True, {}, {"requestId": [1]}, {"requestId": {"a": 1}}):
            host.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        assert host.call(1, "list_recent", {})["result"]["isError"] is False


def test_a_message_nested_as_deeply_as_json_can_be_read_ends_nothing(rim):
    """Python reads JSON a few levels deeper than it writes it."""
    templates = (
        b'{"method":"notifications/cancelled","params":{"requestId":%b}}',
        b'{"method":"notifications/other","params":%b}',
        b'{"method":"ping","id":%b}',
    )
    with bridge(rim.url, rim.secrets["full"], workspace="work") as host:
        for depth in range(940, 1_000, 3):
            for template in templates:
                host.send(template % (b"[" * depth + b"]" * depth))
        host.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}})
        answers = [host.hear()]
        while answers[-1]["id"] != 1:
            answers.append(host.hear())
    assert all("error" in answer for answer in answers[:-1])


@pytest.mark.parametrize("asked", [[1], {"a": 1}])
def test_an_id_that_json_rpc_does_not_know_is_refused(rim, asked):
    with bridge(rim.url, rim.secrets["full"]) as host:
        refused = host.ask({"jsonrpc": "2.0", "id": asked, "method": "ping"})
    assert (refused["id"], refused["error"]["code"]) == (None, -32600)


@pytest.mark.slow
@pytest.mark.parametrize("params", [[1], "x", 5])
def test_params_of_another_shape_are_refused_by_the_daemon(rim, params):
    with bridge(rim.url, rim.secrets["full"]) as host:
        refused = host.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params})
    assert refused["id"] == 1
    assert refused["error"]["code"] in (-32600, -32602)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "kind", "body", "code"),
    [
        (200, "text/html", b"<html>", "UNAVAILABLE"),
        (200, "application/json", b"{}", "UNAVAILABLE"),
        (200, "application/json", b"not json", "UNAVAILABLE"),
        (200, "text/event-stream", b"data: {\n\n", "UNAVAILABLE"),
        (200, "text/event-stream", b"", "UNAVAILABLE"),
        (202, "text/plain", b"", "UNAVAILABLE"),
        (299, "application/json", b'{"cut', "UNAVAILABLE"),
        (500, "text/plain", b"boom", "UNAVAILABLE"),
        (
            429,
            "application/json",
            b'{"error":{"code":"RESOURCE_EXHAUSTED","message":"m","retryable":true}}',
            "RESOURCE_EXHAUSTED",
        ),
        (401, "text/plain", b"", "UNAUTHENTICATED"),
        (200, "application/json", b"[" * 100_000, "UNAVAILABLE"),
        (200, "text/event-stream", b"data: " + b"[" * 100_000 + b"\n\n", "UNAVAILABLE"),
        (400, "application/json", b'{"error":' + b"[" * 100_000, "UNAVAILABLE"),
        (400, "application/json", b'{"error":{"code":["NOT_FOUND"],"message":1}}', "UNAVAILABLE"),
    ],
)
def test_any_answer_of_a_sick_daemon_becomes_one_error(status, kind, body, code):
    with answering(status, kind, body) as url, bridge(url, "k") as host:
        told = host.call(7, "list_recent", {})
    assert told["id"] == 7
    assert told["error"]["data"]["code"] == code


@pytest.mark.slow
@pytest.mark.parametrize("said", [b"", b": ping\n\n", b'data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'])
def test_a_stream_that_ends_without_an_answer_counts_as_lost(said):
    with answering(200, "text/event-stream", said) as url, bridge(url, "k") as host:
        told = host.call(7, "list_recent", {})
        while "id" not in told:
            told = host.hear()
    assert "connection to the daemon was lost" in told["error"]["message"]
    assert told["error"]["data"] == {"code": "UNAVAILABLE", "retryable": True}


def test_each_of_two_requests_with_one_id_gets_a_reply(rim):
    with rim.encoder.held(), bridge(rim.url, rim.secrets["full"], workspace="work") as host:
        params = {"name": "semantic_search", "arguments": {"query": f"where is the {SLOW} now"}, "_meta": META}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        host.send(asked)
        assert rim.encoder.waiting.acquire(timeout=20)
        refused = host.ask(asked)
        assert (refused["id"], refused["error"]["code"]) == (1, -32600)
        host.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "_meta": META}})
        assert host.call(2, "list_recent", {})["result"]["isError"] is False


def test_a_json_rpc_error_is_passed_on():
    body = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32022,"message":"unknown version"}}'
    with answering(400, "application/json", body) as url, bridge(url, "k") as host:
        assert host.call(7, "list_recent", {})["error"]["code"] == -32022


def test_an_older_client_goes_on_after_the_daemon_was_restarted(tmp_path):
    with running(tmp_path / "one") as first:
        port = int(first.url.rpartition(":")[2])
        with bridge(first.url, "kb-mcp-secret-01", toolset="thoughts") as host:
            assert host.ask(HELLO)["result"]["protocolVersion"] == "2025-06-18"
            host.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            assert host.call(1, "list_recent", {}, modern=False)["result"]["isError"] is False
            first.stop()
            assert host.call(2, "list_recent", {}, modern=False)["error"]["data"]["code"] == "UNAVAILABLE"
            with running(tmp_path / "two", port=port):
                assert host.call(3, "list_recent", {}, modern=False)["result"]["isError"] is False
                assert host.call(4, "list_recent", {}, modern=False)["result"]["isError"] is False


def test_a_cancelled_request_is_dropped_and_the_next_is_answered(rim):
    with rim.encoder.held(), bridge(rim.url, rim.secrets["full"], workspace="work") as host:
        params = {"name": "semantic_search", "arguments": {"query": f"where is the {SLOW} now"}, "_meta": META}
        host.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert rim.encoder.waiting.acquire(timeout=20)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "_meta": META}}
        host.send(cancel)
        started = time.monotonic()
        assert host.call(2, "list_recent", {})["id"] == 2
        assert time.monotonic() - started < 2


def test_what_was_asked_before_the_end_of_input_is_answered(rim):
    with bridge(rim.url, rim.secrets["full"], workspace="work") as host:
        for number in range(5):
            params = {"name": "capture_thought", "arguments": {"content": f"piped {number}"}, "_meta": META}
            host.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        host.child.stdin.close()
        told = sorted(host.hear()["id"] for _ in range(5))
    assert told == [0, 1, 2, 3, 4]


def test_a_client_that_leaves_before_its_answer_ends_it_quietly(rim):
    space = rim.agent_access.workspace("work")
    space.slow = 0.5
    code = f"from mcp_server.stdio_bridge import run; run({rim.url!r}, {rim.secrets['full']!r}, workspace='work')"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe) as child:
        params = {"name": "semantic_search", "arguments": {"query": "x"}, "_meta": META}
        child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode())
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.close()
        time.sleep(0.2)
        child.stdin.close()
        assert child.stderr.read() == b""
        assert child.wait(60) == 0
    space.slow = 0.0


def test_ctrl_c_ends_it_while_it_waits_for_a_line():
    code = "from mcp_server.stdio_bridge import run; run('http://127.0.0.1:9', 'k')"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe) as child:
        Host(child).ask(HELLO)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == -signal.SIGINT
        assert child.stderr.read().rstrip().endswith(b"KeyboardInterrupt")


def test_the_bridge_loads_nothing_that_it_does_not_need():
    script = "import sys, syncd.cli, syncd.stdio, mcp_server.stdio_bridge; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    heavy = {"lancedb", "pyarrow", "numpy", "mcp", "starlette", "uvicorn", "onnxruntime", "watchdog", "sqlite3"}
    assert not heavy & set(done.stdout.split())
