"""The owner's door, over real sockets: answers, errors, and clients that behave badly."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time

import pytest

from index.errors import Conflict, InvalidArgument, NotFound, PermissionDenied, ResourceExhausted, Unavailable
from syncd.daemon import control_socket
from syncd.daemon.control_socket import NAME, TOKEN, ControlServer, NoDaemon, call, short_address


def echo(arguments, progress):
    return arguments


def missing(arguments, progress):
    raise NotFound("no note x", id="x")


def crash(arguments, progress):
    raise ZeroDivisionError("secret of a note")


def disk(arguments, progress):
    raise OSError(28, "No space left on device")


def count(arguments, progress):
    for done in range(1, 4):
        progress({"done": done, "total": 3, "stage": "counting"})
    return {"counted": 3}


@pytest.fixture
def waits():
    return threading.Event()


@pytest.fixture
def state(tmp_path, waits):
    operations = {"echo": echo, "missing": missing, "crash": crash, "disk": disk, "count": count}
    operations["wait"] = lambda _, __: waits.wait(20)
    server = ControlServer(tmp_path, operations)
    server.start()
    yield tmp_path
    waits.set()
    server.stop()


def raw(state, opening=None):
    """A client that has shown the token, or has sent `opening` instead."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(5)
    with short_address(state / NAME) as where:
        client.connect(where)
    client.sendall((state / TOKEN).read_bytes() + b"\n" if opening is None else opening)
    return client


def answer_of(client):
    """All that the daemon says until it hangs up."""
    answer = b""
    try:
        while block := client.recv(10_000):
            answer += block
    except ConnectionResetError:
        pass
    return answer


def test_an_answer_is_the_json_value_that_the_operation_gave(state):
    given = {"text": "日本語 \ud800 \n", "n": [1, None, {"a": 0.5}]}
    assert call(state, "echo", given) == given


def test_an_error_keeps_its_code_message_and_details(state):
    with pytest.raises(NotFound) as caught:
        call(state, "missing", {})
    assert caught.value.as_dict() == NotFound("no note x", id="x").as_dict()


def test_a_crash_is_an_answer_without_its_words(state, caplog):
    with pytest.raises(Unavailable) as caught:
        call(state, "crash", {})
    assert "secret" not in caught.value.message
    assert "secret" in caplog.text
    assert call(state, "echo", {}) == {}


def test_a_failing_disk_is_named(state):
    with pytest.raises(Unavailable, match="No space left"):
        call(state, "disk", {})


def test_progress_comes_before_the_answer(state):
    seen = []
    assert call(state, "count", {}, on_progress=seen.append) == {"counted": 3}
    assert [event["done"] for event in seen] == [1, 2, 3]


def test_an_unknown_operation_is_refused(state):
    with pytest.raises(InvalidArgument, match="'nonsense'"):
        call(state, "nonsense", {})


@pytest.mark.parametrize(
    "line", [b"{}", b"[]", b"\xff\xfe", b"nonsense", b'{"op": 3}', b'{"op": "echo", "args": 3}', b"[" * 100_000]
)
def test_a_broken_request_is_an_error_and_the_next_is_answered(state, line):
    with raw(state) as client:
        client.sendall(line + b"\n")
        assert b"INVALID_ARGUMENT" in client.recv(10_000)
        client.sendall(b'{"op": "echo", "args": {"a": 1}}\n')
        answer = b""
        while answer.count(b"\n") < 2:
            answer += client.recv(10_000)
    assert json.loads(answer.splitlines()[1]) == {"result": {"a": 1}}


REQUEST = b'{"op": "count"}\n'


