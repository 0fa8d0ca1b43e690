"""What of a workspace's graph needs attention: stale summaries, relations that may be missing, orphans, clusters.

Computed from values alone; what comes of it is for an agent, or a person, to judge.

Laws, tested: the same values give the same report, in whatever order they come; a pair that is related is no candidate;
every list is bounded, and says how much there was."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from index import similar
from index.draft import draft
from index.gaps import UNSPACED as SCRIPTS
from index.gaps import Gap, find
from index.terms import Reader, label
from index.vertex import Edge, Vertex, name_key, target_key
from syncd.candidates import Candidate, Evidence, Likeness, candidate, mentions, pairs
from syncd.secrets import redacted

LIMIT: Final = 20  # of each list, unless more is asked for
LOOKED_AT: Final = 300  # pairs that each kind of evidence brings
SPREAD: Final = 2.0  # a cluster is alike by so many deviations more than any two nodes are
NEAR: Final = (0.3, 0.8)  # but by no less and no more than this
LARGEST: Final = 25  # nodes of a cluster
SOME: Final = 3  # nodes in scripts without blanks, from which on they are compared with each other
UNSPACED: Final = re.compile(rf"(?:[^{SCRIPTS}]*[{SCRIPTS}]){{10}}|(?:[^{SCRIPTS}]?[{SCRIPTS}])+[^{SCRIPTS}]?\Z")

E = TypeVar("E")

# The paths of nodes, and a row of unit length for each.
Aggregates: TypeAlias = tuple[Sequence[str], similar.Matrix]
Texts: TypeAlias = Sequence[Sequence[str]]
Cosine: TypeAlias = Callable[[int, int], float | None]
# A summary for a node with these observations; None where whoever is asked has none.
Drafter: TypeAlias = Callable[[Vertex, Sequence[str]], str | None]


@dataclass(frozen=True, slots=True)
class Pending:
    """A node that was never summarised, or not since its last observation."""

    name: str
    entity_type: str
    observations: int
    observed_at: int | None  # None without observations
    summary_updated_at: int | None


@dataclass(frozen=True, slots=True)
class Stale:
    """A node whose summary is owed, with a draft of it."""

    name: str
    entity_type: str
    changed_at: int
    observations: int
    draft: str | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes that say similar things, by name, and what they share in a few words."""

    number: int  # from 1, the largest first
    names: tuple[str, ...]
    label: str | None


@dataclass(frozen=True, slots=True)
class Report(Generic[E]):
    """All of it; `of` counts what there was before the lists were cut."""

    stale: tuple[Stale, ...]
    candidates: tuple[Candidate, ...]
    orphans: tuple[Vertex, ...]
    clusters: tuple[Cluster, ...]
    events: E
    of: Mapping[str, int]


def pending(vertices: Sequence[Vertex]) -> list[Pending]:
    """The nodes whose summary is owed: most observations first, then the latest."""
    found = [
        Pending(
            one.name,
            one.entity_type,
            one.observations,
            _observed(one) if one.observations else None,
            one.summary_updated_at if one.summary else None,
        )
        for one in vertices
        if _owed(one)
    ]
    return sorted(found, key=lambda one: (-one.observations, -(one.observed_at or 0), name_key(one.name)))


def gaps(
    vertices: Sequence[Vertex],
    observations: Mapping[str, Sequence[str]],
    edges: Sequence[Edge],
    *,
    places: Mapping[str, int],
) -> list[Gap]:
    """The nodes that are named in others' observations without a relation. `observations`: by path, in order."""
    related = {(edge.source, edge.target) for edge in edges}
    nodes = [(one.name, (*one.aliases, _stem(one)), observations.get(one.path, ())) for one in vertices]
    return find(nodes, lambda a, b: (a, b) in related or (b, a) in related, ordinary=places)


