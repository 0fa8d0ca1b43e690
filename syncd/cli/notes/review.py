"""Define the commands for the review: go through waiting captures, approve or dismiss them, and unarchive them.

Law: where no person sits at a terminal, nothing is asked and nothing is decided."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from index.errors import MemexError, from_dict
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
from syncd.cli.terminal import result_text

SOME_FAILED = 5
LINES = 30  # of a capture that are shown
Ask = Callable[[str, Mapping[str, Any]], Any]
KEYS = "[a]pprove  [f]older  [e]dit  [s]kip  [d]iscard  [q]uit"


@click.group(cls=Group, invoke_without_command=True)
@click.option("--workspace", "-w", shell_complete=workspaces, help="Only this workspace.")
@click.option("--limit", "-n", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many.")
@click.option("--list", "listed", is_flag=True, help="Only list them.")
@click.pass_context
def review(ctx: click.Context, workspace: str | None, limit: int, listed: bool) -> None:
    """Go through the captures that wait, the oldest first: each with its text and what is suggested for it.

    a approves (into the folder that is shown), f approves into another, e opens the note in $EDITOR, s leaves it for another
    time, d sets it aside (memex unarchive brings it back), q ends. Where there is no terminal, or with --list or --json,
    they are listed. What is suggested comes from your own notes, and no agent is told. With --json: {"total", "waiting":
    [{"id", "path", "workspace", "title", "summary", "tags", "source", "created_at", "promote", "promote_to", "problem",
    "suspicious", "runs", "unsafe_links", "suggested_folder", "suggested_tags", "suggested_links", "suggested_similar"}]}."""
    if ctx.invoked_subcommand is not None:
        return
    with open_session(current=True) as ask:
        listing = ask("review.list", {"workspace": workspace, "limit": limit})
        if listed or wants_json() or not (sys.stdin.isatty() and sys.stdout.isatty()):
            print_answer(listing, lambda: table(listing, color=has_color()))
        else:
            go_through(ask, listing)


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


def go_through(ask: Ask, listing: Mapping[str, Any]) -> None:
    """Go through them one by one, until the end or `q`."""
    total = len(listing["waiting"])
    if not total:
        print_text("nothing waits for a decision")
    for number, capture in enumerate(listing["waiting"], 1):
        while True:
            try:
                shown = ask("review.show", {"id": capture["path"]})
            except MemexError as error:  # somebody has decided meanwhile
                print_message(f"memex: {error.message}")
                break
            print_text(format_capture(shown, f"{number} of {total}"))
            chosen = click.prompt(KEYS, default="s", show_default=False, prompt_suffix=": ").strip().casefold()[:1]
            if chosen == "q":
                return
            if chosen == "e":
                try:
                    click.edit(filename=shown["file"])
                except click.ClickException as error:
                    print_message(f"memex: {error.message} (EDITOR says which program is started)")
                ask("index", {})
                continue
            if chosen in ("a", "f", "d") and not _carry_out(ask, shown, chosen):
                continue
            if chosen in ("a", "f", "d", "s"):
                break


def _carry_out(ask: Ask, shown: Mapping[str, Any], chosen: str) -> bool:
    """Carry a decision out; whether that was possible."""
    if chosen == "d":
        result = ask("review.dismiss", {"ids": [shown["path"]]})
    else:
        result = ask("promote", {"ids": [shown["path"]], "to": _ask_folder(shown) if chosen == "f" else None})
    for entry in result["failed"]:
        print_message(f"memex: {entry['error']['message']}")
    for entry in result.get("promoted") or result.get("archived") or ():
        print_text(f"→ {result_text.line(entry['target'], 200)}")
    return not result["failed"]


def _ask_folder(shown: Mapping[str, Any]) -> str:
    """The folder that is typed, or whose number is."""
    numbered = {str(number): folder for number, folder in enumerate(shown["folders"], 1)}
    for number, folder in numbered.items():
        print_text(f"  {number}  {result_text.line(folder['folder'], 100)}  ({folder['reason']})")
    while True:
        to: str = click.prompt("folder, or its number", default=shown["goal"] or "")
        if to in numbered:
            return str(numbered[to]["folder"])
        if not to.isdecimal() or click.confirm(f"there is no {to} in the list; is it the name of a folder?"):
            return to


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


def format_capture(capture: Mapping[str, Any], where: str) -> str:
    """A capture with what is suggested for it."""
    lines = [f"── {where}: {result_text.line(capture['title'], 100)}", f"   {result_text.line(capture['path'], 200)}"]
    named = (
        *(("from", "source"), ("tags", "tags"), ("problem", "problem")),
        *(("hidden characters", "suspicious"), ("holds code that Obsidian may run", "runs")),
        ("links that may open files or programs", "unsafe_links"),
    )
    for name, key in named:
        if capture.get(key):
            lines.append(f"   {name}: {result_text.line(_join_values(capture[key]), 200)}")
    content = capture["content"].strip("\n").split("\n")
    lines += ["", *(f"  {result_text.line(line, 400)}" for line in content[:LINES])]
    lines += [f"  … {len(content) - LINES} more lines: e"] if len(content) > LINES else []
    lines.append("")
    if capture["goal"] is not None:
        reason = next((may["reason"] for may in capture["folders"] if may["folder"] == capture["goal"]), "suggested")
        why = {"you": "as you said", "rule": "by your rules", "setting": "promote.folder"}.get(capture["by"], reason)
        lines.append(f"   folder: {result_text.line(capture['goal'] or 'the root of the vault', 100)}  ({why})")
    for name, key in (("tags to add", "suggested_tags"), ("links to add", "suggested_links")):
        if capture[key]:
            lines.append(f"   {name}: {result_text.line(_join_values(capture[key]), 300)}")
    for note in capture["similar"]:
        lines.append(f"   {note['kind']}: {result_text.line(note['path'], 150)}")
        lines.append(f"      {result_text.line(note['excerpt'], 150)}")
    return "\n".join(lines)


def _join_values(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


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
