"""Define the commands for the review: go through waiting captures, approve or dismiss them, and unarchive them.

Law: without a terminal, the commands ask nothing and decide nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from index.errors import InvalidArgument
from syncd.cli.framework.arguments import (
    WORKSPACE,
    check_workspace,
    cut_rows,
    limit_option,
    notes_argument,
    way_to_more,
)
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
from syncd.cli.framework.completion import archived_captures, waiting_captures
from syncd.cli.notes.promotion import TAKE, TO, print_outcome
from syncd.cli.notes.review_dialog import go_through
from syncd.cli.notes.review_file import CHANGE, Decision, compose_file, parse_file
from syncd.cli.terminal import result_text

Ask = Callable[[str, Mapping[str, Any]], Any]


@click.group(cls=Group, invoke_without_command=True)
@WORKSPACE
@limit_option("The most captures to show.", 50)
@click.option("--list", "listed", is_flag=True, help="Only list the captures.")
@click.option(
    "--editor", is_flag=True, help="Open one file with all waiting captures in your editor, and decide there."
)
@click.pass_context
def review(ctx: click.Context, workspace: str | None, limit: int, listed: bool, editor: bool) -> int | None:
    """Go through the waiting captures, the oldest first: each with its text and suggestions.

    Press a to approve a capture into the shown folder, or to apply the change of a note that an agent proposes, f to choose another folder, t to take suggested tags and links, e to open the note in $EDITOR, s to skip
    it, d to archive it, u to undo the last step, and q to quit; no key needs Enter. With --editor, all waiting captures are
    in one file: Memex carries out what you save, and does nothing if the file has a mistake. Without a terminal, or with
    --list or --json, the command lists the captures. Suggestions come from your own notes, and no agent sees them. With --json: {"total", "waiting":
    [{"id", "path", "digest", "type", "workspace", "title", "summary", "tags", "source", "created_at", "promote", "promote_to", "problem", "goal", "by",
    "suspicious", "runs", "unsafe_links", "suggested_folder", "suggested_tags", "suggested_links", "suggested_similar"}]}."""
    if ctx.invoked_subcommand is not None:
        return None
    is_person = sys.stdin.isatty() and sys.stdout.isatty()
    if editor and (listed or wants_json() or not is_person):
        raise InvalidArgument("--editor needs a terminal, and can't be combined with --list or --json")
    with open_session(current=True) as ask:
        listing = ask("review.list", {"workspace": workspace, "limit": limit})
        if not listing["total"]:
            check_workspace(ask, workspace)
        if listed or wants_json() or not is_person:
            print_answer(listing, lambda: table(listing, color=has_color()))
        elif editor and listing["waiting"]:
            return edit_queue(ask, listing["waiting"])
        else:
            go_through(ask, listing["waiting"])
    return None


@review.command("approve")
@notes_argument("ids", "ID|PATH...", complete=waiting_captures, nargs=-1, required=True)
@TO
@TAKE
def approve(ids: tuple[str, ...], to: str | None, take: tuple[str, ...]) -> int:
    """Promote captures, as `memex promote` does."""
    with open_session(current=True) as ask:
        result = ask("promote", {"ids": list(ids), "to": to, "take": list(take) or None})
    return print_outcome(result, result["promoted"])


@review.command("dismiss")
@notes_argument("ids", "ID|PATH...", complete=waiting_captures, nargs=-1, required=True)
def dismiss(ids: tuple[str, ...]) -> int:
    """Archive captures: they move to Archive/ beside the workspaces, where you find them and agents don't.

    With --json: {"archived": [as for promote], "failed": [{"id", "error"}]}."""
    with open_session(current=True) as ask:
        result = ask("review.dismiss", {"ids": list(ids)})
    return print_outcome(result, result["archived"])


@click.command(cls=Command)
@notes_argument("ids", "[ID|PATH]...", complete=archived_captures, nargs=-1)
@click.option("--list", "listed", is_flag=True, help="List the archived captures.")
@limit_option("The most captures to list, with --list.", 50)
def unarchive(ids: tuple[str, ...], listed: bool, limit: int) -> int:
    """Move archived captures back into the inbox, with their ids, their stored files and all links to them.

    A capture that you dismissed waits for a decision again. A capture that expired gets `review: keep`, so that it does not
    expire again. With --json:
    {"returned": [as for promote], "failed": [{"id", "error"}]}, and with --list [{"id", "path", "title", "created_at"}]."""
    if listed or not ids:
        with open_session(current=True) as ask:
            records = cut_rows(ask("archived", {"limit": limit + 1}), limit, "captures")
        print_answer(records, lambda: _archived_table(records, color=has_color()))
        return 0
    with open_session(current=True) as ask:
        result = ask("unarchive", {"ids": list(ids)})
    return print_outcome(result, result["returned"])


def edit_queue(ask: Ask, waiting: Sequence[Mapping[str, Any]]) -> int:
    """Let a person decide on these captures in one file in their editor, carry the decisions out, and return the exit code."""
    decisions = _edit_file(compose_file(waiting), waiting)
    if not decisions:
        print_text("nothing was decided")
        return 0
    digests = {capture["path"]: capture["digest"] for capture in waiting}
    approved = [decision for decision in decisions if decision.word == "approve"]
    result: dict[str, list[Any]] = {"promoted": [], "archived": [], "failed": []}
    for folder, taken in dict.fromkeys((decision.folder, decision.taken) for decision in approved):
        ids = [decision.path for decision in approved if (decision.folder, decision.taken) == (folder, taken)]
        shown = {path: digests[path] for path in ids}  # a capture that changed in the meantime is refused
        _add_result(result, ask("promote", {"ids": ids, "shown": shown, "to": folder, "take": list(taken) or None}))
    if ids := [decision.path for decision in decisions if decision.word == "dismiss"]:
        _add_result(result, ask("review.dismiss", {"ids": ids, "shown": {path: digests[path] for path in ids}}))
    return print_outcome(result, result["promoted"] + result["archived"])


def _edit_file(text: str, waiting: Sequence[Mapping[str, Any]]) -> list[Decision]:
    """Return the decisions that a person saves in the file; after a mistake, offer to open the saved file again."""
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
    """Format one line for each waiting capture."""
    rows = [
        (
            result_text.line(capture["id"], 36),
            capture["workspace"],
            result_text.line(capture["title"], 50),
            _mark_text(capture),
            result_text.line(capture["goal"] or "", 40),
            result_text.line(", ".join(_link_text(str(note)) for note in capture["suggested_similar"] or ()), 60),
        )
        for capture in listing["waiting"]
    ]
    if not rows:
        return "nothing waits for a decision"
    heads = ("id", "workspace", "title", "marked", "folder", "similar")
    more = listing["total"] - len(rows)
    ends = [f"… and {more:,} more; {way_to_more(len(rows))}"] if more else []
    return "\n".join([result_text.table(rows, heads, color=color), *ends])


def _mark_text(capture: Mapping[str, Any]) -> str:
    """Return the mark and the warnings of a capture, and whether it proposes a change of a note, in a few words."""
    mark = "problem" if capture["problem"] else "promote" if capture["promote"] else ""
    marks = [CHANGE if capture["type"] == CHANGE else "", mark]
    marks += ["hidden text" if capture.get("suspicious") else "", "runs code" if capture.get("runs") else ""]
    marks += ["unsafe links" if capture.get("unsafe_links") else ""]
    return ", ".join(filter(None, marks))


def _link_text(link: str) -> str:
    """Return the text that a wikilink shows."""
    return link.removeprefix("[[").removesuffix("]]").rpartition("|")[2]


def _archived_table(records: Sequence[Mapping[str, Any]], *, color: bool) -> str:
    rows = [(row["id"][:36], result_text.line(row["title"], 60), result_text.line(row["path"], 100)) for row in records]
    return result_text.table(rows, ("id", "title", "path"), color=color) if rows else "no archived captures"
