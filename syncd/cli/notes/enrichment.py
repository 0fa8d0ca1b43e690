"""Define the command `enrich`: run enrichment (summary and tags) on one note, or on all notes that lack it."""

from __future__ import annotations

import contextlib
from typing import Any

import click

from index.errors import InvalidArgument, MemexError
from syncd.cli.framework.arguments import WORKSPACE
from syncd.cli.framework.commands import Command, ask, load_settings, print_answer
from syncd.cli.framework.completion import captures
from syncd.cli.terminal import result_text
from syncd.daemon import control_socket


@click.command(cls=Command)
@click.argument("id", metavar="[ID|PATH]", required=False, shell_complete=captures)
@click.option("--backfill", is_flag=True, help="Fill every note of the inbox that lacks a summary or tags.")
@click.option("--replace", is_flag=True, help="Put new ones in place of those that the note ID has.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@WORKSPACE
def enrich(id: str | None, backfill: bool, replace: bool, dry_run: bool, workspace: str | None) -> None:
    """Find summary and tags of the note ID, or with --backfill of all notes that lack them.

    What is there is kept. Notes that are being edited are left alone and named; Ctrl-C breaks off, and running it again
    goes on with the rest."""
    if backfill == bool(id) or (replace and backfill):
        raise InvalidArgument("name one note (`memex enrich ID`, perhaps with --replace), or say --backfill")
    options: dict[str, Any] = {"workspace": workspace, "dry_run": dry_run}
    if id:
        note = ask("enrich", options | {"id": id, "replace": replace})
        print_answer(note, lambda: _format_note(note))
        return
    try:
        report = ask("enrich.backfill", options)
    except KeyboardInterrupt:
        with contextlib.suppress(MemexError):  # in the daemon it would go on without us
            control_socket.call(load_settings().state, "enrich.stop", {}, timeout=5)
        raise
    print_answer(report, lambda: _format_report(report))


def _format_note(note: dict[str, Any]) -> str:
    lines = [result_text.sanitize(note["path"]), f"  {result_text.sanitize(note['summary'] or '(no summary)')}"]
    lines.append("  " + (" ".join(f"#{result_text.sanitize(tag)}" for tag in note["tags"]) or "(no tags)"))
    return "\n".join(lines if note.get("changed", True) else [*lines, "  nothing was missing"])


def _format_report(report: dict[str, Any]) -> str:
    lines = (
        [_format_note({"summary": None, "tags": [], **note}) for note in report["notes"]] if report["dry_run"] else []
    )
    lines += [
        f"left alone: {result_text.sanitize(entry['path'])}: {result_text.sanitize(entry['reason'])}"
        for entry in report["skipped"]
    ]
    verb = "would be enriched" if report["dry_run"] else "enriched"
    count = "1 note" if report["enriched"] == 1 else f"{report['enriched']:,} notes"
    lines.append(f"{count} {verb}, {len(report['skipped'])} left alone, {report['unchanged']} with nothing to say")
    return "\n".join(lines)
