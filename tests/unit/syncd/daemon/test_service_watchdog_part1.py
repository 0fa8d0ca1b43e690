"""What a service manager is told, on real sockets."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from syncd.daemon.service_watchdog import Supervisor


@pytest.fixture
def heard(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "n ü"))
        ear.settimeout(5)
        yield ear


def test_a_field_is_a_line_whatever_is_in_it(heard):
    told = Supervisor(heard.getsockname(), 0.0)
    assert told.tell(READY=1, STATUS="ready:\n5 notes\x0bWATCHDOG=1 ü")
    assert heard.recv(1000).decode() == "READY=1\nSTATUS=ready: 5 notes WATCHDOG=1 ü"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has sockets without a file")
def test_a_socket_without_a_file_is_reached():
    name = f"memex-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind("\0" + name)
        ear.settimeout(5)
        assert Supervisor(f"@{name}", 0.0).tell(WATCHDOG=1)
        assert ear.recv(1000) == b"WATCHDOG=1"


def test_one_that_is_gone_hinders_nothing(tmp_path):
    assert not Supervisor(str(tmp_path / "nobody"), 0.0).tell(READY=1)
    assert not Supervisor("/" + "long" * 50, 0.0).tell(READY=1)


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
    found = Supervisor.of(environ, 7)
    assert (found and found.watchdog_s) == watchdog
