"""Define the commands that serve a vault and stop its daemon: `serve`, `stop` and `mcp`."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from index.errors import Conflict, InvalidArgument, MemexError, NotFound, Unavailable
from syncd.cli.daemon.ready_message import print_connect_help, print_summary
from syncd.cli.framework.commands import (
    STARTING_S,
    Command,
    load_settings,
    now,
    print_answer,
    print_message,
    set_flag,
)
from syncd.cli.framework.completion import workspaces
from syncd.cli.framework.daemon_address import running_daemon_url
from syncd.daemon import control_socket
from syncd.daemon.service_watchdog import ServiceWatchdog, Supervisor
from syncd.settings.settings import TOOLSETS, Settings
from syncd.state import process_lock
from syncd.telemetry import log

if TYPE_CHECKING:
    from syncd.app import App, Ready

# ruff: noqa: PLC0415 - the stores, the server and Git take longer to import than the daemon to answer
DRAIN_S = 35.0  # the unit gives a stop 45 s
ONE_STOP_S = 0.5  # timeout(1) and supervisors signal the process and its group: one wish, told twice
OWNERS_KEY = (
    "memex: this client uses your own key, so its writes count as yours; for a key of its own: memex connect other"
)
STOP_S = 45.0  # how long `memex stop` waits


@click.command(cls=Command)
@click.option("--host", help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port to listen on; 0 picks a free one.")
@click.option("--connect", is_flag=True, help="When ready, print how to connect clients, and one live search.")
@click.option("--any-port", is_flag=True, help="Pick a free port if the usual one is taken and no setting names one.")
@click.option("--force", is_flag=True, help="Serve the vault even if a daemon with another state folder serves it.")
def serve(host: str | None, port: int | None, connect: bool, any_port: bool, force: bool) -> None:
    """Run the daemon: keep the index true to the vault, and let agents capture and search."""
    set_flag("server.host", host)
    set_flag("server.port", port)
    chosen = load_settings()
    if any_port and "server.port" not in chosen.origins and not is_port_free(chosen.server.host, chosen.server.port):
        set_flag("server.port", pick_free_port(chosen.server.host))
        taken, chosen = chosen.server.port, load_settings()
        print_message(f"memex: port {taken} is taken, so this daemon takes {chosen.server.port}")
    run(chosen, print_connect_help if connect else print_summary, alone=not force, welcome=connect or None)


@click.command(cls=Command)
@click.option(
    "--workspace",
    "-w",
    shell_complete=workspaces,
    help="The workspace the client works in; else the key's only one, or default.",
)
@click.option(
    "--key-file",
    type=click.Path(dir_okay=False),
    help="The file with the client's key; else MEMEX_KEY, else your own key.",
)
@click.option("--toolset", type=click.Choice(TOOLSETS), help="Only these tools; core: the few that most sessions need.")
def mcp(workspace: str | None, key_file: str | None, toolset: str | None) -> None:
    """Run an MCP server over stdio that forwards to the daemon, for clients that launch a command.

    Give each client its own key, so that Git and the audit log name the client: `memex connect other` prints this command
    with a key. Without a key, the client acts in your name."""
    chosen = load_settings()
    at = running_daemon_url(chosen.state)
    key = "" if key_file else os.environ.get("MEMEX_KEY", "").strip()
    if not key:
        file = Path(key_file) if key_file else chosen.state / "key"
        try:
            key = file.read_text("utf-8", "replace").strip()
        except OSError as error:
            raise NotFound(f"the key file {file} can't be read: {error.strerror}") from error
        if not key:
            raise InvalidArgument(f"the key file {file} is empty")
        if not key_file:
            print_message(OWNERS_KEY)
    from syncd.stdio import bridge

    bridge(at, key, workspace or os.environ.get("MEMEX_WORKSPACE") or None, toolset)


@click.command(cls=Command)
@click.option(
    "--timeout",
    type=click.FloatRange(0),
    default=STOP_S,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for its end.",
)
def stop(timeout: float) -> None:
    """Stop the daemon of the vault, and come back when it has ended.

    The daemon finishes what is under way. A daemon that does not answer gets SIGTERM. Where none runs there is nothing to
    do, and the exit code is 0, as of `systemctl stop`; it is 7 when the daemon has not ended in time. One that systemd or
    launchd runs starts again at the next login. With --json: {"stopped", "pid", "by"}, where "by" is request or signal."""
    chosen = load_settings()
    state, vault, end = chosen.state, chosen.vault.path, time.monotonic() + timeout
    while (pid := process_lock.holder_pid(state)) == 0 and time.monotonic() < end:
        time.sleep(0.1)  # it has not said yet which process it is
    if pid is None:
        print_answer({"stopped": False, "pid": None, "by": None}, lambda: f"no daemon runs for {vault}")
        return
    process = _open_process(pid, state)
    by = _ask_to_stop(state, pid)
    while process_lock.holder_pid(state) == pid or not _is_over(process):
        if time.monotonic() > end:
            raise Unavailable(
                f"process {pid} has not ended within {timeout:g} s: wait with `memex stop --timeout 120`, or end it at once "
                f"with `kill -9 {pid}`, which loses nothing that was acknowledged"
            )
        time.sleep(0.1)
    how = "as it was asked to" if by == "request" else "by SIGTERM, as it did not answer"
    print_answer({"stopped": True, "pid": pid, "by": by}, lambda: f"process {pid} has ended {how}; it served {vault}")


def _ask_to_stop(state: Path, pid: int) -> str:
    """Let the process that holds the state folder stop: by its control socket, else by a signal to that very process."""
    try:
        answer = control_socket.call(state, "stop", {}, timeout=10)
    except MemexError:  # it starts, hangs, or is of a version that does not know this
        if not process_lock.holds_lock(pid, state):
            if process_lock.holder_pid(state) != pid:
                return "signal"  # it ended meanwhile
            raise Unavailable(
                f"process {pid or '?'} works with {state}, does not answer and can't be seen from here: stop it where it runs"
            ) from None
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        return "signal"
    if answer["service"]:
        print_message("memex: a service manager runs this daemon, and starts it again at the next login")
        print_message("memex: `memex service uninstall` ends that; notes, index and keys stay")
    return "request"


def _open_process(pid: int, state: Path) -> int | None:
    """A descriptor that shows the end of the process that holds the state folder, where the system has such."""
    if pid and hasattr(os, "pidfd_open") and process_lock.holds_lock(pid, state):
        with contextlib.suppress(OSError):  # it is gone
            return os.pidfd_open(pid)
    return None


def _is_over(process: int | None) -> bool:
    return process is None or bool(select.select([process], [], [], 0)[0])


def _open_when_free(opened: Callable[[], App], state: Path, stop: threading.Event) -> App:
    """The App, once nobody else has the state folder: a command that works without a daemon is waited for, a daemon is not."""
    end = time.monotonic() + STARTING_S
    while True:
        try:
            return opened()
        except Conflict as error:
            if "vault" in error.details or time.monotonic() > end or stop.wait(0.2) or _is_served(state):
                raise


def _is_served(state: Path) -> bool:
    try:
        control_socket.call(state, "status", {}, timeout=5)
    except Unavailable:
        return False
    return True


class SignalStop:
    """A stop by signal: the wish for it, and the limit of the time that it may take.

    The handler of the signal only leaves the wish; `supervise`, on a thread of its own, does what may wait."""

    def __init__(
        self,
        begun: Callable[[], object],
        give_up: Callable[[], object],
        *,
        drain_s: float = DRAIN_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.wished = threading.Event()
        self._begun, self._give_up, self._drain_s, self._clock = begun, give_up, drain_s, clock
        self._over = threading.Event()
        self._wishes: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._since: float | None = None

    def handle_signal(self, number: int, _: FrameType | None) -> None:
        """Handle a signal. A second one does not wait; the same wish told twice at once is one."""
        # Whatever the main thread was in the midst of, it may hold a lock: only a put on this kind of queue never waits.
        if self._since is not None:
            if self._clock() - self._since < ONE_STOP_S:
                return
            raise KeyboardInterrupt
        self._since = self._clock()
        self._wishes.put(number)

    def supervise(self) -> None:
        """Wait for the wish and pass it on, then wait for the end of the stop, and give up on one that takes too long."""
        if not (number := self._wishes.get()):
            return
        self.wished.set()  # first of all: what is said below goes to a terminal that may be closed
        self._begun()
        print_message(f"memex: {signal.Signals(number).name}, stopping")
        if not self._over.wait(self._drain_s):
            self._give_up()

    def finish(self) -> None:
        """Everything is put away: nobody waits any more, whether a stop was wished or not."""
        self._over.set()
        self._wishes.put(0)


def run(
    chosen: Settings,
    on_ready: Callable[[Settings, Ready], None],
    *,
    alone: bool = True,
    welcome: bool | None = None,
) -> None:
    """Serve until a signal; a second signal does not wait. `alone`: refuse a vault that another daemon serves.

    `welcome`: as `set_up_vault` has it."""
    from syncd.app import App, import_server_early
    from syncd.installation.vault_setup import set_up_vault

    log.install(chosen.log)  # before the server is imported: its SDK would install a handler of its own
    if sys.__stderr__ is not None:
        faulthandler.enable(sys.__stderr__)  # a manager that misses signs of life ends us by SIGABRT: say where we hung
    watchdog = ServiceWatchdog(Supervisor.from_environment(os.environ, os.getpid()))
    watchdog.start()
    import_server_early()
    signal_stop = SignalStop(watchdog.mark_stopping, _exit_at_once)
    threading.Thread(target=signal_stop.supervise, name="leaving", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup(1) wants it to go on
            signal.signal(number, signal_stop.handle_signal)
    try:
        set_up_vault(chosen, now=now(), welcome=welcome)
        print_message(f"memex: opening {chosen.vault.path}")
        with _open_when_free(lambda: App.open(chosen, alone=alone), chosen.state, signal_stop.wished) as app:

            def announce(ready: Ready) -> None:  # on a thread: the server must go on to answer what is asked here
                threading.Thread(target=on_ready, args=(chosen, ready), name="talk", daemon=True).start()

            app.serve(announce, signal_stop.wished, watchdog)
    finally:
        signal_stop.finish()
        watchdog.stop()


def _exit_at_once() -> None:
    """End a stop that takes too long, before the service manager kills: what was acknowledged is on disk by then."""
    at_work = sorted({thread.name for thread in threading.enumerate() if thread is not threading.current_thread()})
    print_message(
        f"memex: the stop took {DRAIN_S:g} s, so this is left behind and made up at the next start: {', '.join(at_work)}"
    )
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(0)


def put_under_git(vault: Path) -> None:
    """Put a folder that is not under Git under it, with all that is in it."""
    from syncd.git.repository import Repository

    repo = Repository(vault)
    try:
        if repo.local_state() == "no-git":
            raise Unavailable("git is not installed: install it, or leave --git out", retryable=False)
        if repo.local_state() == "no-repo":
            repo.init()
            repo.commit_all("Begin")
    finally:
        repo.close()


def is_port_free(host: str, port: int) -> bool:
    """Whether nobody listens on this port."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def pick_free_port(host: str) -> int:
    """A port on which nobody listens."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
