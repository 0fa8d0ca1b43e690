"""Check what agents get besides captures for the doctor: the folder of contexts, and the shares of the vault's notes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from typing import Any, Final

from index.errors import Unavailable
from index.names import pluralize
from syncd.cli.doctor.doctor import DoctorContext, Finding, quote_path
from syncd.context.stray_notes import find_stray_notes
from syncd.sharing.share_problems import find_share_problems
from syncd.sharing.share_rules import ShareRules
from syncd.state import ledger
from syncd.state.folder import LEDGER
from syncd.vault.vault import Vault

NAMED: Final = 3  # most paths in one finding


def check_contexts(context: DoctorContext) -> Iterator[Finding]:
    """Report notes that lie in the folder of contexts, such as those of a workspace with the reserved name."""
    if not context.vault.is_dir():
        return
    inbox = context.settings.vault.inbox
    strays = _daemon_fact(context, "contexts", "strays")
    if strays is None:
        with closing(Vault(context.vault)) as vault:
            strays = find_stray_notes(vault, inbox)
    if strays:
        more = f" and {len(strays) - NAMED:,} more" if len(strays) > NAMED else ""
        named = ", ".join(strays[:NAMED])
        says = f"{named}{more}: only Memex writes contexts there, so no search finds what is yours, and a note that has the place of a context keeps it from agents"
        folder = quote_path(context.vault / strays[0].rstrip("/"))
        yield Finding("contexts", "advice", says, f"mv {folder} {quote_path(context.vault / inbox / 'default')}/")


def check_shares(context: DoctorContext) -> Iterator[Finding]:
    """Report shares through which agents read nothing."""
    if not context.vault.is_dir():
        return
    problems, count = _daemon_fact(context, "shares", "problems"), _daemon_fact(context, "shares", "count")
    if problems is None:
        problems, count = _read_share_problems(context)
    for problem in problems:
        says = f"{problem['entry']} is shared with the workspace {problem['workspace']}, but {problem['reason']}"
        mend = f"memex share remove {quote_path(problem['entry'])} --workspace {quote_path(problem['workspace'])}"
        yield Finding("shares", "advice", says, mend)
    if count and not problems:
        yield Finding("shares", "ok", f"{pluralize(count, 'share')}; memex share preview lists what agents read")


def _daemon_fact(context: DoctorContext, part: str, name: str) -> Any:
    """Return a fact of the running daemon; None without one, and if it does not report the fact."""
    return ((context.daemon or {}).get(part) or {}).get(name)


def _read_share_problems(context: DoctorContext) -> tuple[list[dict[str, Any]], int]:
    """Return the problems of the shares in the ledger, and the number of shares."""
    file, inbox = context.state / LEDGER, context.settings.vault.inbox
    entries: dict[str, list[str]] = {}
    try:
        rows = list(ledger.query_read_only(file, "SELECT workspace, entry FROM shares")) if file.exists() else []
    except (Unavailable, OSError):  # another check reports the ledger, or its folder
        return [], 0
    for workspace, entry in rows:
        entries.setdefault(workspace, []).append(entry)
    rules = ShareRules(inbox, tuple(context.settings.share.never), entries)
    with closing(Vault(context.vault)) as vault:
        problems = find_share_problems(vault, rules, vault.list_folders(inbox))
    return [asdict(problem) for problem in problems], len(rows)


SHARE_CHECKS: Final = (check_contexts, check_shares)
