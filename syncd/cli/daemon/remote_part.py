"""The command that brings the vault and its remote together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from syncd.cli.framework.commands import Command, answer, ask


@click.command(cls=Command)
@click.option("--pull", is_flag=True, help="Only take what the remote has.")
@click.option("--push", is_flag=True, help="Only send what it has not; if it has gone on, that is taken first.")
def sync(pull: bool, push: bool) -> None:
    """Bring the vault and the remote of its branch together now: pull, then push, whatever the settings plan.

    What Memex has written is committed first; your own uncommitted edits are left alone. What can't be merged without
    you touches no file: the answer names the command that resolves it.

    With --json: {"took": commits, "files": changed, "merged": bool, "sent": commits}."""
    found = ask("sync", {"pull": pull, "push": push})
    answer(found, lambda: _sentence(found))


def _sentence(found: Mapping[str, Any]) -> str:
    told = []
    if found["took"]:
        told.append(
            f"took {_many(found['took'], 'commit')}, which changed {_many(found['files'], 'file')}"
            + (", merged with your own" if found["merged"] else "")
        )
    if found["sent"]:
        told.append(f"sent {_many(found['sent'], 'commit')}")
    return "; ".join(told) or "both had the same already"


def _many(count: int, one: str) -> str:
    return f"{count:,} {one if count == 1 else one + 's'}"
