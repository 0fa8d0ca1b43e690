"""Define the commands for the review: go through waiting captures, approve or dismiss them, and unarchive them.

Law: where no person sits at a terminal, nothing is asked and nothing is decided."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from index.errors import InvalidArgument, from_dict
from syncd.cli.framework.commands import (
    Command,
    Group,
    has_color,
    open_session,
    print_answer,
    print_message,
    print_text,
    wants_json,
)
from syncd.cli.framework.completion import archived_captures, folders, waiting_captures, workspaces
from syncd.cli.notes.review_dialog import go_through
from syncd.cli.notes.review_file import Decision, compose_file, parse_file
from syncd.cli.terminal import result_text

SOME_FAILED = 5
Ask = Callable[[str, Mapping[str, Any]], Any]


@click.group(cls=Group, invoke_without_command=True)
@click.option("--workspace", "-w", shell_complete=workspaces, help="Only this workspace.")
@click.option("--limit", "-n", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many.")
@click.option("--list", "listed", is_flag=True, help="Only list them.")
@click.option("--editor", is_flag=True, help="Put all of them into one file, and decide by editing it.")
@click.pass_context
def review(ctx: click.Context, workspace: str | None, limit: int, listed: bool, editor: bool) -> int | None:
    """Go through the captures that wait, the oldest first: each with its text and what is suggested for it.

    a approves (into the folder that is shown), f approves into another, e opens the note in $EDITOR, s leaves it for another
    time, d sets it aside, u undoes the last step, q ends; no key needs Enter. With --editor all of them stand in one file:
    what you save in it is done, and a file with a mistake does nothing. Where there is no terminal, or with --list or --json,
    they are listed. What is suggested comes from your own notes, and no agent is told. With --json: {"total", "waiting":
    [{"id", "path", "workspace", "title", "summary", "tags", "source", "created_at", "promote", "promote_to", "problem",
    "suspicious", "runs", "unsafe_links", "suggested_folder", "suggested_tags", "suggested_links", "suggested_similar"}]}."""
    if ctx.invoked_subcommand is not None:
        return None
    is_person = sys.stdin.isatty() and sys.stdout.isatty()
    if editor and (listed or wants_json() or not is_person):
        raise InvalidArgument("--editor needs a terminal, where a person decides, and neither --list nor --json")
    with open_session(current=True) as ask:
        listing = ask("review.list", {"workspace": workspace, "limit": limit})
        if listed or wants_json() or not is_person:
            print_answer(listing, lambda: table(listing, color=has_color()))
        elif editor and listing["waiting"]:
            return edit_queue(ask, listing["waiting"])
        else:
            go_through(ask, listing["waiting"])
    return None


@review.command("approve")
@click.argument("ids", metavar="ID|PATH...", nargs=-1, required=True, shell_complete=waiting_captures)
@click.option("--to", metavar="FOLDER", shell_complete=folders, help='The folder of the vault; "" = its root.')
def approve(ids: tuple[str, ...], to: str | None) -> int:
    """Promote captures, as `memex promote` does."""
    with open_session(current=True) as ask:
        result = ask("promote", {"ids": list(ids), "to": to})
    return _print_outcome(result, result["promoted"])


@review.command("dismiss")
@click.argument("ids", metavar="ID|PATH...", nargs=-1, required=True, shell_complete=waiting_captures)
def dismiss(ids: tuple[str, ...]) -> int:
    """Set captures aside: they go to Archive/ beside the workspaces, where you find them and no agent does.

    With --json: {"archived": [as for promote], "failed": [{"id", "error"}]}."""
    with open_session(current=True) as ask:
        result = ask("review.dismiss", {"ids": list(ids)})
    return _print_outcome(result, result["archived"])


@click.command(cls=Command)
@click.argument("ids", metavar="[ID|PATH]...", nargs=-1, shell_complete=archived_captures)
@click.option("--list", "listed", is_flag=True, help="List what was set aside.")
@click.option(
    "--limit", "-n", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many, with --list."
)
def unarchive(ids: tuple[str, ...], listed: bool, limit: int) -> int:
    """Bring captures back that were set aside, with their ids, their stored files and every link to them.

    One that you had dismissed waits again; one that had expired gets `review: keep`, so that it stays. With --json:
    {"returned": [as for promote], "failed": [{"id", "error"}]}, and with --list [{"id", "path", "title", "created_at"}]."""
    if listed or not ids:
        with open_session(current=True) as ask:
            records = ask("archived", {"limit": limit})
        print_answer(records, lambda: _archived_table(records, color=has_color()))
        return 0
    with open_session(current=True) as ask:
        result = ask("unarchive", {"ids": list(ids)})
    return _print_outcome(result, result["returned"])


def edit_queue(ask: Ask, waiting: Sequence[Mapping[str, Any]]) -> int:
    """Let a person decide on all of these in one file in their editor, and carry that out; the exit code."""
    decisions = _edit_file(compose_file(waiting), waiting)
    if not decisions:
        print_text("nothing was decided")
        return 0
    folders = dict.fromkeys(decision.folder for decision in decisions if decision.word == "approve")
    result: dict[str, list[Any]] = {"promoted": [], "archived": [], "failed": []}
    for folder in folders:
        ids = [wish.path for wish in decisions if (wish.word, wish.folder) == ("approve", folder)]
        _add_result(result, ask("promote", {"ids": ids, "to": folder}))
    if ids := [decision.path for decision in decisions if decision.word == "discard"]:
        _add_result(result, ask("review.dismiss", {"ids": ids}))
    return _print_outcome(result, result["promoted"] + result["archived"])


def _edit_file(text: str, waiting: Sequence[Mapping[str, Any]]) -> list[Decision]:
    """The decisions that a person saves in the file; a file with a mistake is opened again, as it was saved, if they like."""
    while (saved := click.edit(text, extension=".review", require_save=True)) is not None:
        try:
            return parse_file(saved, waiting)
        except InvalidArgument as error:
            print_message(f"memex: {error.message}")
            if not click.confirm("Edit the file again?", default=True, err=True):
                raise
            text = saved
    return []


def _add_result(result: dict[str, list[Any]], more: Mapping[str, Any]) -> None:
    for name in result:
        result[name] += more.get(name, ())


def table(listing: Mapping[str, Any], *, color: bool) -> str:
    """One line for each capture that waits."""
    rows = [
        (
            result_text.line(capture["id"], 36),
            capture["workspace"],
            result_text.line(capture["title"], 50),
            _mark_text(capture),
            result_text.line(str(capture["promote_to"] or capture["suggested_folder"] or ""), 40),
            result_text.line(", ".join(_link_text(str(note)) for note in capture["suggested_similar"] or ()), 60),
        )
        for capture in listing["waiting"]
    ]
    if not rows:
        return "nothing waits for a decision"
    heads = ("id", "workspace", "title", "marked", "folder", "similar")
    more = listing["total"] - len(rows)
    return "\n".join(
        [result_text.table(rows, heads, color=color), *([f"… and {more:,} more: --limit"] if more else [])]
    )


def _mark_text(capture: Mapping[str, Any]) -> str:
    """What stands out about a capture, in a word or two."""
    mark = "problem" if capture["problem"] else "promote" if capture["promote"] else ""
    marks = [mark, "hidden text" if capture.get("suspicious") else "", "runs code" if capture.get("runs") else ""]
    marks += ["unsafe links" if capture.get("unsafe_links") else ""]
    return ", ".join(filter(None, marks))


def _link_text(link: str) -> str:
    """What a wikilink shows."""
    return link.removeprefix("[[").removesuffix("]]").rpartition("|")[2]


def _archived_table(records: Sequence[Mapping[str, Any]], *, color: bool) -> str:
    rows = [(row["id"][:36], result_text.line(row["title"], 60), result_text.line(row["path"], 100)) for row in records]
    return result_text.table(rows, ("id", "title", "path"), color=color) if rows else "nothing was set aside"


def _print_outcome(result: Mapping[str, Any], done: list[dict[str, Any]]) -> int:
    failed = result["failed"]
    if len(failed) == 1 and not done:
        raise from_dict(failed[0]["error"])
    lines = [f"{result_text.line(entry['source'], 200)} → {result_text.line(entry['target'], 200)}" for entry in done]
    lines += [
        f"{result_text.line(str(entry['id']), 200)}: {result_text.line(entry['error']['message'], 400)}"
        for entry in failed
    ]
    print_answer(result, lambda: "\n".join(lines))
    return SOME_FAILED if failed else 0
