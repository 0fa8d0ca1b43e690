"""The commands for what was: the history of a note, and taking back what agents wrote.

Law: what is taken back is shown first, and asked about where somebody sits at a terminal and it is more than one note."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

import click

from index.errors import InvalidArgument
from syncd import render
from syncd.cli_arguments import moment
from syncd.cli_complete import captures, keys, workspaces
from syncd.cli_frame import Command, answer, as_json, asking, color, now, talk
from syncd.cli_frame import ask as asked

ALL_SKIPPED = 5
SHOWN = 20  # notes that are listed before the question
WORDS: Mapping[str, str] = {
    "create": "made",
    "update": "changed",
    "delete": "deleted",
    "moved": "moved",
    "edit": "changed by hand",
    "promote": "promoted",
    "unpromote": "brought back",
    "merge": "appended",
    "dismiss": "dismissed",
    "expire": "expired",
    "unarchive": "brought back",
}


@click.command("log", cls=Command)
@click.argument("id", metavar="ID|PATH", shell_complete=captures)
@click.option("--patch", "-p", is_flag=True, help="With the lines that each changed.")
@click.option(
    "--limit", "-n", type=click.IntRange(1, 10_000), default=50, show_default=True, help="The newest so many."
)
def history(id: str, patch: bool, limit: int) -> None:
    """Show what became of a note, the newest last: who wrote it, by which tool and key, and the commits that touched it.

    It follows the note over renames, moves and its deletion; a path is the note's in the vault. What neither Memex nor Git
    saw is told as a change by hand. With --json: {"path", "more", "events": [{"at", "what", "path", "source", "surface",
    "tool", "key", "request", "entry", "undone", "commit", "author", "subject", "before", "after"}]}, and with -p "diff"."""
    found = asked("log", {"id": id, "limit": limit, "patch": patch})
    answer(found, lambda: timeline(found, None, color=color()))


@click.command(cls=Command)
@click.argument("id", metavar="[ID|PATH|CALL]", required=False, shell_complete=captures)
@click.option("--since", metavar="TIME", help="All that agents wrote since 2026-11-20T14:32, or 2h ago.")
@click.option("--key", shell_complete=keys, help="Only what this key wrote: its name or id.")
@click.option("--workspace", "-w", shell_complete=workspaces, help="Only in this workspace.")
@click.option("--dry-run", is_flag=True, help="Say what would be taken back, and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
def undo(*, id: str | None, since: str | None, key: str | None, workspace: str | None, dry_run: bool, yes: bool) -> int:
    """Take back the last call of an agent or a command on a note, or all that agents wrote since a time.

    What they made is removed, what they changed gets its bytes back, what they deleted is there again, with its stored
    file. What you have changed since is left alone and listed; if that is all, the exit code is 5. An undo is a call
    too: it tells its id, and `memex undo` with that takes it back. With --json: {"undo": CALL, "done": [{"id", "path",
    "entries", "by", "did"}], "skipped": [{"id", "path", "entries", "by", "reason"}]}."""
    if (id is None) == (since is None):
        raise InvalidArgument("name one note or call, or a time with --since")
    if id is not None and (key or workspace):
        raise InvalidArgument("--key and --workspace go with --since")
    wanted = {"id": id, "since": moment(since, now()), "key": key, "workspace": workspace}
    with asking() as ask:
        if dry_run:
            found = ask("undo", {**wanted, "dry_run": True})
        else:
            if not yes and sys.stdin.isatty() and not as_json():
                _confirmed(ask("undo", {**wanted, "dry_run": True}))
            found = ask("undo", wanted)
    answer(found, lambda: told(found, dry_run=dry_run))
    return ALL_SKIPPED if found["skipped"] and not found["done"] else 0


def _confirmed(found: Mapping[str, Any]) -> None:
    """Ask about what is more than one note."""
    if len(found["done"]) > 1:
        talk("\n".join(_lines(found["done"][:SHOWN])))
        rest = len(found["done"]) - SHOWN
        talk(f"… and {rest:,} more") if rest > 0 else None
        click.confirm(f"Take this back, in {len(found['done']):,} files?", abort=True, err=True)


def told(found: Mapping[str, Any], *, dry_run: bool = False) -> str:
    """What was taken back, and what was not."""
    if not found["done"] and not found["skipped"]:
        return "nothing to take back"
    lines = _lines(found["done"])
    if found["skipped"]:
        lines.append(f"left alone: {len(found['skipped']):,}")
        lines += [f"- {render.line(one['path'], 200)}: {render.line(one['reason'], 200)}" for one in found["skipped"]]
    if dry_run:
        lines.append("nothing was changed (--dry-run)")
    elif found["undo"]:
        lines.append(f"to take this back: memex undo {found['undo']}")
    return "\n".join(lines)


def _lines(done: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"{one['did']}  {render.line(one['path'], 200)}  ({render.line(', '.join(one['by']), 60)})" for one in done]


def timeline(found: Mapping[str, Any], zone: tzinfo | None, *, color: bool) -> str:
    """The events, a line each, with their differences below them."""
    blocks = [f"… {found['more']:,} older ones: --limit"] if found["more"] else []
    for event in found["events"]:
        blocks.append("  ".join(filter(None, _cells(event, zone, color))))
        if "diff" in event:
            blocks += [f"    {line}" for line in _patch(event["diff"], color)]
    return "\n".join(blocks)


def _cells(event: Mapping[str, Any], zone: tzinfo | None, color: bool) -> tuple[str, ...]:
    at = datetime.fromtimestamp(event["at"] / 1000, zone).strftime("%Y-%m-%d %H:%M:%S")
    moved = f"{render.line(event['source'], 200)} → {render.line(event['path'], 200)}" if event["source"] else ""
    name = f"commit {render.painted(event['commit'][:10], render.YELLOW, color)}" if event["commit"] else ""
    if event["what"] == "commit":
        return at, name, render.line(event["author"], 40), render.line(event["subject"], 80), moved
    if event["author"]:
        how = "" if event["tool"] == event["what"] else f" ({render.line(event['tool'], 40)})"
        what = render.painted(WORDS[event["what"]], render.BOLD, color)
        return at, f"{what} by {render.line(event['author'], 40)}{how}", moved, name
    what = f"{WORDS[event['what']]}{' (taken back)' if event['undone'] else ''}"
    who = "" if event["what"] == "edit" else render.line(event["key"] or event["surface"], 40)
    call = render.painted(f"call {event['request']}", render.DIM, color) if event["request"] else ""
    return at, render.painted(what, render.BOLD, color), who, render.line(event["tool"], 40), call, moved


def _patch(diff: Sequence[str] | None, color: bool) -> list[str]:
    """The lines of a difference."""
    if diff is None:
        return ["(what it said is not kept any more, or is too long to compare)"]
    styles = {"+": render.GREEN, "-": render.RED, "@": render.CYAN}
    return [render.painted(render.plain(one), styles.get(one[:1], ""), color and one[:1] in styles) for one in diff]
