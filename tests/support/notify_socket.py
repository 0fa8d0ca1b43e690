"""Listen on a service manager's socket for the messages of a daemon."""

from __future__ import annotations

import socket
import time

from syncd.daemon.service_watchdog import Supervisor


class Ear:
    """Receives the messages to the service manager."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.supervisor = Supervisor(str(path), 0.2)

    def until(self, wanted, within=60.0):
        """Return all messages up to the first message that contains `wanted`."""
        said, end = [], time.monotonic() + within
        while not said or wanted not in said[-1]:
            assert time.monotonic() < end, said
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            said.append(self.socket.recv(1000).decode())
        return said

    def silent(self, seconds, what):
        """Return whether no message contains `what` for the given time, after all earlier messages are read."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                if what in self.socket.recv(1000).decode():
                    return False
            except TimeoutError:
                return True
        return True
