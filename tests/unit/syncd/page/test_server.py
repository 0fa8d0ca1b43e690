"""The listener of the page's server."""

from __future__ import annotations

import socket

from syncd.page.server import _bind


def test_a_connection_names_its_protocol_so_that_asyncio_sends_each_part_of_an_answer_at_once():
    with _bind(0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.proto == socket.IPPROTO_TCP
