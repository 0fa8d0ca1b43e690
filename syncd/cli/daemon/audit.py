"""Define the command `audit`: list the audit log, show an entry, verify its chain, export and prune it."""

from __future__ import annotations

import json
import sys
import time
from datetime import tzinfo
from pathlib import Path
from typing import Any

import click

from index.names import pluralize
from index.timings import now_ms
from syncd.cli.framework.arguments import WORKSPACE, check_workspace, limit_option, parse_time
from syncd.cli.framework.commands import (
    Group,
    ask,
    has_color,
    load_settings,
    open_session,
    print_answer,
    print_data,
    print_message,
    print_text,
    show_progress,
    wants_json,
)
from syncd.cli.framework.completion import keys
from syncd.cli.terminal import result_text
from syncd.daemon import control_socket
from syncd.state.folder import expand_home

UNPROVEN = 7
SURFACES = ("mcp", "rest", "cli", "daemon", "file")
EVERY_S = 1.0
PAGE = 1_000
# What a filter names, and where its values are listed.
NAMED = {
    "key": ("with the key", "memex key list"),
    "tool": ("of the tool", "memex audit (column tool)"),
    "id": ("about the note", "memex audit (column note)"),
    "request": ("of the call", "memex audit --json (field request)"),
}


@click.group(cls=Group, invoke_without_command=True)
@click.option("--since", metavar="TIME", help="Only entries at or after 2026-11-20, or 7d ago.")
@click.option("--until", metavar="TIME", help="Only entries before this time.")
@click.option("--key", shell_complete=keys, help="Only writes with this key, by name or id.")
@click.option("--tool", help="Only writes of this tool or command.")
@click.option(
    "--surface",
    type=click.Choice(SURFACES),
    help="Only writes over this interface; `file`: entities changed outside Memex.",
)
@WORKSPACE
@click.option("--id", "note_id", help="Only the note with this id or path.")
@click.option("--call", "request", help="Only the call with this id.")
@click.option(
    "--before-entry", "before", metavar="ENTRY", type=int, help="Only entries before the one with this number."
)
@limit_option("The number of newest entries to show.", 50)
@click.option("--follow", is_flag=True, help="Keep printing new entries until Ctrl-C.")
@click.pass_context
def audit(
    ctx: click.Context,
    /,
    *,
    since: str | None,
    until: str | None,
    note_id: str | None,
    before: int | None,
    limit: int,
    follow: bool,
    **wanted: str | None,
) -> None:
    """Show the audit log, the newest entry last: every write to the inbox by an agent, a command or the daemon.

    The log also holds refused writes, entities that were changed outside Memex and, with audit.reads, the notes that agents
    read. It records ids, paths, sizes and digests, never the text of a note. With --json: [{"seq", "at", "kind", "surface", "tool", "request", "key", "name", "workspace",
    "type", "id", "path", "bytes", "before", "after", "outcome", "undoes", "seal", "address"}]."""
    if ctx.invoked_subcommand is not None:
        return
    asked: dict[str, Any] = {
        **wanted,
        "id": note_id,
        "before": before,
        "since": parse_time(since, now_ms()),
        "until": parse_time(until, now_ms()),
    }
    entries = ask("audit.list", {**asked, "limit": limit})
    if not follow:
        _name_unknown({} if entries else asked)
        print_answer(entries, lambda: table(entries, None, color=has_color()))
        return
    after = 0
    while True:
        _print_entries(entries)
        after = max([after, *(entry["seq"] for entry in entries)])
        time.sleep(EVERY_S)
        arguments = {
            name: value for name, value in {**asked, "after": after, "limit": PAGE}.items() if value is not None
        }
        entries = control_socket.call(load_settings().state, "audit.list", arguments)


@audit.command("show")
@click.argument("entry", type=click.IntRange(1))
def audit_show(entry: int) -> None:
    """Show all fields of the entry with the number ENTRY, and the lines that its write changed.

    With --json: the fields of `memex audit`, "diff" (null: the text is no longer kept), "additions" (the daemon's tools that added
    lines after this write; the diff contains these lines), "never_kept" (Memex keeps no text from before this addition) and "now"
    (the note's current path)."""
    result = ask("audit.show", {"entry": entry})
    print_answer(result, lambda: format_entry(result, None, color=has_color()))


@audit.command("verify")
@click.argument("file", required=False, type=click.Path(dir_okay=False, exists=True, path_type=Path))
@click.option(
    "--head", metavar="HEAD", help="A head of the log that you noted earlier; memex status shows the present one."
)
def audit_verify(file: Path | None, head: str | None) -> int:
    """Verify the audit log, or one that was exported to FILE: every entry must be unchanged, and none may be missing.

    Exits with 7 if the chain is broken, and lists where. The command also lists notes that differ from the log's last entry
    on them: they were changed outside Memex. If files can't be read, it lists them with the reasons, and exits with 7. A
    process that can write to the log could replace all of it, and the chain alone does not show that: note the head of the
    log elsewhere, and pass it to --head.
    With --json: {"entries", "first", "head", "broken", "breaks", "changed", "gone", "unlogged", "unread": {path: reason}}."""
    if file is None:
        result = ask("audit.verify", {"head": head})
    else:
        from dataclasses import asdict  # noqa: PLC0415 - as below

        from syncd.owner.audit import verify_file  # noqa: PLC0415 - it brings the vault's parts

        with file.open(encoding="utf-8") as lines:
            check = verify_file(lines, head)
        result = asdict(check) | {"head": str(check.head)}
    print_answer(result, lambda: format_verification(result))
    return UNPROVEN if result["broken"] or result.get("unread") else 0


