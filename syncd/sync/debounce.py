"""Debounce changed paths: decide when a path has settled, so that a burst of hints becomes one look at the file.

Law, tested: `settle` splits the pending paths and loses none; a path is ready once it has been quiet, or once it has
waited as long as patience allows, and not before. Times are seconds of a monotonic clock, passed in by the caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class EventBurst:
    """When a path was first and last heard of since it was last settled."""

    first: float
    last: float


Pending: TypeAlias = Mapping[str, EventBurst]


def add_hints(pending: Pending, paths: Iterable[str], now: float) -> Pending:
    """`pending` with these paths heard of at `now`: a known burst goes on, others begin."""
    fresh = {path: EventBurst(pending[path].first, now) if path in pending else EventBurst(now, now) for path in paths}
    return {**pending, **fresh}


def settle(pending: Pending, now: float, *, quiet: float, patience: float) -> tuple[list[str], Pending]:
    """Split `pending` into the paths to look at now (sorted) and the bursts to keep."""
    ready = sorted(path for path, burst in pending.items() if _due_at(burst, quiet, patience) <= now)
    return ready, {path: burst for path, burst in pending.items() if _due_at(burst, quiet, patience) > now}


def next_due_at(pending: Pending, *, quiet: float, patience: float) -> float | None:
    """The time at which the next path settles if nothing more is heard; None when nothing is pending."""
    return min((_due_at(burst, quiet, patience) for burst in pending.values()), default=None)


def _due_at(burst: EventBurst, quiet: float, patience: float) -> float:
    return min(burst.last + quiet, burst.first + patience)
