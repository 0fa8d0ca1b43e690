"""Ask the daemon as its client over the control socket: the only way from the page to the vault."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from syncd.daemon.control_socket import call

ANSWER_S: Final = 60.0  # between two signs of life of the daemon


@dataclass(frozen=True, slots=True)
class DaemonClient:
    """Reaches the daemon of one state folder; every call is a connection of its own."""

    state: Path

    def ask(self, operation: str, *, timeout: float = ANSWER_S, **arguments: Any) -> Any:
        """Return the answer of an owner's operation; arguments that are None are left out.

        Raises the MemexError that the daemon answered, NoDaemon if none runs, Unavailable if it is silent or ends."""
        values = {name: value for name, value in arguments.items() if value is not None}
        return call(self.state, operation, values, timeout=timeout)
