"""Define the command `status`: show the daemon's health, once or repeatedly.

Law: looking changes nothing; a daemon that is starting, hangs or is not there is reported, with what to do about it."""

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
from syncd.cli.framework.commands import (
    Command,
    ask,
    has_color,
    load_settings,
    now,
    print_answer,
    print_text,
    wants_json,
)
from syncd.cli.framework.daemon_address import read_daemon_url
from syncd.cli.terminal import result_text
from syncd.cli.terminal.status_page import render_page, verdict
from syncd.daemon import control_socket
from syncd.state import process_lock
from syncd.version import installed

TOLD_S = 30.0  # for an answer of a daemon that is at work
OPENING_S = 3.0  # for one that holds the vault and is not listening yet
EVERY_S = 2.0
UNWELL = 7
HOME = "\x1b[H\x1b[2J"  # the screen begun anew


@click.command(cls=Command)
@click.option(
    "--all", "everything", is_flag=True, help="Whole lists; in JSON, also where things are and how each part is."
)
@click.option(
    "--watch",
    "every",
    is_flag=False,
    flag_value=EVERY_S,
    type=click.FloatRange(0.2, 3_600),
    metavar="[SECONDS]",
    help="Show it again and again, every 2 seconds or as said; Ctrl-C ends it.",
)
@click.option("--exit-code", "strict", is_flag=True, help="Exit with 7 unless all is well or being indexed.")
def status(everything: bool, every: float | None, strict: bool) -> int:
    """Tell how Memex is: a verdict, then what is indexed of what there is, what is skipped and why, and how each part does.

    A file counts as indexed when a search can find it. What the settings or Memex itself ignore (hidden folders, files
    that are no Markdown) is no part of the count.

    With --json: {"ready", "pending", "generation", "captures": {"documents", "chunks"}, "vault": {"documents", "chunks"},
    "defects": [{"path", "defect"}], "degraded": [text]}. With --json --all also "verdict": {"is", "says", "problems"},
    "coverage": {scope: {"indexed", "of", "waiting", "words_only", "skipped": [{"path", "reason"}]}}, "daemon" and one
    key for each part."""
    counted = everything or not wants_json()
    if every is not None:
        _watch(every, everything, counted=counted)
    facts = fetch_status(alone=True, counted=counted)
    _print_status(facts, everything)
    return UNWELL if strict and verdict(facts).is_ == "unwell" else 0


def fetch_status(*, alone: bool, counted: bool) -> dict[str, Any]:
    """What the daemon tells of itself; with `alone`, of the vault opened here when no daemon runs.

    `counted`: the files on the disk are counted as well, which a listing of the vault costs. Raises Unavailable, with the way out, when a daemon is starting or hangs."""
    chosen, asked = load_settings(), {"coverage": counted}
    end = time.monotonic() + OPENING_S
    while True:
        pid = process_lock.holder_pid(chosen.state)
        try:
            facts = dict(control_socket.call(chosen.state, "status", asked, timeout=TOLD_S))
        except control_socket.DaemonSilent:
            raise Unavailable(
                f"the daemon{_process_suffix(pid)} does not answer: it hangs, or the machine is overloaded; "
                "if it stays so, end it and start it again with `memex serve`"
            ) from None
        except control_socket.NoDaemon:
            if pid is None:
                break
            if time.monotonic() > end:
                raise Unavailable(
                    f"the vault is held{_process_suffix(pid)}, which does not listen yet: a daemon that starts, or another "
                    "command; ask again in a moment, and if it stays so, end that process"
                ) from None
            time.sleep(0.1)
        else:
            return facts | {"daemon": {"state": "running", "url": _daemon_url(chosen.state), "version": installed()}}
    if not alone:
        raise control_socket.NoDaemon("no daemon is running, so changes are not followed: start it with `memex serve`")
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
    return render_page(facts, at=now(), width=min(width, 120), color=has_color(), everything=everything)


def _watch(every: float, everything: bool, *, counted: bool) -> None:
    """Show it until somebody interrupts."""
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
