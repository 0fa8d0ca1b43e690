"""Define the schema of input and answer for each tool of the family `kb`, and for its REST routes.

Times are ISO 8601 in UTC. Law: whatever a schema here lets through is not called malformed later."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from index.model import Mode
from mcp_server.operations.wire_format import AnswerModel, NoteLink, NoteText, Replaceable, RequestModel
from mcp_server.tools.thoughts_schema import LONGEST_QUERY, _parse_json_text, _refuse_boolean
from syncd.history.write_lineage import Hand

LONGEST_PART: Final = 50_000  # tokens of a document in one answer
PART: Final = 2_000

_Whole = BeforeValidator(_refuse_boolean)
_LINE: Final = "[^\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]*"  # as `incoming` has it
_SEEN: Final = "[^\\s\0-\x20\x7f-\xa0\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
Said = Field(pattern=r"[^\s\x00-\x20\x7f-\xa0]")  # something to see is in it
Tag = Annotated[str, Field(min_length=1, max_length=200, pattern=r"[^\s\x00-\x20\x7f-\xa0#,/-]")]
Tags = Annotated[list[Tag], BeforeValidator(_parse_json_text), Field(max_length=32)]
Collection = Annotated[str, Field(min_length=1, max_length=200)]  # wire_format.choices adds those that are known
DocType = Literal["note", "file", "entity"]
Status = Literal["queued", "running", "done", "failed"]
Id = Annotated[str, Field(min_length=1, max_length=200)]
DocumentId = Annotated[Id, Field(description="The document_id")]
UploadId = Annotated[Id, Field(description="As kb_upload_start gave it")]
Title = Annotated[str, Field(min_length=1, max_length=500, pattern=f"^{_LINE}{_SEEN}{_LINE}$")]
Version = Annotated[int, Field(ge=1, le=2**53), _Whole]
Line = Annotated[int, Field(ge=1, le=2**53), _Whole]


class Search(RequestModel):
    """What `kb_search` takes."""

    query: Annotated[str, Said] = Field(
        min_length=1, max_length=LONGEST_QUERY, description="What to find; a question or key words"
    )
    top_n: Annotated[int, _Whole] = Field(10, ge=1, le=50, description="Most documents to return")
    tags: Tags | None = Field(None, description="Only documents with these tags")
    tags_match: Literal["all", "any"] = Field("all", description="all: with every tag; any: with at least one")
    doc_type: DocType | None = Field(None, description="Only this type; entity: a node of the graph")
    collection: Collection | None = Field(None, description="Only this collection")
    mode: Mode | None = Field(None, description="hybrid (default); vector: meaning; text: exact words")


class AddNote(RequestModel):
    """What `kb_addnote` takes."""

    text: str = Field(min_length=1, description="The note, in Markdown")
    title: Title | None = Field(None, description="Default: made from the text")
    tags: Tags | None = Field(None, description="Default: made from the text")
    collection: Collection | None = Field(None, description="Default: documents")


class StartUpload(RequestModel):
    """What `kb_upload_start` takes."""

    filename: Annotated[str, Said] = Field(
        min_length=1, max_length=255, description="With its ending, which tells the type"
    )
    total_size: Annotated[int, _Whole] = Field(ge=1, le=2**53, description="Bytes of the file")
    tags: Tags | None = Field(None, description="Default: made from the text")
    collection: Collection | None = Field(None, description="Default: documents")
    title: Title | None = Field(None, description="Default: made from the file")
    sha256: str | None = Field(None, pattern="^[0-9a-fA-F]{64}$", description="Digest that the file must have, in hex")


class UploadChunk(RequestModel):
    """What `kb_upload_chunk` takes."""

    upload_id: UploadId
    data: str = Field(min_length=1, description="The chunk's bytes, at most 2 MiB, in base64")
    chunk_index: Annotated[int, _Whole] = Field(ge=0, le=1_000_000, description="Place of the chunk, from 0")


class FinishUpload(RequestModel):
    """What `kb_upload_finish` takes."""

    upload_id: UploadId


class NewText(RequestModel):
    """What a note is changed to."""

    text: str = Field(min_length=1, description="The whole new text, in Markdown")
    title: Title | None = Field(None, description="Default: the title that was given, else made from the new text")
    tags: Tags | None = Field(None, description="Replace all tags. Default: as for title")
    collection: Collection | None = Field(None, description="Default: unchanged")
    version: Version | None = Field(None, description="From kb_get: CONFLICT if it has changed since")


class UpdateNote(NewText):
    """What `kb_update_note` takes."""

    id: DocumentId


class Range(RequestModel):
    """Which part of a document is read."""

    heading: str | None = Field(None, min_length=1, max_length=1_000, description="Only the section under this heading")
    start_line: Line = Field(1, description="First line to read, from 1")
    end_line: Line | None = Field(None, description="Last line to read. Default: the end")
    max_tokens: Annotated[int, _Whole] = Field(
        PART, ge=100, le=LONGEST_PART, description="Most tokens to return, estimated"
    )


class OneDocument(Range):
    """What REST's route of one document takes."""

    id: DocumentId


