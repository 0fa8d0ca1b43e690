"""Define the schema of input and answer for each tool of the family `memory`, which checks a call and describes it.

Times are ISO 8601 texts in UTC. Relations have the seed's names, which are written in camel case."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue

from mcp_server.operations.wire_format import NoteLocation, NoteText, Replaceable, RequestModel, refuse_hidden
from mcp_server.tools.thoughts_schema import LONGEST_QUERY, _check_metadata_size, _parse_json_text, _refuse_boolean
from syncd.history.write_lineage import Hand
from syncd.memos.memo_graph import DEEPEST, LISTED, WALKED, Way
from syncd.memos.memos import MOST, Metric

Namespace = Annotated[str, Field(min_length=1, max_length=200, description="Folder of memos in the workspace")]
MemoId = Annotated[str, Field(min_length=1, max_length=64)]
Tag = Annotated[str, Field(min_length=1, max_length=64)]
Kind = Annotated[Tag, Field(description="Kind of relation, e.g. supports")]
Whole = Annotated[int, BeforeValidator(_refuse_boolean)]
# The bounds of what may be left out stand beside its type: beside the union, pydantic publishes its own words for them.
Version = Annotated[int, Field(ge=1), BeforeValidator(_refuse_boolean)]
VersionOrNone = Annotated[int, Field(ge=0), BeforeValidator(_refuse_boolean)]
Similarity = Annotated[float, Field(ge=-1, le=1), BeforeValidator(_refuse_boolean)]
Weight = Annotated[float, Field(ge=0, le=1), BeforeValidator(_refuse_boolean)]
Metadata = Annotated[dict[str, JsonValue], AfterValidator(_check_metadata_size), BeforeValidator(_parse_json_text)]
DEFAULT: Final = "default"


# Taken


class SaveMemo(RequestModel):
    """What `memory.save` takes."""

    content: str = Field(min_length=1, description="The memo; kept byte for byte")
    namespace: Namespace = DEFAULT
    memo_id: MemoId | None = Field(None, description="The memo to change, or the id of a new one")
    title: str | None = Field(None, min_length=1, max_length=500, description="Default: made from the content")
    metadata: Metadata | None = Field(None, description='E.g. {"project": "alpha"}; merging, null removes a key')
    metadata_mode: Literal["merge", "replace"] = Field("merge", description="merge keeps the keys that are not given")
    version: VersionOrNone | None = Field(None, description="CONFLICT if the memo has another; 0: there must be none")


class SearchMemos(RequestModel):
    """What `memory.search` takes."""

    namespace: Namespace = DEFAULT
    query: str | None = Field(
        None, min_length=1, max_length=LONGEST_QUERY, description="What to find; a sentence or key words"
    )
    metadata_filter: Metadata | None = Field(
        None, description='What the metadata must hold, e.g. {"project": "alpha", "by": {"name": {"contains": "ann"}}}'
    )
    k: Whole = Field(10, ge=1, le=MOST, description="Most memos to return")
    minimum_similarity: Similarity | None = Field(None, description="Least score to return; cosine only")
    pivot_memo_id: MemoId | None = Field(None, description="Find memos like this one, instead of query")
    distance_metric: Metric = Field("cosine", description="What score is: cosine similarity, or l2 distance")
    exclude_pivot: bool = Field(True, description="Leave out the pivot memo itself")


class DeleteMemo(RequestModel):
    """What `memory.delete` takes."""

    memo_id: MemoId = Field(description="The memo to delete")
    namespace: Namespace = DEFAULT
    version: Version | None = Field(None, description="CONFLICT if the memo has another")


class _Ends(RequestModel):
    """The two memos of a relation."""

    namespace: Namespace = DEFAULT
    source: MemoId = Field(alias="sourceMemoId", description="The memo that it leads from")
    target: MemoId = Field(alias="targetMemoId", description="The memo that it leads to")
    tag: Kind


class SaveRelation(_Ends):
    """What `memory.relation.save` takes."""

    tag: Annotated[Kind, AfterValidator(refuse_hidden)]
    weight: Weight | None = Field(None, description="Confidence, two decimals; 1 if new")
    reason: str | None = Field(None, max_length=1_000, description='Why, in a sentence; "" removes it')


class DeleteRelation(_Ends):
    """What `memory.relation.delete` takes."""


class ListRelations(RequestModel):
    """What `memory.relation.list` takes."""

    namespace: Namespace = DEFAULT
    source: MemoId | None = Field(None, alias="sourceMemoId", description="Only relations from this memo")
    target: MemoId | None = Field(None, alias="targetMemoId", description="Only relations to this memo")
    tag: Tag | None = Field(None, description="Only relations of this kind")
    limit: Whole = Field(100, ge=1, le=LISTED, description="Most relations to return")


class WalkRelations(RequestModel):
    """What `memory.relation.graph` takes."""

    namespace: Namespace = DEFAULT
    start: MemoId = Field(alias="startMemoId", description="The memo to begin at")
    direction: Way = Field("forward", description="forward: from source to target")
    depth: Whole = Field(3, ge=1, le=DEEPEST, alias="maxDepth", description="Most relations away from the start")
    tag: Tag | None = Field(None, description="Only relations of this kind")
    limit: Whole = Field(100, ge=1, le=WALKED, description="Most edges to return")


# Given back


class Memo(NoteLocation, Replaceable):
    """A memo without its text."""

    memo_id: str
    namespace: str
    title: str
    tags: list[str]
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    version: int


class SavedMemo(Memo, NoteText):
    """A memo that is on disk and findable."""

    is_whole = True

    created: bool
    warnings: list[str]


class FoundMemo(Memo, NoteText):
    """A memo that was found, with its text."""

    content: str
    content_truncated: bool
    by: Hand
    score: float | None


class FoundMemos(NoteText):
    """What a search found, the best first."""

    items: list[FoundMemo]
    degraded: list[str]


class DeletedMemo(NoteText):
    """A memo that is gone."""

    memo_id: str
    namespace: str
    deleted: bool
    relations_deleted: int


class Relation(NoteText):
    """A relation."""

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


class DeletedRelation(NoteText):
    """A relation that is gone, as it was."""

    deleted: bool
    relation: Relation


class Edge(Relation):
    """A relation on the way from the start."""

    depth: int
    direction: str
    path: list[str] = Field(description="Memo ids from the start to the edge's far end")
    loop: bool = Field(description="Its far end is on that path before")


class RelationList(NoteText):
    """Relations, and the memos that they join."""

    edges: list[Relation]
    nodes: list[Memo]
    truncated: bool


class RelationGraph(NoteText):
    """The relations around a memo, and the memos that were reached."""

    edges: list[Edge]
    nodes: list[Memo]
    truncated: bool
