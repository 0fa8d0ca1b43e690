"""Define the input and answer schemas of the family `thoughts`, which validate and describe each call.

Times are epoch milliseconds."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue

from index.model import Mode
from mcp_server.operations.wire_format import (
    AnswerModel,
    HitQuality,
    NoteLocation,
    NoteOrigin,
    NoteText,
    Replaceable,
    RequestModel,
)
from syncd.changes.change_note import MAX_REASON
from syncd.history.write_lineage import By, Hand
from syncd.workspaces.window_search import SearchScope

LONGEST_QUERY: Final = 2_000
LONGEST_METADATA: Final = 32 * 1024  # of JSON; frontmatter is read up to 64 KiB
Metadata = TypeVar("Metadata", bound="dict[str, JsonValue] | None")
LAST_TIME: Final = 8_640_000_000_000_000  # the last millisecond that a date can represent


def parse_json_text(value: Any) -> Any:
    """Parse a list or an object that a host sent as a JSON string."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def refuse_boolean(value: Any) -> Any:
    """Refuse true and false, which would be read as the numbers 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("Input should be a number, not true or false")  # noqa: TRY004 - pydantic reports a ValueError as a problem of the field
    return value


def check_metadata_size(value: Metadata, *, way_out: str = "") -> Metadata:
    """Return metadata that fits into a note; `way_out` advises what to do with larger metadata."""
    try:
        size = len(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())
    except (ValueError, RecursionError):
        raise ValueError("must be plain JSON: valid text, finite numbers, not nested too deeply") from None
    if size > LONGEST_METADATA:
        raise ValueError(f"must be at most {LONGEST_METADATA} bytes of JSON{way_out}")
    return value


Whole = Annotated[int, BeforeValidator(refuse_boolean)]  # a number without a fraction
Time = Annotated[int, Field(ge=-LAST_TIME, le=LAST_TIME), BeforeValidator(refuse_boolean)]
Collection = Annotated[str, Field(min_length=1, max_length=200)]  # wire_format.with_collections adds the known names
Detail = Literal["concise", "full"]
SCOPE: Final = "vault: only notes that the owner shares"


class CaptureThought(RequestModel):
    """Validate the input of `capture_thought`."""

    content: str = Field(min_length=1, description="The note in Markdown; stored byte for byte")
    source: str | None = Field(
        None, max_length=500, description="Where the note comes from, e.g. claude-code, voice-memo"
    )
    metadata: Annotated[
        dict[str, JsonValue] | None,
        AfterValidator(partial(check_metadata_size, way_out="; put long text into content")),
        BeforeValidator(parse_json_text),
    ] = Field(None, description='Properties, e.g. {"project": "alpha"}; `title` and `tags` set the note\'s own')
    namespace: str = Field("default", min_length=1, max_length=200, description="Subfolder of the workspace")


class SemanticSearch(RequestModel):
    """Validate the input of `semantic_search`."""

    query: str = Field(min_length=1, max_length=LONGEST_QUERY, description="What to find: a sentence or keywords")
    top_k: Whole = Field(10, ge=1, le=50, description="Maximum documents to return")
    tags: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]] | None, BeforeValidator(parse_json_text)
    ] = Field(None, max_length=20, description="Only notes with all these tags; `a` also matches `a/b`")
    mode: Mode | None = Field(
        None, description="hybrid (default): meaning and words; vector: meaning; text: exact words, names, codes"
    )
    collection: Collection | None = Field(None, description="Only notes in this collection")
    namespace: str | None = Field(None, min_length=1, max_length=200, description="Only notes in this subfolder")
    source: str | None = Field(None, min_length=1, max_length=500, description="Only notes from this source")
    since: Time | None = Field(None, description="Created at or after, epoch ms")
    until: Time | None = Field(None, description="Created before, epoch ms")
    scope: SearchScope = Field("all", description=SCOPE)
    detail: Detail = Field("concise", description="full: return whole documents, however long")


class ProposeChange(RequestModel):
    """Validate the input of `propose_change`."""

    path: str = Field(min_length=1, max_length=1_000, description="path of the shared note (scope: vault)")
    text: str | None = Field(None, description="The whole new text")
    patch: str | None = Field(None, min_length=1, description="Instead of text: a unified diff of the note's content")
    properties: Annotated[
        dict[str, JsonValue] | None, AfterValidator(check_metadata_size), BeforeValidator(parse_json_text)
    ] = Field(None, description="Properties to set; null removes one")
    reason: str = Field(min_length=1, max_length=MAX_REASON, description="Why, in one sentence for the owner")


class OneThought(RequestModel):
    """Validate the input of `get_thought` and `delete_thought`."""

    id: str = Field(min_length=1, max_length=200, description="The id from a capture, search or list")


class ListRecent(RequestModel):
    """Validate the input of `list_recent`."""

    limit: Whole = Field(20, ge=1, le=200, description="Maximum notes to return")
    before: Time | str | None = Field(None, union_mode="left_to_right", description="next_before or epoch ms")
    detail: Detail = Field("concise", description="full: return whole notes, however long")


class NoteTimes(AnswerModel):
    """Hold times, as numbers and as ISO 8601 text."""

    created_at: int
    updated_at: int | None
    created_at_iso: str
    updated_at_iso: str | None


class CapturedNote(NoteLocation, NoteTimes, NoteText):
    """Describe a capture that is on disk and searchable."""

    is_whole = True

    id: str
    created: bool = Field(
        description="false: a note with this content existed already, and keeps its title, tags and metadata"
    )
    content_hash: str
    title: str
    tags: list[str]
    summary: str | None
    chunks: int
    warnings: list[str] = Field(
        [], description="Problems to report to the person, e.g. that the note seems to hold a secret"
    )


class ProposedChange(NoteLocation, NoteText):
    """Describe a proposed change, which is on disk and waits for the owner."""

    is_whole = True

    id: str = Field(description="Of the proposal: delete_thought withdraws it")
    created: bool = Field(description="false: this change waits already")
    target: str = Field(description="The note, which is unchanged until the owner applies the change")
    warnings: list[str] = Field([], description="Problems to report to the person, e.g. hidden characters")


class Thought(NoteLocation, NoteTimes, Replaceable):
    """Describe a note without its text."""

    title: str
    source: str | None
    metadata: dict[str, Any]
    summary: str | None
    tags: list[str]
    collection: str
    namespace: str


class FoundThought(Thought, NoteOrigin, HitQuality, NoteText):
    """Describe a document that matches a query, with its best passage."""

    document_id: str
    chunk_id: str
    chunk_content: str
    document_content: str
    document_truncated: bool
    by: Hand = Field(description="key: an agent wrote at least a part; hand: only people wrote it")
    score: float
    heading: str


class Found(NoteText):
    """Hold the results of a search, best first."""

    results: list[FoundThought]
    mode: str
    degraded: list[str] = Field(description="Why the search is incomplete; empty: it is complete")


class Passage(AnswerModel):
    """Hold a chunk of a document."""

    id: str
    ordinal: int
    content: str


class Wrote(AnswerModel):
    """Name the writer of a note and the time of the write."""

    by: By = Field(description="hand: a person edited the note's file")
    key: str | None
    tool: str | None
    at: int | None
    at_iso: str | None


class WholeThought(Thought, NoteOrigin, NoteText):
    """Describe a note with its text and its chunks."""

    is_whole = True

    id: str
    content: str
    content_hash: str
    version: int
    chunks: list[Passage]
    created_by: Wrote | None
    updated_by: Wrote | None


class RecentThought(Thought, NoteText):
    """Describe a note in a list."""

    id: str
    content: str
    content_truncated: bool
    content_hash: str


class Recent(NoteText):
    """Hold a batch of notes, the latest first."""

    results: list[RecentThought]
    next_before: int | str | None = Field(description="Pass as `before` for older notes; null: no more")


class DeletedNote(NoteText):
    """Describe a deleted note."""

    id: str
    deleted: bool
    title: str
