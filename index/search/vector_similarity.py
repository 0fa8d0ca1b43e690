"""Find the rows of a matrix with the highest vector similarity: the best pairs, the nearest rows of each, and clusters.

Up to `EXACT` rows, every row is compared with every other row, block by block. Beyond that, k-means on the sphere puts the
rows into cells, about as many as the square root of their number, and each row is compared with the rows of the `PROBES`
nearest cells.

Measured (`python -m tests.bench.graph_report`, CPU seconds of two busy cores, 384 numbers a row): pairs 0.03, 0.3
and 0.8 at 1,000, 5,000 and 10,000 rows, clusters 0.06, 0.6 and 1.9. Of the first 500 pairs of 20,000 rows cells find
all where rows lie about topics, as those of texts do, and 96 of 100 where they lie anywhere.

Law, tested: equal matrices give equal answers; rows in another order give the same answers, except for ties."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

EXACT: Final = 10_000  # rows up to which every row is compared with every other
BLOCK: Final = 512  # rows that are compared at a time: 20 MB of products at 10,000
PROBES: Final = 20  # cells that are searched for each row
ROUNDS: Final = 5  # of k-means
LEARNT: Final = 10_000  # rows that cells are learnt from
MANY: Final = 0.1  # share of all products above which sorting costs more than partitioning
SAMPLED: Final = 200  # rows whose products are looked at for how far apart rows are as a rule
MUTUAL: Final = 6  # neighbours that may bring a row into a group

Matrix: TypeAlias = NDArray[np.float32]
Numbers: TypeAlias = NDArray[np.int64]
Neighbours: TypeAlias = tuple[Numbers, Matrix]  # as `nearest` gives them


def most_similar_pairs(
    rows: Matrix, related: Collection[tuple[int, int]], limit: int, min_score: float, *, exact: int = EXACT
) -> list[tuple[int, int, float]]:
    """Find the `limit` pairs of rows with the highest cosine, at least `min_score`, best first, without `related` pairs.

    `rows`: [n, d], each of unit length or zero. A pair is (lower number, higher number, cosine)."""
    n = len(rows)
    if limit < 1 or n < 2:
        return []
    out = np.array(sorted({min(a, b) * n + max(a, b) for a, b in related}), np.int64)
    left_out = np.bincount(np.concatenate([out // n, out % n]), minlength=n)  # by row, of how many pairs
    best, scores = np.empty(0, np.int64), np.empty(0, np.float32)
    for ones, others, products in _multiply_tiles(rows, exact, half=True):
        # Of equal pairs the first are kept: a full list takes better ones alone.
        full = len(scores) == limit
        at = np.flatnonzero(products > scores[-1]) if full else np.flatnonzero(products >= min_score)
        if not len(at):
            continue
        kept = _highest(products.ravel()[at], 2 * (limit + len(best) + int(left_out[ones].sum())))
        at = at[kept]
        a, b = ones[at // len(others)], others[at % len(others)]
        keys = np.minimum(a, b) * n + np.maximum(a, b)
        fresh = (a != b) & ~_is_among(keys, out) & ~_is_among(keys, np.sort(best))
        keys, first = np.unique(keys[fresh], return_index=True)
        best, scores = np.concatenate([best, keys]), np.concatenate([scores, products.ravel()[at][fresh][first]])
        ranked = np.lexsort((best, -scores))[:limit]
        best, scores = best[ranked], scores[ranked]
    return [(int(key // n), int(key % n), min(1.0, float(score))) for key, score in zip(best, scores, strict=True)]


def nearest(rows: Matrix, count: int, least: float = -1.0, *, exact: int = EXACT) -> tuple[Numbers, Matrix]:
    """Return for each row the numbers of its `count` most similar rows and their cosines, best first.

    Rows with a cosine below `least` do not count; missing entries have the number -1 and the cosine -2."""
    n = len(rows)
    best, scores = np.full((n, count), -1, np.int64), np.full((n, count), -2, np.float32)
    for ones, others, products in _multiply_tiles(rows, exact, half=False):
        products[ones[:, None] == others[None, :]] = -2
        row, column = np.nonzero(products >= least)
        if len(row) > products.size * MANY:
            few = np.argpartition(products, -min(count, len(others)), axis=1)[:, -min(count, len(others)) :]
            row, column = np.repeat(np.arange(len(ones)), few.shape[1]), few.ravel()
        held, place = np.nonzero(best[ones] >= 0)
        row = np.concatenate([row, held])
        number = np.concatenate([others[column], best[ones][held, place]])
        score = np.concatenate([products[row[: len(column)], column], scores[ones][held, place]])
        ranked = np.lexsort((number, -score, row))
        row, number, score = row[ranked], number[ranked], score[ranked]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        kept = (rank < count) & (score >= least)
        best[ones[row[kept]], rank[kept]], scores[ones[row[kept]], rank[kept]] = number[kept], score[kept]
    return best, scores


def neighbour_pairs(neighbours: Neighbours, numbers: Sequence[int], least: float) -> Numbers:
    """Return the pairs in which one row is among the most similar rows of the other, with at least `least`: [n, 2], sorted.

    `numbers`: the number of each row in the answer; the lower number comes first in a pair."""
    best, scores = neighbours
    row, place = np.nonzero((best >= 0) & (scores >= least))
    called = np.asarray(numbers, np.int64)
    pairs = np.stack([called[row], called[best[row, place]]], axis=1) if len(row) else np.empty((0, 2), np.int64)
    return np.unique(np.sort(pairs, axis=1), axis=0)


def find_clusters(
    rows: Matrix, *, near: float, most: int, exact: int = EXACT, neighbours: Neighbours | None = None
) -> list[tuple[int, ...]]:
    """Find groups of 2 to `most` rows that are alike on average by at least `near`; the largest first.

    Two rows that are among each other's nearest are joined, the most alike first, and with them their groups, as long
    as all pairs of the two groups have that cosine on average: no chain of likenesses joins what is not alike.
    `neighbours`: what `nearest` says of `MUTUAL` and `near` or less, if that is known."""
    best, scores = neighbours or nearest(rows, MUTUAL, near, exact=exact)
    row, place = np.nonzero((best >= 0) & (scores >= near))
    other = best[row, place]
    mutual = (row < other) & (best[other] == row[:, None]).any(axis=1)
    row, other, likeness = row[mutual], other[mutual], np.round(scores[row, place][mutual].astype(np.float64), 5)
    order = np.lexsort((other, row, -likeness))
    group = list(range(len(rows)))
    members = [[a] for a in group]
    sums: dict[int, Matrix] = {}
    for a, b in zip(row[order].tolist(), other[order].tolist(), strict=True):
        first, second = sorted((group[a], group[b]))
        if first == second or len(members[first]) + len(members[second]) > most:
            continue
        left, right = sums.get(first, rows[first]), sums.get(second, rows[second])
        if float(left @ right) < near * len(members[first]) * len(members[second]) - 1e-5:
            continue
        sums[first] = left + right
        sums.pop(second, None)
        for member in members[second]:
            group[member] = first
        members[first] += members[second]
        members[second] = []
    return sorted((tuple(sorted(rows)) for rows in members if len(rows) > 1), key=lambda rows: (-len(rows), rows))


def _is_among(keys: Numbers, known: Numbers) -> NDArray[np.bool_]:
    """Return which of `keys` are in the sorted array `known`."""
    if not len(known):
        return np.zeros(len(keys), np.bool_)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.asarray(known[at] == keys)


def similarity_statistics(rows: Matrix) -> tuple[float, float]:
    """Compute the mean cosine of two rows, and its standard deviation; the latter from some thousand pairs, the former from all."""
    n = len(rows)
    if n < 2:
        return 0.0, 0.0
    whole = rows.sum(axis=0, dtype=np.float64)
    mean = (float(whole @ whole) - float(np.square(rows, dtype=np.float64).sum())) / (n * (n - 1))
    some = rows[:: max(1, n // SAMPLED)]
    products = (some @ some.T)[np.triu_indices(len(some), 1)]
    return mean, float(np.sqrt(np.mean(np.square(products - mean))))


def _highest(scores: Matrix, count: int) -> Numbers:
    """Return the places of the `count` highest, in order; of equal ones the first."""
    if len(scores) <= count:
        return np.arange(len(scores))
    least = -np.partition(-scores, count - 1)[count - 1]
    above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    return np.sort(np.concatenate([above, equal[: count - len(above)]]))


def _multiply_tiles(rows: Matrix, exact: int, *, half: bool) -> Iterator[tuple[Numbers, Numbers, Matrix]]:
    """Numbers of some rows, numbers of some others, and the products of all these with all those.

    All pairs are in some tile, or beyond `exact` those that cells bring together; `half`: one order of a pair suffices."""
    n = len(rows)
    if n > exact:
        yield from _multiply_cells(rows)
        return
    numbers = np.arange(n)
    for start in range(0, n, BLOCK):
        block = rows[start : start + BLOCK]
        first = start if half else 0
        products = block @ rows[first:].T
        if half:
            products[np.tril_indices(len(block))] = -2
        yield numbers[start : start + BLOCK], numbers[first:], products


def _multiply_cells(rows: Matrix) -> Iterator[tuple[Numbers, Numbers, Matrix]]:
    n = len(rows)
    count = math.isqrt(n)
    sample = rows[:: max(1, n // LEARNT)]
    centres = sample[:: max(1, len(sample) // count)][:count].copy()
    for _ in range(ROUNDS):
        nearest_cell = np.argmax(sample @ centres.T, axis=1)
        order = np.argsort(nearest_cell, kind="stable")
        cells, starts = np.unique(nearest_cell[order], return_index=True)
        sums = np.zeros_like(centres)
        sums[cells] = np.add.reduceat(sample[order], starts, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1), centres).astype(np.float32)
    probed = np.empty((n, min(PROBES, len(centres))), np.int64)
    for start in range(0, n, BLOCK):
        likeness = rows[start : start + BLOCK] @ centres.T
        few = np.argpartition(-likeness, probed.shape[1] - 1, axis=1)[:, : probed.shape[1]]
        ranked = np.argsort(-np.take_along_axis(likeness, few, 1), axis=1, kind="stable")
        probed[start : start + BLOCK] = np.take_along_axis(few, ranked, 1)
    for cell in range(len(centres)):
        members = np.flatnonzero(probed[:, 0] == cell)
        visitors = np.flatnonzero((probed == cell).any(axis=1))
        for start in range(0, len(visitors) if len(members) else 0, 4 * BLOCK):
            some = visitors[start : start + 4 * BLOCK]
            yield some, members, rows[some] @ rows[members].T
