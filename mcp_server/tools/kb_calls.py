"""Define the calls of the family `kb` and of its REST routes; each call runs one operation and shapes the answer.

Law: a call sees only the jobs and uploads of its own key in its own workspace. Of other keys' jobs in the workspace, it gets only
their number in each status, from `kb_status`, and not even this if the key is bound to one namespace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from index.errors import InvalidArgument, NotFound
from index.model import Hit, Record
from index.query import make_query
from mcp_server.answers.best_snippet import MARK, cut_snippet
from mcp_server.answers.line_ranges import TextLines, find_section, list_headings, require_overlap, select_lines
from mcp_server.answers.text_budget import estimate_tokens, share_budget
from mcp_server.operations.caller import CALLER
from mcp_server.operations.wire_format import chunk_id, replacement_fields, scope_fields, warnings_about
from mcp_server.tools import kb_schema as shape
from syncd.documents.agent_paths import visible_metadata
from syncd.documents.collection_membership import is_collection_tag
from syncd.history.write_lineage import Hand
from syncd.notes.markdown_outline import parse_outline
from syncd.notes.timestamps import iso, iso_or_none
from syncd.settings.settings import Settings
from syncd.uploads.upload_request import decode_chunk

if TYPE_CHECKING:
    from syncd.jobs.queued_job import Job
    from syncd.workspaces.workspace import Workspace

HIT: Final = 200  # average tokens of a search hit: ten hits with their frame are 2,000
LEAST: Final = 16  # minimum tokens of its snippet, however long its names are
NAME: Final = 120  # characters of a title or heading in a hit
TAGS: Final = 8  # in a hit
URL: Final = str.maketrans("-_", "+/")  # the alphabet of base64 for addresses


def search(workspace: Workspace, arguments: shape.Search, settings: Settings) -> shape.Found:
    """Return the best passage of each document, cut so that the answer stays within its tokens."""
    asked = arguments.tags or []
    some = [tag for tag in asked if arguments.tags_match == "any" and not is_collection_tag(tag)]
    every = [tag for tag in asked if tag not in some]  # a tag that names a collection always counts
    answer = workspace.search(
        make_query(
            arguments.query,
            limit=arguments.top_n,
            mode=arguments.mode or settings.search.mode,
            type=arguments.doc_type,
            collection=arguments.collection,
            tags=every,
            any_tags=some,
            collections=workspace.collections,
        ),
        scope=arguments.scope,
    )
    where = _existing_addresses(workspace, [hit.record for hit in answer.hits])
    hands = workspace.hands(list(where))
    bare = [
        _passage_answer(workspace, hit, where[hit.record.id], hands[hit.record.id])
        for hit in answer.hits
        if hit.record.id in where
    ]
    texts = [hit.chunk for hit in answer.hits if hit.record.id in where]
    spare = HIT * len(bare) - sum(estimate_tokens(passage.model_dump_json()) for passage in bare)
    costs = [estimate_tokens(json.dumps(text, ensure_ascii=False)) for text in texts]
    results = [
        passage.model_copy(update={"snippet": cut_snippet(text, arguments.query, _size_for_tokens(text, cost, share))})
        for passage, text, cost, share in zip(bare, texts, costs, share_budget(costs, spare), strict=True)
    ]
    return shape.Found(results=results, mode=answer.mode, degraded=list(answer.degraded))


def _size_for_tokens(text: str, cost: int, share: int) -> int:
    """Return the number of characters of `text` that cost `share` tokens."""
    return len(text) * max(share, LEAST) // max(cost, 1)


def add_note(workspace: Workspace, arguments: shape.AddNote, _: Settings) -> shape.QueuedJob:
    """Queue a note."""
    job = workspace.add_note(
        arguments.text,
        key=_caller_key_id(),
        title=arguments.title,
        tags=arguments.tags or (),
        collection=arguments.collection,
    )
    return shape.QueuedJob(job_id=job.id, status=job.status)


def upload_start(workspace: Workspace, arguments: shape.StartUpload, _: Settings) -> shape.Upload:
    """Start an upload."""
    upload = workspace.uploads.start(
        _caller_key_id(),
        workspace.name,
        filename=arguments.filename,
        total_size=arguments.total_size,
        tags=arguments.tags or (),
        collection=arguments.collection,
        title=arguments.title,
        sha256=arguments.sha256,
        namespace=workspace.namespace,
    )
    return shape.Upload(upload_id=upload.upload_id, chunk_bytes=upload.chunk_bytes, expires_at=iso(upload.expires_at))


def upload_chunk(workspace: Workspace, arguments: shape.UploadChunk, _: Settings) -> shape.UploadProgress:
    """Store a chunk; a repeated chunk replaces itself."""
    upload = workspace.uploads.put_chunk(
        _caller_key_id(),
        workspace.name,
        arguments.upload_id,
        arguments.chunk_index,
        decode_chunk(_standard_base64(arguments.data)),
    )
    return shape.UploadProgress(
        upload_id=arguments.upload_id,
        received_bytes=upload.received_bytes,
        total_size=upload.total_size,
        chunks=upload.chunks,
    )


def upload_finish(workspace: Workspace, arguments: shape.FinishUpload, _: Settings) -> shape.QueuedJob:
    """Queue the file that was uploaded."""
    job = workspace.uploads.finish(_caller_key_id(), workspace.name, arguments.upload_id)
    return shape.QueuedJob(job_id=job.id, status=job.status)


def update_note(workspace: Workspace, arguments: shape.UpdateNote, _: Settings) -> shape.ChangedDocument:
    """Replace the text of a note."""
    record, changed = workspace.update_note(
        arguments.id,
        arguments.text,
        title=arguments.title,
        tags=arguments.tags,
        collection=arguments.collection,
        version=arguments.version,
    )
    return _changed_document(workspace, record, changed=changed)


def set_tags(workspace: Workspace, arguments: shape.SetTags, _: Settings) -> shape.ChangedDocument:
    """Replace the tags of a document."""
    before = workspace.get(arguments.id).record
    record = workspace.set_tags(arguments.id, arguments.tags, version=arguments.version)
    return _changed_document(workspace, record, changed=record.version != before.version)


def get_document(
    workspace: Workspace, arguments: shape.GetDocument | shape.OneDocument, _: Settings
) -> shape.WholeDocument:
    """Return a document, or the requested part of it that fits into the budget."""
    path = arguments.source_path if isinstance(arguments, shape.GetDocument) else None
    if arguments.id is not None:
        record = workspace.record(arguments.id)
    else:
        record = workspace.document_at(path or "", shared=True)
    content = workspace.read_content(record)
    text = TextLines.from_text(content)
    first, last = 1, max(1, len(text.lines))
    headings = None
    if arguments.heading is not None:
        headings = parse_outline(content).headings
        first, last = find_section(text, headings, arguments.heading)
        require_overlap((first, last), arguments.start_line, arguments.end_line)
    start = max(first, arguments.start_line)
    end = max(last, start) if arguments.end_line is None else min(last, arguments.end_line)
    lines = select_lines(text, start, end, arguments.max_tokens)
    cut = lines.next is not None or lines.end < lines.total
    if cut and lines.start == first:  # a later part needs no outline again
        headings = parse_outline(content).headings if headings is None else headings
    shown = list_headings(text, headings) if cut and headings and lines.start == first else []
    return shape.WholeDocument(
        **_document_fields(workspace, record, workspace.addresses([record]).get(record.id, "")),
        **scope_fields(record),
        namespace=record.namespace,
        source=record.source,
        summary=record.summary,
        metadata=visible_metadata(record),
        version=record.version,
        content=lines.text,
        start_line=lines.start,
        end_line=lines.end,
        total_lines=lines.total,
        next_line=lines.next,
        outline=[shape.Heading(line=line, heading=words) for line, words in shown],
    )


def list_documents(workspace: Workspace, arguments: shape.ListDocuments, _: Settings) -> shape.DocumentList:
    """Return a batch of the documents, the last changed first."""
    records, cursor = workspace.documents(
        limit=arguments.limit,
        cursor=arguments.cursor,
        type=arguments.type,
        collection=arguments.collection,
        tags=arguments.tags or (),
        address=arguments.source_path,
    )
    where = _existing_addresses(workspace, records)
    entries = [
        shape.Document(**_document_fields(workspace, record, where[record.id]))
        for record in records
        if record.id in where
    ]
    return shape.DocumentList(documents=entries, next_cursor=cursor)


def status(workspace: Workspace, _arguments: shape.Nothing, _: Settings) -> shape.State:
    """Return the size of this workspace, and whether searches cover it."""
    totals = workspace.totals()
    count_all, by_type, by_collection = 0, dict.fromkeys(("note", "file", "entity"), 0), dict[str, int]()
    for kind, collection, count in totals.documents:
        count_all += count
        by_type[kind] = by_type.get(kind, 0) + count
        by_collection[collection] = by_collection.get(collection, 0) + count
    name, dimensions, state = totals.encoder
    return shape.State(
        workspace=workspace.name,
        index=shape.Health(ready=totals.listed, words_only=totals.words_only),
        documents=shape.Counts(total=count_all, by_type=by_type, by_collection=by_collection),
        chunks=totals.chunks,
        model=shape.Model(name=name, dimensions=dimensions, state=state),
        queue=workspace.job_counts(None if workspace.namespace is None else _caller_key_id()),
        collections=list(workspace.collections),
        degraded=list(totals.degraded),
    )


def list_jobs(workspace: Workspace, arguments: shape.Jobs | shape.ListJobs, _: Settings) -> shape.JobList:
    """Return the key's own jobs, or one of them."""
    if isinstance(arguments, shape.Jobs) and arguments.job_id is not None:
        matches = [workspace.job(_caller_key_id(), arguments.job_id)]
        return shape.JobList(
            jobs=[_job_answer(workspace, job) for job in matches if arguments.status in (None, job.status)],
            next_cursor=None,
        )
    if arguments.cursor is not None:
        try:
            workspace.job(_caller_key_id(), arguments.cursor)
        except NotFound:
            raise InvalidArgument("cursor must be the next_cursor of the page before", field="cursor") from None
    matches = workspace.jobs(
        _caller_key_id(), status=arguments.status, limit=arguments.limit + 1, before=arguments.cursor
    )
    page = matches[: arguments.limit]
    return shape.JobList(
        jobs=[_job_answer(workspace, job) for job in page],
        next_cursor=page[-1].id if len(matches) > len(page) else None,
    )


