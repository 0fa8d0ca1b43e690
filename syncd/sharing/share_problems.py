"""Share problems are shares through which agents read nothing, for a reason that their owner may not know."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from index.errors import MemexError
from syncd.sharing.share_rules import BELOW, ShareRules
from syncd.vault.vault import Vault


@dataclass(frozen=True, slots=True)
class ShareProblem:
    """Names a share of a workspace, and why agents read nothing through it."""

    workspace: str
    entry: str
    reason: str


def find_share_problems(vault: Vault, rules: ShareRules, workspaces: Collection[str]) -> list[ShareProblem]:
    """Return the shares that lead nowhere, by workspace and entry."""
    return [
        ShareProblem(workspace, entry, reason)
        for workspace, entries in sorted(rules.entries.items())
        for entry in entries
        if (reason := _reason(vault, rules, entry, is_known=workspace in workspaces))
    ]


def _reason(vault: Vault, rules: ShareRules, entry: str, *, is_known: bool) -> str:
    path = entry.removesuffix(BELOW)
    if not is_known:
        return "the workspace does not exist"
    if reason := rules.why_excluded(path):
        return reason
    try:
        exists = vault.exists(path)
    except MemexError as error:
        return error.message
    return "" if exists else f"the {'folder' if entry.endswith(BELOW) else 'note'} does not exist"
