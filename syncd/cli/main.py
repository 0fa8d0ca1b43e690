"""Run `memex`: the main entry point lists the commands and runs the one that is named.

Law, tested: starting a command imports nothing heavy, so that an answer from the daemon appears at once."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

import click

from index.process_memory import collect_rarely
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
from syncd.cli.framework.command_outcome import run
from syncd.cli.framework.commands import Group, flush_output, flush_output_in_time
from syncd.cli.framework.help_command import help_command
from syncd.cli.graph import graph, memory_json, nodes, perspectives
from syncd.cli.models import evaluation, model
from syncd.cli.notes import consolidation, context, enrichment, files, history, notes, promotion, review, shares
from syncd.cli.page import open as page
from syncd.version import installed

SERVING = ("serve", "demo")
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


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `memex` and exit with its code."""
    os.environ.update(SILENT)
    collect_rarely()
    words = list(sys.argv[1:] if arguments is None else arguments)
    code = run_command(words)
    # Otherwise the interpreter flushes: it prints an error if the reader is gone, and waits for one that does not read.
    if not _is_serving(words):
        flush_output()
    elif not flush_output_in_time():
        os._exit(code)
    gc.freeze()  # otherwise the interpreter visits all objects once more, which takes a tenth of a short command
    sys.exit(code)


def run_command(words: Sequence[str]) -> int:
    """Run one command line, print its errors to stderr, and return the exit code."""
    return run(memex, words, serving=_is_serving(words))


def _is_serving(words: Sequence[str]) -> bool:
    return next((word for word in words if word in memex.commands), "") in SERVING


class _Program(ModuleType):
    """Make this module callable for the script `memex` of an older install, which imports the name `main` from the package."""

    def __call__(self) -> NoReturn:
        main()


sys.modules[__name__].__class__ = _Program
