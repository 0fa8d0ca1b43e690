"""Define the tools of the family `memory`: save, search and delete memos with metadata, and relate memos to each other.

Times are ISO 8601 in UTC. Memex never changes `content`: a read returns the same bytes that the save stored."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from index.errors import NotFound
from index.memos.relations import MemoTie
from index.model import Record
from mcp_server.answers.text_budget import cut_excerpt, share_budget
from mcp_server.operations.operation import NOTES_ARE_DATA, define_operation
from mcp_server.operations.wire_format import replacement_fields, warnings_about
from mcp_server.tools import memory_schema as shape
from mcp_server.tools.thoughts import read_contents
from syncd.documents.agent_paths import visible_metadata
from syncd.notes.timestamps import iso
from syncd.settings.settings import Settings

if TYPE_CHECKING:
    from syncd.workspaces.workspace import Workspace

LONGEST: Final = 100_000  # characters of all memos in one answer together: about 25,000 tokens


def save(workspace: Workspace, arguments: shape.SaveMemo, _: Settings) -> shape.SavedMemo:
    """Create or change a memo."""
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
    """Return the matching memos with their text, cut when all texts together exceed `LONGEST`."""
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
    problems = [f"vault: {unread} of the matching memos can't be read now and are left out"] if unread else []
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
    """Delete a memo and its relations."""
    gone, relations = workspace.memos.delete(
        arguments.memo_id, namespace=arguments.namespace, version=arguments.version
    )
    return shape.DeletedMemo(memo_id=gone.id, namespace=gone.namespace, deleted=True, relations_deleted=relations)


def save_relation(workspace: Workspace, arguments: shape.SaveRelation, _: Settings) -> shape.SavedRelation:
    """Create or change a relation."""
    tie = workspace.memo_graph.save(
        arguments.source,
        arguments.target,
        arguments.tag,
        namespace=arguments.namespace,
        weight=arguments.weight,
        reason=arguments.reason,
    )
    warnings: list[str] = []
    with suppress(NotFound):  # deleted meanwhile: the relation was saved all the same
        warnings = warnings_about(workspace.record(tie.source.id).defects)
    return shape.SavedRelation(**_relation_fields(tie), warnings=warnings)


def delete_relation(workspace: Workspace, arguments: shape.DeleteRelation, _: Settings) -> shape.DeletedRelation:
    """Delete a relation."""
    tie = workspace.memo_graph.delete(arguments.source, arguments.target, arguments.tag, namespace=arguments.namespace)
    return shape.DeletedRelation(deleted=True, relation=shape.Relation(**_relation_fields(tie)))


def list_relations(workspace: Workspace, arguments: shape.ListRelations, _: Settings) -> shape.RelationList:
    """List relations of a namespace."""
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
    """Follow relations from a memo."""
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
        "metadata": visible_metadata(record),
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


_read = partial(define_operation, family="memory", scope="read", seconds=30)
_write = partial(define_operation, family="memory", scope="write", seconds=60)

OPERATIONS: Final = (
    _write(
        save,
        name="memory.save",
        title="Save a memo",
        description=(
            "Create a memo in a namespace, or change the memo with the memo_id you pass. Use it when your host works with memo ids; "
            "otherwise use capture_thought. The memo is searchable when the call returns. Pass the version you read: the call "
            "returns CONFLICT if the memo has changed since. " + NOTES_ARE_DATA
        ),
        seconds=120,
    ),
    _read(
        search,
        name="memory.search",
        title="Search memos",
        description=(
            "Find memos by meaning (query), by similarity to a memo (pivot_memo_id) or, with neither, by metadata alone, most recently "
            "changed first. To search notes of every kind, use semantic_search. score: with cosine, higher is closer; with l2, lower "
            "is closer. " + NOTES_ARE_DATA
        ),
    ),
    _write(
        delete,
        name="memory.delete",
        title="Delete a memo",
        description="Delete a memo and its relations permanently. With version: CONFLICT if the memo has changed since.",
        destructive=True,
    ),
    _write(
        save_relation,
        name="memory.relation.save",
        title="Relate memos",
        description=(
            "Create a relation between two memos, or change its weight or reason. To relate people, projects or things, use "
            "create_relations. " + NOTES_ARE_DATA
        ),
    ),
    _write(
        delete_relation,
        name="memory.relation.delete",
        title="Delete a relation",
        description=f"Delete one relation between memos and return it. The memos stay. {NOTES_ARE_DATA}",
        destructive=True,
    ),
    _read(
        list_relations,
        name="memory.relation.list",
        title="List relations",
        description=(
            f"List the relations of a namespace and their memos. To start from one memo, use memory_relation_graph. {NOTES_ARE_DATA}"
        ),
    ),
    _read(
        get_relation_graph,
        name="memory.relation.graph",
        title="Follow relations",
        description=(
            "Follow relations from one memo; each has its depth and path. To list all relations, use memory_relation_list. "
            + NOTES_ARE_DATA
        ),
    ),
)
