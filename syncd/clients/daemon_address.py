"""Find the address of a vault's daemon, and the command that starts `memex` for this vault."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from index.errors import InvalidArgument, Unavailable
from syncd.daemon import control_socket
from syncd.daemon.control_socket import DAEMON
from syncd.settings.known_vaults import CHOICE, default_settings_file
from syncd.settings.server_addresses import local_url
from syncd.settings.settings import Settings, load

# The options that name a vault, and the names of their flags for `load`.
OPTIONS: Final = {"--vault": "vault.path", "--state": "state", "--config": "config"}


def memex_words(chosen: Settings) -> list[str]:
    """Return the command that starts `memex` for this vault: with its full path, because clients may have another PATH."""
    words = [_find_script()]
    if "state" in chosen.origins:
        words += ["--state", str(chosen.state)]
    elif "vault.path" in chosen.origins and chosen.origins["vault.path"] != str(chosen.file):
        words += ["--vault", str(chosen.vault.path)]
    elif chosen.origins.get("vault.path") == str(chosen.file):
        words += ["--config", str(chosen.file)]
    return words


def _find_script() -> str:
    script = Path(sys.executable).with_name("memex")
    return str(script) if script.exists() else "memex"


def memex_program() -> str:
    """Return the word that starts `memex` in the shell of this command: with its full path only if PATH has none or another one."""
    program, on_path = _find_script(), shutil.which("memex")
    return "memex" if on_path and os.path.realpath(on_path) == os.path.realpath(program) else program


def memex_command(chosen: Settings) -> str:
    """Return the command of `memex_words` as a line for any shell of this user: without the settings file that it uses by default."""
    options = memex_words(chosen)[1:]
    usual = default_settings_file(os.environ)
    if options == ["--config", str(usual)] and not usual.with_name(CHOICE).exists():
        options = []
    return shlex.join([memex_program(), *options])


def init_command(chosen: Settings) -> str:
    """Return the command that sets up this vault with the same state folder."""
    options = ["--state", str(chosen.state)] if "state" in chosen.origins else []
    if chosen.file and chosen.file != default_settings_file(os.environ):
        options += ["--config", str(chosen.file)]
    return shlex.join(["memex", "init", str(chosen.vault.path), *options])


def find_state(options: Sequence[str]) -> Path | None:
    """Return the state folder that these options of `memex_words` lead to; None for other options, or if they lead nowhere."""
    flags = {OPTIONS.get(option, ""): value for option, value in zip(options[::2], options[1::2], strict=False)}
    if not flags or "" in flags or len(options) % 2:
        return None
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MEMEX_")}
    try:
        return load(flags, environ).state
    except (InvalidArgument, ValueError, OSError):  # no file can have the path, or this system can't read it
        return None


def running_daemon_url(state: Path) -> str:
    """Return the address of the running daemon of a state folder. Raises NoDaemon when none runs."""
    control_socket.call(state, "status", {}, timeout=10)
    return read_daemon_url(state)


def read_daemon_url(state: Path) -> str:
    """Read the address file of a state folder's daemon."""
    try:
        return str(json.loads((state / DAEMON).read_text())["url"])
    except (OSError, ValueError, KeyError, TypeError):
        raise Unavailable("the daemon is still starting: try again") from None


def client_url(chosen: Settings) -> str:
    """Return the address for clients on this machine: that of the running daemon, else that of the settings.

    Raises Unavailable if the settings leave the port to the daemon and no daemon runs."""
    try:
        parts = urlsplit(running_daemon_url(chosen.state))
        host, port = parts.hostname or chosen.server.host, parts.port or chosen.server.port
    except Unavailable:
        host, port = chosen.server.host, chosen.server.port
    if not port:
        raise Unavailable("server.port is 0, so the daemon picks its port when it starts: run `memex serve` first")
    return local_url(host, port)
