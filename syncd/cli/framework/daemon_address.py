"""Find the address of a vault's daemon, and the command by which a client starts this vault's memex."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from urllib.parse import urlsplit

from index.errors import Unavailable
from syncd.cli.terminal import result_text
from syncd.daemon import control_socket
from syncd.daemon.control_socket import DAEMON
from syncd.settings.settings import Settings


def memex_words(chosen: Settings) -> list[str]:
    """How this vault's `memex` is called from anywhere: by its whole path, as clients don't share a shell's."""
    script = Path(sys.executable).with_name("memex")
    words = [str(script) if script.exists() else "memex"]
    if "state" in chosen.origins:
        words += ["--state", str(chosen.state)]
    elif "vault.path" in chosen.origins and chosen.origins["vault.path"] != str(chosen.file):
        words += ["--vault", str(chosen.vault.path)]
    elif chosen.origins.get("vault.path") == str(chosen.file):
        words += ["--config", str(chosen.file)]
    return words


def memex_command(chosen: Settings) -> str:
    """The same, as a line for a shell."""
    return shlex.join(memex_words(chosen))


def running_daemon_url(state: Path) -> str:
    """The address of the daemon of a state folder. Raises NoDaemon when none runs."""
    control_socket.call(state, "status", {}, timeout=10)
    return read_daemon_url(state)


def read_daemon_url(state: Path) -> str:
    """The address that the daemon of a state folder has written down."""
    try:
        return str(json.loads((state / DAEMON).read_text())["url"])
    except (OSError, ValueError, KeyError, TypeError):
        raise Unavailable("the daemon is still starting: try again") from None


def client_url(chosen: Settings) -> str:
    """The address at which clients on this machine reach the vault: the running daemon's, else the one of the settings.

    Raises Unavailable where only a running daemon could know the port."""
    try:
        parts = urlsplit(running_daemon_url(chosen.state))
        host, port = parts.hostname or chosen.server.host, parts.port or chosen.server.port
    except Unavailable:
        host, port = chosen.server.host, chosen.server.port
    if not port:
        raise Unavailable("server.port is 0, so the daemon picks its port when it starts: run `memex serve` first")
    return result_text.base_url(host, port)
