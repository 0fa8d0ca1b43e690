"""The command `memex`: which commands there are, and what becomes of an error.

Law, tested: nothing heavy is imported to start it, so an answer of the daemon is there at once."""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from index.errors import InvalidArgument, MemexError, PermissionDenied, Unavailable
from syncd import (
    cli_access,
    cli_audit,
    cli_backup,
    cli_commit,
    cli_complete,
    cli_consolidate,
    cli_doctor,
    cli_enrich,
    cli_exchange,
    cli_files,
    cli_graph,
    cli_history,
    cli_hook,
    cli_job,
    cli_node,
    cli_notes,
    cli_perspective,
    cli_promote,
    cli_queue,
    cli_remote,
    cli_review,
    cli_serve,
    cli_service,
    cli_status,
    cli_update,
    render,
)
from syncd.cli_frame import Group
from syncd.telemetry import log
from syncd.version import installed

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
# Libraries that would report to their makers, and leave files in the home folder, unless they are told before they load.
SILENT = {"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"memex {installed()}")
        ctx.exit()


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def memex() -> None:
    """Keep an Obsidian vault searchable, and let AI agents capture into it and search it over MCP.

    Settings come from flags, the environment (MEMEX_SECTION__KEY) and ~/.config/memex/config.toml; `memex config` lists them."""


for command in (
    *(cli_serve.init, cli_serve.serve, cli_serve.demo, cli_notes.index, cli_notes.search, cli_notes.capture),
    *(
        cli_notes.get,
        cli_notes.recent,
        cli_update.updatenote,
        cli_notes.delete,
        cli_files.addfile,
        cli_status.status,
        cli_doctor.doctor,
        cli_backup.backup,
        cli_backup.restore,
        cli_access.workspace,
        cli_perspective.perspective,
        cli_access.key,
    ),
    *(cli_node.node, cli_node.relation, cli_graph.graph, cli_exchange.bring, cli_exchange.export),
    *(cli_history.history, cli_history.undo, cli_promote.promote, cli_promote.unpromote, cli_consolidate.consolidate),
    cli_commit.commit,
    *(cli_review.review, cli_review.unarchive),
    *(cli_audit.audit, cli_job.job, cli_service.service, cli_enrich.enrich),
    *(cli_serve.mcp, cli_access.config, cli_complete.completion, cli_hook.hook, cli_remote.sync),
):
    memex.add_command(command)
for command in (cli_queue.queue, cli_queue.show, cli_queue.retry, cli_queue.cancel, cli_queue.wait):
    cli_job.job.add_command(command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `memex` and exit with its code."""
    os.environ.update(SILENT)
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(code(given))


def code(given: Sequence[str]) -> int:
    """The exit code of one command line; errors have been told on stderr."""
    serving = next((word for word in given if word in memex.commands), "") in SERVING
    try:
        done = memex.main(args=list(given), prog_name="memex", standalone_mode=False)
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        click.echo("", err=True)
        return INTERRUPTED
    except SystemExit:
        if "_MEMEX_COMPLETE" in os.environ:  # the shell asked for words, and has them
            raise
        return PIPE_CLOSED  # click's way to end when nobody reads what it prints
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - so that the flush at exit has nothing to complain of
        return PIPE_CLOSED
    except Exception as error:  # noqa: BLE001 - the top of the program: a person gets a sentence, and the trace on request
        return _failed(error, serving=serving, as_json="--json" in given)
    return done if isinstance(done, int) else 0


def _failed(error: Exception, *, serving: bool, as_json: bool) -> int:
    told = _expected(error)
    if told is None:
        return _bug(error, serving=serving)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
    else:
        text = f"memex: {told.code}: {render.plain(told.message)}"
        shown = json.dumps({"error": told.as_dict()}, default=str) if as_json else text
        if log.talking():
            logging.getLogger("memex").error("%s", told.message, extra={"fields": {"code": told.code}})
        else:
            click.echo(shown.encode("utf-8", "backslashreplace"), err=True)
    if not serving:
        return EXIT[told.code]
    if isinstance(error, click.ClickException):
        return USAGE
    return DATA if isinstance(told, Unavailable) and not told.retryable else SERVE_EXIT[told.code]


def _expected(error: Exception) -> MemexError | None:
    match error:
        case MemexError():
            return error
        case click.ClickException():
            context: Any = getattr(error, "ctx", None)
            path = context.command_path if context else "memex"
            return InvalidArgument(f"{error.format_message().rstrip('.')}; see `{path} --help`")
        case PermissionError():
            return PermissionDenied(f"{error.filename or 'a file'} may not be read or written: {error.strerror}")
        case OSError():
            return Unavailable(f"{error.filename or 'the system'}: {error.strerror or error}")
        case _:
            return None


def _bug(error: Exception, *, serving: bool) -> int:
    if serving and log.talking():
        logging.getLogger("memex").error("an unexpected error ended the daemon", exc_info=error)
    elif serving or os.environ.get("MEMEX_DEBUG"):
        traceback.print_exc()
    else:
        click.echo(f"memex: INTERNAL: {type(error).__name__}: {error} (MEMEX_DEBUG=1 shows where)", err=True)
    return BUG


if __name__ == "__main__":
    main()
