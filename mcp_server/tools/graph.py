"""Define the tools of the family `graph`: nodes with observations, relations between nodes, and what needs attention.

A model chooses by the descriptions, so each says when to use it and not its sibling; all 24 with their parameters stay
within 3,500 tokens."""

from __future__ import annotations

from functools import partial
from typing import Final

from mcp_server.operations.operation import NOTES_ARE_DATA, Operation
from mcp_server.tools import graph_answers as answer
from mcp_server.tools import graph_calls as calls
from mcp_server.tools import graph_schema as shape

_read = partial(Operation, family="graph", scope="read", seconds=15.0)
_write = partial(Operation, family="graph", scope="write", seconds=120.0)

OPERATIONS: Final = (
    _write(
        name="create_entities",
        title="Create nodes",
        description=(
            "Make nodes for people, projects or things that have none, each with facts of one sentence. All or none: a name that "
            "exists is CONFLICT, so search_nodes first, and use add_observations for a node that is there. What is about no one "
            "thing is a note: capture_thought."
        ),
        given=shape.CreateEntities,
        returned=answer.CreatedNodes,
        run=calls.create_entities,
    ),
    _write(
        name="delete_entities",
        title="Delete nodes",
        description=(
            "Delete nodes for good, with their observations and all their relations; delete_observations takes single facts."
        ),
        given=shape.DeleteEntities,
        returned=answer.DeletedNodes,
        run=calls.delete_entities,
        destructive=True,
    ),
    _read(
        name="open_nodes",
        title="Open nodes",
        description=(
            "Read nodes whole by name: summary, tags, every observation with its ordinal, version, and all relations at either end. "
            "Without a name, use search_nodes. " + NOTES_ARE_DATA
        ),
        given=shape.OpenNodes,
        returned=answer.OpenedNodes,
        run=calls.open_nodes,
    ),
    _read(
        name="get_nodes_by_type",
        title="List nodes of a type",
        description=(
            f"List the nodes of one entity_type, without observations; search_nodes finds by content. {NOTES_ARE_DATA}"
        ),
        given=shape.NodesByType,
        returned=answer.TaggedNodes,
        run=calls.get_nodes_by_type,
    ),
    _read(
        name="get_recently_modified",
        title="List nodes by change",
        description=(
            f"List nodes changed in the last days, the latest first; list_recent does it for notes. {NOTES_ARE_DATA}"
        ),
        given=shape.RecentlyModified,
        returned=answer.ChangedNodes,
        run=calls.get_recently_modified,
    ),
    _write(
        name="set_summary",
        title="Set a summary",
        description=f'Write or replace a node\'s summary, after open_nodes; "" removes it. {NOTES_ARE_DATA}',
        given=shape.SetSummary,
        returned=answer.SummarySet,
        run=calls.set_summary,
        destructive=True,
    ),
    _write(
        name="set_tags",
        title="Set tags",
        description=("Replace all tags of a node; name those that stay too."),
        given=shape.SetTags,
        returned=answer.TagsSet,
        run=calls.set_tags,
        destructive=True,
    ),
    _write(
        name="add_observations",
        title="Add observations",
        description=(
            "Add facts to people, projects or things that have a node; each gets the next ordinal. One fact per text, whole in "
            "itself. Instead of capture_thought for what belongs to one node. To correct a fact use replace_observation. "
            + NOTES_ARE_DATA
        ),
        given=shape.AddObservations,
        returned=answer.Additions,
        run=calls.add_observations,
        idempotent=False,
    ),
    _write(
        name="replace_observation",
        title="Replace an observation",
        description=f"Correct one observation in place; its ordinal stays. {NOTES_ARE_DATA}",
        given=shape.ReplaceObservation,
        returned=answer.ReplacedFact,
        run=calls.replace_observation,
        destructive=True,
    ),
    _write(
        name="delete_observations",
        title="Delete observations",
        description="Delete observations by ordinal (see open_nodes); the others keep theirs.",
        given=shape.DeleteObservations,
        returned=answer.Deletions,
        run=calls.delete_observations,
        destructive=True,
    ),
    _read(
        name="query_observations",
        title="Search one node",
        description=f"Find observations within one node that is too long to open; search_nodes covers all nodes. {NOTES_ARE_DATA}",
        given=shape.QueryObservations,
        returned=answer.FoundFacts,
        run=calls.query_observations,
    ),
    _write(
        name="create_relations",
        title="Create relations",
        description=(
            "Connect two nodes that exist: from_entity relation_type to_entity, in the active voice (works_at). Instead of a fact "
            "that names another node."
        ),
        given=shape.CreateRelations,
        returned=answer.CreatedRelations,
        run=calls.create_relations,
    ),
    _write(
        name="delete_relations",
        title="Delete relations",
        description="Delete exactly these relations; the nodes stay.",
        given=shape.DeleteRelations,
        returned=answer.DeletedRelations,
        run=calls.delete_relations,
        destructive=True,
    ),
    _write(
        name="update_relation_type",
        title="Rename a relation",
        description="Rename the type of one relation.",
        given=shape.UpdateRelationType,
        returned=answer.RetypedRelation,
        run=calls.update_relation_type,
        destructive=True,
    ),
    _read(
        name="get_relations_between",
        title="Relations of two nodes",
        description="List direct relations between two nodes, both ways; get_path for indirect ones.",
        given=shape.Pair,
        returned=answer.RelationList,
        run=calls.get_relations_between,
    ),
    _read(
        name="get_neighborhood",
        title="Neighborhood",
        description=(
            f"The nodes within depth hops of one, either direction, and the relations among them; open_nodes has one node alone. {NOTES_ARE_DATA}"
        ),
        given=shape.Neighborhood,
        returned=answer.Surroundings,
        run=calls.get_neighborhood,
    ),
    _read(
        name="get_path",
        title="Shortest path",
        description=(
            "How two nodes are connected, be it through others: the shortest path, whichever way relations point."
        ),
        given=shape.Ends,
        returned=answer.Route,
        run=calls.get_path,
    ),
    _read(
        name="get_orphans",
        title="Orphans",
        description=f"List nodes without any relation. {NOTES_ARE_DATA}",
        given=shape.Listing,
        returned=answer.ChangedNodes,
        run=calls.get_orphans,
    ),
    _read(
        name="get_relation_gaps",
        title="Relation gaps",
        description=(
            "List nodes whose observations name another node they have no relation with. Only names are matched: read "
            "both before you relate them."
        ),
        given=shape.Listing,
        returned=answer.RelationGaps,
        run=calls.get_relation_gaps,
        seconds=60.0,
    ),
    _read(
        name="find_similar_nodes",
        title="Similar nodes",
        description="Pairs of unrelated nodes alike in meaning: relate, merge or group them.",
        given=shape.SimilarNodes,
        returned=answer.SimilarPairs,
        run=calls.find_similar_nodes,
        seconds=60.0,
    ),
    _read(
        name="search_nodes",
        title="Search nodes",
        description=(
            "Find people, projects and things by what their facts say, best first, with the fact that matched; semantic_search "
            "finds notes. embedding: by meaning; text: exact words, names, codes. For a vague question ask again in other words. Then "
            "open_nodes. " + NOTES_ARE_DATA
        ),
        given=shape.SearchNodes,
        returned=answer.FoundNodes,
        run=calls.search_nodes,
    ),
    _read(
        name="get_consolidation_report",
        title="Consolidation report",
        description=(
            "All that needs attention, with candidates to judge: stale summaries with drafts, missing relations with "
            "reasons, orphans, clusters, events. get_pending_consolidation is quicker. " + NOTES_ARE_DATA
        ),
        given=shape.Nothing,
        returned=answer.ConsolidationReport,
        run=calls.get_consolidation_report,
        seconds=120.0,
    ),
    _read(
        name="get_pending_consolidation",
        title="Pending summaries",
        description="List nodes whose summary is missing or older than their latest observation.",
        given=shape.Listing,
        returned=answer.PendingNodes,
        run=calls.get_pending_consolidation,
    ),
    _read(
        name="get_stats",
        title="Graph in numbers",
        description=(
            "Count nodes, observations and relations; the share embedded. For what needs work, get_pending_consolidation."
        ),
        given=shape.Nothing,
        returned=answer.Stats,
        run=calls.get_stats,
    ),
)
