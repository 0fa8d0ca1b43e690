"""Debounce changed paths: decide when a path has settled, so that a burst of hints causes one check of the file.

Laws, tested: `settle` splits the pending paths and loses none; a path is ready once it has been quiet, or has waited
as long as `patience` allows, and not before. Times are seconds of a monotonic clock, given by the caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class EventBurst:
    """Holds when a path was first and last reported since it last settled."""

    first: float
    last: float


Pending: TypeAlias = Mapping[str, EventBurst]


def add_hints(pending: Pending, paths: Iterable[str], now: float) -> Pending:
    """Return `pending` with these paths reported at `now`: known bursts continue, others begin."""
    fresh = {path: EventBurst(pending[path].first, now) if path in pending else EventBurst(now, now) for path in paths}
    return {**pending, **fresh}


def settle(pending: Pending, now: float, *, quiet: float, patience: float) -> tuple[list[str], Pending]:
    """Split `pending` into the paths to check now (sorted) and the bursts to keep."""
    ready = sorted(path for path, burst in pending.items() if _due_at(burst, quiet, patience) <= now)
    return ready, {path: burst for path, burst in pending.items() if _due_at(burst, quiet, patience) > now}


def next_due_at(pending: Pending, *, quiet: float, patience: float) -> float | None:
    """Return when the next path settles if nothing more is reported; None when nothing is pending."""
    return min((_due_at(burst, quiet, patience) for burst in pending.values()), default=None)


def _due_at(burst: EventBurst, quiet: float, patience: float) -> float:
    return min(burst.last + quiet, burst.first + patience)
