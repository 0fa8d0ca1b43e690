"""Define the input and answer schemas of the family `kb` and of its REST routes.

Times are ISO 8601 in UTC. Law: no later check calls an input malformed that a schema here accepts."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from index.model import Mode
from mcp_server.operations.wire_format import (
    SHA256,
    AnswerModel,
    HitQuality,
    NoteLink,
    NoteOrigin,
    NoteText,
    Replaceable,
    RequestModel,
)
from mcp_server.tools.thoughts_schema import LONGEST_QUERY, SCOPE, Collection, Whole, parse_json_text, refuse_boolean
from syncd.history.write_lineage import Hand
from syncd.workspaces.window_search import SearchScope

LONGEST_PART: Final = 50_000  # tokens of a document in one answer
PART: Final = 2_000

_LINE: Final = (
    "[^\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]*"  # as in `upload_request`
)
_SEEN: Final = "[^\\s\0-\x20\x7f-\xa0\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
Said = Field(pattern=r"[^\s\x00-\x20\x7f-\xa0]")  # at least one visible character
Tag = Annotated[str, Field(min_length=1, max_length=200, pattern=r"[^\s\x00-\x20\x7f-\xa0#,/-]")]
Tags = Annotated[list[Tag], BeforeValidator(parse_json_text), Field(max_length=32)]
DocType = Literal["note", "file", "entity"]
Status = Literal["queued", "running", "done", "failed"]
Id = Annotated[str, Field(min_length=1, max_length=200)]
DocumentId = Annotated[Id, Field(description="The document_id")]
UploadId = Annotated[Id, Field(description="The upload_id from kb_upload_start")]
Title = Annotated[str, Field(min_length=1, max_length=500, pattern=f"^{_LINE}{_SEEN}{_LINE}$")]
Version = Annotated[int, Field(ge=1, le=2**53), BeforeValidator(refuse_boolean)]
Line = Annotated[int, Field(ge=1, le=2**53), BeforeValidator(refuse_boolean)]


class Search(RequestModel):
    """Validate the input of `kb_search`."""

    query: Annotated[str, Said] = Field(
        min_length=1, max_length=LONGEST_QUERY, description="What to find: a question or keywords"
    )
    top_n: Whole = Field(10, ge=1, le=50, description="Maximum documents to return")
    tags: Tags | None = Field(None, description="Only documents with these tags")
    tags_match: Literal["all", "any"] = Field("all", description="all: with every tag; any: with at least one tag")
    doc_type: DocType | None = Field(None, description="Only this type")
    collection: Collection | None = Field(None, description="Only this collection")
    mode: Mode | None = Field(None, description="hybrid (default); vector: meaning; text: exact words")
    scope: SearchScope = Field("all", description=SCOPE)


class AddNote(RequestModel):
    """Validate the input of `kb_addnote`."""

    text: str = Field(min_length=1, description="The note, in Markdown")
    title: Title | None = Field(None, description="Default: derived from the text")
    tags: Tags | None = Field(None, description="Default: derived from the text")
    collection: Collection | None = Field(None, description="Default: documents")


class StartUpload(RequestModel):
    """Validate the input of `kb_upload_start`."""

    filename: Annotated[str, Said] = Field(
        min_length=1, max_length=255, description="Name with its extension, which selects the type"
    )
    total_size: Whole = Field(ge=1, le=2**53, description="Size of the file in bytes")
    tags: Tags | None = Field(None, description="Default: derived from the text")
    collection: Collection | None = Field(None, description="Default: documents")
    title: Title | None = Field(None, description="Default: derived from the file")
    sha256: str | None = Field(None, pattern=SHA256, description="Expected SHA-256 digest of the file, in hex")


class UploadChunk(RequestModel):
    """Validate the input of `kb_upload_chunk`."""

    upload_id: UploadId
    data: str = Field(min_length=1, description="The chunk's bytes, at most 2 MiB, in base64")
    chunk_index: Whole = Field(ge=0, le=1_000_000, description="Number of the chunk, from 0")


class FinishUpload(RequestModel):
    """Validate the input of `kb_upload_finish`."""

    upload_id: UploadId


class UpdateNote(RequestModel):
    """Validate the input of `kb_update_note`."""

    text: str = Field(min_length=1, description="The whole new text, in Markdown")
    title: Title | None = Field(None, description="Default: the title given before, else one derived from the text")
    tags: Tags | None = Field(None, description="Replace all tags. Default: as for title")
    collection: Collection | None = Field(None, description="Default: unchanged")
    version: Version | None = Field(None, description="From kb_get: CONFLICT if it has changed since")
    id: DocumentId


class Range(RequestModel):
    """Select the part of a document to read."""

    heading: str | None = Field(None, min_length=1, max_length=1_000, description="Only the section under this heading")
    start_line: Line = Field(1, description="First line to read, from 1")
    end_line: Line | None = Field(None, description="Last line to read. Default: the end")
    max_tokens: Whole = Field(PART, ge=100, le=LONGEST_PART, description="Maximum tokens to return, estimated")


class OneDocument(Range):
    """Validate the input of REST's route for one document."""

    id: DocumentId


