"""Check for the doctor what agents get: contexts and shares, hooks at the start of sessions, and a memory beside Memex."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any, Final

from index.errors import Unavailable
from index.names import pluralize
from syncd.cli.doctor.doctor import DoctorContext, Finding, quote_path
from syncd.context.stray_notes import find_stray_notes
from syncd.sharing.share_problems import find_share_problems
from syncd.sharing.share_rules import ShareRules
from syncd.state import ledger
from syncd.state.folder import LEDGER, expand_home
from syncd.state.hook_log import HookRun, read_runs
from syncd.vault.vault import Vault

NAMED: Final = 3  # most paths in one finding
RECENT: Final = 10  # runs of a host's hook that are looked at
TROUBLES: Final[Mapping[str, tuple[str, str]]] = {
    "no-daemon": ("no daemon ran", "memex service install"),
    "slow": ("the daemon took too long", "memex status"),
    "failed": ("the command failed", "memex context --explain"),
}


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
        yield Finding("advice", says, f"mv {folder} {quote_path(context.vault / inbox / 'default')}/")


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
        yield Finding("advice", says, mend)
    if count and not problems:
        yield Finding("ok", f"{pluralize(count, 'share')}; memex share preview lists what agents read")


def _daemon_fact(context: DoctorContext, part: str, name: str) -> Any:
    """Return a fact of the running daemon; None without one, and if it does not report the fact."""
    return ((context.daemon or {}).get(part) or {}).get(name)


def _read_share_problems(context: DoctorContext) -> tuple[list[dict[str, Any]], int]:
    """Return the problems of the shares in the ledger, and the number of shares."""
    inbox = context.settings.vault.inbox
    entries: dict[str, list[str]] = {}
    if (rows := _read_rows(context, "SELECT workspace, entry FROM shares")) is None:
        return [], 0
    for workspace, entry in rows:
        entries.setdefault(workspace, []).append(entry)
    rules = ShareRules(inbox, tuple(context.settings.share.never), entries)
    with closing(Vault(context.vault)) as vault:
        problems = find_share_problems(vault, rules, vault.list_folders(inbox))
    return [asdict(problem) for problem in problems], len(rows)


def check_hooks(context: DoctorContext) -> Iterator[Finding]:
    """Report how the hooks at the start of sessions fared lately."""
    by_client: dict[str, list[HookRun]] = {}
    for run in read_runs(context.state):
        by_client.setdefault(run.client, []).append(run)
    for client, runs in sorted(by_client.items()):
        recent = runs[-RECENT:]
        troubles = Counter(run.outcome for run in recent if run.outcome in TROUBLES)
        if not troubles:
            times = median(run.milliseconds for run in recent)
            began = pluralize(len(recent), "recent session")
            yield Finding("ok", f"{client}: {began} began with the context, in {times:.0f} ms")
            continue
        outcome = troubles.most_common(1)[0][0]
        why, mend = TROUBLES[outcome]
        problem = next((run.problem for run in reversed(recent) if run.outcome == outcome and run.problem), "")
        says = f"{client}: {sum(troubles.values())} of {pluralize(len(recent), 'recent session')} began without the context, mostly because {why}"
        yield Finding("advice", says + (f" ({problem})" if problem else ""), mend)


def check_memory(context: DoctorContext) -> Iterator[Finding]:
    """Report connected hosts that also keep a memory of their own, in which agents may save what Memex then lacks."""
    names = _connected_clients(context)
    if "claude-code" in names and (file := _claude_memory(context.environ)):
        says = "Claude Code has auto memory on, so it may save facts in its own files instead of Memex"
        yield Finding("advice", says, f'set "autoMemoryEnabled": false in {quote_path(file)}')
    if "codex" in names and (file := _codex_memory(context.environ)):
        says = "Codex has memories on, so it may save facts in its own files instead of Memex"
        yield Finding("advice", says, f"set memories = false under [features] in {quote_path(file)}")


def _connected_clients(context: DoctorContext) -> set[str]:
    """Return the clients that have a valid key of `memex connect`."""
    rows = _read_rows(context, "SELECT name FROM keys WHERE revoked_at IS NULL") or ()
    return {str(name).partition("@")[0] for (name,) in rows if "@" in str(name)}


def _claude_memory(environ: Mapping[str, str]) -> Path | None:
    """Return Claude Code's settings file if its auto memory is on.

    code.claude.com/docs, "How Claude remembers your project": on by default; `autoMemoryEnabled` and the environment variable
    CLAUDE_CODE_DISABLE_AUTO_MEMORY turn it off."""
    file = _folder(environ, "CLAUDE_CONFIG_DIR", ".claude") / "settings.json"
    settings = _read(file, json.loads)
    variables = settings.get("env")
    disabled = variables.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY") if isinstance(variables, dict) else None
    disabled = environ.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY", disabled)
    is_off = settings.get("autoMemoryEnabled") is False or str(disabled).casefold() in {"1", "true"}
    return None if is_off else file


def _codex_memory(environ: Mapping[str, str]) -> Path | None:
    """Return Codex's settings file if its memories are on.

    developers.openai.com/codex, "Memories": off by default; `memories` in the table `features` turns them on."""
    file = _folder(environ, "CODEX_HOME", ".codex") / "config.toml"
    features = _read(file, tomllib.loads).get("features")
    return file if isinstance(features, dict) and features.get("memories") is True else None


def _folder(environ: Mapping[str, str], variable: str, usual: str) -> Path:
    named = environ.get(variable)
    return expand_home(named) if named else Path(environ.get("HOME") or Path.home()) / usual


def _read(file: Path, load: Any) -> dict[str, Any]:
    """Return the values of a settings file; none if it is missing or malformed."""
    try:
        values = load(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _read_rows(context: DoctorContext, query: str) -> list[tuple[Any, ...]] | None:
    """Return the rows of a query in the ledger, none if it is missing; None if it can't be read, which another check reports."""
    file = context.state / LEDGER
    try:
        return list(ledger.query_read_only(file, query)) if file.exists() else []
    except (Unavailable, OSError):
        return None


AGENT_CHECKS = (check_contexts, check_shares, check_hooks, check_memory)
