"""Define the owner's operation on consolidation: scan the inbox now, report, and carry out the ticked boxes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from syncd.consolidation.consolidation import Consolidation
from syncd.jobs.run_history import Run
from syncd.jobs.scheduler import Scheduler
from syncd.workspaces.agent_access import AgentAccess

Operation = Callable[[Mapping[str, Any], Callable[[dict[str, Any]], None]], Any]


JOB = "consolidation"


def operations(
    consolidation: Consolidation, agent_access: AgentAccess, jobs: Callable[[], Scheduler]
) -> dict[str, Operation]:
    """Return the owner's operations, by name; a run of all workspaces is recorded as a run of the job."""

    def run(arguments: Mapping[str, Any], progress: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        workspace = agent_access.workspace(name).name if (name := arguments.get("workspace")) else None
        dry, began, at = bool(arguments.get("dry_run")), time.monotonic(), time.time_ns() // 1_000_000
        outcome = consolidation.run(
            jobs().stopping,
            workspace=workspace,
            dry=dry,
            again=True,
            progress=lambda done, total, stage: progress({"done": done, "total": total, "stage": stage}),
        )
        if not dry and workspace is None:
            jobs().record_run(JOB, Run(at, time.monotonic() - began, ""))
        return outcome

    return {"consolidate": run}
