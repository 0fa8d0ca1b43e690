"""Define the command for consolidation: `consolidate` scans the inbox now and writes a report with a box for each proposal."""

from __future__ import annotations

from typing import Any

import click

from syncd.cli.framework.arguments import WORKSPACE
from syncd.cli.framework.commands import Command, ask, print_answer
from syncd.cli.terminal import result_text


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Print the report without writing it.")
@WORKSPACE
def consolidate(dry_run: bool, workspace: str | None) -> None:
    """Scan the inbox for what needs attention, and write a report with a checkbox for each proposal.

    Memex first carries out the ticked proposals of earlier reports. If there is nothing new, it writes no report. With
    --workspace, the report covers one workspace and is printed, not written. With --json: {"workspaces": [{"workspace", "documents", "duplicates", "near",
    "synonyms", "relations", "unused", "clusters", "stale_summaries", "orphaned_nodes", "degraded"}], "proposals",
    "new", "report", "carried": [{"done", "said"}]}, and "text" if the report is printed."""
    result = ask("consolidate", {"dry_run": dry_run, "workspace": workspace})
    print_answer(result, lambda: format_result(result))


def format_result(result: dict[str, Any]) -> str:
    """Format the result of a run for people."""
    if "text" in result:
        return result_text.sanitize(str(result["text"]).rstrip("\n"))
    lines = [
        f"{'done' if outcome['done'] else 'not done'}: {result_text.line(outcome['said'], 300)}"
        for outcome in result["carried"]
    ]
    count = result["proposals"]
    waits = f"{count:,} proposal{'' if count == 1 else 's'} wait{'s' if count == 1 else ''} for your answer"
    if result["report"]:
        lines.append(f"{waits}: {result_text.line(result['report'], 300)}")
    else:
        lines.append(f"{waits}; none is new" if count else "nothing needs attention")
    return "\n".join(lines)
