"""The server listens on the chosen port, or on a free one if the owner allows any."""

from __future__ import annotations

import contextlib
import socket

import pytest

from index.errors import Unavailable
from mcp_server.server import bind_socket
from syncd.settings.settings import ServerSettings


@pytest.fixture
def taken():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_port_that_was_taken_meanwhile_gives_way_if_any_port_will_do(taken):
    with contextlib.closing(bind_socket(ServerSettings(port=taken), any_port=True)) as listener:
        assert listener.getsockname()[1] not in (0, taken)


def test_a_named_port_does_not_give_way(taken):
    with pytest.raises(Unavailable, match=f"{taken} is taken by another process"):
        bind_socket(ServerSettings(port=taken), any_port=False)


def test_a_wrong_address_does_not_give_way():
    with pytest.raises(Unavailable, match=r"set server\.host"):
        bind_socket(ServerSettings(host="192.0.2.1", port=1024), any_port=True)