@pytest.mark.parametrize(
    "opening",
    [
        pytest.param(REQUEST, id="none"),
        pytest.param(b"\n" + REQUEST, id="an empty one"),
        pytest.param(b"0" * 64 + b"\n" + REQUEST, id="a wrong one"),
        pytest.param("é".encode() * 32 + b"\n" + REQUEST, id="one that is no token"),
        pytest.param(b"0" * 1_000_000, id="one without an end"),
    ],
)
def test_without_the_token_nothing_is_done(tmp_path, opening):
    done = []
    server = ControlServer(tmp_path, {"count": lambda arguments, _: done.append(arguments)})
    server.start()
    try:
        with raw(tmp_path, b"") as client:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.sendall(opening)
            answer = answer_of(client)
    finally:
        server.stop()
    assert b"PERMISSION_DENIED" in answer or b"RESOURCE_EXHAUSTED" in answer
    assert not done
    assert answer.count(b"\n") == 1


def test_a_part_of_the_token_is_not_the_token(state):
    token = (state / TOKEN).read_bytes()
    for opening in (token[:-1], token + b"0", token.upper() + b" "):
        with raw(state, opening + b"\n" + b'{"op": "echo"}\n') as client:
            assert b"PERMISSION_DENIED" in answer_of(client)


def test_a_command_with_the_token_of_another_start_is_told_what_to_do(state):
    (state / TOKEN).write_text("0" * 64)
    with pytest.raises(PermissionDenied, match="restart it"):
        call(state, "echo", {"text": "x" * 3_000_000})


def test_each_start_draws_a_token_that_only_the_owner_can_read(tmp_path):
    tokens = set()
    for _ in range(3):
        server = ControlServer(tmp_path, {"echo": echo})
        (tmp_path / TOKEN).write_text("left by a daemon that died")
        (tmp_path / TOKEN).chmod(0o644)
        server.start()
        assert (tmp_path / TOKEN).stat().st_mode & 0o777 == 0o600
        tokens.add((tmp_path / TOKEN).read_bytes())
        server.stop()
    assert len(tokens) == 3
    assert all(len(token) == 64 for token in tokens)


def test_a_daemon_of_an_older_version_is_told_as_such(state):
    (state / TOKEN).unlink()
    with pytest.raises(Unavailable, match="older than this command"):
        call(state, "echo", {})


def test_clients_that_hang_delay_nobody(state):
    silent = [raw(state, b"") for _ in range(20)]
    half = raw(state)
    half.sendall(b'{"op": "echo"')
    began = time.monotonic()
    assert call(state, "echo", {"a": 1}) == {"a": 1}
    assert time.monotonic() - began < 2
    for client in (*silent, half):
        client.close()


def test_a_silent_client_is_hung_up_on(tmp_path, monkeypatch):
    monkeypatch.setattr(control_socket, "READ_S", 0.2)
    server = ControlServer(tmp_path, {"echo": echo})
    server.start()
    with raw(tmp_path) as client:
        assert client.recv(1) == b""
    server.stop()


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(control_socket, "REQUEST", 100_000)
    server = ControlServer(tmp_path, {"echo": echo})
    server.start()
    with pytest.raises((ResourceExhausted, Unavailable)):
        call(tmp_path, "echo", {"a": "x" * 1_000_000})
    assert call(tmp_path, "echo", {}) == {}
    server.stop()


def test_more_clients_than_there_are_places_are_told_so(tmp_path, monkeypatch):
    monkeypatch.setattr(control_socket, "CLIENTS", 3)
    server = ControlServer(tmp_path, {"echo": echo})
    server.start()
    held = [raw(tmp_path) for _ in range(3)]
    until = time.monotonic() + 5
    while len(server._clients) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    with pytest.raises((ResourceExhausted, Unavailable)):
        call(tmp_path, "echo", {})
    for client in held:
        client.close()
    server.stop()


def test_a_client_that_gets_no_thread_is_refused_and_the_next_is_answered(state):
    usual = threading.stack_size(1 << 48)  # more than there are addresses, so that the system starts no thread
    try:
        for _ in range(2):
            with pytest.raises((ResourceExhausted, Unavailable)):
                call(state, "echo", {}, timeout=5)
    finally:
        threading.stack_size(usual)
    assert call(state, "echo", {"n": 1}, timeout=5) == {"n": 1}


def test_many_clients_are_answered_at_once(state):
    answers = []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(call(state, "echo", {"n": n})["n"])) for n in range(30)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answers) == list(range(30))


