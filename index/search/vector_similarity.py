"""Find the rows of a matrix with the highest vector similarity: the best pairs, the nearest rows of each, and clusters.

Up to `EXACT` rows, every row is compared with every other row, block by block. Beyond that, k-means on the sphere puts the
rows into cells, about as many as the square root of their number, and each row is compared with the rows of the `PROBES`
nearest cells.

Measured (`python -m tests.bench.graph_report`, CPU seconds of two busy cores, 384 numbers a row): pairs 0.03, 0.3
and 0.8 at 1,000, 5,000 and 10,000 rows, clusters 0.06, 0.5 and 1.4, and both together no more than clusters. Of the first 500 pairs of 20,000 rows cells find
all where rows lie about topics, as those of texts do, and 96 of 100 where they lie anywhere.

Law, tested: equal matrices give equal answers; rows in another order give the same answers, except for ties."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
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
Pair: TypeAlias = tuple[int, int, float]  # lower number, higher number, cosine


class _BestPairs:
    """Collects the pairs of rows with the highest cosine, without `related` pairs."""

    def __init__(self, n: int, related: Collection[tuple[int, int]], limit: int, min_score: float) -> None:
        self._n, self._limit, self._least = n, limit, min_score
        out = np.fromiter(chain.from_iterable(related), np.int64).reshape(-1, 2)
        self._out = np.unique(out.min(axis=1) * n + out.max(axis=1))
        # By row, in how many of the related pairs it is.
        self._left_out = np.bincount(np.concatenate([self._out // n, self._out % n]), minlength=n)
        self._best, self._scores = np.empty(0, np.int64), np.empty(0, np.float32)

    def add(self, ones: Numbers, others: Numbers, products: Matrix) -> None:
        """Compare with the pairs of one tile."""
        # Of equal pairs the first are kept: a full list takes better ones alone.
        best, scores, n, limit = self._best, self._scores, self._n, self._limit
        full = len(scores) == limit
        at = np.flatnonzero(products > scores[-1]) if full else np.flatnonzero(products >= self._least)
        if not len(at):
            return
        kept = _highest(products.ravel()[at], 2 * (limit + len(best) + int(self._left_out[ones].sum())))
        at = at[kept]
        a, b = ones[at // len(others)], others[at % len(others)]
        keys = np.minimum(a, b) * n + np.maximum(a, b)
        fresh = (a != b) & ~_is_among(keys, self._out) & ~_is_among(keys, np.sort(best))
        keys, first = np.unique(keys[fresh], return_index=True)
        best, scores = np.concatenate([best, keys]), np.concatenate([scores, products.ravel()[at][fresh][first]])
        ranked = np.lexsort((best, -scores))[:limit]
        self._best, self._scores = best[ranked], scores[ranked]

    def pairs(self) -> list[Pair]:
        """Return the pairs, best first."""
        keyed = zip(self._best.tolist(), self._scores.tolist(), strict=True)
        return [(key // self._n, key % self._n, min(1.0, score)) for key, score in keyed]


class _Nearest:
    """Collects for each row the `count` rows with the highest cosine, of at least `least`."""

    def __init__(self, n: int, count: int, least: float) -> None:
        self.best, self.scores = np.full((n, count), -1, np.int64), np.full((n, count), -2, np.float32)
        self._count, self._least = count, np.float32(least)

    def add(self, ones: Numbers, others: Numbers, products: Matrix) -> None:
        """Compare `ones` with `others`."""
        at = self._passing(products, ones, 1)
        row, column = np.divmod(at, len(others))
        self._merge(ones[row], others[column], products.ravel()[at])

    def add_both(self, ones: Numbers, others: Numbers, products: Matrix) -> None:
        """Compare `ones` with `others`, and `others` with `ones`."""
        self.add(ones, others, products)
        at = self._passing(products, others, 0)
        row, column = np.divmod(at, len(others))
        self._merge(others[column], ones[row], products.ravel()[at])

    def _passing(self, products: Matrix, compared: Numbers, axis: int) -> Numbers:
        """Return the places of the products that may count for the rows `compared`, which lie across `axis`."""
        bars = np.expand_dims(np.maximum(self.scores[compared, -1], self._least), axis)
        at = np.flatnonzero(products >= bars)
        length = products.shape[axis]
        if len(at) <= products.size * MANY or length <= self._count:
            return at
        few = np.argpartition(products, length - self._count, axis=axis)
        places = np.arange(products.size).reshape(products.shape)
        return np.take_along_axis(places, np.take(few, range(length - self._count, length), axis), axis).ravel()

    def _merge(self, row: Numbers, number: Numbers, score: Matrix) -> None:
        """Add to `row` the similar rows `number`, none of which it has."""
        if not len(row):
            return
        known = np.unique(row)
        place, held = np.nonzero(self.best[known] >= 0)
        row = np.concatenate([row, known[place]])
        number = np.concatenate([number, self.best[known[place], held]])
        score = np.concatenate([score, self.scores[known[place], held]])
        ranked = np.lexsort((number, -score, row))
        row, number, score = row[ranked], number[ranked], score[ranked]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        kept = (rank < self._count) & (score >= self._least)
        self.best[row[kept], rank[kept]], self.scores[row[kept], rank[kept]] = number[kept], score[kept]


def most_similar_pairs(rows: Matrix, related: Collection[tuple[int, int]], limit: int, min_score: float) -> list[Pair]:
    """Find the `limit` pairs of rows with the highest cosine, at least `min_score`, best first, without `related` pairs.

    `rows`: [n, d], each of unit length or zero."""
    return _compare(rows, (related, limit, min_score), None)[0]


def nearest(rows: Matrix, count: int, least: float = -1.0) -> Neighbours:
    """Return for each row the numbers of its `count` most similar rows and their cosines, best first.

    Rows with a cosine below `least` do not count; missing entries have the number -1 and the cosine -2."""
    return _compare(rows, None, (count, least))[1]


def pairs_and_clusters(
    rows: Matrix,
    related: Collection[tuple[int, int]],
    limit: int,
    min_score: float,
    *,
    near: float,
    most: int,
) -> tuple[list[Pair], list[tuple[int, ...]]]:
    """Return what `most_similar_pairs` and `find_clusters` return, with each row compared once for both."""
    pairs, neighbours = _compare(rows, (related, limit, min_score), (MUTUAL, near))
    return pairs, find_clusters(rows, near=near, most=most, neighbours=neighbours)


def _compare(
    rows: Matrix,
    pairs: tuple[Collection[tuple[int, int]], int, float] | None,
    neighbours: tuple[int, float] | None,
) -> tuple[list[Pair], Neighbours]:
    """Compare the rows once, for the arguments of `_BestPairs` and of `_Nearest`; None = that is not wanted."""
    n = len(rows)
    best = _BestPairs(n, *pairs) if pairs and pairs[1] >= 1 and n > 1 else None
    closest = _Nearest(n, *(neighbours or (1, 2.0)))
    for ones, others, products in _multiply_cells(rows) if n > EXACT else _multiply_tiles(rows):
        if best:
            best.add(ones, others, products)
        if neighbours and n > EXACT:
            products[ones[:, None] == others[None, :]] = -2
            closest.add(ones, others, products)
        elif neighbours:
            closest.add_both(ones, others, products)
    return best.pairs() if best else [], (closest.best, closest.scores)


def neighbour_pairs(neighbours: Neighbours, numbers: Sequence[int], least: float) -> Numbers:
    """Return the pairs in which one row is among the most similar rows of the other, with at least `least`: [n, 2], sorted.

    `numbers`: the number of each row in the answer; the lower number comes first in a pair."""
    best, scores = neighbours
    row, place = np.nonzero((best >= 0) & (scores >= least))
    called = np.asarray(numbers, np.int64)
    pairs = np.stack([called[row], called[best[row, place]]], axis=1) if len(row) else np.empty((0, 2), np.int64)
    return np.unique(np.sort(pairs, axis=1), axis=0)


def find_clusters(
    rows: Matrix, *, near: float, most: int, neighbours: Neighbours | None = None
) -> list[tuple[int, ...]]:
    """Find groups of 2 to `most` rows that are alike on average by at least `near`; the largest first.

    Two rows that are among each other's nearest are joined, the most alike first, and with them their groups, as long
    as all pairs of the two groups have that cosine on average: no chain of likenesses joins what is not alike.
    `neighbours`: what `nearest` says of `MUTUAL` and `near` or less, if that is known."""
    best, scores = neighbours or nearest(rows, MUTUAL, near)
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


def _multiply_tiles(rows: Matrix) -> Iterator[tuple[Numbers, Numbers, Matrix]]:
    """Yield numbers of some rows, numbers of some others, and the products of all these with all those.

    Each pair of rows is in one tile, once; all other places of a tile hold -2."""
    numbers = np.arange(len(rows))
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        products = block @ rows[start:].T
        products[np.tril_indices(len(block))] = -2
        yield numbers[start : start + BLOCK], numbers[start:], products


def _multiply_cells(rows: Matrix) -> Iterator[tuple[Numbers, Numbers, Matrix]]:
    """Yield tiles as `_multiply_tiles` does, of the rows that cells bring together; a pair may come in either order, or in both."""
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
