"""The command `memex`: which commands there are, and what becomes of an error.

Law, tested: nothing heavy is imported to start it, so an answer of the daemon is there at once."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from index.errors import InvalidArgument, MemexError, PermissionDenied, Unavailable
from syncd import cli_access, cli_notes, cli_serve
from syncd.cli_frame import Group

EXIT = {
    "INVALID_ARGUMENT": 2,
    "UNAUTHENTICATED": 3,
    "PERMISSION_DENIED": 3,
    "NOT_FOUND": 4,
    "CONFLICT": 5,
    "RESOURCE_EXHAUSTED": 6,
    "UNAVAILABLE": 7,
}
# What a service manager is told. After 64, 65, 77 and 78 it need not try again: a restart would meet the same.
USAGE, DATA, GONE, PERMISSION, CONFIG = 64, 65, 69, 77, 78
SERVE_EXIT = {
    "INVALID_ARGUMENT": CONFIG,
    "UNAUTHENTICATED": PERMISSION,
    "PERMISSION_DENIED": PERMISSION,
    "NOT_FOUND": GONE,
    "CONFLICT": GONE,
    "RESOURCE_EXHAUSTED": GONE,
    "UNAVAILABLE": GONE,
}
SERVING = ("serve", "demo")
INTERRUPTED, PIPE_CLOSED, BUG = 130, 141, 1


def installed() -> str:
    """The version of Memex."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - it takes as long as the rest of the start

    try:
        return version("memex-vault")
    except PackageNotFoundError:
        return "0 (not installed)"


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"memex {installed()}")
        ctx.exit()


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version.")
def memex() -> None:
    """Keep an Obsidian vault searchable, and let AI agents capture into it and search it over MCP.

    Settings come from flags, the environment (MEMEX_SECTION__KEY) and ~/.config/memex/config.toml; `memex config` lists them."""


for command in (
    *(cli_serve.init, cli_serve.serve, cli_serve.demo, cli_notes.index, cli_notes.search, cli_notes.capture),
    *(cli_notes.get, cli_notes.recent, cli_notes.delete, cli_notes.status, cli_access.workspace, cli_access.key),
    *(cli_serve.mcp, cli_access.config, cli_access.completion),
):
    memex.add_command(command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `memex` and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(code(given))


def code(given: Sequence[str]) -> int:
    """The exit code of one command line; errors have been told on stderr."""
    serving = next((word for word in given if word in SERVING), "") == next((word for word in given if word in memex.commands), None)
    as_json = "--json" in given
    try:
        done = memex.main(args=list(given), prog_name="memex", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USAGE if serving else EXIT["INVALID_ARGUMENT"]
    except click.ClickException as error:
        return _told(_of_click(error), as_json=as_json, exits=dict.fromkeys(EXIT, USAGE) if serving else EXIT)
    except (click.Abort, KeyboardInterrupt):
        click.echo("", err=True)
        return INTERRUPTED
    except MemexError as error:
        return _told(error, as_json=as_json, exits=SERVE_EXIT if serving else EXIT)
    except SystemExit:
        if "_MEMEX_COMPLETE" in os.environ:  # the shell asked for words, and has them
            raise
        return PIPE_CLOSED  # click's way to end when nobody reads what it prints
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - so that the flush at exit has nothing to complain of
        return PIPE_CLOSED
    except PermissionError as error:
        told = PermissionDenied(f"{error.filename or 'a file'} may not be read or written: {error.strerror}")
        return _told(told, as_json=as_json, exits=SERVE_EXIT if serving else EXIT)
    except OSError as error:
        told = Unavailable(f"{error.filename or 'the system'}: {error.strerror or error}")
        return _told(told, as_json=as_json, exits=SERVE_EXIT if serving else EXIT)
    except Exception as error:  # noqa: BLE001 - the top of the program: a person gets a sentence, and the trace on request
        return _bug(error, serving=serving)
    return done if isinstance(done, int) else 0


def _told(error: MemexError, *, as_json: bool, exits: Mapping[str, int]) -> int:
    shown = json.dumps({"error": error.as_dict()}, default=str) if as_json else f"memex: {error.code}: {error.message}"
    click.echo(shown.encode("utf-8", "backslashreplace"), err=True)
    if exits is SERVE_EXIT and isinstance(error, Unavailable) and not error.retryable:
        return DATA
    return exits[error.code]


def _of_click(error: click.ClickException) -> MemexError:
    context: Any = getattr(error, "ctx", None)
    path = context.command_path if context else "memex"
    return InvalidArgument(f"{error.format_message().rstrip('.')}; see `{path} --help`")


def _bug(error: Exception, *, serving: bool) -> int:
    if serving or os.environ.get("MEMEX_DEBUG"):
        traceback.print_exc()
    else:
        click.echo(f"memex: INTERNAL: {type(error).__name__}: {error} (MEMEX_DEBUG=1 shows where)", err=True)
    return BUG


if __name__ == "__main__":
    main()