def test_work_goes_on_for_a_client_that_left(state, waits):
    with raw(state) as client:
        client.sendall(b'{"op": "count"}\n')
    assert call(state, "echo", {}) == {}


def test_no_daemon_is_told_with_the_way_out(tmp_path):
    with pytest.raises(NoDaemon, match="memex serve"):
        call(tmp_path, "echo", {})


def test_a_socket_left_by_a_dead_daemon_is_no_daemon_and_is_replaced(tmp_path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / NAME))
    with pytest.raises(NoDaemon):
        call(tmp_path, "echo", {})
    server = ControlServer(tmp_path, {"echo": echo})
    server.start()
    assert call(tmp_path, "echo", {"a": 1}) == {"a": 1}
    server.stop()


def test_a_file_in_place_of_the_socket_is_replaced(tmp_path):
    (tmp_path / NAME).write_text("x")
    server = ControlServer(tmp_path, {"echo": echo})
    server.start()
    assert call(tmp_path, "echo", {"a": 1}) == {"a": 1}
    server.stop()


def test_only_the_owner_can_open_the_socket(state):
    assert (state / NAME).stat().st_mode & 0o777 == 0o600


def test_a_path_that_is_too_long_for_a_socket_works(tmp_path):
    deep = tmp_path / ("ü" * 60) / ("b" * 60)
    deep.mkdir(parents=True)
    assert len(os.fsencode(deep / NAME)) > 108
    server = ControlServer(deep, {"echo": echo})
    server.start()
    assert call(deep, "echo", {"a": 1}) == {"a": 1}
    server.stop()
    assert not list(deep.iterdir())


def test_stop_is_prompt_and_leaves_nothing(tmp_path):
    before = set(threading.enumerate())
    server = ControlServer(tmp_path, {"echo": echo})
    server.start()
    idle = raw(tmp_path)
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 1.5
    assert not list(tmp_path.iterdir())
    idle.close()
    until = time.monotonic() + 2
    while set(threading.enumerate()) - before and time.monotonic() < until:
        time.sleep(0.01)
    assert not set(threading.enumerate()) - before


def test_a_stop_leaves_the_token_of_the_daemon_that_took_the_place(tmp_path):
    server = ControlServer(tmp_path, {"echo": echo})
    server.start()
    (tmp_path / TOKEN).unlink()
    (tmp_path / TOKEN).write_bytes(b"of another")
    server.stop()
    assert (tmp_path / TOKEN).read_bytes() == b"of another"


def test_stop_lets_an_operation_under_way_answer(tmp_path):
    begun, go = threading.Event(), threading.Event()

    def slow(arguments, progress):
        begun.set()
        go.wait(60)
        return "done"

    server = ControlServer(tmp_path, {"slow": slow})
    server.start()
    answers = []
    client = threading.Thread(target=lambda: answers.append(call(tmp_path, "slow", {})))
    client.start()
    assert begun.wait(60)
    threading.Timer(0.2, go.set).start()
    server.stop()
    client.join(60)
    assert answers == ["done"]


def test_an_operation_may_stop_the_server(tmp_path):
    server = ControlServer(tmp_path, {"stop": lambda _, __: server.stop() or "stopping"})
    server.start()
    assert call(tmp_path, "stop", {}) == "stopping"


def test_a_daemon_that_dies_at_work_is_told(tmp_path):
    begun = threading.Event()
    server = ControlServer(tmp_path, {"wait": lambda _, __: begun.set() or time.sleep(3)})
    server.start()
    threading.Thread(target=lambda: begun.wait(60) and server.stop(grace=0)).start()
    with pytest.raises(Unavailable, match="closed the connection"):
        call(tmp_path, "wait", {})


def test_a_daemon_that_is_silent_is_told(state, waits):
    with pytest.raises(Unavailable, match="does not answer"):
        call(state, "wait", {}, timeout=0.2)


def test_an_error_of_any_kind_keeps_its_class():
    for kind in (InvalidArgument, Conflict, NotFound):
        assert isinstance(control_socket.from_dict(kind("x").as_dict()), kind)
