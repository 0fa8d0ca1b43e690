"""Define the schema of input and answer for each tool of the family `thoughts`, which checks a call and describes it.

Times are epoch milliseconds."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BeforeValidator, Field, JsonValue, field_validator

from index.model import Mode
from mcp_server.operations.wire_format import AnswerModel, NoteLocation, NoteText, Replaceable, RequestModel
from syncd.history.write_lineage import By, Hand

LONGEST_QUERY: Final = 2_000
LONGEST_METADATA: Final = 32 * 1024  # of JSON; frontmatter is read up to 64 KiB
Metadata = TypeVar("Metadata", bound="dict[str, JsonValue] | None")
LAST_TIME: Final = 8_640_000_000_000_000  # the last millisecond that a date can name


def _parse_json_text(value: Any) -> Any:
    """Some hosts send a list or an object as a string of JSON."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _refuse_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("Input should be a valid integer")  # noqa: TRY004 - pydantic takes it for a field's problem
    return value


def _check_metadata_size(value: Metadata, *, way_out: str = "") -> Metadata:
    """Metadata that fits into a note; `way_out` says what to do with larger."""
    try:
        size = len(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())
    except (ValueError, RecursionError):
        raise ValueError("must be plain JSON: valid text, finite numbers, not too deep") from None
    if size > LONGEST_METADATA:
        raise ValueError(f"must be at most {LONGEST_METADATA} bytes of JSON{way_out}")
    return value


Time = Annotated[int, Field(ge=-LAST_TIME, le=LAST_TIME), BeforeValidator(_refuse_boolean)]
Collection = Annotated[str, Field(min_length=1, max_length=200)]  # wire_format.choices adds those that are known
Detail = Literal["concise", "full"]


class CaptureThought(RequestModel):
    """What `capture_thought` takes."""

    content: str = Field(min_length=1, description="The note, in Markdown; kept byte for byte")
    source: str | None = Field(None, max_length=500, description="Where it comes from, e.g. claude-code, voice-memo")
    metadata: Annotated[dict[str, JsonValue] | None, BeforeValidator(_parse_json_text)] = Field(
        None, description='Own properties, e.g. {"project": "alpha"}; `title` and `tags` become the note\'s'
    )
    namespace: str = Field("default", min_length=1, max_length=200, description="Sub-folder of the workspace")

    @field_validator("metadata")
    @classmethod
    def _check_metadata(cls, value: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        return _check_metadata_size(value, way_out="; put long text into content")


class SemanticSearch(RequestModel):
    """What `semantic_search` takes."""

    query: str = Field(min_length=1, max_length=LONGEST_QUERY, description="What to find; a sentence or key words")
    top_k: Annotated[int, BeforeValidator(_refuse_boolean)] = Field(
        10, ge=1, le=50, description="Most documents to return"
    )
    tags: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]] | None, BeforeValidator(_parse_json_text)
    ] = Field(None, max_length=20, description="Only notes with all of these; `a` also matches `a/b`")
    mode: Mode | None = Field(
        None, description="hybrid (default): meaning and words; vector: meaning; text: exact words, names, codes"
    )
    collection: Collection | None = Field(None, description="Only notes of this collection")
    namespace: str | None = Field(None, min_length=1, max_length=200, description="Only notes of this sub-folder")
    source: str | None = Field(None, min_length=1, max_length=500, description="Only notes of this source")
    since: Time | None = Field(None, description="Created at or after, epoch ms")
    until: Time | None = Field(None, description="Created before, epoch ms")
    detail: Detail = Field("concise", description="full: each document whole, however long")


class OneThought(RequestModel):
    """What `get_thought` and `delete_thought` take."""

    id: str = Field(min_length=1, max_length=200, description="The id that a capture, search or list gave")


class ListRecent(RequestModel):
    """What `list_recent` takes."""

    limit: Annotated[int, BeforeValidator(_refuse_boolean)] = Field(
        20, ge=1, le=200, description="Most notes to return"
    )
    before: Time | None = Field(
        None, description="Only notes created before this, epoch ms: the last answer's next_before"
    )
    detail: Detail = Field("concise", description="full: each note whole, however long")


class NoteTimes(AnswerModel):
    """Times, as numbers and as people write them."""

    created_at: int
    updated_at: int | None
    created_at_iso: str
    updated_at_iso: str | None


class CapturedNote(NoteLocation, NoteTimes, NoteText):
    """A capture that is on disk and findable."""

    is_whole = True

    id: str
    created: bool = Field(description="false: the same content was there already")
    content_hash: str
    title: str
    tags: list[str]
    summary: str | None
    chunks: int
    warnings: list[str] = Field([], description="What to tell the person, e.g. that the note seems to hold a secret")


class Thought(NoteLocation, NoteTimes, Replaceable):
    """A note without its text."""

    title: str
    source: str | None
    metadata: dict[str, Any]
    summary: str | None
    tags: list[str]
    collection: str
    namespace: str


class FoundThought(Thought, NoteText):
    """A document that answers a query, by its best passage."""

    document_id: str
    chunk_id: str
    chunk_content: str
    document_content: str
    document_truncated: bool
    by: Hand = Field(description="key: an agent wrote it, or a part of it; hand: only people did")
    score: float
    heading: str


class Found(NoteText):
    """What a search found, best first."""

    results: list[FoundThought]
    mode: str
    degraded: list[str] = Field(description="What kept the search from being complete; empty = nothing")


class Passage(AnswerModel):
    """A chunk of a document."""

    id: str
    ordinal: int
    content: str


class Wrote(AnswerModel):
    """Who wrote something, and when."""

    by: By = Field(description="hand: somebody edited the note's file")
    key: str | None
    tool: str | None
    at: int | None
    at_iso: str | None


class WholeThought(Thought, NoteText):
    """A note with its text and its chunks."""

    is_whole = True

    id: str
    content: str
    content_hash: str
    version: int
    chunks: list[Passage]
    created_by: Wrote | None
    updated_by: Wrote | None


class RecentThought(Thought, NoteText):
    """A note in a list."""

    id: str
    content: str
    content_truncated: bool
    content_hash: str


class Recent(NoteText):
    """Notes, the latest first."""

    results: list[RecentThought]
    next_before: int | None = Field(description="Pass as `before` for older ones; null = no more")


class DeletedNote(NoteText):
    """A note that is gone."""

    id: str
    deleted: bool
    title: str
