"""Find the parts of a workspace's graph that need attention: stale summaries, missing relations, orphans and clusters.

The report is computed from values alone; an agent or a person judges it.

Laws, tested: equal values give an equal report, in any order; a pair of related nodes is not a candidate; every list
is bounded and states its full length."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import Final, Generic, TypeAlias, TypeVar

from index.graph.unlinked_names import UnlinkedName, find
from index.graph.vertex import Vertex, file_key, name_key
from index.text.key_terms import Reader, choose_label
from index.text.summary_draft import draft_summary
from syncd.graph import similar_nodes
from syncd.graph.missing_relations import (
    Candidate,
    Evidence,
    MeaningSimilarity,
    rate_pair,
    select_pairs,
)
from syncd.graph.similar_nodes import Aggregates, ComparedNodes
from syncd.notes.secret_patterns import redact

LIMIT: Final = 20  # length of each list, unless the caller asks for more
LOOKED_AT: Final = 300  # most pairs from each kind of evidence

E = TypeVar("E")

Texts: TypeAlias = Sequence[Sequence[str]]
Related: TypeAlias = Mapping[str, AbstractSet[str]]  # for a node, the names of the nodes to which its relations lead
# Drafts a summary for a node with these observations; None if it can't.
Drafter: TypeAlias = Callable[[Vertex, Sequence[str]], str | None]


@dataclass(frozen=True, slots=True)
class UnsummarizedNode:
    """Describes a node without a summary, or with observations that are newer than its summary."""

    name: str
    entity_type: str
    observations: int
    observed_at: int | None  # None without observations
    summary_updated_at: int | None


@dataclass(frozen=True, slots=True)
class StaleSummary:
    """Describes a node that needs a new summary, with a draft of it."""

    name: str
    entity_type: str
    changed_at: int
    observations: int
    draft: str | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """Holds the names of nodes with similar content, and a short label."""

    number: int  # from 1, the largest first
    names: tuple[str, ...]
    label: str | None


@dataclass(frozen=True, slots=True)
class Report(Generic[E]):
    """Holds the whole report; `of` has the full lengths of the lists, `degraded` the reasons why it is incomplete."""

    stale: tuple[StaleSummary, ...]
    candidates: tuple[Candidate, ...]
    orphans: tuple[Vertex, ...]
    clusters: tuple[Cluster, ...]
    events: E
    of: Mapping[str, int]
    degraded: tuple[str, ...] = ()


def find_unsummarized(vertices: Sequence[Vertex]) -> list[UnsummarizedNode]:
    """Return the nodes that need a summary: most observations first, then the latest."""
    nodes = [
        UnsummarizedNode(
            node.name,
            node.entity_type,
            node.observations,
            _last_observed_at(node) if node.observations else None,
            node.summary_updated_at if node.summary else None,
        )
        for node in vertices
        if _needs_summary(node)
    ]
    return sorted(nodes, key=lambda node: (-node.observations, -(node.observed_at or 0), name_key(node.name)))


def find_unlinked_names(
    vertices: Sequence[Vertex],
    observations: Mapping[str, Sequence[str]],
    related: Related,
    *,
    places: Mapping[str, int],
) -> list[UnlinkedName]:
    """Return the nodes named in other nodes' observations without a relation. `observations`: by path, in order."""
    nodes = [
        (vertex.name, (*vertex.aliases, file_key(vertex)), observations.get(vertex.path, ())) for vertex in vertices
    ]
    return find(nodes, lambda a, b: b in related.get(a, ()) or a in related.get(b, ()), ordinary=places)


def build_report(
    vertices: Sequence[Vertex],
    observations: Mapping[str, Sequence[str]],
    related: Related,
    *,
    pooled: Aggregates,
    perspectives: Callable[[Collection[str]], Mapping[str, Aggregates]],
    events: E,
    places: Mapping[str, int],
    drafter: Drafter | None = None,
    limit: int = LIMIT,
) -> Report[E]:
    """Build the report. `pooled`: node vectors over all perspectives; `places`: frequency ranks of English words.

    `perspectives` returns, under each perspective, the vectors of the nodes with some paths; it is called once.
    `observations`: by path, in order of their ordinals. `drafter` is tried first for drafts of summaries."""
    vertices = sorted(vertices, key=lambda vertex: (name_key(vertex.name), vertex.path))
    by_name = {vertex.name: vertex for vertex in vertices}
    texts = [(vertex.name, *observations.get(vertex.path, ())) for vertex in vertices]
    reader = Reader(places, redact)
    near = _find_neighbours(vertices, related)
    unlinked = find_unlinked_names(vertices, observations, related, places=places)
    orphans = [vertex for n, vertex in enumerate(vertices) if not near[n]]
    for n, neighbours in enumerate(near):
        neighbours.discard(n)
    evidence = _collect_evidence(vertices, texts, near, unlinked, reader)
    unspaced = similar_nodes.find_unspaced([text[1:] for text in texts])
    compared = similar_nodes.split_into_groups(vertices, pooled, unspaced)
    stale = find_unsummarized([vertex for vertex in vertices if vertex.observations])
    alike, groups = _compare_nodes(compared, evidence)
    candidates = _rank_candidates(vertices, evidence, compared, alike=alike, pooled=pooled, perspectives=perspectives)
    described = (_describe_cluster(group, vertices, evidence, reader, texts) for group in groups[:limit])
    return Report(
        stale=tuple(_draft_stale_summary(by_name[node.name], observations, places, drafter) for node in stale[:limit]),
        candidates=tuple(candidates[:limit]),
        orphans=tuple(orphans[:limit]),
        clusters=tuple(Cluster(number, *words) for number, words in enumerate(described, 1)),
        events=events,
        of=_count_findings(stale, candidates, orphans, groups),
    )


