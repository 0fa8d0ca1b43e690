"""Define the commands that serve a vault and stop its daemon: `serve`, `stop` and `mcp`."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from index.errors import Conflict, InvalidArgument, MemexError, NotFound, Unavailable
from index.process_memory import collect_as_usual
from index.timings import now_ms
from syncd.cli.daemon.ready_message import print_address_json, print_connect_help, print_summary
from syncd.cli.framework.commands import (
    STARTING_S,
    Command,
    flags,
    flush_output_in_time,
    load_settings,
    print_answer,
    print_message,
    refuse_served,
    require_set_up,
    set_flag,
    wants_json,
)
from syncd.cli.framework.completion import workspaces
from syncd.clients.daemon_address import running_daemon_url
from syncd.daemon import control_socket
from syncd.daemon.service_watchdog import ServiceWatchdog, Supervisor
from syncd.settings.settings import TOOLSETS, GivenValue, Settings
from syncd.state import process_lock
from syncd.state.folder import read_vault_path
from syncd.telemetry import log

if TYPE_CHECKING:
    from syncd.app import App, Ready

# ruff: noqa: PLC0415 - the stores, the server and Git take longer to import than the daemon to answer
DRAIN_S = 35.0  # the systemd unit allows 45 s for a stop
ONE_STOP_S = 0.5  # timeout(1) and supervisors signal the process and its group: one request, delivered twice
OWNERS_KEY = "memex: this client uses your own key, so its writes count as yours; to give the client its own key: memex connect other"
STOP_S = 45.0  # how long `memex stop` waits


@click.command(cls=Command)
@click.option("--host", help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port to listen on; 0 picks a free one.")
@click.option("--connect", is_flag=True, help="When ready, print how to connect clients, and one live search.")
@click.option("--any-port", is_flag=True, help="Pick a free port if the usual one is taken and no setting names one.")
@click.option(
    "--force", is_flag=True, help="Serve the vault even if a daemon with another state folder already serves it."
)
def serve(host: str | None, port: int | None, connect: bool, any_port: bool, force: bool) -> None:
    """Run the daemon: keep the index up to date with the vault, and let agents capture and search.

    With --json, each line of the log on stderr is JSON, as with log.format = "json", and --connect prints one line of JSON on
    stdout: {"vault", "state", "url", "workspace", "key"}, where "key" is null."""
    set_flag("server.host", host)
    set_flag("server.port", port)
    set_log_format()
    chosen = load_settings()
    _refuse_new_vault(chosen)
    any_port = any_port and "server.port" not in chosen.origins
    on_ready = print_summary if not connect else print_address_json if wants_json() else print_connect_help
    run(chosen, on_ready, alone=not force, welcome=connect or None, any_port=any_port)


@click.command(cls=Command)
@click.option(
    "--workspace",
    "-w",
    shell_complete=workspaces,
    help="The workspace that the client uses. Default: the key's only workspace, else the workspace default; "
    "the tools of the graph have no default, except in the toolset core.",
)
@click.option(
    "--key-file",
    type=click.Path(dir_okay=False),
    help="A file that contains the client's key. Default: MEMEX_KEY, else your own key.",
)
@click.option(
    "--toolset", type=click.Choice(TOOLSETS), help="Offer only these tools; core has the few that most sessions need."
)
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

    collect_as_usual()  # it may run for days
    bridge(at, key, workspace or os.environ.get("MEMEX_WORKSPACE") or None, toolset)


@click.command(cls=Command)
@click.option(
    "--timeout",
    type=click.FloatRange(0),
    default=STOP_S,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until the daemon has ended.",
)
def stop(timeout: float) -> None:
    """Stop the daemon of the vault and its page, and wait until both have ended.

    The daemon finishes the work in progress. A daemon that does not answer gets SIGTERM. The exit code is 0 if no daemon
    runs, as with `systemctl stop`, and 7 if the daemon has not ended in time. A daemon that systemd or launchd runs starts
    again at the next login. With --json: {"stopped", "pid", "by", "page"}: "by" is request or signal, "page" the process of the page."""
    chosen = load_settings()
    state, vault, end = chosen.state, chosen.vault.path, time.monotonic() + timeout
    while (pid := process_lock.holder_pid(state)) == 0 and time.monotonic() < end:
        time.sleep(0.1)  # it has not written its process id yet
    if pid is None:
        _refuse_unknown_vault(chosen)
        page = _stop_page(state)
        text = f"no daemon runs for {vault}{_format_page(page)}"
        print_answer({"stopped": False, "pid": None, "by": None, "page": page}, lambda: text)
        return
    process = _open_process(pid, state)
    by = _ask_to_stop(state, pid)
    while process_lock.holder_pid(state) == pid or not _is_over(process):
        if time.monotonic() > end:
            raise Unavailable(
                f"process {pid} did not end within {timeout:g} s: wait longer with `memex stop --timeout 120`, or end it with "
                f"`kill -9 {pid}`; acknowledged writes are safe"
            )
        time.sleep(0.1)
    how = "on request" if by == "request" else "after SIGTERM, because it did not answer"
    page = _stop_page(state)
    text = f"process {pid} ended {how}; it served {vault}{_format_page(page)}"
    print_answer({"stopped": True, "pid": pid, "by": by, "page": page}, lambda: text)


def _stop_page(state: Path) -> int | None:
    """Stop the page of this state folder, and return its process id; None if none runs, or if it has not ended in time."""
    folder, end = state / "page", time.monotonic() + 10
    pid = process_lock.holder_pid(folder)
    process = _open_process(pid or 0, folder)
    try:
        control_socket.call(folder, "stop", {}, timeout=10)
    except MemexError:
        return None
    while pid and (process_lock.holder_pid(folder) == pid or not _is_over(process)):
        if time.monotonic() > end:
            print_message(f"memex: the page (process {pid}) has not ended yet; to end it: kill {pid}")
            return None
        time.sleep(0.05)
    return pid


def _format_page(pid: int | None) -> str:
    return f"; the page ended too (process {pid})" if pid else ""


def set_log_format() -> None:
    """Let --json choose the format of the log too."""
    set_flag("log.format", GivenValue("json", "--json", True, Path.cwd()) if wants_json() else None)


def _refuse_new_vault(chosen: Settings) -> None:
    """Raise NotFound for a folder that nobody has set up, and for which no state folder is named: commands would not know it."""
    from syncd.installation.vault_setup import is_registered, refuse_home

    if chosen.vault.path.is_dir() and not is_registered(chosen, os.environ):
        refuse_home(chosen.vault.path)
        require_set_up(chosen)


def _refuse_unknown_vault(chosen: Settings) -> None:
    """Raise NotFound if an option names a vault or state folder that was never set up: another daemon may be meant.

    Raises Conflict if a daemon serves the vault with a state folder that nobody named."""
    named = flags()
    if not named.keys() & {"state", "vault.path"} or read_vault_path(chosen.state) is not None:
        return
    if "state" not in named:
        refuse_served(chosen)
    unknown = chosen.state if "state" in named else chosen.vault.path
    what = "the state folder of a vault" if "state" in named else "a vault that is set up"
    raise NotFound(f"{unknown} is not {what}, so nothing was stopped; to list the vaults: memex vaults")


def _ask_to_stop(state: Path, pid: int) -> str:
    """Ask the process that holds the state folder to stop, over its control socket; signal it if it does not answer."""
    try:
        answer = control_socket.call(state, "stop", {}, timeout=10)
    except MemexError:  # it is starting, hangs, or is of a version without this operation
        if not process_lock.holds_lock(pid, state):
            if process_lock.holder_pid(state) != pid:
                return "signal"  # it ended meanwhile
            raise Unavailable(
                f"process {pid or '?'} uses {state} but does not answer, and is not visible from here: stop it on the machine or in the container where it runs"
            ) from None
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        return "signal"
    if answer["service"]:
        print_message("memex: a service manager runs this daemon and starts it again at the next login")
        print_message("memex: to remove the service: memex service uninstall (notes, index and keys stay)")
    return "request"


def _open_process(pid: int, state: Path) -> int | None:
    """Open a pidfd that reports the end of the process that holds the state folder, if the system has pidfds."""
    if pid and hasattr(os, "pidfd_open") and process_lock.holds_lock(pid, state):
        with contextlib.suppress(OSError):  # it is gone
            return os.pidfd_open(pid)
    return None


def _is_over(process: int | None) -> bool:
    return process is None or bool(select.select([process], [], [], 0)[0])


def _open_when_free(opened: Callable[[], App], state: Path, stop: threading.Event) -> App:
    """Open the App once the state folder is free: wait for a command that uses it, but not for a running daemon."""
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
    """Handle a stop by signal: the request, and the time limit for the stop.

    The signal handler only records the request; `supervise`, on its own thread, does everything that may block."""

    def __init__(self, begun: Callable[[], object], give_up: Callable[[], object]) -> None:
        self.wished = threading.Event()
        self._begun, self._give_up = begun, give_up
        self._over = threading.Event()
        self._wishes: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._since: float | None = None

    def handle_signal(self, number: int, _: FrameType | None) -> None:
        """Handle a signal. A second signal interrupts at once; two signals within half a second count as one."""
        # The interrupted main thread may hold a lock, and a put on a SimpleQueue is the only call here that never waits.
        if self._since is not None:
            if time.monotonic() - self._since < ONE_STOP_S:
                return
            raise KeyboardInterrupt
        self._since = time.monotonic()
        self._wishes.put(number)

    def supervise(self) -> None:
        """Wait for the stop request and announce it, then wait for the end of the stop; give up when it takes too long."""
        if not (number := self._wishes.get()):
            return
        self.wished.set()  # first, because the message below may go to a terminal that is closed
        self._begun()
        print_message(f"memex: {signal.Signals(number).name}, stopping")
        if not self._over.wait(DRAIN_S):
            self._give_up()

    def finish(self) -> None:
        """End `supervise`, whether a stop was requested or not: everything is closed."""
        self._over.set()
        self._wishes.put(0)


def run(
    chosen: Settings,
    on_ready: Callable[[Settings, Ready], None],
    *,
    alone: bool = True,
    welcome: bool | None = None,
    any_port: bool = False,
) -> None:
    """Serve until a signal arrives; a second signal ends the process at once. `alone`: refuse a vault that another daemon serves.

    `welcome`: passed to `set_up_vault`. `any_port`: use a free port if the chosen one is taken, and report it."""
    from syncd.app import App, import_server_early
    from syncd.installation.vault_setup import set_up_vault

    log.install(chosen.log)  # before the server is imported: its SDK would install a handler of its own
    if sys.__stderr__ is not None:
        # A manager that misses the watchdog signal sends SIGABRT: print where the process hung.
        faulthandler.enable(sys.__stderr__)
    watchdog = ServiceWatchdog(Supervisor.from_environment(os.environ, os.getpid()))
    watchdog.start()
    import_server_early()
    signal_stop = SignalStop(watchdog.mark_stopping, _exit_at_once)
    threading.Thread(target=signal_stop.supervise, name="leaving", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if (
            number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
        ):  # nohup(1) ignores it, so the daemon keeps running
            signal.signal(number, signal_stop.handle_signal)
    try:
        set_up_vault(chosen, now=now_ms(), welcome=welcome)
        print_message(f"memex: opening {chosen.vault.path}")
        with _open_when_free(lambda: App(chosen, alone=alone), chosen.state, signal_stop.wished) as app:

            def announce(ready: Ready) -> None:  # on a thread, because the server must answer the requests made here
                threading.Thread(target=_talk, args=(chosen, ready, on_ready), name="talk", daemon=True).start()

            app.serve(announce, signal_stop.wished, watchdog, any_port=any_port)
    finally:
        signal_stop.finish()
        watchdog.stop()


def _talk(chosen: Settings, ready: Ready, on_ready: Callable[[Settings, Ready], None]) -> None:
    """Print which port the daemon uses if it is not the chosen one, then what `on_ready` prints."""
    wanted, used = chosen.server.port, urlsplit(ready.url).port
    if wanted not in (0, used):
        print_message(f"memex: port {wanted} is taken, so this daemon uses port {used}")
    on_ready(chosen, ready)


def _exit_at_once() -> None:
    """End a stop that takes too long, before the service manager kills the process. Acknowledged writes are on disk by then."""
    at_work = sorted({thread.name for thread in threading.enumerate() if thread is not threading.current_thread()})
    print_message(
        f"memex: the stop took {DRAIN_S:g} s; unfinished work resumes at the next start: {', '.join(at_work)}"
    )
    flush_output_in_time()
    os._exit(0)
