"""Define the command `enrich`: run enrichment (summary and tags) on one note, or on all notes that lack it."""

from __future__ import annotations

import contextlib
from typing import Any

import click

from index.errors import InvalidArgument, MemexError
from index.names import pluralize
from syncd.cli.framework.arguments import WORKSPACE, notes_argument
from syncd.cli.framework.commands import Command, ask, load_settings, print_answer
from syncd.cli.framework.completion import captures
from syncd.cli.terminal import result_text
from syncd.daemon import control_socket


@click.command(cls=Command)
@notes_argument("id", "[ID|PATH]", complete=captures, required=False)
@click.option("--backfill", is_flag=True, help="Enrich every note of the inbox that lacks a summary or tags.")
@click.option("--replace", is_flag=True, help="Replace the present summary and tags of the note ID.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@WORKSPACE
def enrich(id: str | None, backfill: bool, replace: bool, dry_run: bool, workspace: str | None) -> None:
    """Write a summary and tags for the note ID, or with --backfill for all notes that lack them.

    Existing summaries and tags are kept. Notes that are being edited are skipped and listed. Ctrl-C stops the run; running
    the command again continues with the remaining notes."""
    if backfill == bool(id) or (replace and backfill):
        raise InvalidArgument("name one note (memex enrich ID, optionally with --replace), or use --backfill")
    options: dict[str, Any] = {"workspace": workspace, "dry_run": dry_run}
    if id:
        note = ask("enrich", options | {"id": id, "replace": replace})
        print_answer(note, lambda: _format_note(note))
        return
    try:
        report = ask("enrich.backfill", options)
    except KeyboardInterrupt:
        with contextlib.suppress(MemexError):  # otherwise the daemon would continue the run
            control_socket.call(load_settings().state, "enrich.stop", {}, timeout=5)
        raise
    print_answer(report, lambda: _format_report(report))


def _format_note(note: dict[str, Any]) -> str:
    lines = [result_text.sanitize(note["path"]), f"  {result_text.sanitize(note['summary'] or '(no summary)')}"]
    lines.append("  " + (" ".join(f"#{result_text.sanitize(tag)}" for tag in note["tags"]) or "(no tags)"))
    return "\n".join(lines if note.get("changed", True) else [*lines, "  summary and tags were already present"])


def _format_report(report: dict[str, Any]) -> str:
    lines = (
        [_format_note({"summary": None, "tags": [], **note}) for note in report["notes"]] if report["dry_run"] else []
    )
    lines += [
        f"skipped: {result_text.sanitize(entry['path'])}: {result_text.sanitize(entry['reason'])}"
        for entry in report["skipped"]
    ]
    verb = "would be enriched" if report["dry_run"] else "enriched"
    count = pluralize(report["enriched"], "note")
    lines.append(f"{count} {verb}, {len(report['skipped'])} skipped, {report['unchanged']} unchanged")
    return "\n".join(lines)
