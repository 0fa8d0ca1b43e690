"""The daemon's pulse, felt on a real event loop and heard on a real socket."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import sys
import threading
from dataclasses import replace

import pytest

from syncd.daemon.service_watchdog import ServiceWatchdog, Supervisor, VitalSigns, find_stuck_part
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.notify_socket import Ear
from tests.support.world import World, until


class Patient:
    """A daemon's signs, set by hand, and the loop they are felt on."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.readable, self.watched, self.still_s, self.doing, self.busy = True, True, 0.0, "ready: 5 notes", False
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    @property
    def vitals(self):
        return VitalSigns(
            self.loop,
            readable=lambda: self.readable,
            watched=lambda: self.watched,
            still_s=lambda: self.still_s,
            doing=lambda: self.doing,
            busy=lambda: self.busy,
        )

    def end(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(60)
        self.loop.close()


@pytest.fixture
def patient():
    one = Patient()
    yield one
    one.end()


@pytest.fixture
def ear(tmp_path):
    one = Ear(tmp_path / "n")
    yield one
    one.socket.close()


@pytest.fixture
def pulse(ear):
    one = ServiceWatchdog(ear.supervisor)
    one.start()
    yield one
    one.stop()


@pytest.mark.slow
def test_a_start_asks_for_patience_and_ends_when_the_vault_can_be_read(ear, pulse, patient):
    assert "EXTEND_TIMEOUT_USEC=30000000" in ear.until("opening the index")[0]
    patient.readable = False
    pulse.mark_serving(patient.vitals)
    assert not any("READY" in text for text in ear.until("waiting for the vault"))
    patient.readable = True
    assert ear.until("READY=1")[-1] == "READY=1\nSTATUS=ready: 5 notes"
    ear.until("WATCHDOG=1")
    pulse.mark_stopping()
    ear.until("STOPPING=1")
    assert ear.silent(1.0, "WATCHDOG"), "one that stops gives no sign of life"


def test_what_it_does_is_told_when_it_changes(ear, pulse, patient):
    pulse.mark_serving(patient.vitals)
    ear.until("READY=1")
    patient.doing = "indexing 1,200/5,000"
    ear.until("STATUS=indexing 1,200/5,000")
    assert ear.silent(1.0, "STATUS")


def test_a_state_that_can_not_be_told_takes_no_sign_of_life_away(ear, pulse, patient, caplog):
    pulse.mark_serving(patient.vitals)
    ear.until("READY=1")

    def broken():
        raise OSError("the catalog is gone")

    pulse.mark_serving(replace(patient.vitals, doing=broken))
    for _ in range(3):
        ear.until("WATCHDOG=1")
    assert "could not report to the service manager" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sign", "value", "well", "said"),
    [
        ("watched", False, True, "the watcher's supervisor has died"),
        ("still_s", 1000.0, 0.0, "no progress for 1000 s"),
        ("still_s", math.inf, 0.0, "no progress for inf s"),
    ],
)
def test_one_that_is_stuck_gives_no_sign_of_life_until_it_works_again(ear, pulse, patient, sign, value, well, said):
    pulse.mark_serving(patient.vitals)
    ear.until("WATCHDOG=1")
    setattr(patient, sign, value)
    ear.until(said)
    assert ear.silent(1.0, "WATCHDOG")
    setattr(patient, sign, well)
    ear.until("WATCHDOG=1")


def test_a_loop_that_does_not_answer_is_stuck(patient):
    assert find_stuck_part(patient.vitals) == ""
    go = threading.Event()
    patient.loop.call_soon_threadsafe(go.wait, 30)
    assert "event loop has not answered" in find_stuck_part(patient.vitals, lag_s=0.2)
    go.set()
    assert find_stuck_part(patient.vitals) == ""


def test_a_loop_that_has_ended_is_stuck():
    patient = Patient()
    patient.end()
    assert find_stuck_part(patient.vitals) == "the event loop has ended"


class Holding(FakeEncoder):
    """A model that takes until it is let go."""

    def __init__(self):
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()
        self.go.set()

    def encode(self, texts, *, kind, urgent):
        self.begun.set()
        assert self.go.wait(60)
        return super().encode(texts, kind=kind, urgent=urgent)


def test_a_pass_is_seen_to_move_and_not_to_move(tmp_path):
    encoder = Holding()
    world = World(tmp_path, embedder=fake_embedder(encoder))
    try:
        for number in range(60):
            world.write(f"{number}.md", f"note {number}\n")
        sync = world.app.opened.sync
        encoder.begun.clear()
        encoder.go.clear()
        assert (sync.stalled_s, sync.progress) == (0.0, None)
        thread = threading.Thread(target=world.run)
        thread.start()
        assert encoder.begun.wait(30)
        until(lambda: sync.stalled_s > 0.2)
        encoder.go.set()
        thread.join(60)
        assert (sync.stalled_s, sync.progress) == (0.0, None)
    finally:
        encoder.go.set()
        world.close()


def test_a_pipe_whose_thread_has_died_never_moves_again(tmp_path):
    world = World(tmp_path)
    try:
        with world.serving():
            assert world.app.opened.sync.stalled_s < 60
            assert world.app.watch.is_supervised
            world.app.opened.sync._thread = threading.Thread()  # one that does not run
            assert world.app.opened.sync.stalled_s == math.inf
            world.app.opened.sync._thread = None
            world.app.watch.stop()
            assert not world.app.watch.is_supervised
    finally:
        world.app.opened.sync.interrupt()
        world.close()


def test_without_a_manager_nothing_runs():
    before = threading.active_count()
    pulse = ServiceWatchdog(None)
    pulse.start()
    assert threading.active_count() == before
    pulse.mark_stopping()
    pulse.stop()


@pytest.fixture
def heard(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "n ü"))
        ear.settimeout(5)
        yield ear


def test_a_field_is_a_line_whatever_is_in_it(heard):
    told = Supervisor(heard.getsockname(), 0.0)
    assert told.send(READY=1, STATUS="ready:\n5 notes\x0bWATCHDOG=1 ü")
    assert heard.recv(1000).decode() == "READY=1\nSTATUS=ready: 5 notes WATCHDOG=1 ü"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has sockets without a file")
def test_a_socket_without_a_file_is_reached():
    name = f"memex-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind("\0" + name)
        ear.settimeout(5)
        assert Supervisor(f"@{name}", 0.0).send(WATCHDOG=1)
        assert ear.recv(1000) == b"WATCHDOG=1"


def test_one_that_is_gone_hinders_nothing(tmp_path):
    assert not Supervisor(str(tmp_path / "nobody"), 0.0).send(READY=1)
    assert not Supervisor("/" + "long" * 50, 0.0).send(READY=1)


@pytest.mark.parametrize(
    ("environ", "watchdog"),
    [
        pytest.param({}, None, id="nobody listens"),
        pytest.param({"NOTIFY_SOCKET": "vsock:2:1234"}, None, id="a kind that is not ours"),
        pytest.param({"NOTIFY_SOCKET": "/run/n"}, 0.0, id="no sign of life wanted"),
        pytest.param({"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "60000000"}, 60.0, id="one a minute"),
        pytest.param({"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "7"}, 1e-6, id="of this process"),
        pytest.param({"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "8"}, 0.0, id="of another process"),
        pytest.param({"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "soon"}, 0.0, id="no number"),
    ],
)
def test_who_listens_is_read_from_the_environment(environ, watchdog):
    found = Supervisor.from_environment(environ, 7)
    assert (found and found.watchdog_s) == watchdog
