"""Tell the service manager how the daemon is: sd_notify(3), one datagram to the socket that it names.

Law: where no manager listens nothing is sent, and one that can't be reached hinders nothing."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Supervisor:
    """Where the service manager listens, and within how many seconds it wants a sign of life (0 = it wants none)."""

    address: str
    watchdog_s: float

    @classmethod
    def of(cls, environ: Mapping[str, str], pid: int) -> Supervisor | None:
        """The manager that started this process with a socket to answer to; None when none did."""
        address = environ.get("NOTIFY_SOCKET", "")
        if not address.startswith(("/", "@")):
            return None
        wanted, whose = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(pid))
        return cls(address, int(wanted) / 1e6 if wanted.isdecimal() and whose == str(pid) else 0.0)

    def tell(self, **fields: str | int) -> bool:
        """Send these fields; whether they were taken."""
        text = "\n".join(f"{name}={' '.join(str(value).split())}" for name, value in fields.items())
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(1.0)
                sender.connect(os.fsencode(address))
                sender.sendall(os.fsencode(text))
        except OSError as error:
            log.debug("the service manager could not be told: %s", error.strerror)
            return False
        return True
