"""The command for the audit log: who wrote what and when, whether the log is whole, and what to do when it has grown long."""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import click

from syncd import control, render
from syncd.cli_arguments import moment
from syncd.cli_complete import keys, workspaces
from syncd.cli_frame import Group, answer, as_json, ask, color, now, out, settings

BROKEN = 7
SURFACES = ("mcp", "rest", "cli", "daemon", "file")
EVERY_S = 1.0
PAGE = 1_000


@click.group(cls=Group, invoke_without_command=True)
@click.option("--since", metavar="TIME", help="Only entries at or after 2026-11-20, or 7d ago.")
@click.option("--until", metavar="TIME", help="Only entries before it.")
@click.option("--key", shell_complete=keys, help="Only what this key did: its name or id.")
@click.option("--tool", help="Only what this tool or command did.")
@click.option(
    "--surface", type=click.Choice(SURFACES), help="Only what came in this way; `file`: nodes changed by hand."
)
@click.option("--workspace", "-w", shell_complete=workspaces, help="Only this workspace.")
@click.option("--id", "own", help="Only the note with this id.")
@click.option(
    "--limit", "-n", type=click.IntRange(1, 10_000), default=50, show_default=True, help="The newest so many."
)
@click.option("--follow", is_flag=True, help="Go on with what the daemon writes, until Ctrl-C.")
@click.pass_context
def audit(
    ctx: click.Context,
    /,
    *,
    since: str | None,
    until: str | None,
    own: str | None,
    limit: int,
    follow: bool,
    **wanted: str | None,
) -> None:
    """Show who wrote what into the inbox, the newest last: every write by an agent, a command or the daemon itself.

    Also writes that were not allowed, and nodes that were changed by hand. It tells ids, paths, sizes and digests, never
    the text of a note. With --json: [{"seq", "at", "kind", "surface", "tool", "request", "key", "name", "workspace",
    "type", "id", "path", "bytes", "before", "after", "outcome", "undoes", "seal"}]."""
    if ctx.invoked_subcommand is not None:
        return
    asked: dict[str, Any] = {**wanted, "id": own, "since": moment(since, now()), "until": moment(until, now())}
    found = ask("audit.list", {**asked, "limit": limit})
    if not follow:
        answer(found, lambda: table(found, None, color=color()))
        return
    after = 0
    while True:
        _show(found)
        after = max([after, *(one["seq"] for one in found)])
        time.sleep(EVERY_S)
        given = {name: value for name, value in {**asked, "after": after, "limit": PAGE}.items() if value is not None}
        found = control.call(settings().state, "audit.list", given)


@audit.command("verify")
@click.argument("file", required=False, type=click.Path(dir_okay=False, exists=True, path_type=Path))
@click.option("--head", metavar="HEAD", help="An end of the log that you noted down before, as memex status tells it.")
def audit_verify(file: Path | None, head: str | None) -> int:
    """Look through the whole log, or one that was exported to FILE: each entry must be as it was written, and none missing.

    Exits with 7 where the chain is broken, and says where. Notes that are not as the log last knew them are listed too:
    they were changed by hand. Whoever can write the log can also write all of it anew: note its head down elsewhere, and
    pass it to --head. With --json: {"entries", "first", "head", "broken", "breaks", "changed", "gone", "unlogged"}."""
    if file is None:
        found = ask("audit.verify", {"head": head})
    else:
        from dataclasses import asdict  # noqa: PLC0415 - as below

        from syncd.owner_audit import of_file  # noqa: PLC0415 - it brings the vault's parts

        with file.open(encoding="utf-8") as lines:
            told = of_file(lines, head)
        found = asdict(told) | {"head": str(told.head)}
    answer(found, lambda: report(found))
    return BROKEN if found["broken"] else 0


@audit.command("export")
def audit_export() -> None:
    """Print every entry, the oldest first, as one line of JSON each; `memex audit verify FILE` can check them."""
    after = 0
    while found := ask("audit.list", {"after": after, "limit": PAGE}):
        for one in found:
            out(json.dumps(one, ensure_ascii=False))
        after = found[-1]["seq"]


@audit.command("prune")
@click.option("--before", required=True, metavar="TIME", help="Older entries go: before 2026-01-01, or 365d ago.")
@click.option("--to", "target", required=True, type=click.Path(dir_okay=False), help="The new file that they go into.")
@click.option("--force", is_flag=True, help="Also where the chain is broken, once you know why.")
def audit_prune(before: str, target: str, force: bool) -> None:
    """Move old entries into a file, as export writes them. What is left stays provable, and what the log knows of notes stays.

    Nothing of the log ever goes by itself."""
    then = moment(before, now())
    file = str(Path(target).expanduser().absolute())
    done = ask("audit.prune", {"before": then, "file": file, "force": force})
    what = "entry was" if done["pruned"] == 1 else "entries were"
    answer(
        done, lambda: f"{done['pruned']:,} {what} moved to {done['file']}" if done["pruned"] else "nothing is so old"
    )


def _show(found: list[dict[str, Any]]) -> None:
    """Entries as they come: a line of JSON each for a script."""
    for one in found:
        out(json.dumps(one, ensure_ascii=False) if as_json() else "  ".join(filter(None, cells(one, None))))
    sys.stdout.flush()


def table(found: list[dict[str, Any]], zone: tzinfo | None, *, color: bool) -> str:
    """One line for each entry."""
    heads = ("entry", "at", "what", "by", "tool", "key", "note")
    return render.table([cells(one, zone) for one in found], heads, color=color) if found else "no entries"


def cells(one: dict[str, Any], zone: tzinfo | None) -> tuple[str, ...]:
    """An entry as people read it."""
    at = datetime.fromtimestamp(one["at"] / 1000, zone).strftime("%Y-%m-%d %H:%M:%S")
    what = one["kind"] if one["outcome"] == "done" else f"{one['kind']} ({one['outcome']})"
    who = one["name"] or one["key"]
    told = (str(one["seq"]), at, what, one["surface"], one["tool"], who, one["path"] or one["workspace"])
    return tuple(render.line(text, 100) for text in told)


def report(found: dict[str, Any]) -> str:
    """What came of looking through the log."""
    lines = [f"{found['entries']:,} entries, from {found['first']} on, are as they were written; head {found['head']}"]
    if found["broken"]:
        lines = [f"the log is broken in {found['broken']:,} place{'s' if found['broken'] > 1 else ''}:"]
        lines += [f"- {render.line(text, 300)}" for text in found["breaks"]]
    for key, what in (
        ("changed", "changed by hand since"),
        ("gone", "gone by hand"),
        ("unlogged", "never written by Memex"),
    ):
        if paths := found.get(key):
            lines.append(f"{what}: {len(paths):,}")
            lines += [f"- {render.line(path, 200)}" for path in paths[:10]]
            lines += [f"… and {len(paths) - 10:,} more: --json"] if len(paths) > 10 else []
    return "\n".join(lines)
