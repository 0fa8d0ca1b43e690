"""What each tool of the family `graph` does: one operation on the workspace's nodes, shaped as was agreed.

Times are ISO 8601 in UTC. A name is answered as its node spells it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from index.model import Observation, ObservationHit
from index.vertex import Edge, Vertex
from mcp_server.excerpt import shares
from mcp_server.tools import graph_answers as answer
from mcp_server.tools import graph_schema as shape
from syncd.config import Settings
from syncd.newnode import NewNode
from syncd.timestamps import iso

if TYPE_CHECKING:
    from syncd.workspace import Workspace

HIT: Final = 800  # bytes of JSON that one hit of a search takes at most: ten are 2,000 tokens
KEYS: Final = 180  # of them for its keys and numbers


def create_entities(workspace: Workspace, given: shape.CreateEntities, _: Settings) -> answer.CreatedNodes:
    """All nodes, or none."""
    made = workspace.nodes.create(
        [NewNode(one.name, one.entity_type, one.observations, one.summary, one.tags) for one in given.entities]
    )
    return answer.CreatedNodes(
        results=[
            answer.CreatedNode(name=one.name, entity_type=one.entity_type, created_at=iso(one.created_at))
            for one in made
        ]
    )


def delete_entities(workspace: Workspace, given: shape.DeleteEntities, _: Settings) -> answer.DeletedNodes:
    """Nodes with all that belongs to them."""
    deleted, missing = workspace.nodes.delete(given.entity_names)
    return answer.DeletedNodes(deleted=deleted, not_found=missing)


def open_nodes(workspace: Workspace, given: shape.OpenNodes, _: Settings) -> answer.OpenedNodes:
    """Nodes whole."""
    opened = workspace.nodes.open(given.names)
    return answer.OpenedNodes(
        entities=[
            answer.WholeNode(
                **_tagged(one),
                observations=_facts(facts),
                created_at=iso(one.created_at),
                updated_at=iso(one.changed_at),
                version=one.version,
            )
            for one, facts in opened.nodes
        ],
        relations=_relations(opened.edges),
        not_found=opened.not_found,
    )


def get_nodes_by_type(workspace: Workspace, given: shape.NodesByType, _: Settings) -> answer.TaggedNodes:
    """All nodes of a type."""
    found = workspace.nodes.by_type(given.entity_type)
    return answer.TaggedNodes(
        results=[answer.Tagged(**_tagged(one), updated_at=iso(one.changed_at)) for one in found[: given.limit]],
        truncated=len(found) > given.limit,
    )


def get_recently_modified(workspace: Workspace, given: shape.RecentlyModified, _: Settings) -> answer.ChangedNodes:
    """The latest first."""
    return _changed(workspace.nodes.recent(given.days, given.limit + 1), given.limit)


def set_summary(workspace: Workspace, given: shape.SetSummary, _: Settings) -> answer.SummarySet:
    """One property."""
    one = workspace.nodes.set_summary(given.name, given.summary, given.version)
    return answer.SummarySet(
        name=one.name, summary=one.summary or "", updated_at=iso(one.changed_at), version=one.version
    )


def set_tags(workspace: Workspace, given: shape.SetTags, _: Settings) -> answer.TagsSet:
    """One property."""
    one = workspace.nodes.set_tags(given.name, given.tags, given.version)
    return answer.TagsSet(name=one.name, tags=list(one.tags), version=one.version)


def add_observations(workspace: Workspace, given: shape.AddObservations, _: Settings) -> answer.Additions:
    """Facts for several nodes."""
    told = workspace.nodes.add([(one.entity_name, one.contents) for one in given.observations])
    return answer.Additions(
        results=[
            answer.Added(entity_name=name, added=_facts(added or ()), not_found=added is None) for name, added in told
        ]
    )


def replace_observation(workspace: Workspace, given: shape.ReplaceObservation, _: Settings) -> answer.Replaced:
    """One fact."""
    name, old, new = workspace.nodes.replace(given.entity_name, given.ordinal, given.new_content, given.version)
    return answer.Replaced(entity_name=name, ordinal=given.ordinal, old_content=old, new_content=new)


def delete_observations(workspace: Workspace, given: shape.DeleteObservations, _: Settings) -> answer.Deletions:
    """Facts of several nodes."""
    told = workspace.nodes.remove([(one.entity_name, one.ordinals) for one in given.deletions])
    return answer.Deletions(
        results=[
            answer.Dropped(entity_name=name, deleted_ordinals=gone, not_found_ordinals=missing)
            for name, gone, missing in told
        ]
    )


def query_observations(workspace: Workspace, given: shape.QueryObservations, settings: Settings) -> answer.FoundFacts:
    """Facts of one node, cut where all together are long."""
    told = workspace.nodes.query(given.entity_name, given.query, given.mode, given.limit)
    sizes = shares([len(hit.content) for hit in told.hits], settings.search.budget)
    return answer.FoundFacts(
        results=[
            answer.FoundFact(
                ordinal=hit.ordinal,
                content=hit.content[:size],
                truncated=size < len(hit.content),
                score=round(hit.score, 6),
            )
            for hit, size in zip(told.hits, sizes, strict=True)
        ],
        mode=told.mode,
        degraded=list(told.degraded),
    )


def create_relations(workspace: Workspace, given: shape.Relations, _: Settings) -> answer.CreatedRelations:
    """Relations, each once."""
    told = workspace.nodes.relate(_asked(given))
    return answer.CreatedRelations(
        created=_relations(told.created), already_existed=_relations(told.existed), not_found=told.not_found
    )


def delete_relations(workspace: Workspace, given: shape.Relations, _: Settings) -> answer.DeletedRelations:
    """Relations, counted."""
    deleted, missing = workspace.nodes.unrelate(_asked(given))
    return answer.DeletedRelations(deleted=deleted, not_found=missing)


def update_relation_type(workspace: Workspace, given: shape.UpdateRelationType, _: Settings) -> answer.Retyped:
    """One relation."""
    now = workspace.nodes.retype(given.from_entity, given.to_entity, given.old_type, given.new_type)
    return answer.Retyped(from_entity=now.source, to_entity=now.target, old_type=given.old_type, new_type=now.type)


def get_relations_between(workspace: Workspace, given: shape.Pair, _: Settings) -> answer.RelationList:
    """Both directions."""
    return answer.RelationList(results=_relations(workspace.nodes.between(given.entity_a, given.entity_b)))


def get_neighborhood(workspace: Workspace, given: shape.Neighborhood, _: Settings) -> answer.Surroundings:
    """A subgraph."""
    found = workspace.nodes.neighbourhood(given.name, given.depth, given.limit)
    return answer.Surroundings(
        nodes=[answer.Neighbor(**_tagged(one)) for one in found.vertices],
        relations=_relations(found.edges),
        truncated=found.truncated,
    )


def get_path(workspace: Workspace, given: shape.Ends, _: Settings) -> answer.Route:
    """The shortest path."""
    nodes = workspace.nodes
    way = nodes.path(given.from_entity, given.to_entity)
    names = [] if way is None else [nodes.get(given.from_entity).name]
    for edge in way or ():
        names.append(edge.source if edge.target == names[-1] else edge.target)
    return answer.Route(found=way is not None, path=names, relations=_relations(way or ()))


def get_orphans(workspace: Workspace, given: shape.Listing, _: Settings) -> answer.ChangedNodes:
    """Nodes without relations."""
    return _changed(workspace.nodes.orphans(), given.limit)


def get_relation_gaps(workspace: Workspace, given: shape.Listing, _: Settings) -> answer.RelationGaps:
    """Names in the observations of others."""
    found = workspace.nodes.gaps(given.limit + 1)
    return answer.RelationGaps(
        results=[
            answer.RelationGap(node=one.node, referenced_name=one.referenced, reference_count=one.count)
            for one in found[: given.limit]
        ],
        truncated=len(found) > given.limit,
    )


def find_similar_nodes(workspace: Workspace, given: shape.SimilarNodes, _: Settings) -> answer.SimilarPairs:
    """Alike, but not related."""
    return answer.SimilarPairs(
        results=[
            answer.SimilarPair(
                node_a=one.name,
                node_b=other.name,
                similarity=round(score, 6),
                node_a_type=one.entity_type,
                node_b_type=other.entity_type,
            )
            for one, other, score in workspace.nodes.similar(given.limit, given.min_score)
        ]
    )


def search_nodes(workspace: Workspace, given: shape.SearchNodes, _: Settings) -> answer.FoundNodes:
    """Nodes by their best observation."""
    nodes = workspace.nodes
    told = nodes.search(given.query, given.limit, given.mode)
    graph = nodes.graph
    return answer.FoundNodes(
        results=[_hit(one, hit) for hit in told.hits if (one := graph.at(hit.path))],
        mode=told.mode,
        degraded=list(told.degraded),
    )


def get_consolidation_report(workspace: Workspace, _: shape.Nothing, __: Settings) -> answer.ConsolidationReport:
    """Everything that needs attention."""
    found = workspace.nodes.report()
    return answer.ConsolidationReport(
        stale_summaries=[
            answer.StaleSummary(
                name=one.name,
                entity_type=one.entity_type,
                last_modified=iso(one.changed_at),
                observation_count=one.observations,
                draft_summary=one.draft,
            )
            for one in found.stale
        ],
        relation_candidates=[
            answer.RelationCandidate(
                node_a=one.node_a, node_b=one.node_b, similarity_score=one.similarity, rationale=one.rationale
            )
            for one in found.candidates
        ],
        orphaned_nodes=[
            answer.Orphan(name=one.name, entity_type=one.entity_type, updated_at=iso(one.changed_at))
            for one in found.orphans
        ],
        cluster_summary=[
            answer.Cluster(cluster_id=one.number, node_names=list(one.names), centroid_label=one.label)
            for one in found.clusters
        ],
        event_summary=answer.EventSummary(
            since=iso(found.events.since),
            creates=found.events.creates,
            updates=found.events.updates,
            deletes=found.events.deletes,
        ),
        totals=dict(found.of),
        degraded=list(found.degraded),
    )


def get_pending_consolidation(workspace: Workspace, _: shape.Nothing, __: Settings) -> answer.PendingNodes:
    """What wants a summary."""
    found = workspace.nodes.pending()
    return answer.PendingNodes(
        results=[
            answer.PendingNode(
                name=one.name,
                entity_type=one.entity_type,
                observation_count=one.observations,
                last_observation_at=_time(one.observed_at),
                summary_updated_at=_time(one.summary_updated_at),
            )
            for one in found[: shape.MOST]
        ],
        truncated=len(found) > shape.MOST,
    )


def get_stats(workspace: Workspace, _: shape.Nothing, __: Settings) -> answer.Stats:
    """Numbers."""
    now = workspace.nodes.stats()
    return answer.Stats(
        node_count=now.nodes,
        observation_count=now.observations,
        relation_count=now.relations,
        embedding_coverage=round(now.coverage, 6),
        workspace=workspace.name,
    )


def _asked(given: shape.Relations) -> list[Edge]:
    return [Edge(one.from_entity, one.to_entity, one.relation_type) for one in given.relations]


def _relations(edges: Sequence[Edge]) -> list[answer.Relation]:
    return [answer.Relation(source=one.source, to=one.target, relation_type=one.type) for one in edges]


def _facts(facts: Sequence[Observation]) -> list[answer.KeptFact]:
    return [answer.KeptFact(ordinal=one.ordinal, content=one.content) for one in facts]


def _tagged(one: Vertex) -> dict[str, Any]:
    return {"name": one.name, "entity_type": one.entity_type, "summary": one.summary, "tags": list(one.tags)}


def _changed(found: Sequence[Vertex], limit: int) -> answer.ChangedNodes:
    return answer.ChangedNodes(
        results=[
            answer.Changed(
                name=one.name, entity_type=one.entity_type, summary=one.summary, updated_at=iso(one.changed_at)
            )
            for one in found[:limit]
        ],
        truncated=len(found) > limit,
    )


def _hit(one: Vertex, hit: ObservationHit) -> answer.FoundNode:
    """A hit of about `HIT` bytes: the summary gets a quarter of them at most, the observation what is left."""
    summary = one.summary and _cut(one.summary, HIT // 4)
    taken = sum(_bytes(part) for part in (one.name, one.entity_type, summary or ""))
    text = _cut(hit.content, HIT - KEYS - taken)
    return answer.FoundNode(
        name=one.name,
        entity_type=one.entity_type,
        summary=summary,
        matched_observation=text,
        ordinal=hit.ordinal,
        truncated=len(text) < len(hit.content),
        matched_perspective=hit.perspective,
        score=round(hit.score, 6),
    )


def _cut(text: str, room: int) -> str:
    """The beginning of `text` that takes about `room` bytes as JSON."""
    whole = _bytes(text)
    return text if whole <= room else text[: max(20, len(text) * room // whole)]


def _bytes(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))


def _time(at: int | None) -> str | None:
    return None if at is None else iso(at)