def get_job(workspace: Workspace, arguments: shape.OneJob, _: Settings) -> shape.Job:
    """Return one job of the key."""
    return _job_answer(workspace, workspace.job(_caller_key_id(), arguments.id))


def _standard_base64(data: str) -> str:
    """Convert base64 to the standard alphabet, with padding."""
    plain = "".join(data.split()).translate(URL)
    return plain if "=" in plain else plain + "=" * (-len(plain) % 4)


def _existing_addresses(workspace: Workspace, records: Sequence[Record]) -> dict[str, str]:
    """Return the address of each document whose file still exists."""
    return workspace.addresses([record for record in records if workspace.file_exists(record)])


def _caller_key_id() -> str:
    """Return the id of the caller's key, which owns its jobs and uploads."""
    return CALLER.get().key.id


def _passage_answer(workspace: Workspace, hit: Hit, path: str, by: Hand) -> shape.Passage:
    """Return a hit without its snippet."""
    record = hit.record
    return shape.Passage(
        **_document_fields(workspace, record, path)
        | {"title": _cut_name(record.title), "tags": list(record.tags[:TAGS])},
        chunk_id=chunk_id(record.id, hit.ord),
        heading=_cut_trail(hit.heading),
        score=round(hit.score, 4),
        weak=hit.weak,
        by=by,
        **scope_fields(record),
        snippet="",
    )


