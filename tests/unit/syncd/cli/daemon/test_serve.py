"""A stop by signal: told at once, told once, and given up on when it takes too long."""

from __future__ import annotations

import errno
import io
import signal
import threading

import pytest

from syncd.cli.daemon.serve import ONE_STOP_S, SignalStop


class Clock:
    """A clock that is moved by hand."""

    now = 0.0

    def __call__(self):
        return self.now


def stopping(drain_s=30.0):
    told, clock = [], Clock()
    made = SignalStop(lambda: told.append("begun"), lambda: told.append("gave up"), drain_s=drain_s, clock=clock)
    return made, told, clock


def test_a_signal_is_passed_on_and_its_end_waited_for(capsys):
    made, told, _ = stopping()
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


def test_a_stop_is_passed_on_although_nobody_can_be_told(monkeypatch):
    class Closed(io.StringIO):
        def write(self, _):
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("sys.stderr", Closed())
    made, told, _ = stopping(drain_s=0.01)
    made.handle_signal(signal.SIGHUP, None)
    made.supervise()
    assert (made.wished.is_set(), told) == (True, ["begun", "gave up"])


def test_a_stop_that_takes_too_long_is_given_up():
    made, told, _ = stopping(drain_s=0.01)
    made.handle_signal(signal.SIGINT, None)
    made.supervise()
    assert told == ["begun", "gave up"]


def test_without_a_signal_nothing_is_stopped():
    made, told, _ = stopping(drain_s=0.01)
    made.finish()
    made.supervise()
    assert (told, made.wished.is_set()) == ([], False)


@pytest.mark.parametrize("began", [0.0, 1000.0])
def test_a_second_signal_does_not_wait_and_the_same_one_told_twice_does(began):
    made, _, clock = stopping()
    clock.now = began
    made.handle_signal(signal.SIGTERM, None)
    clock.now = began + 0.9 * ONE_STOP_S
    made.handle_signal(signal.SIGTERM, None)
    clock.now = began + ONE_STOP_S
    with pytest.raises(KeyboardInterrupt):
        made.handle_signal(signal.SIGINT, None)
