"""Cache the daemon's health for a second, so that many simultaneous requests cost no more than one.

Law, tested: for each set of workspaces at most one computation runs, and its answer serves requests for one second from
its start. The owner, who acts on the answer, gets only the answer of a computation that still runs or of a new one."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

import anyio.to_thread

State: TypeAlias = dict[str, Any]
Visible: TypeAlias = frozenset[str] | None  # the workspaces that the caller may know; None = the whole vault

FRESH_S: Final = 1.0
MOST: Final = 256  # sets of workspaces; a new set replaces the least recently requested one


class HealthCache:
    """Caches the answers of `compute` by set of workspaces; belongs to one event loop."""

    def __init__(self, compute: Callable[[Collection[str] | None], State]) -> None:
        self._compute = compute
        self._answers: OrderedDict[Visible, tuple[asyncio.Task[State], float]] = OrderedDict()

    async def read(self, visible: Visible) -> State:
        """Return the state that these workspaces may know. Raises what `compute` raises."""
        task, begun = self._answers.get(visible, (None, 0.0))
        if task is None or (task.done() and (visible is None or self._is_stale(task, begun))):
            task = asyncio.create_task(self._compute_state(visible))
            self._answers[visible] = task, time.monotonic()
            if len(self._answers) > MOST:
                self._answers.popitem(last=False)
        self._answers.move_to_end(visible)
        return await asyncio.shield(task)  # a cancelled request must not cancel the computation for the others

    def _is_stale(self, task: asyncio.Task[State], begun: float) -> bool:
        return task.cancelled() or task.exception() is not None or time.monotonic() - begun >= FRESH_S

    async def _compute_state(self, visible: Visible) -> State:
        return await anyio.to_thread.run_sync(self._compute, visible, abandon_on_cancel=True)
