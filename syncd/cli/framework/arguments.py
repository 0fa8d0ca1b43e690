"""Parse arguments that several commands share: times, tags, text from stdin, a workspace, a confirmation, jobs to wait for."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from index.errors import InvalidArgument
from syncd.cli.framework.commands import load_settings, print_message
from syncd.cli.framework.completion import workspaces
from syncd.cli.terminal import result_text

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
WORKSPACE = click.option("--workspace", "-w", shell_complete=workspaces, help="Only this workspace.")
YES = click.option("--yes", "-y", is_flag=True, help="Don't ask for confirmation.")
LISTED: Final = 10_000  # most rows of a list
Row = TypeVar("Row")
F = TypeVar("F", bound=Callable[..., Any])


def workspace_option(help: str) -> Callable[[F], F]:
    """Return the option `--workspace` of a command that concerns one workspace."""
    return click.option("--workspace", "-w", default="default", show_default=True, shell_complete=workspaces, help=help)


def limit_option(help: str, default: int, *, most: int = LISTED) -> Callable[[F], F]:
    """Return the option `--limit` of a command that lists rows."""
    kind = click.IntRange(1, most)
    return click.option("--limit", "-n", type=kind, default=default, show_default=True, help=help)


ONE_WORKSPACE = workspace_option("The workspace.")


def tags_option(help: str, *, short: bool = True) -> Callable[[F], F]:
    """Return the option `--tag`, also called `--tags`: `tags` is a tuple, and a comma separates tags like a second option."""
    names = ("--tag", "--tags", *(("-t",) if short else ()))
    return click.option(*names, "tags", multiple=True, callback=_split_at_commas, help=help)


def _split_at_commas(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(tag for value in values for tag in [tag.strip() for tag in value.split(",") if tag.strip()] or [value])


def name_argument(what: str) -> Callable[[F], F]:
    """Return the argument NAME of a command that creates `what`; the option `--name` is another way to give it."""

    def require(ctx: click.Context, _: click.Parameter, value: str | None) -> str:
        named = ctx.params.pop("named", None)
        if (value is None) == (named is None):
            raise InvalidArgument(f"which name should the {what} have? Give it once: {ctx.command_path} NAME")
        return str(named if value is None else value)

    option = click.option("--name", "named", is_eager=True, help="Another way to give NAME.")
    argument = click.argument("name", metavar="NAME", required=False, callback=require)
    return lambda command: argument(option(command))


def notes_argument(name: str, metavar: str, *, complete: Callable[..., Any], **more: Any) -> Callable[[F], F]:
    """Return an argument that names notes by id, title or path; a path from the root of the disk, or from here, is one too."""
    return click.argument(name, metavar=metavar, shell_complete=complete, callback=_find_in_vault, **more)


def _find_in_vault(_: click.Context, __: click.Parameter, value: Any) -> Any:
    return tuple(map(to_vault_path, value)) if isinstance(value, tuple) else value and to_vault_path(value)


def to_vault_path(reference: str) -> str:
    """Return the path in the vault of a note that is named by a path outside it; any other reference stays."""
    if not reference.startswith(("/", "./", "../", "~/")):
        return reference
    path, root = os.path.expanduser(reference), load_settings().vault.path  # noqa: PTH111 - no link is followed, and ".." stays text
    for absolute, folder in ((os.path.abspath(path), root), (os.path.realpath(path), os.path.realpath(root))):  # noqa: PTH100 - as above
        inside = os.path.relpath(absolute, folder)
        if not inside.startswith(".."):
            return Path(inside).as_posix()
    return reference


def cut_rows(rows: Sequence[Row], limit: int, what: str) -> Sequence[Row]:
    """Return the first `limit` of these rows. If there are more, print that there are: a command fetches one row more than it shows."""
    if len(rows) > limit:
        print_cut(limit, what)
    return rows[:limit]


def print_cut(limit: int, what: str) -> None:
    """Print that a list ends after `limit` rows, and how to see more."""
    print_message(f"memex: there are more {what}; this list ends after {limit:,}; {way_to_more(limit)}")


def way_to_more(limit: int) -> str:
    """Return how to see more rows than `limit`."""
    return "to list more: --limit" if limit < LISTED else f"a list has at most {LISTED:,}"


def parse_time(text: str | None, now_ms: int) -> int | None:
    """Convert `2026-11-20`, `2026-11-20T14:32`, or `7d` ago (s, m, h, d, w) to epoch milliseconds; the default zone is local."""
    if text is None:
        return None
    try:
        if ago := re.fullmatch(r"(\d{1,6})([smhdw])(?: ago)?", text.strip()):
            then = now_ms - int(ago[1]) * UNITS[ago[2]] * 1000
            datetime.fromtimestamp(then / 1000, UTC).astimezone()  # raises an error before the year 1
            return then
        return int(datetime.fromisoformat(text.strip()).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise InvalidArgument(f"{text!r} is not a time: use 2026-11-20, 2026-11-20T14:32 or 7d") from None


def refuse_idle(name: str, reason: str) -> None:
    """Raise InvalidArgument if an option of this command, by the name of its value, is on the command line; `reason`: what it needs."""
    if click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE:
        raise InvalidArgument(f"--{name.replace('_', '-')} {reason}")


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation. Without a terminal, only --yes continues."""
    if yes:
        return
    require_terminal(question, yes=yes)
    if not click.confirm(result_text.sanitize(question), err=True):
        print_message("memex: nothing was changed")
        raise click.Abort


def require_terminal(question: str, *, yes: bool) -> None:
    """Raise InvalidArgument if there is no terminal to ask at and --yes is missing."""
    if not yes and (sys.stdin is None or not sys.stdin.isatty()):
        raise InvalidArgument(
            f"{question} This needs a confirmation, and there is no terminal: add --yes. Nothing was changed."
        )


def check_workspace(ask: Callable[[str, dict[str, Any]], Any], name: str | None) -> None:
    """Raise NotFound if no workspace has this name, so that nobody trusts an empty answer or confirms a deletion of a misspelt one."""
    if name:
        ask("recent", {"workspace": name, "limit": 1})


def read_stdin() -> str:
    """Read the text that is typed or piped to stdin."""
    if sys.stdin.isatty():
        print_message("memex: type the note, then Ctrl-D")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"the text from stdin is not UTF-8 (byte {error.start})") from None


def wait_for_jobs(ask: Any, ids: Sequence[str], *, once: bool = False) -> list[dict[str, Any]]:
    """Wait until these jobs have ended; `ask` is that of a session. With `once`, return their present state."""
    while True:
        result = ask("queue.wait", {"ids": list(ids), "at_once": once})
        if result["ended"] or once:
            return list(result["jobs"])
