"""Define the schema of input and answer for each tool of the family `memory`, which checks a call and describes it.

Times are ISO 8601 texts in UTC. Relations have the seed's names, which are written in camel case."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue

from mcp_server.operations.wire_format import NoteText, Replaceable, RequestModel, refuse_hidden
from mcp_server.tools.thoughts_schema import LONGEST_QUERY, _check_metadata_size, _parse_json_text, _refuse_boolean
from syncd.history.write_lineage import Hand
from syncd.memos.memo_graph import DEEPEST, LISTED, WALKED, Way
from syncd.memos.memos import MOST, Metric


def _limit_length(most: int) -> AfterValidator:
    """A bound without words: it stands in the schemas many times."""

    def check_length(text: str) -> str:
        if not 1 <= len(text) <= most:
            raise ValueError(f"must have 1 to {most} characters")
        return text

    return AfterValidator(check_length)


Namespace = Annotated[str, _limit_length(200)]
MemoId = Annotated[str, _limit_length(64)]
Tag = Annotated[str, Field(min_length=1, max_length=64)]
Whole = Annotated[int, BeforeValidator(_refuse_boolean)]
Number = Annotated[float, BeforeValidator(_refuse_boolean)]
Metadata = Annotated[dict[str, JsonValue], AfterValidator(_check_metadata_size), BeforeValidator(_parse_json_text)]
DEFAULT: Final = "default"


# Taken


class SaveMemo(RequestModel):
    """What `memory.save` takes."""

    content: str = Field(min_length=1, description="Kept byte for byte")
    namespace: Namespace = DEFAULT
    memo_id: MemoId | None = Field(None, description="The memo to change, or the id of a new one")
    title: str | None = Field(None, min_length=1, max_length=500)
    metadata: Metadata | None = Field(None, description='E.g. {"project": "alpha"}; merging, null removes a key')
    metadata_mode: Literal["merge", "replace"] = "merge"
    version: Whole | None = Field(None, ge=0, description="CONFLICT if the memo has another; 0: there must be none")


class SearchMemos(RequestModel):
    """What `memory.search` takes."""

    namespace: Namespace = DEFAULT
    query: str | None = Field(None, min_length=1, max_length=LONGEST_QUERY)
    metadata_filter: Metadata | None = Field(
        None, description='What the metadata must hold, e.g. {"project": "alpha", "by": {"name": {"contains": "ann"}}}'
    )
    k: Whole = Field(10, ge=1, le=MOST)
    minimum_similarity: Number | None = Field(None, ge=-1, le=1, description="cosine only")
    pivot_memo_id: MemoId | None = Field(None, description="Find memos like this one, instead of query")
    distance_metric: Metric = "cosine"
    exclude_pivot: bool = True


class DeleteMemo(RequestModel):
    """What `memory.delete` takes."""

    memo_id: MemoId
    namespace: Namespace = DEFAULT
    version: Whole | None = Field(None, ge=1)


class _Ends(RequestModel):
    """The two memos of a relation."""

    namespace: Namespace = DEFAULT
    source: MemoId = Field(alias="sourceMemoId")
    target: MemoId = Field(alias="targetMemoId")
    tag: Tag


class SaveRelation(_Ends):
    """What `memory.relation.save` takes."""

    tag: Annotated[Tag, AfterValidator(refuse_hidden)]
    weight: Number | None = Field(None, ge=0, le=1, description="Confidence, two decimals; 1 if new")
    reason: str | None = Field(None, max_length=1_000)


class DeleteRelation(_Ends):
    """What `memory.relation.delete` takes."""


class ListRelations(RequestModel):
    """What `memory.relation.list` takes."""

    namespace: Namespace = DEFAULT
    source: MemoId | None = Field(None, alias="sourceMemoId")
    target: MemoId | None = Field(None, alias="targetMemoId")
    tag: Tag | None = None
    limit: Whole = Field(100, ge=1, le=LISTED)


class WalkRelations(RequestModel):
    """What `memory.relation.graph` takes."""

    namespace: Namespace = DEFAULT
    start: MemoId = Field(alias="startMemoId")
    direction: Way = "forward"
    depth: Whole = Field(3, ge=1, le=DEEPEST, alias="maxDepth")
    tag: Tag | None = None
    limit: Whole = Field(100, ge=1, le=WALKED, description="Most edges")


# Given back


class Memo(Replaceable):
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
