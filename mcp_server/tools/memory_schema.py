"""Define the input and answer schemas of the family `memory`, which validate and describe each call.

Times are ISO 8601 texts in UTC. Relation fields keep the camel-case names of the original interface."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue

from index.memos.metadata_filter import count_nested
from mcp_server.operations.wire_format import NoteLocation, NoteText, Replaceable, RequestModel, refuse_hidden
from mcp_server.tools.kb_schema import Title
from mcp_server.tools.thoughts_schema import LONGEST_QUERY, Whole, check_metadata_size, parse_json_text, refuse_boolean
from syncd.history.write_lineage import Hand
from syncd.memos.memo_graph import DEEPEST, LISTED, WALKED, Way
from syncd.memos.memos import MOST, Metric

Namespace = Annotated[str, Field(min_length=1, max_length=200, description="Folder of memos in the workspace")]
MemoId = Annotated[str, Field(min_length=1, max_length=64)]
Tag = Annotated[str, Field(min_length=1, max_length=64)]
Kind = Annotated[Tag, Field(description="Kind of relation, e.g. supports")]
# Bounds of an optional value belong to its type: pydantic does not publish bounds of a union with None as JSON Schema words.
Version = Annotated[int, Field(ge=1), BeforeValidator(refuse_boolean)]
VersionOrNone = Annotated[int, Field(ge=0), BeforeValidator(refuse_boolean)]
Similarity = Annotated[float, Field(ge=-1, le=1), BeforeValidator(refuse_boolean)]
Weight = Annotated[float, Field(ge=0, le=1), BeforeValidator(refuse_boolean)]
Metadata = Annotated[dict[str, JsonValue], AfterValidator(check_metadata_size), BeforeValidator(parse_json_text)]
DEFAULT: Final = "default"
NESTED: Final = 100  # most objects and lists inside lists of a filter: thousands would be compared for minutes


def _check_filter(wanted: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if count_nested(wanted) > NESTED:
        raise ValueError(f"must have at most {NESTED} objects and lists inside lists")
    return wanted


# Taken


class SaveMemo(RequestModel):
    """Validate the input of `memory.save`."""

    content: str = Field(min_length=1, description="Text of the memo; stored byte for byte")
    namespace: Namespace = DEFAULT
    memo_id: MemoId | None = Field(None, description="The memo to change, or the id for a new memo")
    title: Title | None = Field(None, description="Default: derived from the content")
    metadata: Metadata | None = Field(None, description='E.g. {"project": "alpha"}; in merge mode, null removes a key')
    metadata_mode: Literal["merge", "replace"] = Field("merge", description="merge: keep the keys that you do not pass")
    version: VersionOrNone | None = Field(
        None, description="CONFLICT unless the memo has this version; 0: it must not exist"
    )


class SearchMemos(RequestModel):
    """Validate the input of `memory.search`."""

    namespace: Namespace = DEFAULT
    query: str | None = Field(
        None, min_length=1, max_length=LONGEST_QUERY, description="What to find: a sentence or keywords"
    )
    metadata_filter: Annotated[Metadata, AfterValidator(_check_filter)] | None = Field(
        None, description='Required metadata, e.g. {"project": "alpha", "by": {"name": {"contains": "ann"}}}'
    )
    k: Whole = Field(10, ge=1, le=MOST, description="Maximum memos to return")
    minimum_similarity: Similarity | None = Field(None, description="Minimum score to return; cosine only")
    pivot_memo_id: MemoId | None = Field(None, description="Find memos similar to this memo, instead of query")
    distance_metric: Metric = Field("cosine", description="Meaning of score: cosine similarity or l2 distance")
    exclude_pivot: bool = Field(True, description="Leave out the pivot memo itself")


class DeleteMemo(RequestModel):
    """Validate the input of `memory.delete`."""

    memo_id: MemoId = Field(description="The memo to delete")
    namespace: Namespace = DEFAULT
    version: Version | None = Field(None, description="CONFLICT unless the memo has this version")


class _Ends(RequestModel):
    """Name the two memos of a relation."""

    namespace: Namespace = DEFAULT
    source: MemoId = Field(alias="sourceMemoId", description="The memo that the relation starts at")
    target: MemoId = Field(alias="targetMemoId", description="The memo that the relation points to")
    tag: Kind


class SaveRelation(_Ends):
    """Validate the input of `memory.relation.save`."""

    tag: Annotated[Kind, AfterValidator(refuse_hidden)]
    weight: Weight | None = Field(
        None, description="Confidence, rounded to two decimals; default for a new relation: 1"
    )
    reason: str | None = Field(
        None, max_length=1_000, description='Why the memos are related, in a sentence; "" removes it'
    )


class DeleteRelation(_Ends):
    """Validate the input of `memory.relation.delete`."""


class ListRelations(RequestModel):
    """Validate the input of `memory.relation.list`."""

    namespace: Namespace = DEFAULT
    source: MemoId | None = Field(None, alias="sourceMemoId", description="Only relations from this memo")
    target: MemoId | None = Field(None, alias="targetMemoId", description="Only relations to this memo")
    tag: Tag | None = Field(None, description="Only relations of this kind")
    limit: Whole = Field(100, ge=1, le=LISTED, description="Maximum relations to return")


class WalkRelations(RequestModel):
    """Validate the input of `memory.relation.graph`."""

    namespace: Namespace = DEFAULT
    start: MemoId = Field(alias="startMemoId", description="The memo to start from")
    direction: Way = Field("forward", description="forward: from source to target")
    depth: Whole = Field(
        3, ge=1, le=DEEPEST, alias="maxDepth", description="Maximum number of relations between a memo and the start"
    )
    tag: Tag | None = Field(None, description="Only relations of this kind")
    limit: Whole = Field(100, ge=1, le=WALKED, description="Maximum edges to return")


# Given back


class Memo(NoteLocation, Replaceable):
    """Describe a memo without its text."""

    memo_id: str
    namespace: str
    title: str
    tags: list[str]
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    version: int


class SavedMemo(Memo, NoteText):
    """Describe a memo that is on disk and searchable."""

    is_whole = True

    created: bool
    warnings: list[str]


class FoundMemo(Memo, NoteText):
    """Describe a matching memo with its text."""

    content: str
    content_truncated: bool
    by: Hand
    score: float | None


class FoundMemos(NoteText):
    """Hold the results of a search, best first."""

    items: list[FoundMemo]
    degraded: list[str]


class DeletedMemo(NoteText):
    """Describe a deleted memo."""

    memo_id: str
    namespace: str
    deleted: bool
    relations_deleted: int


class Relation(NoteText):
    """Describe a relation."""

    model_config = ConfigDict(frozen=True, serialize_by_alias=True)

    namespace: str
    source: str = Field(serialization_alias="sourceMemoId")
    target: str = Field(serialization_alias="targetMemoId")
    tag: str
    weight: float
    reason: str | None
    created_at: str
    updated_at: str
    version: int


class SavedRelation(Relation):
    """Describe a relation that is on disk."""

    warnings: list[str] = Field([], description="Problems to report to the person")


class DeletedRelation(NoteText):
    """Describe a deleted relation."""

    deleted: bool
    relation: Relation


class Edge(Relation):
    """Describe a relation on the path from the start."""

    depth: int
    direction: str
    path: list[str] = Field(description="Memo ids from the start to the edge's far end")
    loop: bool = Field(description="true: the edge leads back to a memo of its path")


class RelationList(NoteText):
    """Hold relations and the memos that they connect."""

    edges: list[Relation]
    nodes: list[Memo]
    truncated: bool


class RelationGraph(NoteText):
    """Hold the relations around a memo and the memos that were reached."""

    edges: list[Edge]
    nodes: list[Memo]
    truncated: bool
