"""Define the command `demo`: serve a copy of the demo vault, with the address and the client key of the last demo.

Law, tested: the copy is removed when the demo ends; the copy of a killed demo is removed at the next start."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from index.errors import InvalidArgument
from index.timings import now_ms
from syncd.cli.daemon.ready_message import WORKSPACE, print_address_json, print_connect_help
from syncd.cli.daemon.serve import run, set_log_format
from syncd.cli.framework.commands import (
    Command,
    flags,
    load_settings,
    print_message,
    reaches_stdout,
    set_flag,
    wants_json,
)
from syncd.clients.client_formats import CLIENTS, Connection, http_lines, paste_text
from syncd.clients.daemon_address import memex_words
from syncd.settings.known_vaults import find_vault_around, known_vaults
from syncd.settings.settings import Settings
from syncd.state import process_lock
from syncd.state.folder import state_home, write_private
from syncd.state.vault_claim import find_holder

if TYPE_CHECKING:
    from syncd.app import Ready

# ruff: noqa: PLC0415 - the stores and Git take longer to import than most commands to run
QUERY = "how do we keep the battery boxes cool in summer"
PREFIX = "memex-demo-"
ADDRESS = "demo.json"  # in the folder of the state folders
ENTRY, KEY_NAME = "memex-demo", "demo client"
STARTING_S = 2.0  # a newer folder may belong to a demo that has not locked it yet


@dataclass(frozen=True, slots=True)
class DemoAddress:
    """Hold the port of the demo and the client key, which opens only the demo's workspace and was shown to somebody."""

    port: int
    key: str


@click.command(cls=Command)
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False),
    help="The folder to keep the copy in, outside your vaults. Default: a temporary folder, removed at the end.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="The port to listen on. Default: the port of the last demo, or a free port if it is taken.",
)
def demo(folder: str | None, port: int | None) -> None:
    """Serve a copy of the demo vault, and show how to connect and search.

    Every demo uses the same address and key, so the lines that you pasted keep working. The copy is removed at the end,
    unless --dir names a folder for it. With --json, one line: {"vault", "state", "url", "workspace", "key"}; "key" is null
    once a demo has shown it."""
    if folder:
        refuse_vault(Path(folder).absolute())
    with contextlib.nullcontext(Path(folder).absolute()) if folder else _temporary_folder() as root:
        vault = root / "Demo vault"
        set_flag("vault.path", str(vault))
        set_flag("state", flags().get("state") or str(root / "state"))
        address = read_address(state_home(os.environ) / ADDRESS)
        set_flag("server.port", address.port if address and port is None else port)
        set_log_format()
        if not vault.exists():
            with as_file(files("vault_fixtures") / "demo") as source:
                shutil.copytree(source, vault)
            if shutil.which("git"):
                from syncd.installation.vault_setup import put_under_git

                put_under_git(vault)
        chosen = load_settings()
        key = _install_key(chosen, address)
        announce = partial(_announce, address=address, key=key, is_named=port is not None, as_json=wants_json())
        run(chosen, announce, any_port=port is None)


def refuse_vault(root: Path) -> None:
    """Raise InvalidArgument if `root` is a vault or in one, also through symbolic links: the demo's keys would be among its notes."""
    real = Path(os.path.realpath(root))
    around = (real, *real.parents)
    if find_vault_around(known_vaults(os.environ), root) or any(
        (folder / ".obsidian").is_dir() or find_holder(folder) for folder in around
    ):
        raise InvalidArgument(
            f"{root} is a vault or in one, and the demo would write its keys and its notes into it, so nothing was written; "
            "choose another folder: memex demo --dir DIRECTORY"
        )


def _announce(
    chosen: Settings,
    ready: Ready,
    address: DemoAddress | None,
    key: str,
    *,
    is_named: bool = False,
    as_json: bool = False,
) -> None:
    """Print how to connect to the demo. The demo that shows the key keeps that and its port: later demos do not show the key again.

    A port that stands in for a taken one is not kept if lines to paste already name another; a named one is (`is_named`)."""
    port = urlsplit(ready.url).port or 0
    if address:
        connection = (
            "Lines that you pasted for an earlier demo keep working."
            if address.port == port
            else f"Lines that you pasted for an earlier demo work with this one once they name port {port}."
        )
        shown_key = None
    else:
        shown_key = key
        lines = Connection(ENTRY, ready.url, key, WORKSPACE, tuple(memex_words(chosen)))
        connection = (
            "Lines to paste, with a key that works only for demos. The key is shown only now, and later demos accept it too.\n\n"
            f"Claude Code:\n  {paste_text(CLIENTS['claude-code'], lines, '')}\n\n{http_lines(lines)}"
        )

    def keep() -> None:
        if chosen.server.port and (is_named if address else reaches_stdout()):
            _keep_address(DemoAddress(port, key))

    if as_json:
        print_address_json(chosen, ready, shown_key)
        keep()
    else:
        print_connect_help(chosen, ready, QUERY, connection, shown=keep)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Make a folder for one demo, locked while the process runs and removed at its end; remove the folders of killed demos."""
    _interrupt_on_signals()
    above = Path(tempfile.gettempdir())
    remove_left_folders(above)
    root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=above))
    try:
        with process_lock.ProcessLock.acquire(root):
            yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _interrupt_on_signals() -> None:
    """Let SIGTERM and SIGHUP end the demo like Ctrl-C while it is set up, so that its folder is removed; `run` handles them later."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup(1) ignores SIGHUP
            signal.signal(number, interrupt)


def remove_left_folders(above: Path) -> None:
    """Remove the folders of killed demos; folders of other users and links are left alone."""
    for folder in sorted(above.glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError):  # another demo removed it first
            status = folder.lstat()
            ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if ours and time.time() - status.st_mtime > STARTING_S and process_lock.holder_pid(folder) is None:
                shutil.rmtree(folder)


def _install_key(chosen: Settings, address: DemoAddress | None) -> str:
    """Install the client key of the last demo, or a new one, and return it."""
    from syncd.installation.vault_setup import install_client_key, set_up_vault

    set_up_vault(chosen, now=now_ms())
    return install_client_key(chosen.state, KEY_NAME, WORKSPACE, address.key if address else None, now=now_ms())


def _keep_address(address: DemoAddress) -> None:
    """Write the address file for the next demo. This demo works without it."""
    file = state_home(os.environ) / ADDRESS
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(file, json.dumps(asdict(address)) + "\n")
    except OSError as error:
        print_message(
            f"memex: the next demo will have another address and key, because {file} can't be written: {error.strerror}"
        )


def read_address(file: Path) -> DemoAddress | None:
    """Read the address file of the last demo; None when it is missing, unusable, or could have been written by others."""
    from syncd.workspaces.api_keys import SECRET

    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, encoding="utf-8") as stream:  # noqa: PTH123 - the descriptor is what follows no link
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
                return None
            noted = json.loads(stream.read(4096))
        port, key = noted["port"], noted["key"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if type(port) is not int or not 0 < port < 65_536 or not isinstance(key, str) or not SECRET.fullmatch(key):
        return None
    return DemoAddress(port, key)
