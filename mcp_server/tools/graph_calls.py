"""Define the calls of the family `graph`: each tool runs one operation on the workspace's entities and shapes the answer.

Times are ISO 8601 in UTC. An answer spells each name as its entity does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from index.errors import NotFound
from index.graph.vertex import Edge, Vertex
from index.model import Observation, ObservationHit
from mcp_server.answers.list_page import cut_page
from mcp_server.answers.text_budget import share_budget
from mcp_server.operations.wire_format import warnings_about
from mcp_server.tools import graph_answers as answer
from mcp_server.tools import graph_schema as shape
from syncd.graph.node_request import NewNode
from syncd.history.write_lineage import Hand
from syncd.notes.timestamps import iso, iso_or_none
from syncd.settings.settings import Settings

if TYPE_CHECKING:
    from syncd.workspaces.workspace import Workspace

HIT: Final = 800  # maximum bytes of JSON of one search hit: ten hits are 2,000 tokens
KEYS: Final = 225  # of these, bytes for its keys and numbers


def create_entities(workspace: Workspace, arguments: shape.CreateEntities, _: Settings) -> answer.CreatedNodes:
    """Create all entities, or none."""
    made = workspace.nodes.create(
        [
            NewNode(entity.name, entity.entity_type, entity.observations, entity.summary, entity.tags)
            for entity in arguments.entities
        ]
    )
    return answer.CreatedNodes(
        results=[
            answer.CreatedNode(name=node.name, entity_type=node.entity_type, created_at=iso(node.created_at))
            for node in made
        ],
        warnings=_node_warnings(workspace, [node.name for node in made]),
    )


def delete_entities(workspace: Workspace, arguments: shape.DeleteEntities, _: Settings) -> answer.DeletedNodes:
    """Delete entities with their relations."""
    deleted, missing = workspace.nodes.delete(arguments.entity_names)
    return answer.DeletedNodes(deleted=deleted, not_found=missing)


def open_nodes(workspace: Workspace, arguments: shape.OpenNodes, _: Settings) -> answer.OpenedNodes:
    """Return whole entities."""
    opened = workspace.nodes.open(arguments.names)
    places = workspace.node_addresses([node.path for node, _ in opened.nodes])
    return answer.OpenedNodes(
        entities=[
            answer.WholeNode(
                **_node_fields(node),
                path=places.get(node.path, ""),
                observations=_fact_answers(facts),
                created_at=iso(node.created_at),
                updated_at=iso(node.changed_at),
                version=node.version,
            )
            for node, facts in opened.nodes
        ],
        relations=_relation_answers(opened.edges),
        not_found=opened.not_found,
    )


def get_nodes_by_type(workspace: Workspace, arguments: shape.NodesByType, _: Settings) -> answer.TaggedNodes:
    """Return all entities of a type."""
    nodes, more = cut_page(
        workspace.nodes.by_type(arguments.entity_type), arguments.limit, arguments.cursor, attrgetter("name")
    )
    return answer.TaggedNodes(
        results=[answer.TaggedNode(**_node_fields(node), updated_at=iso(node.changed_at)) for node in nodes],
        truncated=more is not None,
        next_cursor=more,
    )


def get_recently_modified(workspace: Workspace, arguments: shape.RecentlyModified, _: Settings) -> answer.ChangedNodes:
    """Return the entities that changed in the last days, the latest first."""
    return _changed_nodes(workspace.nodes.recent(arguments.days), arguments)


def set_summary(workspace: Workspace, arguments: shape.SetSummary, _: Settings) -> answer.SummarySet:
    """Set the summary of an entity."""
    node = workspace.nodes.set_summary(arguments.name, arguments.summary, arguments.version)
    return answer.SummarySet(
        name=node.name,
        summary=node.summary or "",
        updated_at=iso(node.changed_at),
        version=node.version,
        warnings=_node_warnings(workspace, [node.name]),
    )


def set_tags(workspace: Workspace, arguments: shape.SetTags, _: Settings) -> answer.TagsSet:
    """Set the tags of an entity."""
    node = workspace.nodes.set_tags(arguments.name, arguments.tags, arguments.version)
    return answer.TagsSet(
        name=node.name,
        tags=list(node.tags),
        version=node.version,
        warnings=_node_warnings(workspace, [node.name]),
    )


def add_observations(workspace: Workspace, arguments: shape.AddObservations, _: Settings) -> answer.Additions:
    """Add facts to several entities."""
    outcomes = workspace.nodes.add_observations(
        [(addition.entity_name, addition.contents) for addition in arguments.observations]
    )
    return answer.Additions(
        results=[
            answer.AddedFacts(entity_name=name, added=_fact_answers(added or ()), not_found=added is None)
            for name, added in outcomes
        ],
        warnings=_node_warnings(workspace, [name for name, added in outcomes if added is not None]),
    )


def replace_observation(workspace: Workspace, arguments: shape.ReplaceObservation, _: Settings) -> answer.ReplacedFact:
    """Replace one fact."""
    name, old, new = workspace.nodes.replace_observation(
        arguments.entity_name, arguments.ordinal, arguments.new_content, arguments.version
    )
    return answer.ReplacedFact(
        entity_name=name,
        ordinal=arguments.ordinal,
        old_content=old,
        new_content=new,
        warnings=_node_warnings(workspace, [name]),
    )


def delete_observations(workspace: Workspace, arguments: shape.DeleteObservations, _: Settings) -> answer.Deletions:
    """Delete facts of several entities."""
    outcomes = workspace.nodes.remove_observations(
        [(deletion.entity_name, deletion.ordinals) for deletion in arguments.deletions]
    )
    return answer.Deletions(
        results=[
            answer.DroppedFacts(entity_name=name, deleted_ordinals=gone, not_found_ordinals=missing)
            for name, gone, missing in outcomes
        ]
    )


def query_observations(
    workspace: Workspace, arguments: shape.QueryObservations, settings: Settings
) -> answer.FoundFacts:
    """Return the matching facts of one entity, cut if all together are long."""
    outcome = workspace.nodes.search_node(arguments.entity_name, arguments.query, arguments.mode, arguments.limit)
    node = workspace.nodes.get(arguments.entity_name)
    by = workspace.hands([node.id])[node.id]
    sizes = share_budget([len(hit.content) for hit in outcome.hits], settings.search.budget)
    return answer.FoundFacts(
        results=[
            answer.FoundFact(
                ordinal=hit.ordinal,
                content=hit.content[:size],
                truncated=size < len(hit.content),
                by=by,
                score=round(hit.score, 6),
            )
            for hit, size in zip(outcome.hits, sizes, strict=True)
        ],
        mode=outcome.mode,
        degraded=list(outcome.degraded),
    )


def create_relations(workspace: Workspace, arguments: shape.CreateRelations, _: Settings) -> answer.CreatedRelations:
    """Create relations, each once."""
    outcome = workspace.nodes.add_relations(_edges_of(arguments))
    return answer.CreatedRelations(
        created=_relation_answers(outcome.created),
        already_existed=_relation_answers(outcome.existed),
        not_found=outcome.not_found,
        warnings=_node_warnings(workspace, list(dict.fromkeys(edge.source for edge in outcome.created))),
    )


def delete_relations(workspace: Workspace, arguments: shape.DeleteRelations, _: Settings) -> answer.DeletedRelations:
    """Delete relations and count them."""
    deleted, missing = workspace.nodes.remove_relations(_edges_of(arguments))
    return answer.DeletedRelations(deleted=deleted, not_found=missing)


def update_relation_type(
    workspace: Workspace, arguments: shape.UpdateRelationType, _: Settings
) -> answer.RetypedRelation:
    """Rename the type of one relation."""
    now = workspace.nodes.retype_relation(
        arguments.from_entity, arguments.to_entity, arguments.old_type, arguments.new_type
    )
    return answer.RetypedRelation(
        from_entity=now.source,
        to_entity=now.target,
        old_type=arguments.old_type,
        new_type=now.type,
        warnings=_node_warnings(workspace, [now.source]),
    )


def get_relations_between(workspace: Workspace, arguments: shape.Pair, _: Settings) -> answer.RelationList:
    """Return the relations of two entities in both directions."""
    return answer.RelationList(
        results=_relation_answers(workspace.nodes.relations_between(arguments.entity_a, arguments.entity_b))
    )


def get_neighborhood(workspace: Workspace, arguments: shape.Neighborhood, _: Settings) -> answer.Surroundings:
    """Return the neighborhood of an entity."""
    neighbourhood = workspace.nodes.neighbourhood(arguments.name, arguments.depth, arguments.limit)
    return answer.Surroundings(
        nodes=[answer.Neighbor(**_node_fields(node)) for node in neighbourhood.vertices],
        relations=_relation_answers(neighbourhood.edges),
        truncated=neighbourhood.truncated,
    )


def get_path(workspace: Workspace, arguments: shape.Ends, _: Settings) -> answer.Route:
    """Return the shortest path."""
    nodes = workspace.nodes
    way = nodes.shortest_path(arguments.from_entity, arguments.to_entity)
    names = [] if way is None else [nodes.get(arguments.from_entity).name]
    for edge in way or ():
        names.append(edge.source if edge.target == names[-1] else edge.target)
    return answer.Route(found=way is not None, path=names, relations=_relation_answers(way or ()))


def get_orphans(workspace: Workspace, arguments: shape.Listing, _: Settings) -> answer.ChangedNodes:
    """Return the entities without relations."""
    return _changed_nodes(workspace.nodes.graph.orphans(), arguments)


def get_relation_gaps(workspace: Workspace, arguments: shape.Listing, _: Settings) -> answer.RelationGaps:
    """Return entities that facts of other entities name without a relation."""
    gaps, more = cut_page(
        workspace.nodes.unlinked_names(), arguments.limit, arguments.cursor, lambda gap: f"{gap.node}\n{gap.referenced}"
    )
    return answer.RelationGaps(
        results=[
            answer.RelationGap(node=gap.node, referenced_name=gap.referenced, reference_count=gap.count) for gap in gaps
        ],
        truncated=more is not None,
        next_cursor=more,
    )


def find_similar_nodes(workspace: Workspace, arguments: shape.SimilarNodes, _: Settings) -> answer.SimilarPairs:
    """Return pairs of similar but unrelated entities."""
    return answer.SimilarPairs(
        results=[
            answer.SimilarPair(
                node_a=node.name,
                node_b=other.name,
                similarity=round(score, 6),
                node_a_type=node.entity_type,
                node_b_type=other.entity_type,
            )
            for node, other, score in workspace.nodes.similar_pairs(arguments.limit, arguments.min_score)
        ]
    )


def search_nodes(workspace: Workspace, arguments: shape.SearchNodes, _: Settings) -> answer.FoundNodes:
    """Return the matching entities by their best fact."""
    nodes = workspace.nodes
    outcome = nodes.search(arguments.query, arguments.limit, arguments.mode)
    graph = nodes.graph
    pairs = [(node, hit) for hit in outcome.hits if (node := graph.vertex_at(hit.path))]
    hands = workspace.hands([node.id for node, _ in pairs])
    places = workspace.node_addresses([node.path for node, _ in pairs])
    return answer.FoundNodes(
        results=[_found_node(node, hit, hands[node.id], places.get(node.path, "")) for node, hit in pairs],
        mode=outcome.mode,
        degraded=list(outcome.degraded),
    )


def get_consolidation_report(workspace: Workspace, _: shape.Nothing, __: Settings) -> answer.ConsolidationReport:
    """Return the report of everything that needs attention."""
    report = workspace.nodes.report()
    return answer.ConsolidationReport(
        stale_summaries=[
            answer.StaleSummary(
                name=node.name,
                entity_type=node.entity_type,
                last_modified=iso(node.changed_at),
                observation_count=node.observations,
                draft_summary=node.draft,
            )
            for node in report.stale
        ],
        relation_candidates=[
            answer.RelationCandidate(
                node_a=pair.node_a, node_b=pair.node_b, similarity_score=pair.similarity, rationale=pair.rationale
            )
            for pair in report.candidates
        ],
        orphaned_nodes=[
            answer.Orphan(name=node.name, entity_type=node.entity_type, updated_at=iso(node.changed_at))
            for node in report.orphans
        ],
        cluster_summary=[
            answer.Cluster(cluster_id=cluster.number, node_names=list(cluster.names), centroid_label=cluster.label)
            for cluster in report.clusters
        ],
        event_summary=answer.EventSummary(**asdict(report.events) | {"since": iso(report.events.since)}),
        totals=dict(report.of),
        degraded=list(report.degraded),
    )


def get_pending_consolidation(workspace: Workspace, arguments: shape.Listing, _: Settings) -> answer.PendingNodes:
    """Return the entities whose summary is missing or outdated."""
    pending, more = cut_page(workspace.nodes.unsummarized(), arguments.limit, arguments.cursor, attrgetter("name"))
    return answer.PendingNodes(
        results=[
            answer.PendingNode(
                name=node.name,
                entity_type=node.entity_type,
                observation_count=node.observations,
                last_observation_at=iso_or_none(node.observed_at),
                summary_updated_at=iso_or_none(node.summary_updated_at),
            )
            for node in pending
        ],
        truncated=more is not None,
        next_cursor=more,
    )


def get_stats(workspace: Workspace, _: shape.Nothing, __: Settings) -> answer.Stats:
    """Count the graph."""
    now = workspace.nodes.stats()
    return answer.Stats(
        node_count=now.nodes,
        observation_count=now.observations,
        relation_count=now.relations,
        embedding_coverage=round(now.coverage, 6),
        workspace=workspace.name,
    )


def _node_warnings(workspace: Workspace, names: Sequence[str]) -> list[str]:
    """Return the defects of entities that were just written, each once; an entity deleted meanwhile has none."""
    warnings: dict[str, None] = {}
    for name in names:
        with suppress(NotFound):
            defects = workspace.record(workspace.nodes.get(name).id).defects
            warnings |= dict.fromkeys(warnings_about(defects))
    return list(warnings)


def _edges_of(arguments: shape.CreateRelations | shape.DeleteRelations) -> list[Edge]:
    return [Edge(relation.from_entity, relation.to_entity, relation.relation_type) for relation in arguments.relations]


def _relation_answers(edges: Sequence[Edge]) -> list[answer.Relation]:
    return [answer.Relation(source=edge.source, to=edge.target, relation_type=edge.type) for edge in edges]


def _fact_answers(facts: Sequence[Observation]) -> list[answer.KeptFact]:
    return [answer.KeptFact(ordinal=fact.ordinal, content=fact.content) for fact in facts]


def _node_fields(node: Vertex) -> dict[str, Any]:
    return {"name": node.name, "entity_type": node.entity_type, "summary": node.summary, "tags": list(node.tags)}


def _changed_nodes(nodes: Sequence[Vertex], arguments: shape.Listing | shape.RecentlyModified) -> answer.ChangedNodes:
    page, more = cut_page(nodes, arguments.limit, arguments.cursor, attrgetter("name"))
    return answer.ChangedNodes(
        results=[
            answer.ChangedNode(
                name=node.name, entity_type=node.entity_type, summary=node.summary, updated_at=iso(node.changed_at)
            )
            for node in page
        ],
        truncated=more is not None,
        next_cursor=more,
    )


def _found_node(node: Vertex, hit: ObservationHit, by: Hand, path: str) -> answer.FoundNode:
    """Return a hit of about `HIT` bytes. The summary gets at most a quarter of them and half of the space that names leave; the fact gets the rest."""
    room = HIT - KEYS - sum(_json_size(part) for part in (node.name, node.entity_type, path))
    summary = node.summary and _cut_to_bytes(node.summary, min(HIT // 4, room // 2))
    text = _cut_to_bytes(hit.content, room - _json_size(summary or ""))
    return answer.FoundNode(
        name=node.name,
        path=path,
        entity_type=node.entity_type,
        summary=summary,
        matched_observation=text,
        ordinal=hit.ordinal,
        truncated=(summary, text) != (node.summary, hit.content),
        matched_perspective=hit.perspective,
        by=by,
        score=round(hit.score, 6),
    )


def _cut_to_bytes(text: str, room: int) -> str:
    """Return the beginning of `text` that takes about `room` bytes as JSON."""
    whole = _json_size(text)
    return text if whole <= room else text[: max(20, len(text) * room // whole)]


def _json_size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))
