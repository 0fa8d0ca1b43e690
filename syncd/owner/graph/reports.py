"""Define the owner's operations that report on the graph: numbers, similar nodes, gaps, what needs attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from syncd.daemon.control_socket import Arguments
from syncd.notes.timestamps import iso, iso_or_none
from syncd.owner.graph.nodes import node_fields

if TYPE_CHECKING:
    from syncd.graph.attention_report import Report
    from syncd.graph.nodes import Nodes
    from syncd.history.audit_log import Events


def operations(nodes: Callable[[str], Nodes]) -> dict[str, Callable[[Arguments, Any], Any]]:
    """Return the owner's operations by name; `nodes` returns the nodes of a workspace."""

    def for_workspace(answer: Callable[[Nodes, Arguments], Any]) -> Callable[[Arguments, Any], Any]:
        return lambda arguments, _: answer(nodes(arguments.get("workspace") or "default"), arguments)

    return {
        "graph.gaps": for_workspace(_list_gaps),
        "graph.similar": for_workspace(_list_similar),
        "graph.stats": for_workspace(lambda nodes, _: _stats(nodes)),
        "graph.report": for_workspace(lambda nodes, _: report_fields(nodes.report())),
        "graph.pending": for_workspace(lambda nodes, _: _list_pending(nodes)),
    }


def _list_gaps(nodes: Nodes, arguments: Arguments) -> list[dict[str, Any]]:
    gaps = nodes.unlinked_names(arguments.get("limit") or 100)
    return [{"node": gap.node, "referenced_name": gap.referenced, "reference_count": gap.count} for gap in gaps]


def _list_similar(nodes: Nodes, arguments: Arguments) -> list[dict[str, Any]]:
    score = arguments.get("min_score")
    pairs = nodes.similar_pairs(arguments.get("limit") or 20, 0.75 if score is None else score)
    return [
        {
            "node_a": node.name,
            "node_b": other.name,
            "similarity": round(cosine, 4),
            "node_a_type": node.entity_type,
            "node_b_type": other.entity_type,
        }
        for node, other, cosine in pairs
    ]


def _stats(nodes: Nodes) -> dict[str, Any]:
    stats = nodes.stats()
    return {
        "node_count": stats.nodes,
        "observation_count": stats.observations,
        "relation_count": stats.relations,
        "embedding_coverage": round(stats.coverage, 4),
        "workspace": nodes.workspace,
    }


def _list_pending(nodes: Nodes) -> list[dict[str, Any]]:
    """List the nodes whose summary is missing or older than their last observation."""
    return [
        {
            "name": node.name,
            "entity_type": node.entity_type,
            "observation_count": node.observations,
            "last_observation_at": iso_or_none(node.observed_at),
            "summary_updated_at": iso_or_none(node.summary_updated_at),
        }
        for node in nodes.unsummarized()
    ]


def report_fields(attention: Report[Events]) -> dict[str, Any]:
    """Return everything that needs attention; `of` has the number of entries of each list before the cut."""
    return {
        "stale_summaries": [
            {
                "name": node.name,
                "entity_type": node.entity_type,
                "last_modified": iso(node.changed_at),
                "observation_count": node.observations,
                "draft_summary": node.draft,
            }
            for node in attention.stale
        ],
        "relation_candidates": [
            {
                "node_a": pair.node_a,
                "node_b": pair.node_b,
                "similarity_score": round(pair.similarity, 4),
                "rationale": pair.rationale,
            }
            for pair in attention.candidates
        ],
        "orphaned_nodes": list(map(node_fields, attention.orphans)),
        "cluster_summary": [
            {"cluster_id": cluster.number, "node_names": list(cluster.names), "centroid_label": cluster.label}
            for cluster in attention.clusters
        ],
        "event_summary": {
            "since": iso(attention.events.since),
            "creates": attention.events.creates,
            "updates": attention.events.updates,
            "deletes": attention.events.deletes,
        },
        "of": dict(attention.of),
    }