class GetDocument(Range):
    """What `kb_get` takes."""

    id: Id | None = Field(None, description="The document_id; this or source_path")
    source_path: str | None = Field(None, min_length=1, max_length=1_000, description="The path that answers give")

    @model_validator(mode="after")
    def _check_one_given(self) -> GetDocument:
        if (self.id is None) == (self.source_path is None):
            raise ValueError("give either id or source_path")
        return self


class Nothing(RequestModel):
    """What needs no argument."""


class ListJobs(RequestModel):
    """What REST's list of jobs takes."""

    status: Status | None = Field(None, description="Only jobs with this status")
    limit: Annotated[int, _Whole] = Field(20, ge=1, le=200, description="Most jobs to return")
    cursor: str | None = Field(
        None, min_length=1, max_length=200, description="The last answer's next_cursor, for older jobs"
    )


class Jobs(ListJobs):
    """What `kb_jobs` takes."""

    job_id: Id | None = Field(None, description="Only this job")


class OneJob(RequestModel):
    """What REST's route of one job takes."""

    id: Id = Field(description="The job_id")


class ListDocuments(RequestModel):
    """What REST's list of documents takes."""

    limit: Annotated[int, _Whole] = Field(20, ge=1, le=200, description="Most documents to return")
    cursor: str | None = Field(None, min_length=1, max_length=2_000, description="The last answer's next_cursor")
    type: DocType | None = Field(None, description="Only this type; entity: a node of the graph")
    collection: Collection | None = Field(None, description="Only this collection")
    tags: Tags | None = Field(None, description="Only documents with all of these; `a` also matches `a/b`")
    source_path: str | None = Field(None, min_length=1, max_length=1_000, description="Only the document there")


class NewTags(RequestModel):
    """What the tags of a document become."""

    tags: Tags = Field(description="Replace all tags; `collection:name` moves the document there")
    version: Version | None = Field(None, description="CONFLICT if the document has changed since")


class SetTags(NewTags):
    """What REST's route of a document's tags takes."""

    id: DocumentId


class Document(NoteLink, Replaceable):
    """A document without its text."""

    document_id: str
    title: str
    source_path: str
    doc_type: str
    collection: str
    tags: list[str]
    created_at: str
    updated_at: str | None


class Passage(NoteLink, Replaceable, NoteText):
    """A document that answers, by its best passage."""

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
    """What a search found, best first."""

    results: list[Passage]
    mode: str
    degraded: list[str]


class QueuedJob(NoteText):
    """A job that will make a document."""

    job_id: str
    status: Status


class Upload(NoteText):
    """An upload that was begun."""

    upload_id: str
    chunk_bytes: int = Field(description="Raw bytes of a chunk that is best sent")
    expires_at: str = Field(description="If no chunk comes before")


class UploadProgress(NoteText):
    """What has come of an upload."""

    upload_id: str
    received_bytes: int
    total_size: int
    chunks: int


class ChangedDocument(Document, NoteText):
    """A document as a change left it."""

    is_whole = True

    changed: bool = Field(description="false: it was so already")
    version: int
    warnings: list[str] = Field([], description="What to tell the person")


class Heading(AnswerModel):
    """A heading and where it stands."""

    line: int
    heading: str


class WholeDocument(Document, NoteText):
    """A document with its text, or a part of it."""

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
    next_line: int | None = Field(description="Pass as start_line for what follows; null: that was all")
    outline: list[Heading] = Field(description="When there is more than what is given")


class Counts(AnswerModel):
    """Documents of the workspace."""

    total: int
    by_type: dict[str, int]
    by_collection: dict[str, int]


class Health(AnswerModel):
    """Whether searches see all there is."""

    ready: bool
    words_only: int = Field(description="Documents of the workspace without vectors yet")


class Model(AnswerModel):
    """The encoder."""

    name: str
    dimensions: int
    state: str


class State(NoteText):
    """How the knowledge base is doing."""

    workspace: str
    index: Health
    documents: Counts
    chunks: int
    model: Model
    queue: dict[Status, int]
    collections: list[str]
    degraded: list[str]


class Failure(AnswerModel):
    """Why a job failed, or waits to be tried again."""

    code: str
    message: str


class Job(NoteText):
    """A job."""

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
    warnings: list[str] = Field([], description="What to tell the person about its document")


class JobList(NoteText):
    """Jobs, the latest first."""

    jobs: list[Job]
    next_cursor: str | None = Field(description="Pass as cursor for older ones; null: no more")


class DocumentList(NoteText):
    """Documents, those changed last first."""

    documents: list[Document]
    next_cursor: str | None = Field(description="Pass as cursor for more; null: no more")
