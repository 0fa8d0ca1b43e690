"""Define the tools of the family `graph`: entities with facts, relations between entities, and what needs attention.

A model chooses a tool by its description, so each description says when to use this tool and when another one. All 24
tools with their parameters stay within 3,500 tokens."""

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
        title="Create entities",
        description=(
            "Create entities for people, projects or things, each with facts of one sentence. All or none: an existing name "
            "returns CONFLICT, so call search_nodes first. To extend an entity, use add_observations; for a note that is not about "
            "one thing, capture_thought."
        ),
        given=shape.CreateEntities,
        returned=answer.CreatedNodes,
        run=calls.create_entities,
    ),
    _write(
        name="delete_entities",
        title="Delete entities",
        description=(
            "Delete entities permanently, with their facts and all relations from and to them. To delete single facts, use "
            "delete_observations."
        ),
        given=shape.DeleteEntities,
        returned=answer.DeletedNodes,
        run=calls.delete_entities,
        destructive=True,
    ),
    _read(
        name="open_nodes",
        title="Open entities",
        description=(
            "Read whole entities by name: summary, tags, version, each fact with its ordinal, and all relations from and to them. "
            "Without a name, use search_nodes. " + NOTES_ARE_DATA
        ),
        given=shape.OpenNodes,
        returned=answer.OpenedNodes,
        run=calls.open_nodes,
    ),
    _read(
        name="get_nodes_by_type",
        title="List entities of a type",
        description=(
            f"List the entities of one entity_type, without facts. To find them by content, use search_nodes. {NOTES_ARE_DATA}"
        ),
        given=shape.NodesByType,
        returned=answer.TaggedNodes,
        run=calls.get_nodes_by_type,
    ),
    _read(
        name="get_recently_modified",
        title="List changed entities",
        description=(
            f"List entities that changed in the last days, latest first. For new notes, use list_recent. {NOTES_ARE_DATA}"
        ),
        given=shape.RecentlyModified,
        returned=answer.ChangedNodes,
        run=calls.get_recently_modified,
    ),
    _write(
        name="set_summary",
        title="Set a summary",
        description=f'Set an entity\'s summary, after you read the entity with open_nodes; "" removes it. {NOTES_ARE_DATA}',
        given=shape.SetSummary,
        returned=answer.SummarySet,
        run=calls.set_summary,
        destructive=True,
    ),
    _write(
        name="set_tags",
        title="Set tags",
        description="Replace all tags of an entity. Include the tags that stay.",
        given=shape.SetTags,
        returned=answer.TagsSet,
        run=calls.set_tags,
        destructive=True,
    ),
    _write(
        name="add_observations",
        title="Add facts",
        description=(
            "Add facts to existing entities (people, projects, things); each gets the next ordinal. One fact per text, clear without "
            "context. Prefer this to capture_thought when a fact is about one entity. To correct a fact, use replace_observation. "
            + NOTES_ARE_DATA
        ),
        given=shape.AddObservations,
        returned=answer.Additions,
        run=calls.add_observations,
        idempotent=False,
    ),
    _write(
        name="replace_observation",
        title="Correct a fact",
        description=f"Replace the text of one fact; its ordinal stays. For a new fact, use add_observations. {NOTES_ARE_DATA}",
        given=shape.ReplaceObservation,
        returned=answer.ReplacedFact,
        run=calls.replace_observation,
        destructive=True,
    ),
    _write(
        name="delete_observations",
        title="Delete facts",
        description="Delete facts by ordinal (from open_nodes). The other facts keep their ordinals.",
        given=shape.DeleteObservations,
        returned=answer.Deletions,
        run=calls.delete_observations,
        destructive=True,
    ),
    _read(
        name="query_observations",
        title="Search one entity",
        description=f"Search the facts of one entity that is too long to open. To search all entities, use search_nodes. {NOTES_ARE_DATA}",
        given=shape.QueryObservations,
        returned=answer.FoundFacts,
        run=calls.query_observations,
    ),
    _write(
        name="create_relations",
        title="Create relations",
        description=(
            "Relate two existing entities: from_entity relation_type to_entity, in the active voice (works_at). Use it instead of a "
            "fact that names another entity."
        ),
        given=shape.CreateRelations,
        returned=answer.CreatedRelations,
        run=calls.create_relations,
    ),
    _write(
        name="delete_relations",
        title="Delete relations",
        description="Delete exactly these relations; the entities stay.",
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
        title="List relations of two entities",
        description="List direct relations between two entities, in both directions. For indirect ones, use get_path.",
        given=shape.Pair,
        returned=answer.RelationList,
        run=calls.get_relations_between,
    ),
    _read(
        name="get_neighborhood",
        title="List an entity's neighbors",
        description=(
            "List entities within depth relations of one entity, in either direction, and the relations among them. For one entity "
            "alone, use open_nodes. " + NOTES_ARE_DATA
        ),
        given=shape.Neighborhood,
        returned=answer.Surroundings,
        run=calls.get_neighborhood,
    ),
    _read(
        name="get_path",
        title="Find the shortest path",
        description=(
            "Find the shortest path between two entities, also through others; the direction of relations does not count."
        ),
        given=shape.Ends,
        returned=answer.Route,
        run=calls.get_path,
    ),
    _read(
        name="get_orphans",
        title="List orphans",
        description=f"List entities without any relation. {NOTES_ARE_DATA}",
        given=shape.Listing,
        returned=answer.ChangedNodes,
        run=calls.get_orphans,
    ),
    _read(
        name="get_relation_gaps",
        title="List missing relations",
        description=(
            "List entities whose facts name another entity without a relation to it. Only names are compared: read both "
            "entities before you relate them."
        ),
        given=shape.Listing,
        returned=answer.RelationGaps,
        run=calls.get_relation_gaps,
        seconds=60.0,
    ),
    _read(
        name="find_similar_nodes",
        title="List similar entities",
        description="List pairs of unrelated entities with similar meaning, as candidates to relate, merge or group.",
        given=shape.SimilarNodes,
        returned=answer.SimilarPairs,
        run=calls.find_similar_nodes,
        seconds=60.0,
    ),
    _read(
        name="search_nodes",
        title="Search entities",
        description=(
            "Find people, projects and things by their facts, best first, each with the matching fact; then read them with open_nodes. "
            "For notes, use semantic_search. embedding: by meaning; text: exact words, names, codes. For a vague question, search "
            "again in other words. " + NOTES_ARE_DATA
        ),
        given=shape.SearchNodes,
        returned=answer.FoundNodes,
        run=calls.search_nodes,
    ),
    _read(
        name="get_consolidation_report",
        title="Report what needs attention",
        description=(
            "Report what needs attention, for you to judge: outdated summaries with drafts, possible relations with reasons, "
            "orphans, clusters, counts of changes. For summaries alone, get_pending_consolidation is faster. "
            + NOTES_ARE_DATA
        ),
        given=shape.Nothing,
        returned=answer.ConsolidationReport,
        run=calls.get_consolidation_report,
        seconds=120.0,
    ),
    _read(
        name="get_pending_consolidation",
        title="List pending summaries",
        description="List entities whose summary is missing or older than their latest fact.",
        given=shape.Listing,
        returned=answer.PendingNodes,
        run=calls.get_pending_consolidation,
    ),
    _read(
        name="get_stats",
        title="Count the graph",
        description=("Count entities, facts and relations, and show the share of facts that search by meaning covers."),
        given=shape.Nothing,
        returned=answer.Stats,
        run=calls.get_stats,
    ),
)
