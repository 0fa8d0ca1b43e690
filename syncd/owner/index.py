"""Carry out the owner's commands on the index: status, update, rebuild, deep check."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

from index.errors import MemexError, Unavailable
from syncd.daemon.control_socket import Arguments, Progress
from syncd.daemon.health import Health
from syncd.daemon.open_parts import OpenParts
from syncd.jobs.scheduler import Scheduler
from syncd.sync.pipeline import Sync

log = logging.getLogger(__name__)

MANY: Final = 500  # changed notes after which the index is maintained at once


def operations(
    opened: OpenParts, health: Health, jobs: Callable[[], Scheduler]
) -> dict[str, Callable[[Arguments, Progress], Any]]:
    """Return the owner's operations on the index, by name. `jobs` returns the current scheduler; its stop ends a check early."""

    def status(arguments: Arguments, _: Progress) -> dict[str, Any]:
        facts = health.facts()  # first, because it reads the state of Git, which may be degraded
        facts = health.status(None) | facts
        return facts | {"coverage": health.coverage()} if arguments.get("coverage") else facts

    def check(_: Arguments, progress: Progress) -> dict[str, Any]:
        sync, tell = _require_vault(opened.sync), _stage_reporter(progress)
        sync.run(progress=tell)  # a listing finds these changes without a deep check
        checked = opened.check.run(jobs().stopping, tell)
        return {"checked": checked.checked, "mended": checked.mended, "failed": sync.run(progress=tell).failed}

    def examine(_: Arguments, __: Progress) -> dict[str, str]:
        """Return the fault in the index of each scope; "" = none."""
        return {scope: scope_index.index.describe_differences() for scope, scope_index in opened.builds.scopes.items()}

    return {
        "status": status,
        "stamp": lambda *_: _make_stamp(opened, health, jobs()),
        "index": lambda arguments, progress: _update(opened, arguments, progress),
        "check": check,
        "index.examine": examine,
    }


def _make_stamp(opened: OpenParts, health: Health, jobs: Scheduler) -> dict[str, Any]:
    """Return what changes with the notes, the log, the queue, the jobs and the problems; cheap enough to ask continually."""
    return {
        "index": opened.builds.generation,
        "pending": len(opened.sync.pending_paths),
        "audit": opened.audit.head.seq,
        "queue": opened.queue.stamp,
        "jobs": [name for name, job in jobs.states().items() if job.running],
        "degraded": health.degraded(),
    }


def _update(opened: OpenParts, arguments: Arguments, progress: Progress) -> dict[str, Any]:
    sync, tell = _require_vault(opened.sync), _stage_reporter(progress)
    accept, full = bool(arguments.get("accept_removals")), bool(arguments.get("full"))
    if full:
        sync.builds.accept_new_model()
    if full or sync.builds.is_outdated():
        if accept:
            sync.run(accept=True)  # held removals would block a new index
        outcome = sync.rebuild(fresh=full, progress=tell)
    else:
        outcome = sync.run(accept=accept, progress=tell)
    if outcome.changes >= MANY:
        tell(0, 1, "merging")
        _merge(opened)
    return asdict(outcome)


def _merge(opened: OpenParts) -> None:
    """Maintain the indexes now: without a daemon, nobody else does it before the next search. The update is done even if this fails."""
    for scope_index in opened.builds.scopes.values():
        try:
            scope_index.index.maintain(force=True)
        except MemexError as error:
            log.warning("the index is complete, but was not merged: %s", error.message)


def _require_vault(sync: Sync) -> Sync:
    """Return `sync` if the vault is present; otherwise raise Unavailable."""
    if not sync.vault.is_present():
        raise Unavailable(f"the vault {sync.vault.root} is missing; the index was not changed")
    return sync


def _stage_reporter(progress: Progress) -> Callable[[int, int, str], None]:
    return lambda done, total, stage: progress({"done": done, "total": total, "stage": stage})