def _document_fields(workspace: Workspace, record: Record, path: str) -> dict[str, Any]:
    return {
        "document_id": record.id,
        "title": record.title,
        "source_path": path,
        "doc_type": record.type,
        "collection": record.collection,
        "tags": list(record.tags),
        "created_at": iso(record.created_at),
        "updated_at": iso_or_none(record.updated_at),
        **replacement_fields(workspace, record),
    }


def _changed_document(workspace: Workspace, record: Record, *, changed: bool) -> shape.ChangedDocument:
    return shape.ChangedDocument(
        **_document_fields(workspace, record, workspace.addresses([record]).get(record.id, "")),
        changed=changed,
        version=record.version,
        warnings=warnings_about(record.defects),
    )


def _job_answer(workspace: Workspace, job: Job) -> shape.Job:
    error = job.error
    return shape.Job(
        job_id=job.id,
        kind=job.kind,
        status=job.status,
        progress=job.progress,
        stage=job.stage,
        title=job.title,
        document_id=job.document_id,
        error=None if error is None else shape.Failure(code=error["code"], message=error["message"]),
        created_at=iso(job.created_at),
        started_at=iso_or_none(job.started_at),
        finished_at=iso_or_none(job.finished_at),
        warnings=_document_warnings(workspace, job.document_id),
    )


def _document_warnings(workspace: Workspace, document_id: str | None) -> list[str]:
    """Return the current defects of a job's document; none if it was deleted."""
    try:
        return [] if document_id is None else warnings_about(workspace.record(document_id).defects)
    except NotFound:
        return []


def _cut_name(name: str) -> str:
    return name if len(name) <= NAME else f"{name[: NAME - 1]}{MARK}"


def _cut_trail(trail: str) -> str:
    """Cut a trail of headings in the middle: sections below the same long headings differ in their ends."""
    return trail if len(trail) <= NAME else f"{trail[: NAME // 2]}{MARK}{trail[1 - NAME // 2 :]}"
