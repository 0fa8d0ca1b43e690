"""The owner's operations on what the graph says of itself: in numbers, and what of it wants attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from syncd.owner_graph import vertex
from syncd.timestamps import iso

if TYPE_CHECKING:
    from syncd.audit import Events
    from syncd.consolidate import Report
    from syncd.nodes import Nodes

Arguments: TypeAlias = Mapping[str, Any]


def operations(nodes: Callable[[str], Nodes]) -> dict[str, Callable[[Arguments, Any], Any]]:
    """What the owner may ask, by name; `nodes` gives those of a workspace."""

    def of(given: Arguments) -> Nodes:
        return nodes(given.get("workspace") or "default")

    def gaps(given: Arguments, _: Any) -> list[dict[str, Any]]:
        found = of(given).gaps(given.get("limit") or 100)
        return [{"node": one.node, "referenced_name": one.referenced, "reference_count": one.count} for one in found]

    def similar(given: Arguments, _: Any) -> list[dict[str, Any]]:
        score = given.get("min_score")
        pairs = of(given).similar(given.get("limit") or 20, 0.75 if score is None else score)
        return [
            {
                "node_a": one.name,
                "node_b": other.name,
                "similarity": round(alike, 4),
                "node_a_type": one.entity_type,
                "node_b_type": other.entity_type,
            }
            for one, other, alike in pairs
        ]

    def stats(given: Arguments, _: Any) -> dict[str, Any]:
        own = of(given)
        told = own.stats()
        return {
            "node_count": told.nodes,
            "observation_count": told.observations,
            "relation_count": told.relations,
            "embedding_coverage": round(told.coverage, 4),
            "workspace": own.workspace,
        }

    def reported(given: Arguments, _: Any) -> dict[str, Any]:
        return report(of(given).report())

    def pending(given: Arguments, _: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": one.name,
                "entity_type": one.entity_type,
                "observation_count": one.observations,
                "last_observation_at": _iso(one.observed_at),
                "summary_updated_at": _iso(one.summary_updated_at),
            }
            for one in of(given).pending()
        ]

    return {
        "graph.gaps": gaps,
        "graph.similar": similar,
        "graph.stats": stats,
        "graph.report": reported,
        "graph.pending": pending,
    }


def report(found: Report[Events]) -> dict[str, Any]:
    """All that wants attention; `of` says how much of each there was before the lists were cut."""
    return {
        "stale_summaries": [
            {
                "name": one.name,
                "entity_type": one.entity_type,
                "last_modified": iso(one.changed_at),
                "observation_count": one.observations,
                "draft_summary": one.draft,
            }
            for one in found.stale
        ],
        "relation_candidates": [
            {
                "node_a": one.node_a,
                "node_b": one.node_b,
                "similarity_score": round(one.similarity, 4),
                "rationale": one.rationale,
            }
            for one in found.candidates
        ],
        "orphaned_nodes": list(map(vertex, found.orphans)),
        "cluster_summary": [
            {"cluster_id": one.number, "node_names": list(one.names), "centroid_label": one.label}
            for one in found.clusters
        ],
        "event_summary": {
            "since": iso(found.events.since),
            "creates": found.events.creates,
            "updates": found.events.updates,
            "deletes": found.events.deletes,
        },
        "of": dict(found.of),
    }


def _iso(epoch_ms: int | None) -> str | None:
    return None if epoch_ms is None else iso(epoch_ms)
