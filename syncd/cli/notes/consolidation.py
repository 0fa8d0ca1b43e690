"""Define the command for consolidation: `consolidate` scans the inbox now and writes a report with a box for each proposal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from index.errors import InvalidArgument
from index.names import pluralize
from syncd.cli.framework.arguments import WORKSPACE
from syncd.cli.framework.commands import Command, ask, print_answer
from syncd.cli.notes.promotion import SOME_FAILED
from syncd.cli.terminal import result_text


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Print the report without writing it.")
@click.option(
    "--list", "listed", is_flag=True, help="List the proposals that wait, and those carried out last, by their keys."
)
@click.option("--accept", metavar="KEY", multiple=True, help="Tick this proposal and carry it out; repeat for several.")
@click.option(
    "--dismiss",
    metavar="KEY",
    multiple=True,
    help="Dismiss this proposal, so that Memex does not ask again; repeat for several.",
)
@click.option("--undo", metavar="KEY", help="Undo this proposal that was carried out.")
@WORKSPACE
def consolidate(
    dry_run: bool, workspace: str | None, listed: bool, undo: str | None, **answers: tuple[str, ...]
) -> int:
    """Scan the inbox for what needs attention, and write a report with a checkbox for each proposal.

    Memex first carries out the ticked proposals of earlier reports. If there is nothing new, it writes no report. With
    --workspace, the report covers one workspace and is printed, not written. If --accept did not carry out a proposal, the exit code is 5. With --json: {"workspaces": [{"workspace", "documents", "duplicates", "near",
    "synonyms", "relations", "unused", "clusters", "stale_summaries", "orphaned_nodes", "degraded"}], "proposals",
    "new", "report", "carried": [{"done", "said"}]}, and "text" if the report is printed. With --json and --list: {"proposals": [{"key", "report", "ticked",
    "kind", "workspace", "sentence", "reason", "would", "adds", "notes"}], "carried": [{"key", "kind", "subject", "said", "at", "by", "undone",
    "commit", "files": [{"path", "did"}], "more"}], "waiting", "accepted", "report", "problem", "at"}; with --accept or --dismiss {"dismissed", "carried": [{"key", "done", "said"}],
    "problem"}; with --undo {"key", "changed"}."""
    if sum((dry_run or workspace is not None, listed, any(answers.values()), undo is not None)) > 1:
        raise InvalidArgument("give only one of --list, --undo, --accept with --dismiss, and a scan with its options")
    if listed:
        listing = ask("consolidate.list", {})
        print_answer(listing, lambda: format_listing(listing))
        return 0
    if any(answers.values()):
        if both := sorted({*answers["accept"]} & {*answers["dismiss"]}):
            raise InvalidArgument(f"--accept and --dismiss both name {both[0]!r}, so nothing was changed")
        by_key = dict.fromkeys(answers["accept"], "accepted") | dict.fromkeys(answers["dismiss"], "dismissed")
        answered = ask("consolidate.answer", {"answers": by_key})
        print_answer(answered, lambda: format_answered(answered))
        is_done = all(outcome["done"] for outcome in answered["carried"]) and not answered["problem"]
        return 0 if is_done or not answers["accept"] else SOME_FAILED
    if undo is not None:
        undone = ask("consolidate.undo", {"key": undo})
        print_answer(undone, lambda: "\n".join(f"undone: {result_text.line(path, 300)}" for path in undone["changed"]))
        return 0
    result = ask("consolidate", {"dry_run": dry_run, "workspace": workspace})
    print_answer(result, lambda: format_result(result))
    return 0


def format_listing(listing: dict[str, Any]) -> str:
    """Format the proposals that wait, and those that were carried out last."""
    lines = [
        f"{row['key']}  {'ticked: ' if row['ticked'] else ''}{result_text.line(row['sentence'], 300)}"
        for row in listing["proposals"]
    ]
    for row in listing["carried"]:
        lines.append(f"{row['key']}  {'undone' if row['undone'] else 'done'}: {result_text.line(row['subject'], 200)}")
        lines += [f"    {file['did']}  {result_text.line(file['path'], 200)}" for file in row["files"]]
        lines += [f"    and {row['more']:,} more"] if row["more"] else []
    return "\n".join(lines) or "no proposal waits, and none was carried out"


def format_answered(answered: dict[str, Any]) -> str:
    """Format what became of answered proposals."""
    lines = _format_carried(answered["carried"])
    lines += [f"dismissed: {answered['dismissed']:,}"] if answered["dismissed"] else []
    lines += [f"not done yet: {result_text.line(answered['problem'], 300)}"] if answered["problem"] else []
    return "\n".join(lines) or "nothing was carried out"


def _format_carried(carried: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{'done' if outcome['done'] else 'not done'}: {result_text.line(outcome['said'], 300)}" for outcome in carried
    ]


def format_result(result: dict[str, Any]) -> str:
    """Format the result of a run for people."""
    if "text" in result:
        return result_text.sanitize(str(result["text"]).rstrip("\n"))
    lines = _format_carried(result["carried"])
    count = result["proposals"]
    waits = f"{pluralize(count, 'proposal')} {'waits' if count == 1 else 'wait'} for your answer"
    if result["report"]:
        lines.append(f"{waits}: {result_text.line(result['report'], 300)}")
    else:
        lines.append(f"{waits}; none is new" if count else "nothing needs attention")
    return "\n".join(lines)