class GetDocument(Range):
    """Validate the input of `kb_get`."""

    id: Id | None = Field(None, description="The document_id; pass this or source_path")
    source_path: str | None = Field(None, min_length=1, max_length=1_000, description="The path from an answer")

    @model_validator(mode="after")
    def _check_one_given(self) -> GetDocument:
        if (self.id is None) == (self.source_path is None):
            raise ValueError("give either id or source_path")
        return self


class Nothing(RequestModel):
    """Validate the input of a tool without parameters."""


class ListJobs(RequestModel):
    """Validate the input of REST's list of jobs."""

    status: Status | None = Field(None, description="Only jobs with this status")
    limit: Whole = Field(20, ge=1, le=200, description="Maximum jobs to return")
    cursor: str | None = Field(
        None, min_length=1, max_length=200, description="The last answer's next_cursor, for older jobs"
    )


class Jobs(ListJobs):
    """Validate the input of `kb_jobs`."""

    job_id: Id | None = Field(None, description="Only this job")


class OneJob(RequestModel):
    """Validate the input of REST's route for one job."""

    id: Id = Field(description="The job_id")


class ListDocuments(RequestModel):
    """Validate the input of REST's list of documents."""

    limit: Whole = Field(20, ge=1, le=200, description="Maximum documents to return")
    cursor: str | None = Field(None, min_length=1, max_length=2_000, description="The last answer's next_cursor")
    type: DocType | None = Field(None, description="Only this type")
    collection: Collection | None = Field(None, description="Only this collection")
    tags: Tags | None = Field(None, description="Only documents with all these tags; `a` also matches `a/b`")
    source_path: str | None = Field(None, min_length=1, max_length=1_000, description="Only the document at this path")


class SetTags(RequestModel):
    """Validate the input of REST's route for a document's tags."""

    tags: Tags = Field(description="Replace all tags; `collection:name` moves the document there")
    version: Version | None = Field(None, description="CONFLICT if the document has changed since")
    id: DocumentId


class Document(NoteLink, Replaceable):
    """Describe a document without its text."""

    document_id: str
    title: str
    source_path: str
    doc_type: str
    collection: str
    tags: list[str]
    created_at: str
    updated_at: str | None


class Passage(NoteLink, Replaceable, NoteOrigin, HitQuality, NoteText):
    """Describe a matching document, with its best passage."""

    chunk_id: str
    document_id: str
    title: str
    source_path: str
    heading: str
    doc_type: str
    collection: str
    tags: list[str]
    score: float
    created_at: str
    updated_at: str | None
    by: Hand
    snippet: str


class Found(NoteText):
    """Hold the results of a search, best first."""

    results: list[Passage]
    mode: str
    degraded: list[str]


class QueuedJob(NoteText):
    """Describe a job that will create a document."""

    job_id: str
    status: Status


class Upload(NoteText):
    """Describe a started upload."""

    upload_id: str
    chunk_bytes: int = Field(description="Recommended size of a chunk in bytes, before base64")
    expires_at: str = Field(description="When the upload expires unless another chunk arrives")


class UploadProgress(NoteText):
    """Count what has arrived of an upload."""

    upload_id: str
    received_bytes: int
    total_size: int
    chunks: int


class ChangedDocument(Document, NoteText):
    """Describe a document after a change."""

    is_whole = True

    changed: bool = Field(description="false: the document was like this already")
    version: int
    warnings: list[str] = Field([], description="Problems to report to the person")


class Heading(AnswerModel):
    """Describe a heading and its line."""

    line: int
    heading: str


class WholeDocument(Document, NoteOrigin, NoteText):
    """Describe a document with its text or a part of it."""

    is_whole = True

    namespace: str
    source: str | None
    summary: str | None
    metadata: dict[str, Any]
    version: int
    content: str
    start_line: int
    end_line: int
    total_lines: int
    next_line: int | None = Field(description="Pass as start_line to continue; null: no more lines")
    outline: list[Heading] = Field(description="Headings, when the answer is only a part of the document")


class Counts(AnswerModel):
    """Count the documents of the workspace."""

    total: int
    by_type: dict[str, int]
    by_collection: dict[str, int]


class Health(AnswerModel):
    """Say whether searches cover all documents."""

    ready: bool
    words_only: int = Field(description="Documents of the workspace that have no vectors yet")


class Model(AnswerModel):
    """Describe the embedding model."""

    name: str
    dimensions: int
    state: str


class State(NoteText):
    """Describe the state of the knowledge base."""

    workspace: str
    index: Health
    documents: Counts
    chunks: int
    model: Model
    queue: dict[Status, int]
    collections: list[str]
    degraded: list[str]


class Failure(AnswerModel):
    """Say why a job failed or waits for its next attempt."""

    code: str
    message: str


class Job(NoteText):
    """Describe a job."""

    job_id: str
    kind: str
    status: Status
    progress: float
    stage: str
    title: str
    document_id: str | None
    error: Failure | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    warnings: list[str] = Field([], description="Problems of its document to report to the person")


class JobList(NoteText):
    """Hold jobs, the latest first."""

    jobs: list[Job]
    next_cursor: str | None = Field(description="Pass as cursor for older jobs; null: no more")


class DocumentList(NoteText):
    """Hold documents, the last changed first."""

    documents: list[Document]
    next_cursor: str | None = Field(description="Pass as cursor for the next documents; null: no more")
