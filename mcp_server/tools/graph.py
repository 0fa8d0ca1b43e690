"""Define the tools of the family `graph`: entities with facts, relations between entities, and what needs attention.

A model chooses a tool by its description, so each description says when to use this tool and when another one. All 24
tools with their parameters stay within 3,500 tokens."""

from __future__ import annotations

from functools import partial
from typing import Final

from mcp_server.operations.operation import NOTES_ARE_DATA, define_operation
from mcp_server.tools import graph_calls as calls

_read = partial(define_operation, family="graph", scope="read", seconds=15.0)
_write = partial(define_operation, family="graph", scope="write", seconds=120.0)

OPERATIONS: Final = (
    _write(
        calls.create_entities,
        title="Create entities",
        description=(
            "Create entities for people, projects or things, each with facts of one sentence. All or none: an existing name "
            "returns CONFLICT, so call search_nodes first. To extend an entity, use add_observations; for a note that is not about "
            "one thing, capture_thought."
        ),
    ),
    _write(
        calls.delete_entities,
        title="Delete entities",
        description=(
            "Delete entities permanently, with their facts and all relations from and to them. To delete single facts, use "
            "delete_observations."
        ),
        destructive=True,
    ),
    _read(
        calls.open_nodes,
        title="Open entities",
        description=(
            "Read whole entities by name: summary, tags, version, each fact with its ordinal, and all relations from and to them. "
            "Without a name, use search_nodes. " + NOTES_ARE_DATA
        ),
    ),
    _read(
        calls.get_nodes_by_type,
        title="List entities of a type",
        description=(
            f"List the entities of one entity_type, without facts. To find them by content, use search_nodes. {NOTES_ARE_DATA}"
        ),
    ),
    _read(
        calls.get_recently_modified,
        title="List changed entities",
        description=(
            f"List entities that changed in the last days, latest first. For new notes, use list_recent. {NOTES_ARE_DATA}"
        ),
    ),
    _write(
        calls.set_summary,
        title="Set a summary",
        description=f'Set an entity\'s summary, after you read the entity with open_nodes; "" removes it. {NOTES_ARE_DATA}',
        destructive=True,
    ),
    _write(
        calls.set_tags,
        title="Set tags",
        description="Replace all tags of an entity. Include the tags that stay.",
        destructive=True,
    ),
    _write(
        calls.add_observations,
        title="Add facts",
        description=(
            "Add facts to existing entities (people, projects, things); each gets the next ordinal. One fact per text, clear without "
            "context. Prefer this to capture_thought when a fact is about one entity. To correct a fact, use replace_observation. "
            + NOTES_ARE_DATA
        ),
        idempotent=False,
    ),
    _write(
        calls.replace_observation,
        title="Correct a fact",
        description=f"Replace the text of one fact; its ordinal stays. For a new fact, use add_observations. {NOTES_ARE_DATA}",
        destructive=True,
    ),
    _write(
        calls.delete_observations,
        title="Delete facts",
        description="Delete facts by ordinal (from open_nodes). The other facts keep their ordinals.",
        destructive=True,
    ),
    _read(
        calls.query_observations,
        title="Search one entity",
        description=f"Search the facts of one entity that is too long to open. To search all entities, use search_nodes. {NOTES_ARE_DATA}",
    ),
    _write(
        calls.create_relations,
        title="Create relations",
        description=(
            "Relate two existing entities: from_entity relation_type to_entity, in the active voice (works_at). Use it instead of a "
            "fact that names another entity."
        ),
    ),
    _write(
        calls.delete_relations,
        title="Delete relations",
        description="Delete exactly these relations; the entities stay.",
        destructive=True,
    ),
    _write(
        calls.update_relation_type,
        title="Rename a relation",
        description="Rename the type of one relation.",
        destructive=True,
    ),
    _read(
        calls.get_relations_between,
        title="List relations of two entities",
        description="List direct relations between two entities, in both directions. For indirect ones, use get_path.",
    ),
    _read(
        calls.get_neighborhood,
        title="List an entity's neighbors",
        description=(
            "List entities within depth relations of one entity, in either direction, and the relations among them. For one entity "
            "alone, use open_nodes. " + NOTES_ARE_DATA
        ),
    ),
    _read(
        calls.get_path,
        title="Find the shortest path",
        description=(
            "Find the shortest path between two entities, also through others; the direction of relations does not count."
        ),
    ),
    _read(
        calls.get_orphans,
        title="List orphans",
        description=f"List entities without any relation. {NOTES_ARE_DATA}",
    ),
    _read(
        calls.get_relation_gaps,
        title="List missing relations",
        description=(
            "List entities whose facts name another entity without a relation to it. Only names are compared: read both "
            "entities before you relate them."
        ),
        seconds=60.0,
    ),
    _read(
        calls.find_similar_nodes,
        title="List similar entities",
        description="List pairs of unrelated entities with similar meaning, as candidates to relate, merge or group.",
        seconds=60.0,
    ),
    _read(
        calls.search_nodes,
        title="Search entities",
        description=(
            "Find people, projects and things by their facts, best first, each with the matching fact; then read them with open_nodes. "
            "For notes, use semantic_search. embedding: by meaning; text: exact words, names, codes. For a vague question, search "
            "again in other words. " + NOTES_ARE_DATA
        ),
    ),
    _read(
        calls.get_consolidation_report,
        title="Report what needs attention",
        description=(
            "Report what needs attention, for you to judge: outdated summaries with drafts, possible relations with reasons, "
            "orphans, clusters, counts of changes. For summaries alone, get_pending_consolidation is faster. "
            + NOTES_ARE_DATA
        ),
        seconds=120.0,
    ),
    _read(
        calls.get_pending_consolidation,
        title="List pending summaries",
        description="List entities whose summary is missing or older than their latest fact.",
    ),
    _read(
        calls.get_stats,
        title="Count the graph",
        description=("Count entities, facts and relations, and show the share of facts that search by meaning covers."),
    ),
)
