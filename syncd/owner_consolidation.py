"""The owner's operation on consolidation: look through the inbox now, report, and carry out what was ticked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from syncd.consolidation import Consolidation
from syncd.desk import Desk

Operation = Callable[[Mapping[str, Any], Callable[[dict[str, Any]], None]], Any]


def operations(
    consolidation: Consolidation, desk: Desk, stopping: Callable[[], threading.Event]
) -> dict[str, Operation]:
    """What the owner may ask, by name; `stopping` is set when a run is to be broken off."""

    def run(given: Mapping[str, Any], progress: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        workspace = desk.workspace(name).name if (name := given.get("workspace")) else None
        return consolidation.run(
            stopping(),
            workspace=workspace,
            dry=bool(given.get("dry_run")),
            progress=lambda done, total, stage: progress({"done": done, "total": total, "stage": stage}),
        )

    return {"consolidate": run}
