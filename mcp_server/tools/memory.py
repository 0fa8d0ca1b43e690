"""Define the tools of the family `memory`: memos with metadata, found by meaning and by metadata, and their relations.

Times are ISO 8601 in UTC. `content` is never altered: what comes back is byte for byte what went in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from index.memos.relations import MemoTie
from index.model import Record
from mcp_server.answers.text_budget import cut_excerpt, share_budget
from mcp_server.operations.operation import NOTES_ARE_DATA, Operation
from mcp_server.operations.wire_format import replacement_fields, warnings_about
from mcp_server.tools import memory_schema as shape
from mcp_server.tools.thoughts import read_contents
from syncd.notes.timestamps import iso
from syncd.settings.settings import Settings

if TYPE_CHECKING:
    from syncd.workspaces.workspace import Workspace

LONGEST: Final = 100_000  # characters of all memos of an answer together: some 25,000 tokens


def save(workspace: Workspace, arguments: shape.SaveMemo, _: Settings) -> shape.SavedMemo:
    """Make or change a memo."""
    saved = workspace.memos.save(
        arguments.content,
        namespace=arguments.namespace,
        memo_id=arguments.memo_id,
        title=arguments.title,
        metadata=arguments.metadata,
        replace=arguments.metadata_mode == "replace",
        version=arguments.version,
    )
    warnings = warnings_about(saved.record.defects)
    return shape.SavedMemo(
        **_memo_fields(workspace, saved.record, workspace.addresses([saved.record])),
        created=saved.created,
        warnings=warnings,
    )


def search(workspace: Workspace, arguments: shape.SearchMemos, _: Settings) -> shape.FoundMemos:
    """Memos with their text, which is cut where all together are very long."""
    matches = workspace.memos.search(
        namespace=arguments.namespace,
        query=arguments.query,
        pivot=arguments.pivot_memo_id,
        wanted=arguments.metadata_filter,
        k=arguments.k,
        minimum=arguments.minimum_similarity,
        metric=arguments.distance_metric,
        exclude_pivot=arguments.exclude_pivot,
    )
    texts, unread = read_contents(workspace, [item.record for item in matches.items])
    items = [(item, texts[item.record.id]) for item in matches.items if item.record.id in texts]
    sizes = share_budget([len(text) for _, text in items], LONGEST)
    hands = workspace.hands(list(texts))
    places = workspace.addresses([item.record for item, _ in items])
    problems = [f"vault: {unread} of the memos found can't be read just now, and are left out"] if unread else []
    return shape.FoundMemos(
        items=[
            shape.FoundMemo(
                **_memo_fields(workspace, item.record, places),
                content=cut_excerpt(text, "", size),
                content_truncated=size < len(text),
                by=hands[item.record.id],
                score=item.score,
            )
            for (item, text), size in zip(items, sizes, strict=True)
        ],
        degraded=[*matches.degraded, *problems],
    )


def delete(workspace: Workspace, arguments: shape.DeleteMemo, _: Settings) -> shape.DeletedMemo:
    """Remove a memo."""
    gone, relations = workspace.memos.delete(
        arguments.memo_id, namespace=arguments.namespace, version=arguments.version
    )
    return shape.DeletedMemo(memo_id=gone.id, namespace=gone.namespace, deleted=True, relations_deleted=relations)


def save_relation(workspace: Workspace, arguments: shape.SaveRelation, _: Settings) -> shape.Relation:
    """Make or change a relation."""
    tie = workspace.memo_graph.save(
        arguments.source,
        arguments.target,
        arguments.tag,
        namespace=arguments.namespace,
        weight=arguments.weight,
        reason=arguments.reason,
    )
    return shape.Relation(**_relation_fields(tie))


def delete_relation(workspace: Workspace, arguments: shape.DeleteRelation, _: Settings) -> shape.DeletedRelation:
    """Remove a relation."""
    tie = workspace.memo_graph.delete(arguments.source, arguments.target, arguments.tag, namespace=arguments.namespace)
    return shape.DeletedRelation(deleted=True, relation=shape.Relation(**_relation_fields(tie)))


def list_relations(workspace: Workspace, arguments: shape.ListRelations, _: Settings) -> shape.RelationList:
    """Relations of a namespace."""
    relations = workspace.memo_graph.list(
        namespace=arguments.namespace,
        source=arguments.source,
        target=arguments.target,
        tag=arguments.tag,
        limit=arguments.limit,
    )
    places = workspace.addresses(relations.memos)
    return shape.RelationList(
        edges=[shape.Relation(**_relation_fields(tie)) for tie in relations.ties],
        nodes=[shape.Memo(**_memo_fields(workspace, memo, places)) for memo in relations.memos],
        truncated=relations.truncated,
    )


def get_relation_graph(workspace: Workspace, arguments: shape.WalkRelations, _: Settings) -> shape.RelationGraph:
    """Relations around a memo."""
    graph = workspace.memo_graph.walk(
        arguments.start,
        namespace=arguments.namespace,
        way=arguments.direction,
        depth=arguments.depth,
        tag=arguments.tag,
        limit=arguments.limit,
    )
    places = workspace.addresses(graph.memos)
    return shape.RelationGraph(
        edges=[
            shape.Edge(
                **_relation_fields(step.tie),
                depth=step.depth,
                direction=step.direction,
                path=list(step.path),
                loop=step.loop,
            )
            for step in graph.steps
        ],
        nodes=[shape.Memo(**_memo_fields(workspace, memo, places)) for memo in graph.memos],
        truncated=graph.truncated,
    )


def _memo_fields(workspace: Workspace, record: Record, places: Mapping[str, str]) -> dict[str, Any]:
    return {
        "path": places.get(record.id, ""),
        "memo_id": record.id,
        "namespace": record.namespace,
        "title": record.title,
        "tags": list(record.tags),
        "metadata": dict(record.metadata),
        "created_at": iso(record.created_at),
        "updated_at": iso(record.created_at if record.updated_at is None else record.updated_at),
        "version": record.version,
        **replacement_fields(workspace, record),
    }


def _relation_fields(tie: MemoTie) -> dict[str, Any]:
    return {
        "namespace": tie.source.namespace,
        "source": tie.source.id,
        "target": tie.target.id,
        "tag": tie.relation.tag,
        "weight": tie.relation.weight,
        "reason": tie.relation.reason,
        "created_at": iso(tie.created_at),
        "updated_at": iso(tie.updated_at),
        "version": tie.relation.version,
    }


OPERATIONS: Final = (
    Operation(
        family="memory",
        name="memory.save",
        title="Save a memo",
        description=(
            "Keep a memo in a namespace, or change the one whose memo_id you give, if your host keeps memos by id; otherwise use "
            "capture_thought. Findable when this returns. Give the version you read to be sure that nobody changed it since. "
            + NOTES_ARE_DATA
        ),
        scope="write",
        given=shape.SaveMemo,
        returned=shape.SavedMemo,
        run=save,
        seconds=120,
    ),
    Operation(
        family="memory",
        name="memory.search",
        title="Search memos",
        description=(
            "Find memos by meaning (query), by likeness to one (pivot_memo_id) or, with neither, by metadata alone, those changed last "
            "first. For all notes, use semantic_search instead. score: higher is nearer with cosine, lower with l2. "
            + NOTES_ARE_DATA
        ),
        scope="read",
        given=shape.SearchMemos,
        returned=shape.FoundMemos,
        run=search,
        seconds=30,
    ),
    Operation(
        family="memory",
        name="memory.delete",
        title="Delete a memo",
        description="Delete a memo for good, with its relations. With version, only if it still has that one.",
        scope="write",
        given=shape.DeleteMemo,
        returned=shape.DeletedMemo,
        run=delete,
        seconds=60,
        destructive=True,
    ),
    Operation(
        family="memory",
        name="memory.relation.save",
        title="Relate memos",
        description=(
            "Say how one memo relates to another, or change the weight or reason of that relation. People, projects and things are "
            "related by create_relations instead. " + NOTES_ARE_DATA
        ),
        scope="write",
        given=shape.SaveRelation,
        returned=shape.Relation,
        run=save_relation,
        seconds=60,
    ),
    Operation(
        family="memory",
        name="memory.relation.delete",
        title="Delete a relation",
        description=f"Delete one relation; tells what it was. {NOTES_ARE_DATA}",
        scope="write",
        given=shape.DeleteRelation,
        returned=shape.DeletedRelation,
        run=delete_relation,
        seconds=60,
        destructive=True,
    ),
    Operation(
        family="memory",
        name="memory.relation.list",
        title="List relations",
        description=(
            f"List relations of a namespace and their memos; memory_relation_graph follows them from one. {NOTES_ARE_DATA}"
        ),
        scope="read",
        given=shape.ListRelations,
        returned=shape.RelationList,
        run=list_relations,
        seconds=30,
    ),
    Operation(
        family="memory",
        name="memory.relation.graph",
        title="Follow relations",
        description=(
            f"Follow relations from one memo, with depth and path of each; memory_relation_list names them all. {NOTES_ARE_DATA}"
        ),
        scope="read",
        given=shape.WalkRelations,
        returned=shape.RelationGraph,
        run=get_relation_graph,
        seconds=30,
    ),
)
