"""Define the commands for promotion: `promote` moves captures into the vault, `unpromote` moves them back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from index.errors import from_dict
from syncd.cli.framework.arguments import notes_argument
from syncd.cli.framework.commands import Command, open_session, print_answer
from syncd.cli.framework.completion import captures, folders_outside_inbox, promoted_notes
from syncd.cli.terminal import result_text

SOME_FAILED = 5
TO = click.option(
    "--to", metavar="FOLDER", shell_complete=folders_outside_inbox, help='The folder of the vault; "" = its root.'
)
TAKE = click.option(
    "--take", metavar="TAG|LINK", multiple=True, help="Add this suggested tag or link to the note; repeat for several."
)


@click.command(cls=Command)
@notes_argument("ids", "ID|PATH...", complete=captures, nargs=-1, required=True)
@TO
@TAKE
@click.option("--dry-run", is_flag=True, help="Show where each capture would go, and change nothing.")
def promote(ids: tuple[str, ...], to: str | None, take: tuple[str, ...], *, dry_run: bool) -> int:
    """Move captures into the vault.

    A capture moves with its stored file and keeps its id and its text. Links to it and from it keep working, and properties
    that only the inbox needs are removed. Each promotion is one commit, and `memex unpromote` reverses it. The target folder
    is --to, else the property promote_to, else the first rule of promote.rules that matches, else the suggested folder, else
    promote.folder. An existing note is never overwritten. With --take, suggested tags join the note's tags, and suggested links
    become its last line. A capture that proposes a change of a note is applied to that note, and `memex undo` reverses it. Exits with 5 if some captures could not be promoted. With --json: {"promoted": [{"id", "source", "target", "by", "commit", "left_out", "relinked", "lost",
    "mentions", "unread", "applied"}], "planned": [{"id", "source", "target", "chosen", "file"}], "failed": [{"id", "error"}]}."""
    with open_session(current=True) as ask:
        result = ask("promote", {"ids": list(ids), "to": to, "take": list(take) or None, "dry_run": dry_run or None})
    return print_outcome(result, [*result["promoted"], *result["planned"]])


@click.command(cls=Command)
@notes_argument("ids", "ID|PATH...", complete=promoted_notes, nargs=-1, required=True)
def unpromote(ids: tuple[str, ...]) -> int:
    """Move promoted notes back into the inbox.

    A note without edits becomes the same capture again, byte for byte, except for its promotion mark; an edited note keeps
    the edits. Links lead to the capture again, its stored file moves back, and agents can read it again. Exits with 5 if
    some notes could not be moved back. With --json: {"returned": [as for promote], "failed": [{"id", "error"}]}."""
    with open_session(current=True) as ask:
        result = ask("unpromote", {"ids": list(ids)})
    return print_outcome(result, result["returned"])


def print_outcome(result: Mapping[str, Any], done: list[dict[str, Any]]) -> int:
    """Print what happened to each note, and return the exit code; a single failure is raised as its error."""
    failed = result["failed"]
    if len(failed) == 1 and not done:
        raise from_dict(failed[0]["error"])
    lines = [text for entry in done for text in result_text.format_move(entry)]
    lines += [
        f"{result_text.line(str(entry['id']), 200)}: {result_text.line(entry['error']['message'], 400)}"
        for entry in failed
    ]
    print_answer(result, lambda: "\n".join(lines))
    return SOME_FAILED if failed else 0