def report(
    vertices: Sequence[Vertex],
    observations: Mapping[str, Sequence[str]],
    edges: Sequence[Edge],
    *,
    pooled: Aggregates,
    perspectives: Mapping[str, Aggregates],
    events: E,
    places: Mapping[str, int],
    drafter: Drafter | None = None,
    limit: int = LIMIT,
) -> Report[E]:
    """What needs attention. `pooled`: what nodes say over all perspectives; `places`: how common English words are.

    `observations`: by path, in order of their ordinals; `drafter` is asked first for a draft."""
    vertices = sorted(vertices, key=lambda one: (name_key(one.name), one.path))
    at = {one.name: n for n, one in enumerate(vertices)}
    near: list[set[int]] = [set() for _ in vertices]
    for edge in edges:
        if edge.source in at and edge.target in at:
            near[at[edge.source]].add(at[edge.target])
            near[at[edge.target]].add(at[edge.source])
    texts = [(one.name, *observations.get(one.path, ())) for one in vertices]
    reader = Reader(places)
    terms = [reader.terms(one.name, said[1:]) for one, said in zip(vertices, texts, strict=True)]
    # An encoder that can't read a script finds all texts in it alike: they are compared with each other.
    unspaced = {n for n, said in enumerate(texts) if UNSPACED.match(" ".join(said[1:])[:200])}
    rows = _rows(vertices, pooled, unspaced)
    evidence = Evidence(
        names=[one.name for one in vertices],
        terms=[found for _, found in terms],
        called=[called for called, _ in terms],
        tags=[frozenset(one.tags) for one in vertices],
        near=[frozenset(own - {n}) for n, own in enumerate(near)],
        mentions=mentions(gaps(vertices, observations, edges, places=places), at),
        written=reader.written,
    )
    stale = pending([one for one in vertices if one.observations])
    known = {one.name: one for one in vertices}
    orphans = [one for n, one in enumerate(vertices) if not near[n]]
    groups = rows.clusters()
    each = {name: _cosine(vertices, own) for name, own in perspectives.items()}
    candidates = _candidates(evidence, rows, _cosine(vertices, pooled), each, unspaced)
    return Report(
        stale=tuple(_stale(known[one.name], observations, places, drafter) for one in stale[:limit]),
        candidates=tuple(candidates[:limit]),
        orphans=tuple(orphans[:limit]),
        clusters=tuple(
            Cluster(n, *_cluster(group, vertices, evidence, reader, texts)) for n, group in enumerate(groups[:limit], 1)
        ),
        events=events,
        of={
            "stale_summaries": len(stale),
            "relation_candidates": len(candidates),
            "orphaned_nodes": len(orphans),
            "clusters": len(groups),
        },
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of some of the nodes, in the nodes' order."""

    numbers: Sequence[int]  # by row: its node
    matrix: similar.Matrix
    row: Mapping[int, int]
    typical: float  # cosine of any two
    spread: float
    unspaced: float  # cosine of any two in a script without blanks

    def alike(self, near: Sequence[frozenset[int]], most: int) -> list[tuple[int, int]]:
        """The pairs of nodes that are most alike, without a relation."""
        related = {
            (self.row[a], self.row[b]) for a, own in enumerate(near) for b in own if a in self.row and b in self.row
        }
        least = self.typical + self.spread
        return [(self.numbers[a], self.numbers[b]) for a, b, _ in similar.pairs(self.matrix, related, most, least)]

    def clusters(self) -> list[tuple[int, ...]]:
        """Groups of nodes that are alike."""
        near = min(NEAR[1], max(NEAR[0], self.typical + SPREAD * self.spread))
        found = similar.clusters(self.matrix, near=near, most=LARGEST)
        return [tuple(self.numbers[row] for row in group) for group in found]


def _cosine(vertices: Sequence[Vertex], aggregates: Aggregates) -> Cosine:
    """The cosine of two nodes; None if one says nothing."""
    paths, matrix = aggregates
    row = {path: n for n, path in enumerate(paths)}

    def cosine(a: int, b: int) -> float | None:
        one, other = row.get(vertices[a].path), row.get(vertices[b].path)
        return None if one is None or other is None else float(matrix[one] @ matrix[other])

    return cosine


def _rows(vertices: Sequence[Vertex], aggregates: Aggregates, unspaced: Collection[int]) -> _Rows:
    paths, matrix = aggregates
    row = {path: n for n, path in enumerate(paths)}
    numbers = [n for n, one in enumerate(vertices) if one.path in row]
    own = matrix[[row[vertices[n].path] for n in numbers]]
    typical, spread = similar.typical(own)
    some = [row for row, number in enumerate(numbers) if number in unspaced]
    among = similar.typical(own[some])[0] if len(some) > SOME else typical
    return _Rows(numbers, own, {number: n for n, number in enumerate(numbers)}, typical, spread, max(among, typical))


def _owed(one: Vertex) -> bool:
    if not one.summary:
        return True
    since = one.created_at if one.summary_updated_at is None else one.summary_updated_at
    return bool(one.observations) and _observed(one) > since


def _observed(one: Vertex) -> int:
    return one.created_at if one.observed_at is None else one.observed_at


def _stem(one: Vertex) -> str:
    return target_key(one.path)


def _stale(
    one: Vertex, observations: Mapping[str, Sequence[str]], places: Mapping[str, int], drafter: Drafter | None
) -> Stale:
    contents = observations.get(one.path, ())
    text = (drafter(one, contents) if drafter else None) or draft(one.name, contents, places, redacted)
    return Stale(one.name, one.entity_type, one.changed_at, one.observations, text)


def _candidates(
    evidence: Evidence,
    rows: _Rows,
    pooled: Cosine,
    perspectives: Mapping[str, Cosine],
    unspaced: Collection[int],
) -> list[Candidate]:
    """Best first."""
    found = []
    for a, b in pairs(evidence, rows.alike(evidence.near, LOOKED_AT), LOOKED_AT):
        each = {name: value for name, own in perspectives.items() if (value := own(a, b)) is not None}
        typical = rows.unspaced if a in unspaced and b in unspaced else rows.typical
        if one := candidate(a, b, evidence, Likeness(pooled(a, b) or 0.0, typical, each)):
            found.append(one)
    return sorted(found, key=lambda one: (-one.score, name_key(one.node_a), name_key(one.node_b)))


def _cluster(
    group: Sequence[int], vertices: Sequence[Vertex], evidence: Evidence, reader: Reader, said: Texts
) -> tuple[tuple[str, ...], str | None]:
    """The names of a group of nodes, and its label."""
    words = label(
        [evidence.terms[n] for n in group],
        evidence.spoken,
        len(vertices),
        tags=[vertices[n].tags for n in group],
        phrases=[reader.phrases(said[n]) for n in group],
        reader=reader,
    )
    types = {vertices[n].entity_type for n in group}
    kind = types.pop() if len(types) == 1 else ""
    return tuple(vertices[n].name for n in group), " · ".join(filter(None, (words, kind))) or None
