"""Parse arguments that several commands take: a moment in time, text from stdin, a workspace, a yes, jobs to wait for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import click

from index.errors import InvalidArgument
from syncd.cli.framework.commands import print_message
from syncd.cli.framework.completion import workspaces
from syncd.cli.terminal import result_text

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
WORKSPACE = click.option("--workspace", "-w", shell_complete=workspaces, help="Only this workspace.")
YES = click.option("--yes", "-y", is_flag=True, help="Don't ask.")
F = TypeVar("F", bound=Callable[..., Any])


def tags_option(help: str, *, short: bool = True) -> Callable[[F], F]:
    """The option `--tag`, also called `--tags`: `tags` is a tuple, and a comma separates tags as a second option does."""
    names = ("--tag", "--tags", *(("-t",) if short else ()))
    return click.option(*names, "tags", multiple=True, callback=_split_at_commas, help=help)


def _split_at_commas(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(tag for value in values for tag in [tag.strip() for tag in value.split(",") if tag.strip()] or [value])


def parse_time(text: str | None, now_ms: int) -> int | None:
    """Epoch milliseconds of `2026-11-20`, `2026-11-20T14:32`, or `7d` ago (s, m, h, d, w); local time unless it says."""
    if text is None:
        return None
    if ago := re.fullmatch(r"(\d{1,6})([smhdw])", text.strip()):
        return now_ms - int(ago[1]) * UNITS[ago[2]] * 1000
    try:
        return int(datetime.fromisoformat(text.strip()).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise InvalidArgument(f"{text!r} is no time: use 2026-11-20, 2026-11-20T14:32 or 7d") from None


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is removed. Where nobody can be asked, only --yes lets it happen."""
    if yes:
        return
    require_terminal(question, yes=yes)
    click.confirm(result_text.sanitize(question), abort=True, err=True)


def require_terminal(question: str, *, yes: bool) -> None:
    """Raise InvalidArgument where nobody can be asked and --yes does not answer."""
    if not yes and (sys.stdin is None or not sys.stdin.isatty()):
        raise InvalidArgument(f"{question} Nobody can be asked without a terminal: add --yes; nothing was changed")


def read_stdin() -> str:
    """What somebody types or pipes in."""
    if sys.stdin.isatty():
        print_message("memex: type the note, then Ctrl-D")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"what stdin gives is not UTF-8 (byte {error.start})") from None


def wait_for_jobs(ask: Any, ids: Sequence[str], *, once: bool = False) -> list[dict[str, Any]]:
    """Wait until these jobs have ended, asked by the `ask` of a session; with `once`, take them as first told."""
    while True:
        result = ask("queue.wait", {"ids": list(ids), "at_once": once})
        if result["ended"] or once:
            return list(result["jobs"])
