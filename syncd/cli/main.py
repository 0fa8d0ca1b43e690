"""Run `memex`: the main entry point lists the commands and turns each error into a message and an exit code.

Law, tested: starting a command imports nothing heavy, so that an answer from the daemon appears at once."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

import click

from index.errors import InvalidArgument, MemexError, PermissionDenied, Unavailable
from index.names import did_you_mean
from syncd.cli.clients import connect
from syncd.cli.daemon import (
    audit,
    backup,
    demo,
    doctor,
    git,
    jobs,
    keys_and_config,
    serve,
    service,
    status,
    vaults,
)
from syncd.cli.framework import completion
from syncd.cli.framework.commands import Group, flush_output
from syncd.cli.framework.help_command import help_command
from syncd.cli.graph import graph, memory_json, nodes, perspectives
from syncd.cli.models import evaluation, model
from syncd.cli.notes import consolidation, context, enrichment, files, history, notes, promotion, review, shares
from syncd.cli.page import open as page
from syncd.cli.terminal import result_text
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
# Exit codes for service managers. A restart does not help after 64, 65, 77 and 78.
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
# Turns off the telemetry of libraries, and their files in the home folder; set before they are imported.
SILENT = {"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"memex {installed()}")
        ctx.exit()


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
def memex() -> None:
    """Keep an Obsidian vault searchable, and let AI agents capture into it and search it over MCP.

    Settings come from flags, the environment (MEMEX_SECTION__KEY) and ~/.config/memex/config.toml; `memex config` lists them."""


for command in (
    *(
        vaults.init,
        vaults.vaults,
        vaults.use,
        serve.serve,
        serve.stop,
        demo.demo,
        notes.index,
        notes.search,
        notes.capture,
    ),
    *(
        notes.get,
        notes.recent,
        notes.updatenote,
        notes.delete,
        files.addfile,
        status.status,
        page.open_,
        doctor.doctor,
        backup.backup,
        backup.restore,
        keys_and_config.workspace,
        perspectives.perspective,
        keys_and_config.key,
        shares.share,
        connect.connect,
    ),
    *(nodes.node, nodes.relation, graph.graph, memory_json.import_, memory_json.export),
    *(history.history, history.undo, promotion.promote, promotion.unpromote, consolidation.consolidate),
    context.context,
    git.commit,
    *(review.review, review.unarchive),
    *(audit.audit, jobs.job, service.service, enrichment.enrich),
    *(model.model, evaluation.evaluate, evaluation.searches),
    *(serve.mcp, keys_and_config.config, completion.completion, git.hook, git.sync, help_command),
):
    memex.add_command(command)
for command in (jobs.queue, jobs.show, jobs.retry, jobs.cancel, jobs.wait):
    jobs.job.add_command(command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `memex` and exit with its code."""
    os.environ.update(SILENT)
    words = list(sys.argv[1:] if arguments is None else arguments)
    code = run_command(words)
    flush_output()  # otherwise the interpreter flushes, and prints an error if nobody reads
    sys.exit(code)


def run_command(words: Sequence[str]) -> int:
    """Run one command line, print its errors to stderr, and return the exit code."""
    serving = next((word for word in words if word in memex.commands), "") in SERVING
    try:
        done = memex.main(args=list(words), prog_name="memex", standalone_mode=False)
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        _print_error("")
        return INTERRUPTED
    except SystemExit:
        if "_MEMEX_COMPLETE" in os.environ:  # shell completion has printed its words
            raise
        return PIPE_CLOSED  # click exits this way when nobody reads its output
    except BrokenPipeError:
        return PIPE_CLOSED
    except Exception as error:  # noqa: BLE001 - the top of the program: print a sentence, and the traceback on request
        return _report_error(error, serving=serving, as_json="--json" in words)
    return done if isinstance(done, int) else 0


def _report_error(error: Exception, *, serving: bool, as_json: bool) -> int:
    failure = _as_memex_error(error)
    if failure is None:
        return _report_bug(error, serving=serving)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        _print_error(error.format_message())
    else:
        text = f"memex: {result_text.sanitize(failure.message)}"
        shown = json.dumps({"error": failure.as_dict()}, default=str) if as_json else text
        if log.is_structured():
            logging.getLogger("memex").error("%s", failure.message, extra={"fields": {"code": failure.code}})
        else:
            _print_error(shown)
    if not serving:
        return EXIT[failure.code]
    if isinstance(error, click.ClickException):
        return USAGE
    return DATA if isinstance(failure, Unavailable) and not failure.retryable else SERVE_EXIT[failure.code]


def _as_memex_error(error: Exception) -> MemexError | None:
    match error:
        case MemexError():
            return error
        case click.ClickException():
            context: Any = getattr(error, "ctx", None)
            path = context.command_path if context else "memex"
            text = error.format_message().rstrip(".")
            if isinstance(error, click.NoSuchOption):
                near = did_you_mean(error.option_name, error.possibilities or ())
                text = f"no option {error.option_name!r} in `{path}`{near}"
            return InvalidArgument(f"{text}{' See' if text.endswith('?') else '; see'} `{path} --help`")
        case PermissionError():
            return PermissionDenied(f"{error.filename or 'a file'} can't be read or written: {error.strerror}")
        case OSError():
            return Unavailable(f"{error.filename or 'the system'}: {error.strerror or error}")
        case _:
            return None


def _report_bug(error: Exception, *, serving: bool) -> int:
    if serving and log.is_structured():
        logging.getLogger("memex").error("an unexpected error ended the daemon", exc_info=error)
    elif serving or os.environ.get("MEMEX_DEBUG"):
        traceback.print_exc()
    else:
        text = f"memex: internal error: {type(error).__name__}: {error} (for the traceback: MEMEX_DEBUG=1)"
        _print_error(result_text.sanitize(text))
    return BUG


def _print_error(text: str) -> None:
    """Print one line to stderr; if stderr is closed, only the exit code reports the error."""
    with contextlib.suppress(OSError):
        click.echo(text.encode("utf-8", "backslashreplace"), err=True)


class _Program(ModuleType):
    """Make this module callable for the script `memex` of an older install, which imports the name `main` from the package."""

    def __call__(self) -> NoReturn:
        main()


sys.modules[__name__].__class__ = _Program
