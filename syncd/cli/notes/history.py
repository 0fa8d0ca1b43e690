"""Define the commands `log` and `undo`: show the history of a note, undo what agents wrote, and restore versions.

Law: at a terminal, an undo of more than one note is shown first and must be confirmed; without a terminal, every undo
needs --yes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from itertools import chain, zip_longest
from typing import Any

import click

from index.errors import InvalidArgument
from index.timings import now_ms
from syncd.cli.framework.arguments import (
    WORKSPACE,
    YES,
    check_workspace,
    confirm,
    limit_option,
    notes_argument,
    parse_time,
    require_terminal,
)
from syncd.cli.framework.commands import Command, has_color, open_session, print_answer, print_message, print_note
from syncd.cli.framework.commands import ask as asked
from syncd.cli.framework.completion import captures, keys
from syncd.cli.framework.printed_commands import way_back
from syncd.cli.terminal import result_text
from syncd.cli.terminal.text_width import width

ALL_SKIPPED = 5
SHOWN = 20  # most notes that are listed before the question
_NONE_LEFT = "nothing to undo: no write by an agent matches, or all are undone already"


@click.command("log", cls=Command)
@notes_argument("id", "ID|PATH", complete=captures)
@click.option("--patch", "-p", is_flag=True, help="Also show the changed lines.")
@limit_option("The number of newest events to show.", 50)
@click.option(
    "--before", "entry", type=click.IntRange(1), metavar="ENTRY", help="Print the note as it was before this entry."
)
def history(id: str, patch: bool, limit: int, entry: int | None) -> None:
    """Show the history of a note, the newest event last: its writes with tool and key, and the commits that changed it.

    The history follows the note through renames, moves and its deletion; a path is relative to the vault. A change that
    neither Memex nor Git recorded is listed as "changed outside Memex" or "deleted outside Memex". With --json: {"path", "exists", "more", "events": [{"at", "what", "path", "source",
    "surface", "tool", "key", "request", "entry", "undone", "commit", "author", "subject", "before", "after"}]}, and with -p "diff", "restorable",
    "additions" (the daemon's tools that added lines after this write; the diff contains these lines) and "never_kept" (Memex keeps no text from before this addition).

    --before prints one old version, with its properties, and into a file or pipe its bytes; --json shows the numbers of the entries. With --json: {"path", "content"}."""
    if entry is not None:
        version = asked("log.before", {"id": id, "entry": entry})
        print_note(version)
        return
    result = asked("log", {"id": id, "limit": limit, "patch": patch})
    print_answer(result, lambda: format_timeline(result, None, color=has_color()))


@click.command(cls=Command)
@notes_argument("id", "[ID|PATH|CALL]", complete=captures, required=False)
@click.option(
    "--since",
    metavar="TIME",
    help="Undo everything that agents wrote since a time, such as 2026-11-20T14:32 or 2h ago.",
)
@click.option("--until", metavar="TIME", help="Only writes before this time.")
@click.option("--key", shell_complete=keys, help="Only writes with this key, by name or id.")
@WORKSPACE
@click.option("--to", "version", metavar="VERSION", help="Restore the note as it was at a version.")
@click.option("--dry-run", is_flag=True, help="Show what would be undone, and change nothing.")
@YES
def undo(
    *,
    id: str | None,
    since: str | None,
    until: str | None,
    version: str | None,
    dry_run: bool,
    yes: bool,
    **narrow: str | None,
) -> int:
    """Undo the last call of an agent or a command on a note, or everything that agents wrote since a time.

    Undo removes created notes, restores changed notes byte for byte, and restores deleted notes with their stored files.
    Notes that you have changed since are left alone and listed; if no other notes remain, the exit code is 5. An undo is a
    call too: the command prints its id, and `memex undo ID` reverses it. --to restores any note, also a deleted one, as it was at a
    commit, at HEAD or at a version that `memex log -p` names; the present text is committed first, or kept (git.past_days). With --json: {"path",
    "version", "commit", "kept", "undo"}, with --dry-run {"path", "version", "now", "diff"}. Without --to: {"undo": CALL, "done": [{"id", "path",
    "entries", "by", "did"}], "skipped": [{"id", "path", "entries", "by", "reason"}]}."""
    if (id is None) == (since is None):
        raise InvalidArgument("name one note or call, or give a time with --since")
    if id is not None and (until or any(narrow.values())):
        raise InvalidArgument("--until, --key and --workspace need --since")
    if version is not None:
        return _restore(id, version, dry_run=dry_run, yes=yes)
    wanted = {"id": id, **_parse_period(since, until, previewed=not (yes or dry_run)), **narrow}
    with open_session() as ask:
        # A name is looked up before the question, so that nobody confirms one that is unknown.
        result = ask("undo", wanted if yes and not dry_run else {**wanted, "dry_run": True})
        if not (result["done"] or result["skipped"]):
            check_workspace(ask, narrow["workspace"])
        if not (yes or dry_run):
            require_terminal("Undo this?", yes=yes)
            _confirm_many(result)
            shown = None if id is None else [note["entries"] for note in result["done"]]
            result = ask("undo", {**wanted, "shown": shown})
    nothing = "nothing to undo" if since is None else _NONE_LEFT
    print_answer(result, lambda: format_undo(result, dry_run=dry_run, nothing=nothing))
    return ALL_SKIPPED if result["skipped"] and not result["done"] else 0


def _parse_period(since: str | None, until: str | None, *, previewed: bool) -> dict[str, int | None]:
    """Return the period of an undo; with a preview it ends now at the latest, because later writes are not in that.

    Otherwise it has no end: after the clock was set back, writes have times that are still to come."""
    now = now_ms()
    begin, end = parse_time(since, now), parse_time(until, now)
    if previewed and begin is not None:
        end = now + 1 if end is None else min(end, now + 1)
    return {"since": begin, "until": end}


def _restore(id: str | None, version: str, *, dry_run: bool, yes: bool) -> int:
    """Restore a note as it was at a version, or show what that would change."""
    if id is None:
        raise InvalidArgument("--to needs the note: memex undo NOTE --to VERSION")
    wanted = {"id": id, "version": version}
    if not dry_run and not yes:
        plan = asked("restore", {**wanted, "dry_run": True})  # first, so that nobody confirms a version that is unknown
        if plan["version"] != plan["now"]:
            require_terminal("Restore this?", yes=yes)
    result = asked("restore", {**wanted, "dry_run": dry_run})
    print_answer(result, lambda: format_restore(result, color=has_color()))
    return 0


def format_restore(result: Mapping[str, Any], *, color: bool) -> str:
    """Format a restored version, or the lines that a restore would change."""
    path = result_text.line(result["path"], 200)
    if "diff" in result:
        diff = [] if result["diff"] == [] else result_text.format_diff(result["diff"], color=color)
        return "\n".join([*diff, "nothing was changed (--dry-run)"])
    if result["undo"] is None:
        return f"{path} has this text already"
    lines = ["  ".join(["restored", path, *([f"commit {result['commit'][:10]}"] if result["commit"] else [])])]
    if result["kept"]:
        lines.append(f"the text before is in commit {result['kept'][:10]}")
    return "\n".join([*lines, way_back(result["undo"])])


def _confirm_many(plan: Mapping[str, Any]) -> None:
    """Ask before undoing changes of more than one note."""
    if len(plan["done"]) > 1:
        print_message("\n".join(_format_notes(plan["done"][:SHOWN])))
        rest = len(plan["done"]) - SHOWN
        print_message(f"… and {rest:,} more") if rest > 0 else None
        confirm(f"Undo these changes in {len(plan['done']):,} files?", yes=False)


def format_undo(result: Mapping[str, Any], *, dry_run: bool = False, nothing: str = "nothing to undo") -> str:
    """Format the undone and the skipped notes; `nothing` if there are none."""
    if not result["done"] and not result["skipped"]:
        return nothing
    lines = ["this would be done:"] if dry_run and result["done"] else []
    lines += _format_notes(result["done"])
    if result["skipped"]:
        lines.append(f"left alone: {len(result['skipped']):,}")
        lines += [
            f"- {result_text.line(note['path'], 200)}: {result_text.line(note['reason'], 200)}"
            for note in result["skipped"]
        ]
    if dry_run:
        lines.append("nothing was changed (--dry-run)")
    elif result["undo"]:
        lines.append(way_back(result["undo"]))
    return "\n".join(lines)


def _format_notes(done: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{note['did']}  {result_text.line(note['path'], 200)}  {note['id']}  ({result_text.line(', '.join(note['by']), 60)})"
        for note in done
    ]


def format_timeline(result: Mapping[str, Any], zone: tzinfo | None, *, color: bool) -> str:
    """Format the events, one line each, with their differences below."""
    blocks = [f"… {result['more']:,} older events; to show more: --limit"] if result["more"] else []
    plain = [_event_cells(event, zone, color=False) for event in result["events"]]
    # A cell that ends its line makes no column wider.
    widths = [max(map(width, column)) for column in zip_longest(*(cells[:-1] for cells in plain), fillvalue="")]
    for event, texts in zip(result["events"], plain, strict=True):
        cells = _event_cells(event, zone, color=color)
        gaps = [" " * (wide + 2 - width(text)) for wide, text in zip(widths, texts[:-1], strict=False)]
        blocks.append("".join(chain.from_iterable(zip_longest(cells, gaps, fillvalue=""))))
        if "diff" in event:
            if event["restorable"] and not event["commit"]:
                blocks.append(f"    version {event['after'][:12]}")
            if event["additions"]:
                blocks.append(f"    {result_text.describe_additions(event['additions'])}")
            lines = result_text.format_diff(event["diff"], color=color, never_kept=event.get("never_kept", False))
            blocks += [f"    {line}" for line in lines]
    return "\n".join(blocks)


def _event_cells(event: Mapping[str, Any], zone: tzinfo | None, *, color: bool) -> list[str]:
    """Return the cells of an event's line; the last one is not empty."""
    at = result_text.format_time(event["at"], zone, timespec="seconds")
    moved = (
        f"{result_text.line(event['source'], 200)} → {result_text.line(event['path'], 200)}" if event["source"] else ""
    )
    name = f"commit {result_text.colorize(event['commit'][:10], result_text.YELLOW, color)}" if event["commit"] else ""
    if event["what"] == "commit":
        what, rest = name, [result_text.line(event["author"], 40), _join(result_text.line(event["subject"], 80), moved)]
    elif event["author"]:
        how = "" if event["tool"] == event["what"] else f" ({result_text.line(event['tool'], 40)})"
        what = result_text.colorize(result_text.EVENT_VERBS[event["what"]], result_text.BOLD, color)
        what, rest = _join(f"{what} by {result_text.line(event['author'], 40)}{how}", moved, name), []
    else:
        verb = f"{result_text.EVENT_VERBS[event['what']]}{' (undone)' if event['undone'] else ''}"
        what = result_text.colorize(verb, result_text.BOLD, color)
        who = "" if event["what"] in result_text.UNRECORDED else result_text.line(event["key"] or event["surface"], 40)
        call = result_text.colorize(f"call {event['request']}", result_text.DIM, color) if event["request"] else ""
        rest = [who, result_text.line(event["tool"], 40), call, moved]
    while rest and not rest[-1]:
        rest.pop()
    return [at, what, *rest]


def _join(*cells: str) -> str:
    return "  ".join(filter(None, cells))
