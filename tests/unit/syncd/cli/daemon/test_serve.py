"""A stop by signal: told at once, told once, and given up on when it takes too long."""

from __future__ import annotations

import errno
import io
import signal
import threading
from types import SimpleNamespace

import pytest

from syncd.cli.daemon import serve
from syncd.cli.daemon.serve import ONE_STOP_S, SignalStop


def stopping():
    told = []
    return SignalStop(lambda: told.append("begun"), lambda: told.append("gave up")), told


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(serve, "DRAIN_S", 0.01)


def test_a_signal_is_passed_on_and_its_end_waited_for(capsys):
    made, told = stopping()
    thread = threading.Thread(target=made.supervise)
    thread.start()
    assert not made.wished.wait(0.05)
    made.handle_signal(signal.SIGTERM, None)
    assert made.wished.wait(10)
    assert thread.is_alive()
    made.finish()
    thread.join(10)
    assert (thread.is_alive(), told) == (False, ["begun"])
    assert "SIGTERM, stopping" in capsys.readouterr().err


@pytest.mark.usefixtures("hurried")
def test_a_stop_is_passed_on_although_nobody_can_be_told(monkeypatch):
    class Closed(io.StringIO):
        def write(self, _):
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("sys.stderr", Closed())
    made, told = stopping()
    made.handle_signal(signal.SIGHUP, None)
    made.supervise()
    assert (made.wished.is_set(), told) == (True, ["begun", "gave up"])


@pytest.mark.usefixtures("hurried")
def test_a_stop_that_takes_too_long_is_given_up():
    made, told = stopping()
    made.handle_signal(signal.SIGINT, None)
    made.supervise()
    assert told == ["begun", "gave up"]


@pytest.mark.usefixtures("hurried")
def test_without_a_signal_nothing_is_stopped():
    made, told = stopping()
    made.finish()
    made.supervise()
    assert (told, made.wished.is_set()) == ([], False)


@pytest.mark.parametrize("began", [0.0, 1000.0])
def test_a_second_signal_does_not_wait_and_the_same_one_told_twice_does(began, monkeypatch):
    made, _ = stopping()
    times = iter((began, began + 0.9 * ONE_STOP_S, began + ONE_STOP_S))
    monkeypatch.setattr(serve, "time", SimpleNamespace(monotonic=lambda: next(times)))
    made.handle_signal(signal.SIGTERM, None)
    made.handle_signal(signal.SIGTERM, None)
    with pytest.raises(KeyboardInterrupt):
        made.handle_signal(signal.SIGINT, None)
