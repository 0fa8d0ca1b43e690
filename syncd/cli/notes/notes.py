"""Define the commands for notes: `index`, `search`, `capture`, `get`, `recent`, `updatenote` and `delete`.

Law, tested: if the update of a note fails, the text that a person has typed is kept in a file."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from index.errors import InvalidArgument, MemexError
from index.names import did_you_mean, pluralize
from index.query import filter_key
from index.timings import now_ms
from syncd.cli.framework.arguments import (
    WORKSPACE,
    YES,
    confirm,
    cut_rows,
    limit_option,
    notes_argument,
    parse_time,
    read_stdin,
    tags_option,
    workspace_option,
)
from syncd.cli.framework.commands import (
    Command,
    ask,
    has_color,
    load_settings,
    print_answer,
    print_message,
    print_note,
    print_text,
    terminal_width,
    wants_json,
)
from syncd.cli.framework.completion import captures, collections, folders, workspaces
from syncd.cli.framework.printed_commands import way_back
from syncd.cli.terminal import result_text

# The fields of a hit in JSON, which scripts may rely on.
HIT = (
    *("id", "path", "title", "heading", "chunk", "score", "weak", "scope", "workspace"),
    *("stale", "superseded_by", "successor", "url"),
)


@click.command(cls=Command)
@click.option("--full", is_flag=True, help="Rebuild the whole index from the files.")
@click.option(
    "--check",
    is_flag=True,
    help="Read every note, and compare it and the parts of the index with each other; repair differences.",
)
@click.option("--accept-removals", is_flag=True, help="Accept a mass removal: delete the missing notes from the index.")
def index(full: bool, check: bool, accept_removals: bool) -> None:
    """Update the index once, without serving; prints `+added ~modified -removed !failed`."""
    if check and (full or accept_removals):
        raise InvalidArgument("--check can't be combined with --full or --accept-removals")
    if check:
        report = ask("check", {}, fresh=True)
        print_answer(report, lambda: result_text.format_check_report(report))
        return
    report = ask("index", {"full": full, "accept_removals": accept_removals}, fresh=True)
    print_answer(report, lambda: result_text.format_index_report(report))


@click.command(cls=Command)
@click.argument("query", nargs=-1, required=True)
@limit_option("The most notes to show.", 10, most=50)
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "vector", "text"]),
    help="By meaning (vector), by words (text), or both (hybrid).  [default: search.mode]",
)
@click.option(
    "--scope", type=click.Choice(["captures", "vault", "all"]), default="all", show_default=True, help="What to search."
)
@WORKSPACE
@click.option("--namespace", help="Only this namespace of the workspace.")
@click.option("--folder", shell_complete=folders, help="Only notes below this folder of the vault.")
@tags_option("Only notes with this tag; repeat to require several tags.")
@click.option("--collection", shell_complete=collections, help="Only this collection.")
@click.option("--type", "kind", help="Only this type: note, file or entity.")
@click.option("--source", help="Only notes from this source.")
@click.option("--since", metavar="TIME", help="Only notes created at or after 2026-11-20, or 7d ago.")
@click.option("--until", metavar="TIME", help="Only notes created before this time.")
@click.option("--hidden", is_flag=True, help="Include templates, files that Obsidian excludes, and Memex's reports.")
def search(
    query: tuple[str, ...], kind: str | None, since: str | None, until: str | None, tags: tuple[str, ...], **rest: Any
) -> None:
    """Search your own notes and the captures for QUERY, the best match first.

    A capture that a newer note supersedes is marked, and ranks below the newer note."""
    asked = {
        **rest,
        "query": " ".join(query),
        "type": kind,
        "tags": list(tags),
        "since": parse_time(since, now_ms()),
        "until": parse_time(until, now_ms()),
    }
    result = ask("search", asked)
    for sentence in result.get("degraded", []):
        print_message(f"memex: {result_text.sanitize(sentence)}")
    if count := len(result.get("left_out", ())):
        print_message(
            f"memex: left out {pluralize(count, 'note')} (templates, files that Obsidian excludes, Memex's reports): "
            "to include them: --hidden"
        )
    if not result["hits"]:
        _name_missing_folders(rest)
        for unknown in result.get("unknown_tags", ()):
            print_message(f"memex: no note has the tag {result_text.line(unknown['tag'], 200)!r}{unknown['near']}")
    hits = [{name: hit.get(name) for name in HIT} for hit in result["hits"]]
    print_answer(hits, lambda: result_text.format_hits(hits, color=has_color(), cells=terminal_width()))


def _name_missing_folders(narrow: Mapping[str, Any]) -> None:
    """Report a folder or a namespace without notes, in which every search finds nothing."""
    if not (narrow["folder"] or narrow["namespace"]):
        return
    known = [unicodedata.normalize("NFC", folder) for folder in ask("folders", {})]
    below = ["/".join(parts[at:]) for parts in (folder.split("/") for folder in known) for at in range(1, len(parts))]
    for kind, names in (("folder", known), ("namespace", below)):
        name = unicodedata.normalize("NFC", narrow[kind] or "").strip().strip("/")
        if name and name not in names:
            print_message(f"memex: no notes in a {kind} {result_text.line(name, 200)!r}{did_you_mean(name, names)}")


@click.command(cls=Command)
@click.argument("content", required=False)
@workspace_option("The workspace of the capture.")
@click.option("--namespace", help="A folder inside the workspace.")
@click.option("--source", default="cli", show_default=True, help="The origin of the text, as a word or a URL.")
@click.option("--collection", shell_complete=collections, help="The collection.  [default: documents]")
@click.option("--title", help="The title.")
@tags_option("A tag; repeat for several.")
@click.option("--metadata", metavar="JSON", help="More properties, as a JSON object.")
def capture(content: str | None, title: str | None, tags: tuple[str, ...], metadata: str | None, **rest: Any) -> None:
    """Save CONTENT as a capture in the inbox; without CONTENT, or with -, read it from stdin."""
    properties = _parse_object(metadata)
    properties |= {"title": title} if title else {}
    properties |= {"tags": list(tags)} if tags else {}
    text = read_stdin() if content is None or content == "-" else content
    if not text.strip():
        raise InvalidArgument(
            'the capture has no text, so nothing was saved: give one, as in memex capture "Call the plumber", or pipe it in'
        )
    made = ask("capture", {**rest, "content": text, "metadata": properties or None})
    _print_warnings(made)
    print_answer(
        made,
        lambda: (
            f"{made['id']}  {result_text.sanitize(made['path'])}"
            + ("" if made.get("created", True) else f"  (existed already{_describe_ignored(made, properties)})")
        ),
    )


def _describe_ignored(made: Mapping[str, Any], properties: Mapping[str, Any]) -> str:
    """Return which of these properties a repeated capture did not change in the existing note; "" for none."""
    from syncd.documents.capture_note import split_metadata  # noqa: PLC0415 - it imports the parser of properties

    rest, title, tags = split_metadata(properties)
    more = {key: value for key, value in rest.items() if value is not None}
    ignored = [
        *(["title"] if title not in (None, made["title"]) else []),
        *(["tags"] if set(map(filter_key, tags)) - set(map(filter_key, made["tags"])) else []),
        *(["metadata"] if not more.items() <= made["metadata"].items() else []),
    ]
    return f"; unchanged: its {', '.join(ignored)}; to change a note: memex updatenote" if ignored else ""


@click.command(cls=Command)
@notes_argument("id", "ID|PATH", complete=captures)
@click.option("--workspace", "-w", shell_complete=workspaces, help="Only if the note is in this workspace.")
@click.option("--links", is_flag=True, help="Print the links to other notes and from them, instead of the text.")
def get(id: str, workspace: str | None, links: bool) -> None:
    """Print the text of a note, without its properties; with --json, print both.

    With --links, → begins a link of the note, and ← a note that links to it. With --json --links also {"links": [{"target",
    "subpath", "kind", "path"}], "backlinks": [{"path", "title"}]}."""
    kept = ask("get", {"id": id, "workspace": workspace, "links": links or None, "passages": wants_json()})
    if links and not wants_json():
        print_text(result_text.format_links(kept))
    else:
        print_note(kept)


@click.command(cls=Command)
@WORKSPACE
@limit_option("The most captures to list.", 20)
def recent(workspace: str | None, limit: int) -> None:
    """List the captures that were created or changed last."""
    records = cut_rows(ask("recent", {"workspace": workspace, "limit": limit + 1}), limit, "captures")
    print_answer(records, lambda: result_text.captures_table(records, None, color=has_color()))


@click.command(cls=Command)
@notes_argument("id", "ID|PATH", complete=captures)
@click.option("--workspace", "-w", shell_complete=workspaces, help="Only if the note is in this workspace.")
@YES
def delete(id: str, workspace: str | None, yes: bool) -> None:
    """Delete a capture: its file, and its entries in the index. `memex undo` restores it."""
    wanted = {"id": id, "workspace": workspace}
    if not yes:
        wanted["id"] = _confirm_deletion(wanted)
    gone = ask("delete", wanted)
    kept = load_settings().git.past_days > 0
    print_answer(
        gone,
        lambda: f"deleted {result_text.line(gone['path'], 300)}  {gone['id']}\n{way_back(gone['undo'], kept=kept)}",
    )


def _confirm_deletion(wanted: Mapping[str, Any]) -> str:
    """Ask whether to delete the capture that is meant, with its title, and return its path. Raises NotFound without a question."""
    note = ask("get", {**wanted, "scope": "captures", "passages": False})
    path = str(note["path"])
    title = f"{result_text.line(note['title'], 100)!r} " if note.get("title") else ""
    confirm(f"Delete the capture {title}({result_text.line(path, 300)})?", yes=False)
    return path


def _parse_object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except (json.JSONDecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidArgument('--metadata must be a JSON object, such as {"project": "alpha"}')
    return value


@click.command(cls=Command)
@notes_argument("id", "ID|PATH", complete=captures)
@click.argument("text", required=False)
@click.option("--workspace", "-w", shell_complete=workspaces, help="Only if the note is in this workspace.")
@click.option("--title", help="The new title.")
@tags_option("A tag that replaces the present tags; repeat for several.")
@click.option("--collection", shell_complete=collections, help="The new collection.")
@click.option("--version", type=click.IntRange(1), help="Update only if the note still has this version.")
def updatenote(
    id: str, text: str | None, workspace: str | None, tags: tuple[str, ...], version: int | None, **fields: Any
) -> None:
    """Change the text, title, tags or collection of a note; its id, its file and its creation time stay.

    TEXT replaces the whole text; - reads it from stdin. Without TEXT and options, the note opens in $EDITOR, or the text is
    read from a pipe."""
    update = {**fields, "id": id, "workspace": workspace, "tags": list(tags) or None, "version": version}
    only = text is None and any(update[name] is not None for name in ("title", "tags", "collection"))
    if text is None and not only and sys.stdin.isatty() and not wants_json():
        _edit_note(update)
        return
    if text in (None, "-") and not only:
        text = read_stdin()
    _print_updated(_ask_for_update(update, text))


def _ask_for_update(update: Mapping[str, Any], text: str | None) -> dict[str, Any]:
    """Send an update with the new text, None for an unchanged one. Raises InvalidArgument for a blank text."""
    if text is not None and not text.strip():
        raise InvalidArgument("the new text is blank, so the note was not changed; to delete the note: memex delete ID")
    return dict(ask("updatenote", {**update, "text": text}))


def _edit_note(update: dict[str, Any]) -> None:
    """Open the note in the editor, and save it unless an agent has changed the note in the meantime."""
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
            print_message("memex: no changes")
        else:
            version = update["version"] or kept["version"]
            _print_updated(_ask_for_update({**update, "version": version}, _decode_text(raw)))
    except (MemexError, click.ClickException):
        print_message(f"memex: the note was not changed; your text is in {result_text.sanitize(name)}")
        raise
    draft.unlink()


def _decode_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"the edited text is not UTF-8 (byte {error.start})") from None


def _print_warnings(note: Mapping[str, Any]) -> None:
    """Print what is wrong with a note that was written, as its defects say."""
    for defect in note.get("defects", ()):
        print_message(f"memex: {defect}")


def _print_updated(done: dict[str, Any]) -> None:
    _print_warnings(done)
    version = f"  version {done['version']}" + ("" if done["changed"] else "  (unchanged)")
    print_answer(done, lambda: f"{done['id']}  {result_text.sanitize(done['path'])}{version}")
