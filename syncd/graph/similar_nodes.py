"""Find similar nodes by comparing one embedding vector per node, which stands for all its observations.

An encoder that cannot read a script gives all texts in this script similar vectors. Where this shows, nodes in scripts
without spaces are compared only with each other, so that neither group hides the other.

Law, tested: similarity is measured against the nodes of the compared group, whatever their language."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, TypeAlias

from index.deferred_patterns import compile_later
from index.graph.unlinked_names import UNSPACED as SCRIPTS
from index.graph.vertex import Vertex
from index.search import vector_similarity

SPREAD: Final = 2.0  # standard deviations above the average cosine from which nodes are similar
NEAR: Final = 0.3  # lowest threshold; the highest is halfway between the average and 1
LARGEST: Final = 25  # most nodes in a cluster
SOME: Final = 4  # fewest nodes in scripts without blanks that may form their own group
_UNSPACED = compile_later(rf"(?:[^{SCRIPTS}]*[{SCRIPTS}]){{10}}|(?:[^{SCRIPTS}]?[{SCRIPTS}])+[^{SCRIPTS}]?\Z")
_SEEN: Final = 200  # characters of a node that decide its script

# The paths of nodes, and a vector of unit length for each.
Aggregates: TypeAlias = tuple[Sequence[str], vector_similarity.Matrix]
Cosine: TypeAlias = Callable[[int, int], float | None]


@dataclass(frozen=True, slots=True)
class ComparedNodes:
    """Holds a group of nodes that are compared with each other; nodes are numbers here."""

    numbers: Sequence[int]  # row → node
    matrix: vector_similarity.Matrix
    row: Mapping[int, int]  # node → row
    typical: float  # average cosine of two nodes
    spread: float

    @property
    def threshold(self) -> float:
        """Return the cosine from which nodes are similar."""
        return max(NEAR, min(self.typical + SPREAD * self.spread, (self.typical + 1) / 2))

    def find_clusters(self, neighbours: vector_similarity.Neighbours | None = None) -> list[tuple[int, ...]]:
        """Return groups of similar nodes. `neighbours`: as `vector_similarity.find_clusters` takes them."""
        groups = vector_similarity.find_clusters(self.matrix, near=self.threshold, most=LARGEST, neighbours=neighbours)
        return self._number(groups)

    def find_pairs_and_clusters(
        self, near: Sequence[AbstractSet[int]], most: int
    ) -> tuple[list[tuple[int, int]], list[tuple[int, ...]]]:
        """Return at most `most` pairs of similar nodes that are not related, and groups of similar nodes."""
        row = self.row
        related = [(row[a], row[b]) for a in row for b in near[a] if b > a and b in row]  # `near` has both directions
        least = self.typical + self.spread
        pairs, groups = vector_similarity.pairs_and_clusters(
            self.matrix, related, most, least, near=self.threshold, most=LARGEST
        )
        return [(self.numbers[a], self.numbers[b]) for a, b, _ in pairs], self._number(groups)

    def _number(self, groups: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return groups of rows as groups of nodes."""
        return [tuple(self.numbers[row] for row in group) for group in groups]


def cosine_function(vertices: Sequence[Vertex], aggregates: Aggregates) -> Cosine:
    """Return a function for the cosine of two nodes; it returns None if one has no vector."""
    paths, matrix = aggregates
    row = {path: n for n, path in enumerate(paths)}

    def cosine(a: int, b: int) -> float | None:
        row_a, row_b = row.get(vertices[a].path), row.get(vertices[b].path)
        return None if row_a is None or row_b is None else float(matrix[row_a] @ matrix[row_b])

    return cosine


def find_unspaced(texts: Sequence[Sequence[str]]) -> set[int]:
    """Return the numbers of the texts that are mostly written without blanks."""
    return {n for n, contents in enumerate(texts) if _UNSPACED.match(" ".join(contents)[:_SEEN])}


def split_into_groups(
    vertices: Sequence[Vertex], aggregates: Aggregates, unspaced: Collection[int]
) -> list[ComparedNodes]:
    """Split the nodes that have vectors into groups that are compared with each other."""
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
        return [whole]  # the encoder can read these scripts
    rest = [n for n in known if n not in unspaced]
    return [make_group(rest, whole.matrix[[whole.row[n] for n in rest]]), apart]


def make_group(numbers: Sequence[int], matrix: vector_similarity.Matrix) -> ComparedNodes:
    """Make a group of nodes; `numbers` are its nodes row by row."""
    typical, spread = vector_similarity.similarity_statistics(matrix)
    return ComparedNodes(numbers, matrix, {number: n for n, number in enumerate(numbers)}, typical, spread)
