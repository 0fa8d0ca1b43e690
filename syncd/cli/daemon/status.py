"""Define the command `status`: show the daemon's health, once or repeatedly.

Law: the command changes nothing. It reports a daemon that is starting, hangs or does not run, with what to do next."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import click

from index.errors import MemexError, Unavailable
from index.timings import now_ms
from syncd.cli.framework.commands import (
    Command,
    ask,
    has_color,
    load_settings,
    print_answer,
    print_text,
    wants_json,
)
from syncd.cli.framework.printed_commands import complete_commands
from syncd.cli.terminal import result_text
from syncd.cli.terminal.status_page import add_daemon, render_page, verdict
from syncd.clients.daemon_address import read_daemon_url
from syncd.daemon import control_socket
from syncd.state import process_lock
from syncd.version import installed

ANSWER_S = 30.0  # for the answer of a busy daemon
OPENING_S = 3.0  # for a daemon that holds the vault and does not listen yet
EVERY_S = 2.0
UNWELL = 7
HOME = "\x1b[H\x1b[2J"  # move to the top left corner and clear the screen


@click.command(cls=Command)
@click.option(
    "--all", "everything", is_flag=True, help="Show whole lists; with --json, also paths and the state of each part."
)
@click.option(
    "--watch",
    "every",
    is_flag=False,
    flag_value=EVERY_S,
    type=click.FloatRange(0.2, 3_600),
    metavar="[SECONDS]",
    help="Update the page every 2 seconds, or every SECONDS, until Ctrl-C.",
)
@click.option("--exit-code", "strict", is_flag=True, help="Exit with 7 unless all is well or indexing is in progress.")
def status(everything: bool, every: float | None, strict: bool) -> int:
    """Show the daemon's health: a verdict, index coverage, skipped files with reasons, and the state of each part.

    A file counts as indexed when a search can find it. Files that the settings or Memex itself ignore (hidden folders, files
    that are not Markdown) are not counted.

    With --json: {"ready", "pending", "generation", "captures": {"documents", "chunks"}, "vault": {"documents", "chunks"},
    "defects": [{"path", "defect"}], "degraded": [text]}. With --json --all also "verdict": {"is", "says", "problems"},
    "coverage": {scope: {"indexed", "of", "waiting", "words_only", "skipped": [{"path", "reason"}]}}, "daemon": {"state",
    "url", "version", "command_version"} and one key for each part."""
    counted = everything or not wants_json()
    if every is not None:
        _watch(every, everything, counted=counted)
    facts = fetch_status(alone=True, counted=counted)
    _print_status(facts, everything)
    return UNWELL if strict and verdict(facts).is_ == "unwell" else 0


def fetch_status(*, alone: bool, counted: bool) -> dict[str, Any]:
    """Fetch the daemon's status; with `alone`, open the vault in this process when no daemon runs.

    `counted`: also count the files on disk, which takes a listing of the vault. Raises Unavailable, with what to do next,
    when a daemon is starting or hangs."""
    chosen, asked = load_settings(), {"coverage": counted}
    end = time.monotonic() + OPENING_S
    while True:
        pid = process_lock.holder_pid(chosen.state)
        try:
            facts = dict(control_socket.call(chosen.state, "status", asked, timeout=ANSWER_S))
        except control_socket.DaemonSilent:
            raise Unavailable(
                f"the daemon{_process_suffix(pid)} does not answer: it hangs, or the machine is overloaded. "
                "If it keeps failing, restart it: memex stop; memex serve"
            ) from None
        except control_socket.NoDaemon:
            if pid is None:
                break
            if time.monotonic() > end:
                raise Unavailable(
                    f"another process{_process_suffix(pid)} holds the vault and does not listen yet: a starting daemon, or another "
                    "command. Try again in a moment; if it keeps failing, stop it: memex stop"
                ) from None
            time.sleep(0.1)
        else:
            return add_daemon(facts, installed(), url=_daemon_url(chosen.state))
    if not alone:
        raise control_socket.NoDaemon("no daemon is running, so changes are not indexed; to start it: memex serve")
    return dict(ask("status", asked)) | {"daemon": {"state": "down"}}


def _process_suffix(pid: int | None) -> str:
    return f" (process {pid})" if pid else ""


def _daemon_url(state: Path) -> str | None:
    with contextlib.suppress(MemexError):
        return read_daemon_url(state)
    return None


def _print_status(facts: dict[str, Any], everything: bool) -> None:
    if wants_json() and not everything:
        print_answer({name: facts[name] for name in result_text.HEALTH}, str)
    else:
        print_answer(facts | {"verdict": verdict(facts).as_dict()}, lambda: _render_page(facts, everything))


def _render_page(facts: dict[str, Any], everything: bool) -> str:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    return render_page(
        facts, at=now_ms(), width=min(width, 120), color=has_color(), everything=everything, complete=complete_commands
    )


def _watch(every: float, everything: bool, *, counted: bool) -> None:
    """Show the status repeatedly until Ctrl-C."""
    screen = sys.stdout.isatty() and not wants_json()
    while True:
        try:
            facts = fetch_status(alone=False, counted=counted)
        except MemexError as error:
            facts, shown = {}, f"{error.message}"
            if wants_json():
                print_answer({"error": error.as_dict()}, str)
        else:
            shown = _render_page(facts, everything)
        if screen:
            rows = os.get_terminal_size(sys.stdout.fileno()).lines
            click.echo(HOME, nl=False)
            print_text("\n".join(shown.splitlines()[: rows - 1]))
        elif not wants_json():
            print_text(shown + "\n")
        elif facts:
            _print_status(facts, everything)
        sys.stdout.flush()
        time.sleep(every)
