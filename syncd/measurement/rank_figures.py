"""Compute figures of a search from the ranks of the right notes, with intervals, and compare the figures of two searches.

The intervals are those of the bootstrap: the figures of many samples of the questions, drawn with replacement, of which 95 %
lie within. Two searches are compared question by question, which shows smaller differences than two intervals do."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Rank: TypeAlias = int | None  # of the right note, from 1; None = not found
Verdict: TypeAlias = Literal["better", "worse", "no difference", "too few questions"]

RESAMPLES: Final = 1_000
SHARE: Final = 0.95  # of the resamples within the interval
SEED: Final = 19  # equal ranks give equal intervals
LEAST: Final = 20  # fewest questions that decide anything

FIGURES: Final[Mapping[str, Callable[[Rank], float]]] = {
    "R@1": lambda rank: float(rank == 1),
    "R@5": lambda rank: float(rank is not None and rank <= 5),
    "MRR": lambda rank: 1 / rank if rank else 0.0,
}
DECISIVE: Final = "MRR"  # it counts every rank, so it shows the smallest differences


@dataclass(frozen=True, slots=True)
class Interval:
    """Holds a mean, and the ends of its interval."""

    mean: float
    low: float
    high: float


def compute_figures(ranks: Sequence[Rank]) -> dict[str, Interval]:
    """Return each figure of a search, by its name; `ranks` must not be empty."""
    return {name: estimate([figure(rank) for rank in ranks]) for name, figure in FIGURES.items()}


def compare_ranks(ranks: Sequence[Rank], base: Sequence[Rank]) -> dict[str, Interval]:
    """Return how much each figure of a search is above that of another one, `base`, on the same questions in the same order."""
    return {
        name: estimate([figure(rank) - figure(other) for rank, other in zip(ranks, base, strict=True)])
        for name, figure in FIGURES.items()
    }


def judge(kinds: Sequence[Mapping[str, Interval]], questions: int) -> Verdict:
    """Return whether a setup is better or worse, from the differences of each kind of search.

    It is worse if the interval of the decisive figure is below 0 for any kind, and else better if it is above 0 for any."""
    if questions < LEAST:
        return "too few questions"
    differences = [differences[DECISIVE] for differences in kinds]
    if any(difference.high < 0 for difference in differences):
        return "worse"
    return "better" if any(difference.low > 0 for difference in differences) else "no difference"


def estimate(values: Sequence[float]) -> Interval:
    """Return the mean of `values` with its interval."""
    dice = random.Random(SEED)  # noqa: S311 - no secret
    count = len(values)
    means = sorted(sum(dice.choices(values, k=count)) / count for _ in range(RESAMPLES))
    outside = round((1 - SHARE) / 2 * RESAMPLES)
    return Interval(sum(values) / count, means[outside], means[-1 - outside])
