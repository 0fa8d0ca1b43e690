"""The command that commits what Memex wrote, without waiting until it is quiet."""

from __future__ import annotations

from typing import Any

import click

from syncd.cli.framework.commands import Command, answer, ask
from syncd.cli.terminal import result_text

SHOWN = 20  # paths of one commit


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Say what would be committed, and change nothing.")
def commit(*, dry_run: bool) -> None:
    """Commit now what Memex wrote into the vault: captures, promotions, reports. Your own edits and stage stay as they are.

    The daemon does so by itself once nothing was written for `git.quiet_s` seconds; this does not wait, and also works where
    `git.commit` is off. A promotion that Git did not let be committed when it was made gets the commit that it is owed. What
    looks like a secret or an unfinished merge, what you have edited since or staged otherwise, and what a .gitignore names is
    left out and listed. Exits with 5 when Git does not allow a commit just now. With --json:
    {"commits": [{"commit", "subject", "paths"}], "kept": [{"path", "why"}], "edited": [PATH]}."""
    found = ask("commit", {"dry_run": dry_run})
    answer(found, lambda: report(found, dry_run=dry_run))


def report(found: dict[str, Any], *, dry_run: bool) -> str:
    """What was committed, and what was not."""
    lines = []
    for one in found["commits"]:
        head = "would commit" if dry_run else one["commit"][:8]
        lines.append(f"{head}  {result_text.line(one['subject'], 100)}")
        lines += [f"  {result_text.line(path, 200)}" for path in one["paths"][:SHOWN]]
        lines += [f"  … and {len(one['paths']) - SHOWN:,} more"] if len(one["paths"]) > SHOWN else []
    lines = lines or ["nothing to commit"]
    lines += [f"kept local: {result_text.line(one['path'], 200)}: {one['why']}" for one in found["kept"]]
    lines += [f"left to you: {result_text.line(path, 200)}: edited before it was committed" for path in found["edited"]]
    return "\n".join(lines)
