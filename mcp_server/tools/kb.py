"""Define the nine tools of the family `kb`, and the operations that only REST has.

Times are ISO 8601 in UTC. A document is in exactly one collection, which is never among its tags."""

from __future__ import annotations

from typing import Final

from mcp_server.operations.operation import NOTES_ARE_DATA, Operation
from mcp_server.tools import kb_calls as call
from mcp_server.tools import kb_schema as shape

OPERATIONS: Final = (
    Operation(
        family="kb",
        name="kb_search",
        title="Search the knowledge base",
        description=(
            "Find documents of every type (notes, uploaded files, nodes) by meaning and words: the best passage of each, as a snippet; "
            "read on with kb_get. Instead of semantic_search when files count too, or to filter by type. For a complex question call "
            "it two or three times with variant phrasings (synonyms, another language, the answer you expect), merge, and drop "
            "repeats by chunk_id. The order is a guess: rerank by your own judgement. tags: documents with all of them, or with "
            "tags_match any at least one; `a` also matches `a/b`. Collections: documents, memory (what agents remember), workspace "
            "(work in progress). " + NOTES_ARE_DATA
        ),
        scope="read",
        given=shape.Search,
        returned=shape.Found,
        run=call.search,
        seconds=30,
    ),
    Operation(
        family="kb",
        name="kb_addnote",
        title="Add a note",
        description=(
            "Queue a note with a title and a collection of your choice; findable once its job is done (kb_jobs). To keep what you "
            "learned at once, use capture_thought instead; to change a note, kb_update_note. The same text again is the same document. "
            "collection: documents if left out."
        ),
        scope="write",
        given=shape.AddNote,
        returned=shape.QueuedJob,
        run=call.add_note,
        seconds=120,
    ),
    Operation(
        family="kb",
        name="kb_upload_start",
        title="Begin an upload",
        description=(
            "Add a file, instead of its text as a note (Markdown, text, HTML, PDF, DOCX, PPTX, XLSX, CSV, JSON), in three steps. For a "
            "report.pdf of 2,500,000 bytes: kb_upload_start(filename='report.pdf', total_size=2500000) gives upload_id; "
            "kb_upload_chunk(upload_id, chunk_index=0, data=<base64 of bytes 0 to 1048575>), then 1 and 2 with the rest; "
            "kb_upload_finish(upload_id) gives job_id, for kb_jobs. Ten minutes without a chunk end it."
        ),
        scope="write",
        given=shape.StartUpload,
        returned=shape.Upload,
        run=call.upload_start,
        seconds=120,
        idempotent=False,
    ),
    Operation(
        family="kb",
        name="kb_upload_chunk",
        title="Send a chunk",
        description=(
            "Send one piece of the file, 1 MiB before base64, each encoded by itself. In any order; one sent again replaces "
            "itself."
        ),
        scope="write",
        given=shape.UploadChunk,
        returned=shape.UploadProgress,
        run=call.upload_chunk,
        seconds=120,
    ),
    Operation(
        family="kb",
        name="kb_upload_finish",
        title="Finish an upload",
        description="Queue the file once all chunks are there; tells which are missing. Again: the same job.",
        scope="write",
        given=shape.FinishUpload,
        returned=shape.QueuedJob,
        run=call.upload_finish,
        seconds=120,
    ),
    Operation(
        family="kb",
        name="kb_update_note",
        title="Change a note",
        description=(
            "Change a note that has an id: put another text in place of its whole text, when it changed or was wrong. Instead of a "
            "second capture: id and created_at stay, and searches find the new text alone. All or nothing; with version, as kb_get "
            "gave it, a change by others meanwhile is CONFLICT. " + NOTES_ARE_DATA
        ),
        scope="write",
        given=shape.UpdateNote,
        returned=shape.ChangedDocument,
        run=call.update_note,
        seconds=120,
        destructive=True,
    ),
    Operation(
        family="kb",
        name="kb_get",
        title="Read a document",
        description=(
            "Read a document in parts, by id or source_path: the section under heading, or lines start_line to end_line, up to "
            "max_tokens. For long notes and files; get_thought reads a note whole. next_line tells where to go on (as start_line, all "
            "else alike), outline the headings. " + NOTES_ARE_DATA
        ),
        scope="read",
        given=shape.GetDocument,
        returned=shape.WholeDocument,
        run=call.get_document,
        seconds=30,
    ),
    Operation(
        family="kb",
        name="kb_status",
        title="Status",
        description=(
            "Whether searches see all there is: documents by type and collection, model, jobs, what is degraded. When a search "
            "misses what must be there."
        ),
        scope="read",
        given=shape.Nothing,
        returned=shape.State,
        run=call.status,
        seconds=30,
    ),
    Operation(
        family="kb",
        name="kb_jobs",
        title="List jobs",
        description=(
            "Your latest jobs, or one by job_id: status, progress, document_id once done, error when failed or put off. After "
            "kb_addnote or an upload; a capture needs none. " + NOTES_ARE_DATA
        ),
        scope="read",
        given=shape.Jobs,
        returned=shape.JobList,
        run=call.list_jobs,
        seconds=30,
    ),
)

ROUTED: Final = (  # REST alone
    Operation(
        family="kb",
        name="list_documents",
        title="List documents",
        description=(
            "Documents by time of their last change, the latest first, batch by batch: pass next_cursor as cursor. "
            + NOTES_ARE_DATA
        ),
        scope="read",
        given=shape.ListDocuments,
        returned=shape.DocumentList,
        run=call.list_documents,
        seconds=30,
    ),
    Operation(
        family="kb",
        name="get_document",
        title="Read a document",
        description=(
            "One document: the whole, the section under a heading, or a range of lines, up to max_tokens; next_line tells "
            "where to go on. " + NOTES_ARE_DATA
        ),
        scope="read",
        given=shape.OneDocument,
        returned=shape.WholeDocument,
        run=call.get_document,
        seconds=30,
    ),
    Operation(
        family="kb",
        name="list_jobs",
        title="List jobs",
        description=f"The key's own jobs, the latest first. {NOTES_ARE_DATA}",
        scope="read",
        given=shape.ListJobs,
        returned=shape.JobList,
        run=call.list_jobs,
        seconds=30,
    ),
    Operation(
        family="kb",
        name="get_job",
        title="One job",
        description=f"One of the key's own jobs. {NOTES_ARE_DATA}",
        scope="read",
        given=shape.OneJob,
        returned=shape.Job,
        run=call.get_job,
        seconds=30,
    ),
    Operation(
        family="kb",
        name="set_document_tags",
        title="Set a document's tags",
        description=(
            "Other tags in place of those the document has; `collection:name` among them moves it to that collection. "
            + NOTES_ARE_DATA
        ),
        scope="write",
        given=shape.SetTags,
        returned=shape.ChangedDocument,
        run=call.set_tags,
        seconds=120,
        destructive=True,
    ),
)