@audit.command("export")
def audit_export() -> None:
    """Print every entry as one line of JSON, the oldest first. `memex audit verify FILE` can verify the result."""
    after, first = 0, 1
    with show_progress() as progress, open_session() as call:
        total = max((entry["seq"] for entry in call("audit.list", {"limit": 1})), default=0)
        while entries := call("audit.list", {"after": after, "limit": PAGE}):
            progress({})
            first = first if after else entries[0]["seq"]
            for entry in entries:
                print_data(json.dumps(entry, ensure_ascii=False))
            after = entries[-1]["seq"]
            progress({"stage": "exporting", "done": after - first + 1, "total": max(after, total) - first + 1})


@audit.command("prune")
@click.option(
    "--before", required=True, metavar="TIME", help="Move entries before this time, such as 2026-01-01 or 365d ago."
)
@click.option("--to", "target", required=True, type=click.Path(dir_okay=False), help="The new file to move them to.")
@click.option("--force", is_flag=True, help="Prune even if the chain is broken; find out the cause first.")
def audit_prune(before: str, target: str, force: bool) -> None:
    """Move old entries to a file, in the format of `memex audit export`. The remaining log can still be verified.

    Memex never removes entries of the log by itself."""
    then = parse_time(before, now_ms())
    file = str(expand_home(target).absolute())
    done = ask("audit.prune", {"before": then, "file": file, "force": force})
    what = "entry was" if done["pruned"] == 1 else "entries were"
    print_answer(
        done,
        lambda: (
            f"{done['pruned']:,} {what} moved to {done['file']}" if done["pruned"] else "no entry is older than that"
        ),
    )


def _name_unknown(asked: dict[str, Any]) -> None:
    """Report each value of a filter that no entry of the log has. Raises NotFound for an unknown workspace."""
    check_workspace(ask, asked.get("workspace"))
    for name, (what, where) in NAMED.items():
        if asked.get(name) and not ask("audit.list", {name: asked[name], "limit": 1}):
            value = result_text.line(asked[name], 200)
            print_message(f"memex: the log has no entry {what} {value!r}; to see the known ones: {where}")


def _print_entries(entries: list[dict[str, Any]]) -> None:
    """Print entries as they arrive, one line each; with --json, one line of JSON each."""
    for entry in entries:
        print_text(
            json.dumps(entry, ensure_ascii=False) if wants_json() else "  ".join(filter(None, entry_cells(entry, None)))
        )
    sys.stdout.flush()


def table(entries: list[dict[str, Any]], zone: tzinfo | None, *, color: bool) -> str:
    """Format one line for each entry."""
    heads = ("entry", "at", "what", "by", "tool", "key", "note")
    return (
        result_text.table([entry_cells(entry, zone) for entry in entries], heads, color=color)
        if entries
        else "no entries"
    )


def entry_cells(entry: dict[str, Any], zone: tzinfo | None) -> tuple[str, ...]:
    """Format the columns of an entry for people."""
    at = result_text.format_time(entry["at"], zone, timespec="seconds")
    what = entry["kind"] if entry["outcome"] == "done" else f"{entry['kind']} ({entry['outcome']})"
    who = entry["name"] or entry["key"]
    by = f"{entry['surface']} {entry.get('address', '')}".rstrip()
    texts = (str(entry["seq"]), at, what, by, entry["tool"], who, entry["path"] or entry["workspace"])
    return tuple(result_text.line(text, 100) for text in texts)


def format_entry(entry: dict[str, Any], zone: tzinfo | None, *, color: bool) -> str:
    """Format the fields of an entry that have a value, one a line, and the changed lines."""
    at = result_text.format_time(entry["at"], zone, timespec="seconds")
    fields = {
        name: value for name, value in entry.items() if name not in ("diff", "at", "additions", "never_kept") and value
    }
    lines = [f"{name:<10}{result_text.line(str(value), 1_000)}" for name, value in [("at", at), *fields.items()]]
    if entry["additions"]:
        lines.append(result_text.describe_additions(entry["additions"]))
    if entry["path"] and entry["type"] != "file":
        lines += result_text.format_diff(entry["diff"], color=color, never_kept=entry.get("never_kept", False))
    return "\n".join(lines)


def format_verification(result: dict[str, Any]) -> str:
    """Format the result of a verification."""
    lines = [
        f"{pluralize(result['entries'], 'entry')} from number {result['first']} on, all unchanged; head {result['head']}"
    ]
    if result["broken"]:
        lines = [f"the log is broken in {pluralize(result['broken'], 'place')}:"]
        lines += [f"- {result_text.line(text, 300)}" for text in result["breaks"]]
    for what, files in (
        ("could not be read, and were not compared", [": ".join(row) for row in result.get("unread", {}).items()]),
        ("changed outside Memex since", result.get("changed", [])),
        ("removed outside Memex", result.get("gone", [])),
        ("never written by Memex", result.get("unlogged", [])),
    ):
        if files:
            lines.append(f"{what}: {len(files):,}")
            lines += [f"- {result_text.line(text, 200)}" for text in files[:10]]
            lines += [f"… and {len(files) - 10:,} more: --json"] if len(files) > 10 else []
    return "\n".join(lines)
