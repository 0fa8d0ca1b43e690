"""Find similar nodes by comparing one embedding vector per node, which stands for all its observations.

An encoder that cannot read a script gives all texts in this script similar vectors. Where this shows, nodes in
scripts without spaces are compared only with each other, so that neither group drowns the other.

Law, tested: similarity is measured against the nodes of the compared group, whatever language they are in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from index.graph.unlinked_names import UNSPACED as SCRIPTS
from index.graph.vertex import Vertex
from index.search import vector_similarity

SPREAD: Final = 2.0  # a cluster is alike by so many deviations more than any two nodes are
NEAR: Final = 0.3  # but by no less than this, nor more than halfway from any two nodes to the same
LARGEST: Final = 25  # nodes of a cluster
SOME: Final = 4  # nodes in scripts without blanks, from which on they may be apart
_UNSPACED = re.compile(rf"(?:[^{SCRIPTS}]*[{SCRIPTS}]){{10}}|(?:[^{SCRIPTS}]?[{SCRIPTS}])+[^{SCRIPTS}]?\Z")
_SEEN: Final = 200  # characters of a node that tell its script

# The paths of nodes, and a row of unit length for each.
Aggregates: TypeAlias = tuple[Sequence[str], vector_similarity.Matrix]
Cosine: TypeAlias = Callable[[int, int], float | None]


@dataclass(frozen=True, slots=True)
class ComparedNodes:
    """Nodes that are compared with each other; they are numbers here."""

    numbers: Sequence[int]  # by row: its node
    matrix: vector_similarity.Matrix
    row: Mapping[int, int]  # by node
    typical: float  # cosine of any two
    spread: float

    def similar_pairs(self, near: Sequence[frozenset[int]], most: int) -> list[tuple[int, int]]:
        """The pairs of nodes that are most alike, and are not near each other."""
        nodes = self.row.keys()
        related = {(self.row[a], self.row[b]) for a in nodes for b in near[a] & nodes}
        least = self.typical + self.spread
        return [
            (self.numbers[a], self.numbers[b])
            for a, b, _ in vector_similarity.most_similar_pairs(self.matrix, related, most, least)
        ]

    @property
    def threshold(self) -> float:
        """The cosine from which on nodes are alike."""
        return max(NEAR, min(self.typical + SPREAD * self.spread, (self.typical + 1) / 2))

    def find_clusters(self, neighbours: vector_similarity.Neighbours | None = None) -> list[tuple[int, ...]]:
        """Groups of nodes that are alike. `neighbours`: as `vector_similarity.clusters` takes them."""
        groups = vector_similarity.find_clusters(self.matrix, near=self.threshold, most=LARGEST, neighbours=neighbours)
        return [tuple(self.numbers[row] for row in group) for group in groups]


def cosine_function(vertices: Sequence[Vertex], aggregates: Aggregates) -> Cosine:
    """The cosine of two nodes; None if one says nothing."""
    paths, matrix = aggregates
    row = {path: n for n, path in enumerate(paths)}

    def cosine(a: int, b: int) -> float | None:
        row_a, row_b = row.get(vertices[a].path), row.get(vertices[b].path)
        return None if row_a is None or row_b is None else float(matrix[row_a] @ matrix[row_b])

    return cosine


def find_unspaced(texts: Sequence[Sequence[str]]) -> set[int]:
    """The numbers of those that are written without blanks, for the most part."""
    return {n for n, contents in enumerate(texts) if _UNSPACED.match(" ".join(contents)[:_SEEN])}


def split_into_groups(
    vertices: Sequence[Vertex], aggregates: Aggregates, unspaced: Collection[int]
) -> list[ComparedNodes]:
    """Nodes that have a row, as they are compared with each other."""
    paths, matrix = aggregates
    row = {path: n for n, path in enumerate(paths)}
    known = [n for n, vertex in enumerate(vertices) if vertex.path in row]
    rows = [row[vertices[n].path] for n in known]
    whole = make_group(known, matrix if rows == list(range(len(matrix))) else matrix[rows])
    some = [n for n in known if n in unspaced]
    if not SOME <= len(some) < len(known):
        return [whole]
    apart = make_group(some, whole.matrix[[whole.row[n] for n in some]])
    if apart.typical < whole.typical + whole.spread:
        return [whole]  # it reads them
    rest = [n for n in known if n not in unspaced]
    return [make_group(rest, whole.matrix[[whole.row[n] for n in rest]]), apart]


def make_group(numbers: Sequence[int], matrix: vector_similarity.Matrix) -> ComparedNodes:
    """These are compared with each other; row by row they are `numbers`."""
    typical, spread = vector_similarity.similarity_statistics(matrix)
    return ComparedNodes(numbers, matrix, {number: n for n, number in enumerate(numbers)}, typical, spread)
