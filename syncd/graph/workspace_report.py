"""Report on the graph of a workspace: its size, similar nodes, named but unrelated nodes, and what needs attention.

Law: it reads the index and the audit log, and writes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from index.encoders.word_frequency import word_ranks
from index.graph.unlinked_names import UnlinkedName
from index.graph.vertex import Vertex
from index.search import vector_similarity
from syncd.enrichment.node_summaries import SummaryDrafts
from syncd.graph import attention_report
from syncd.history.audit_log import Events
from syncd.notes.timestamps import DAY_MS

if TYPE_CHECKING:
    from index.scope.index import Index
    from syncd.captures.inbox import Inbox

WEEK_MS: Final = 7 * DAY_MS  # period over which a report counts events


@dataclass(frozen=True, slots=True)
class Stats:
    """Holds the size of a graph; `coverage` is the share of its observations with vectors."""

    nodes: int
    observations: int
    relations: int
    coverage: float


def count_graph(index: Index, workspace: str) -> Stats:
    """Count the nodes, observations and relations."""
    graph = index.graph(workspace)
    vertices = graph.vertices()
    facts = sum(vertex.observations for vertex in vertices)
    return Stats(len(vertices), facts, graph.relation_count, index.embedded_share(workspace))


def find_similar_pairs(
    index: Index, workspace: str, limit: int, min_score: float
) -> list[tuple[Vertex, Vertex, float]]:
    """Return the most similar pairs of nodes without a relation."""
    graph = index.graph(workspace)
    paths, matrix = index.node_vectors(workspace)
    nodes = [(row, vertex) for row, path in enumerate(paths) if (vertex := graph.vertex_at(path))]
    row_of = {vertex.name: n for n, (_, vertex) in enumerate(nodes)}
    related = {
        (row_of[edge.source], row_of[edge.target])
        for edge in graph.edges()
        if edge.source in row_of and edge.target in row_of
    }
    pairs = vector_similarity.most_similar_pairs(matrix[[row for row, _ in nodes]], related, limit, min_score)
    return [(nodes[a][1], nodes[b][1], score) for a, b, score in pairs]


def find_unlinked_names(index: Index, workspace: str) -> list[UnlinkedName]:
    """Return the nodes named in other nodes' observations without a relation, most named first."""
    graph = index.graph(workspace)
    vertices = graph.vertices()
    return attention_report.find_unlinked_names(
        vertices, _observation_texts(index, vertices), graph.edges(), places=word_ranks()
    )


def build_report(index: Index, workspace: str, inbox: Inbox) -> attention_report.Report[Events]:
    """Build the report about what needs attention, with the events of the last week."""
    graph = index.graph(workspace)
    vertices = graph.vertices()
    events = inbox.audit.count_events(workspace, inbox.now() - WEEK_MS, {vertex.id for vertex in vertices})
    drafter = SummaryDrafts(inbox.enricher, inbox.drafted, inbox.folder)
    attention = attention_report.build_report(
        vertices,
        _observation_texts(index, vertices),
        graph.edges(),
        pooled=index.node_vectors(workspace),
        perspectives=lambda paths: {
            perspective.name: index.node_vectors(workspace, perspective.name, paths)
            for perspective in index.perspectives(workspace)
        },
        events=events,
        places=word_ranks(),
        drafter=drafter,
    )
    return replace(attention, degraded=(*describe_coverage(index.embedded_share(workspace)), *drafter.degraded))


def describe_coverage(share: float) -> tuple[str, ...]:
    """Report that some observations have no vectors yet. `share`: of those that have them, from 0 to 1."""
    # 1,999 of 2,000 are not 100 %.
    return () if share == 1 else (f"only {min(share, 0.99):.0%} of the facts can be compared by meaning so far",)


def _observation_texts(index: Index, vertices: list[Vertex]) -> dict[str, list[str]]:
    observations = index.observations([vertex.path for vertex in vertices])
    return {path: [fact.content for fact in facts] for path, facts in observations.items()}
