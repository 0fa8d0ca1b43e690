"""Define the command `context`: print what agents of a workspace get at the start of a session, also as the hook of a host.

Law, tested: as a hook, the command exits with 0 within about a second, whatever happens, and prints nothing but the
envelope of the host."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click

from index.errors import MemexError
from index.names import pluralize
from index.timings import now_ms
from syncd.cli.framework.arguments import ONE_WORKSPACE
from syncd.cli.framework.commands import Command, ask, load_settings, print_answer, print_data
from syncd.cli.terminal import result_text
from syncd.daemon import control_socket
from syncd.git.project_name import find_project_name
from syncd.state.hook_log import HookRun, Outcome, append_run

HOOK_S: Final = 0.75  # seconds for a hook, besides the start of the command
INPUT_S: Final = 0.1  # seconds that a hook waits for the host's input
INPUT: Final = 65_536  # most bytes of it
# Both hosts put longer texts into a file, of which the agent gets the beginning: Claude Code from 10,000 characters on
# (code.claude.com/docs, "Hooks reference", JSON output), Codex from 2,500 tokens of four bytes on (github.com/openai/codex,
# codex-rs/hooks/src/output_spill.rs).
LONGEST: Final = 9_500  # bytes of UTF-8
HOOK_CLIENTS: Final = ("claude-code", "codex")


@click.command(cls=Command)
@ONE_WORKSPACE
@click.option("--project", help="Put facts of this project first; `.` is the project of the current folder.")
@click.option("--explain", is_flag=True, help="Say below each line why it is there.")
@click.option(
    "--hook",
    "client",
    type=click.Choice(HOOK_CLIENTS),
    help="Print it for the hook of this client; `memex connect CLIENT --hooks` installs it.",
)
def context(workspace: str, project: str | None, *, explain: bool, client: str | None) -> None:
    """Print what agents of a workspace get at the start of a session.

    Memex chooses the facts from captures and writes them into `Captures/Context/WORKSPACE.md`, where you keep, change and
    strike lines. With --json: {"workspace", "project", "text", "tokens", "most", "left_out", "lines": [{"line", "reasons",
    "id", "path", "title", "at", "author", "kept", "stale", "promoted"}]}."""
    if client is not None:
        _run_hook(client, workspace, project)
        return
    name = find_project_name(Path.cwd()) if project == "." else project
    shown = ask("context.read", {"workspace": workspace, "project": name})
    print_answer(shown, lambda: format_context(shown, explain=explain))


def format_context(shown: dict[str, Any], *, explain: bool) -> str:
    """Format a context for people; with `explain`, each line with its reasons."""
    if not shown["most"]:
        return "agents get no context: context.tokens is 0 in the settings"
    if not shown["lines"]:
        return f"the workspace {result_text.line(shown['workspace'], 100)} has no facts yet"
    if explain:
        lines = []
        for entry in shown["lines"]:
            lines += [result_text.line(entry["line"], 1_000), f"    because {'; '.join(entry['reasons'])}"]
    else:
        lines = result_text.sanitize(shown["text"]).splitlines()
    more = f"; {pluralize(shown['left_out'], 'line')} that you keep did not fit" if shown["left_out"] else ""
    return "\n".join([*lines, "", f"{shown['tokens']:,} of {shown['most']:,} tokens{more}"])


class _TimeUp(Exception):
    """Ends a hook that takes too long."""


def _run_hook(client: str, workspace: str, project: str | None) -> None:
    """Print the envelope, and log how the hook fared."""
    began, state = time.monotonic(), None
    shown: dict[str, Any] = {}
    outcome: Outcome = "failed"
    problem = ""
    try:
        with _time_limit(HOOK_S):
            state = load_settings().state
            arguments = {"workspace": workspace, "project": project or _project_of_host(), "bytes": LONGEST}
            shown = control_socket.call(state, "context.read", arguments, timeout=HOOK_S)
        outcome = "served" if shown["text"] else "empty"
    except control_socket.NoDaemon:
        outcome = "no-daemon"
    except (_TimeUp, control_socket.DaemonSilent):
        outcome = "slow"
    except (MemexError, OSError, ValueError, KeyError, TypeError) as error:
        problem = error.code if isinstance(error, MemexError) else type(error).__name__
    if outcome == "served":
        print_data(json.dumps(envelope(shown["text"])))
    if state is not None:
        milliseconds = round((time.monotonic() - began) * 1000)
        append_run(state, HookRun(now_ms(), client, outcome, milliseconds, shown.get("tokens", 0), problem))


def envelope(text: str) -> dict[str, Any]:
    """Return the output of a hook at the start of a session, which both hosts define alike.

    Claude Code: code.claude.com/docs, "Hooks reference", SessionStart decision control. Codex: developers.openai.com/codex,
    "Hooks", and the schema session-start.command.output in its repository."""
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}


def _project_of_host() -> str:
    """Return the project of the folder that the host names on stdin, otherwise of the current folder."""
    folder = ""
    with contextlib.suppress(ValueError, OSError, AttributeError):
        folder = json.loads(_read_input()).get("cwd") or ""
    return find_project_name(Path(folder) if isinstance(folder, str) and folder else Path.cwd())


def _read_input() -> bytes:
    """Return what the host writes to stdin, as far as it arrives in time."""
    data, end = b"", time.monotonic() + INPUT_S
    while len(data) < INPUT and select.select([0], [], [], max(0.0, end - time.monotonic()))[0]:
        piece = os.read(0, INPUT)
        if not piece:
            break
        data += piece
    return data


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise _TimeUp in this block after `seconds`, whatever it waits for."""

    def end(_: int, __: FrameType | None) -> None:
        raise _TimeUp

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
