"""Cache the daemon's health for a second, so that many who ask at once cost no more than one.

Law, tested: for each set of workspaces at most one computation runs, and its answer is given for a second from its
beginning; the owner, who acts on it, gets no older one than that of a computation that runs."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

import anyio.to_thread

State: TypeAlias = dict[str, Any]
Visible: TypeAlias = frozenset[str] | None  # the workspaces that the caller may know of; None = the whole vault

FRESH_S: Final = 1.0
MOST: Final = 256  # sets of workspaces; the one that was asked for longest ago is forgotten for a new one


class HealthCache:
    """The answers of `compute`, by the workspaces that they are about; for one event loop."""

    def __init__(
        self, compute: Callable[[Collection[str] | None], State], *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._compute, self._now = compute, now
        self._answers: OrderedDict[Visible, tuple[asyncio.Task[State], float]] = OrderedDict()

    async def read(self, visible: Visible) -> State:
        """The state as these workspaces may know it. Raises what computing it does."""
        task, begun = self._answers.get(visible, (None, 0.0))
        if task is None or (task.done() and (visible is None or self._is_stale(task, begun))):
            task = asyncio.create_task(self._compute_state(visible))
            self._answers[visible] = task, self._now()
            if len(self._answers) > MOST:
                self._answers.popitem(last=False)
        self._answers.move_to_end(visible)
        return await asyncio.shield(task)  # who leaves does not take the answer from those who wait for it too

    def _is_stale(self, task: asyncio.Task[State], begun: float) -> bool:
        return task.cancelled() or task.exception() is not None or self._now() - begun >= FRESH_S

    async def _compute_state(self, visible: Visible) -> State:
        return await anyio.to_thread.run_sync(self._compute, visible, abandon_on_cancel=True)
