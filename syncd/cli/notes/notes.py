"""Define the commands for notes: `index`, `search`, `capture`, `get`, `recent`, `updatenote` and `delete`.

Law, tested: text that a person has typed is not lost when the note cannot take it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from index.errors import InvalidArgument, MemexError
from index.names import pluralize
from index.text.hidden_characters import DEFECT as HIDDEN
from index.text.link_schemes import DEFECT as UNSAFE_LINK
from index.text.runnable_code import DEFECT as RUNNABLE
from syncd.cli.framework.arguments import WORKSPACE, YES, confirm, parse_time, read_stdin, tags_option
from syncd.cli.framework.commands import (
    Command,
    ask,
    has_color,
    now,
    print_answer,
    print_message,
    print_text,
    wants_json,
)
from syncd.cli.framework.completion import captures, collections, workspaces
from syncd.cli.terminal import result_text
from syncd.cli.terminal.result_text import way_back
from syncd.notes.secret_patterns import DEFECT as SECRET

# What scripts may rely on.
HIT = (
    *("id", "path", "title", "heading", "chunk", "score", "scope", "workspace"),
    *("stale", "superseded_by", "successor", "url"),
)


@click.command(cls=Command)
@click.option("--full", is_flag=True, help="Forget the index and build it from the files.")
@click.option(
    "--check", is_flag=True, help="Read every note and compare it, and the index's parts, with what is known."
)
@click.option("--accept-removals", is_flag=True, help="Believe that notes which vanished at once were meant to go.")
def index(full: bool, check: bool, accept_removals: bool) -> None:
    """Bring the index up to date once, without serving; prints `+added ~modified -removed !failed`."""
    if check and (full or accept_removals):
        raise InvalidArgument("--check goes alone: --full builds the index from the files in any case")
    if check:
        report = ask("check", {}, fresh=True)
        print_answer(report, lambda: result_text.format_check_report(report))
        return
    report = ask("index", {"full": full, "accept_removals": accept_removals}, fresh=True)
    print_answer(report, lambda: result_text.format_index_report(report))


@click.command(cls=Command)
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--limit", "-n", type=click.IntRange(1, 50), default=10, show_default=True, help="The most notes to show."
)
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "vector", "text"]),
    help="By meaning, by words, or both.  [default: search.mode]",
)
@click.option(
    "--scope", type=click.Choice(["captures", "vault", "all"]), default="all", show_default=True, help="What to search."
)
@WORKSPACE
@click.option("--namespace", help="Only this namespace of the workspace.")
@tags_option("Only notes with this tag; repeat for several, all must be there.")
@click.option("--collection", shell_complete=collections, help="Only this collection.")
@click.option("--type", "kind", help="Only this type: note, file or entity.")
@click.option("--source", help="Only notes from this source.")
@click.option("--since", metavar="TIME", help="Only notes created at or after 2026-11-20, or 7d ago.")
@click.option("--until", metavar="TIME", help="Only notes created before it.")
@click.option("--hidden", is_flag=True, help="Also templates, files that Obsidian excludes, and Memex's reports.")
def search(
    query: tuple[str, ...], kind: str | None, since: str | None, until: str | None, tags: tuple[str, ...], **rest: Any
) -> None:
    """Find notes about QUERY, best first: your own notes and the captures.

    A capture that a newer note replaces says so, and stands below that note."""
    asked = {
        **rest,
        "query": " ".join(query),
        "type": kind,
        "tags": list(tags),
        "since": parse_time(since, now()),
        "until": parse_time(until, now()),
    }
    result = ask("search", asked)
    for sentence in result.get("degraded", []):
        print_message(f"memex: {result_text.sanitize(sentence)}")
    if count := len(result.get("left_out", ())):
        print_message(
            f"memex: left out {pluralize(count, 'note')} (templates, files that Obsidian excludes, Memex's reports): "
            "--hidden shows them"
        )
    hits = [{name: hit.get(name) for name in HIT} for hit in result["hits"]]
    print_answer(hits, lambda: result_text.format_hits(hits, color=has_color()))


@click.command(cls=Command)
@click.argument("content", required=False)
@click.option(
    "--workspace", "-w", default="default", show_default=True, shell_complete=workspaces, help="Where it goes."
)
@click.option("--namespace", help="A folder of the workspace.")
@click.option("--source", default="cli", show_default=True, help="Where it comes from, as a word or address.")
@click.option("--collection", shell_complete=collections, help="The collection that it goes to.  [default: documents]")
@click.option("--title", help="Its title.")
@tags_option("A tag; repeat for several.")
@click.option("--metadata", metavar="JSON", help="More properties, as a JSON object.")
def capture(content: str | None, title: str | None, tags: tuple[str, ...], metadata: str | None, **rest: Any) -> None:
    """Put a note with CONTENT into the inbox; without it, or with -, what stdin gives."""
    properties = _parse_object(metadata)
    properties |= {"title": title} if title else {}
    properties |= {"tags": list(tags)} if tags else {}
    made = ask(
        "capture",
        {**rest, "content": read_stdin() if content in (None, "-") else content, "metadata": properties or None},
    )
    for defect in made.get("defects", ()):
        if defect.startswith((f"{SECRET}: ", f"{HIDDEN}: ", f"{RUNNABLE}: ", f"{UNSAFE_LINK}: ")):
            print_message(f"memex: {defect}")
    print_answer(
        made,
        lambda: (
            f"{made['id']}  {result_text.sanitize(made['path'])}"
            + ("" if made.get("created", True) else "  (was there already)")
        ),
    )


@click.command(cls=Command)
@click.argument("id", metavar="ID|PATH", shell_complete=captures)
@click.option("--workspace", "-w", shell_complete=workspaces, help="Only if it lies there.")
def get(id: str, workspace: str | None) -> None:
    """Print a note: its content on stdout, byte for byte; what is known about it with --json."""
    kept = ask("get", {"id": id, "workspace": workspace})
    if wants_json():
        print_answer(kept, str)
    elif sys.stdout.isatty():
        print_text(result_text.sanitize(kept["content"]))
    else:
        click.echo(kept["content"].encode("utf-8", "surrogateescape"), nl=False)


@click.command(cls=Command)
@WORKSPACE
@click.option("--limit", "-n", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many.")
def recent(workspace: str | None, limit: int) -> None:
    """List the captures that changed last, or were made."""
    records = ask("recent", {"workspace": workspace, "limit": limit})
    print_answer(records, lambda: result_text.captures_table(records, None, color=has_color()))


@click.command(cls=Command)
@click.argument("id", metavar="ID|PATH", shell_complete=captures)
@click.option("--workspace", "-w", shell_complete=workspaces, help="Only if it lies there.")
@YES
def delete(id: str, workspace: str | None, yes: bool) -> None:
    """Delete a capture: its file and everything the index knows of it. `memex undo` takes that back."""
    confirm(f"Delete {result_text.line(id, 200)}?", yes=yes)
    gone = ask("delete", {"id": id, "workspace": workspace})
    print_answer(gone, lambda: f"deleted {result_text.line(gone['path'], 300)}  {gone['id']}\n{way_back(gone['undo'])}")


def _parse_object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except (json.JSONDecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidArgument('--metadata must be a JSON object, such as {"project": "alpha"}')
    return value


@click.command(cls=Command)
@click.argument("id", metavar="ID|PATH", shell_complete=captures)
@click.argument("text", required=False)
@click.option("--workspace", "-w", shell_complete=workspaces, help="Only if it lies there.")
@click.option("--title", help="Another title.")
@tags_option("A tag, in place of those there are; repeat for several.")
@click.option("--collection", shell_complete=collections, help="Another collection.")
@click.option("--version", type=click.IntRange(1), help="Only if it still has this version.")
def updatenote(
    id: str, text: str | None, workspace: str | None, tags: tuple[str, ...], version: int | None, **fields: Any
) -> None:
    """Give a note another TEXT, title, tags or collection; its id, its file and when it was made stay.

    TEXT in place of all there is, - for what stdin gives. Without TEXT and options it opens in $EDITOR, or is read from a pipe."""
    update = {**fields, "id": id, "workspace": workspace, "tags": list(tags) or None, "version": version}
    only = text is None and any(update[name] is not None for name in ("title", "tags", "collection"))
    if text is None and not only and sys.stdin.isatty() and not wants_json():
        _edit_note(update)
        return
    if text in (None, "-") and not only:
        text = read_stdin()
    _print_updated(ask("updatenote", {**update, "text": text}))


def _edit_note(update: dict[str, Any]) -> None:
    """Let a person write; what an agent writes meanwhile is not overwritten."""
    kept = ask("get", {"id": update["id"], "workspace": update["workspace"]})
    before = kept["content"].encode("utf-8", "surrogateescape")
    file, name = tempfile.mkstemp(prefix="memex-", suffix=".md")
    with os.fdopen(file, "wb") as opened:
        opened.write(before)
    draft = Path(name)
    try:
        click.edit(filename=name)
        raw = draft.read_bytes()
        if raw == before:
            print_message("memex: nothing was changed")
        else:
            _print_updated(
                ask(
                    "updatenote", {**update, "text": _decode_text(raw), "version": update["version"] or kept["version"]}
                )
            )
    except (MemexError, click.ClickException):
        print_message(f"memex: the note was not changed; your text is in {result_text.sanitize(name)}")
        raise
    draft.unlink()


def _decode_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"what the editor wrote is not UTF-8 (byte {error.start})") from None


def _print_updated(done: dict[str, Any]) -> None:
    version = f"  version {done['version']}" + ("" if done["changed"] else "  (it was so already)")
    print_answer(done, lambda: f"{done['id']}  {result_text.sanitize(done['path'])}{version}")