def _count_findings(stale: Sized, candidates: Sized, orphans: Sized, groups: Sized) -> dict[str, int]:
    return {
        "stale_summaries": len(stale),
        "relation_candidates": len(candidates),
        "orphaned_nodes": len(orphans),
        "clusters": len(groups),
    }


def _number_by_name(vertices: Sequence[Vertex]) -> dict[str, int]:
    """Return the number of each node by its name."""
    return {vertex.name: n for n, vertex in enumerate(vertices)}


def _find_neighbours(vertices: Sequence[Vertex], related: Related) -> list[set[int]]:
    """Return the related nodes of each node, in both directions; a node may be related to itself."""
    numbers = _number_by_name(vertices)
    near: list[set[int]] = [set() for _ in vertices]
    for n, vertex in enumerate(vertices):
        for other in related.get(vertex.name, ()):
            if (number := numbers.get(other)) is not None:
                near[n].add(number)
                near[number].add(n)
    return near


def _collect_evidence(
    vertices: Sequence[Vertex],
    texts: Texts,
    near: Sequence[AbstractSet[int]],
    named: Sequence[UnlinkedName],
    reader: Reader,
) -> Evidence:
    """Collect the evidence about all nodes.

    `texts`: the name of each node, then its observations; `near`: the related nodes of each node, without itself;
    `named`: names without a relation."""
    called: list[frozenset[str]] = []
    terms: list[tuple[str, ...]] = []
    for text in texts:
        name_terms, node_terms = reader.terms(text[0], text[1:])
        called.append(name_terms)
        terms.append(tuple(node_terms))  # a set takes several times the memory
    numbers = _number_by_name(vertices)
    return Evidence(
        names=[vertex.name for vertex in vertices],
        terms=terms,
        called=called,
        tags=[frozenset(vertex.tags) for vertex in vertices],
        near=near,
        mentions={(numbers[gap.node], numbers[gap.referenced]): gap.count for gap in named},
        written=reader.most_frequent_form,
    )


def _needs_summary(vertex: Vertex) -> bool:
    if not vertex.summary:
        return True
    since = vertex.created_at if vertex.summary_updated_at is None else vertex.summary_updated_at
    return bool(vertex.observations) and _last_observed_at(vertex) > since


def _last_observed_at(vertex: Vertex) -> int:
    return vertex.created_at if vertex.observed_at is None else vertex.observed_at


def _draft_stale_summary(
    vertex: Vertex, observations: Mapping[str, Sequence[str]], places: Mapping[str, int], drafter: Drafter | None
) -> StaleSummary:
    contents = observations.get(vertex.path, ())
    text = (drafter(vertex, contents) if drafter else None) or draft_summary(vertex.name, contents, places, redact)
    return StaleSummary(vertex.name, vertex.entity_type, vertex.changed_at, vertex.observations, text)


def _compare_nodes(
    compared: Sequence[ComparedNodes], evidence: Evidence
) -> tuple[list[tuple[int, int]], list[tuple[int, ...]]]:
    """Return the most similar pairs of unrelated nodes, and the groups of similar nodes, the largest first."""
    pairs, groups = zip(*(part.find_pairs_and_clusters(evidence.near, LOOKED_AT) for part in compared), strict=True)
    return list(chain(*pairs)), sorted(chain(*groups), key=lambda group: (-len(group), group))


def _rank_candidates(
    vertices: Sequence[Vertex],
    evidence: Evidence,
    compared: Sequence[ComparedNodes],
    *,
    alike: Sequence[tuple[int, int]],
    pooled: Aggregates,
    perspectives: Callable[[Collection[str]], Mapping[str, Aggregates]],
) -> list[Candidate]:
    """Rank the pairs that may need a relation, best first; `alike`: the most similar ones."""
    proposals = []
    highest = max(part.typical for part in compared)
    pairs = select_pairs(evidence, alike, LOOKED_AT)
    under = perspectives({vertices[n].path for pair in pairs for n in pair})
    cosines = {name: similar_nodes.cosine_function(vertices, aggregates) for name, aggregates in under.items()}
    cosine = similar_nodes.cosine_function(vertices, pooled)
    for a, b in pairs:
        each = {name: value for name, compare in cosines.items() if (value := compare(a, b)) is not None}
        typical = next((part.typical for part in compared if a in part.row and b in part.row), highest)
        if proposal := rate_pair(a, b, evidence, MeaningSimilarity(cosine(a, b) or 0.0, typical, each)):
            proposals.append(proposal)
    return sorted(
        proposals, key=lambda proposal: (-proposal.score, name_key(proposal.node_a), name_key(proposal.node_b))
    )


def _describe_cluster(
    group: Sequence[int], vertices: Sequence[Vertex], evidence: Evidence, reader: Reader, texts: Texts
) -> tuple[tuple[str, ...], str | None]:
    """Return the names of a group of nodes, and its label."""
    words = choose_label(
        [evidence.terms[n] for n in group],
        evidence.term_holders,
        len(vertices),
        tags=[vertices[n].tags for n in group],
        phrases=[reader.phrases(texts[n]) for n in group],
        reader=reader,
    )
    types = {vertices[n].entity_type for n in group}
    kind = types.pop() if len(types) == 1 else ""
    return tuple(vertices[n].name for n in group), " · ".join(filter(None, (words, kind))) or None
