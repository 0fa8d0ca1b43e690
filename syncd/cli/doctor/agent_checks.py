"""Check the agent hosts for the doctor: how their hooks fared, and whether a memory of their own competes with Memex."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

from index.errors import Unavailable
from index.names import pluralize
from syncd.cli.doctor.doctor import DoctorContext, Finding, quote_path
from syncd.state import ledger
from syncd.state.folder import LEDGER, expand_home
from syncd.state.hook_log import HookRun, read_runs

RECENT: Final = 10  # runs of a host's hook that are looked at
TROUBLES: Final[Mapping[str, tuple[str, str]]] = {
    "no-daemon": ("no daemon ran", "memex service install"),
    "slow": ("the daemon took too long", "memex status"),
    "failed": ("the command failed", "memex context --explain"),
}


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
            yield Finding("hooks", "ok", f"{client}: {began} began with the context, in {times:.0f} ms")
            continue
        outcome = troubles.most_common(1)[0][0]
        why, mend = TROUBLES[outcome]
        problem = next((run.problem for run in reversed(recent) if run.outcome == outcome and run.problem), "")
        says = f"{client}: {sum(troubles.values())} of {pluralize(len(recent), 'recent session')} began without the context, mostly because {why}"
        yield Finding("hooks", "advice", says + (f" ({problem})" if problem else ""), mend)


def check_host_memory(context: DoctorContext) -> Iterator[Finding]:
    """Report connected hosts that also keep a memory of their own, in which agents may save what Memex then lacks."""
    names = _connected_clients(context)
    if "claude-code" in names and (file := _claude_memory(context.environ)):
        says = "Claude Code has auto memory on, so it may save facts in its own files instead of Memex"
        yield Finding("memory", "advice", says, f'set "autoMemoryEnabled": false in {quote_path(file)}')
    if "codex" in names and (file := _codex_memory(context.environ)):
        says = "Codex has memories on, so it may save facts in its own files instead of Memex"
        yield Finding("memory", "advice", says, f"set memories = false under [features] in {quote_path(file)}")


def _connected_clients(context: DoctorContext) -> set[str]:
    """Return the clients that have a valid key of `memex connect`."""
    file = context.state / LEDGER
    try:
        if not file.exists():
            return set()
        rows = list(ledger.query_read_only(file, "SELECT name FROM keys WHERE revoked_at IS NULL"))
    except (Unavailable, OSError):  # another check reports the ledger, or its folder
        return set()
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


AGENT_CHECKS = (check_hooks, check_host_memory)
