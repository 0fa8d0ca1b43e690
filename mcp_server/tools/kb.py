"""Define the nine tools of the family `kb`, and the operations that only REST offers.

Times are ISO 8601 in UTC. A document is in exactly one collection, and its tags never contain the collection."""

from __future__ import annotations

from functools import partial
from typing import Final

from mcp_server.operations.operation import NOTES_ARE_DATA, define_operation
from mcp_server.tools import kb_calls as call
from mcp_server.tools import kb_schema as shape

_read = partial(define_operation, family="kb", scope="read", seconds=30)
_write = partial(define_operation, family="kb", scope="write", seconds=120)

OPERATIONS: Final = (
    _read(
        call.search,
        name="kb_search",
        title="Search notes and files",
        description=(
            "Find documents of every type (notes, uploaded files, entities) by meaning and by words. Each result has a snippet of its "
            "best passage; read more with kb_get. Use it instead of semantic_search to include files or to filter by type. For a "
            "complex question, call it two or three times with variant phrasings (synonyms, another language, the expected answer), "
            "merge the results, and drop repeats by chunk_id. The order is a guess: rerank the results by your own judgement. tags: "
            "documents with all of these tags or, with tags_match any, at least one; `a` also matches `a/b`. Collections: documents, "
            "memory (what agents remember), workspace (work in progress). " + NOTES_ARE_DATA
        ),
    ),
    _write(
        call.add_note,
        name="kb_addnote",
        title="Add a note",
        description=(
            "Queue a new note with a title and a collection of your choice. It is searchable when its job is done (see kb_jobs). To "
            "save what you learned immediately, use capture_thought; to change a note, kb_update_note. The same text again gives the "
            "same document."
        ),
    ),
    _write(
        call.upload_start,
        name="kb_upload_start",
        title="Start an upload",
        description=(
            "Add a file (Markdown, text, HTML, PDF, DOCX, PPTX, XLSX, CSV, JSON) in three steps; for text of your own, use kb_addnote. "
            "For a report.pdf of 2,500,000 bytes: kb_upload_start(filename='report.pdf', total_size=2500000) returns upload_id; "
            "kb_upload_chunk(upload_id, chunk_index=0, data=<base64 of bytes 0 to 1048575>), then chunks 1 and 2 with the rest; "
            "kb_upload_finish(upload_id) returns job_id for kb_jobs. An upload ends after ten minutes without a chunk."
        ),
        idempotent=False,
    ),
    _write(
        call.upload_chunk,
        name="kb_upload_chunk",
        title="Send a chunk",
        description=(
            "Send one chunk of the file: 1 MiB before base64, encoded separately. Send chunks in any order; to repeat a chunk, "
            "send it again."
        ),
    ),
    _write(
        call.upload_finish,
        name="kb_upload_finish",
        title="Finish an upload",
        description="Queue the file when all chunks have arrived; otherwise the error lists the missing ones. A repeated call returns the same job.",
    ),
    _write(
        call.update_note,
        name="kb_update_note",
        title="Change a note",
        description=(
            "Replace the whole text of a note that changed or was wrong, instead of capturing it again: id and created_at stay, and "
            "searches find only the new text. Pass version from kb_get to get CONFLICT if another writer changed the note since. "
            + NOTES_ARE_DATA
        ),
        destructive=True,
    ),
    _read(
        call.get_document,
        name="kb_get",
        title="Read a document",
        description=(
            "Read a long note or file in parts, by id or source_path: the section under heading, or lines start_line to end_line, up "
            "to max_tokens. To continue, pass next_line as start_line and repeat the other arguments; outline lists the headings. To "
            "read a whole note, use get_thought. " + NOTES_ARE_DATA
        ),
        request=shape.GetDocument,
    ),
    _read(
        call.status,
        name="kb_status",
        title="Show the status",
        description=(
            "Show whether searches cover everything: documents by type and collection, model, jobs, degraded parts. Use it when a "
            "search misses a document that you expect."
        ),
    ),
    _read(
        call.list_jobs,
        name="kb_jobs",
        title="List jobs",
        description=(
            "List your latest jobs, or one by job_id: status, progress, document_id when done, error when failed or postponed. Use it "
            "after kb_addnote or an upload; a capture has no job. " + NOTES_ARE_DATA
        ),
        request=shape.Jobs,
    ),
)

ROUTED: Final = (  # offered by REST only
    _read(
        call.list_documents,
        title="List documents",
        description=(
            "List documents by the time of their last change, the latest first. For the next batch, pass next_cursor as cursor. "
            + NOTES_ARE_DATA
        ),
    ),
    _read(
        call.get_document,
        title="Read a document",
        description=(
            "Read one document: all of it, the section under a heading, or a range of lines, up to max_tokens. To continue, pass "
            "next_line as start_line. " + NOTES_ARE_DATA
        ),
        request=shape.OneDocument,
    ),
    _read(
        call.list_jobs,
        title="List jobs",
        description=f"List the jobs of this key, the latest first. {NOTES_ARE_DATA}",
        request=shape.ListJobs,
    ),
    _read(
        call.get_job,
        title="Read a job",
        description=f"Read one job of this key. {NOTES_ARE_DATA}",
    ),
    _write(
        call.set_tags,
        name="set_document_tags",
        title="Set a document's tags",
        description=(
            "Replace all tags of a document. A tag `collection:name` moves the document to that collection. "
            + NOTES_ARE_DATA
        ),
        destructive=True,
    ),
)
