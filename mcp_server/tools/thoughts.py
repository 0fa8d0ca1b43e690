"""Define the tools of the family `thoughts`: capture a note, search notes, read one, list recent ones, delete one.

Times are epoch milliseconds. Memex never changes `content`: a read returns the same bytes that the capture stored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from index.catalog.recent_documents import encode_cursor
from index.errors import NotFound, Unavailable
from index.model import Hit, Record
from index.query import make_query
from mcp_server.answers.text_budget import cut_excerpt, share_budget
from mcp_server.operations.operation import NOTES_ARE_DATA, define_operation
from mcp_server.operations.wire_format import chunk_id, replacement_fields, scope_fields, warnings_about
from mcp_server.tools import thoughts_schema as shape
from syncd.changes.change_note import TARGET
from syncd.changes.proposed_text import ChangeRequest
from syncd.documents.agent_paths import visible_metadata
from syncd.history.write_lineage import Hand, Writer
from syncd.notes.timestamps import iso, iso_or_none
from syncd.settings.settings import Settings

if TYPE_CHECKING:
    from syncd.workspaces.workspace import Workspace

LONGEST_BATCH: Final = 200  # most notes in one answer of `list_recent`


def capture_thought(workspace: Workspace, arguments: shape.CaptureThought, _: Settings) -> shape.CapturedNote:
    """Capture a note, or return the existing note with this content."""
    captured = workspace.capture(
        arguments.content, source=arguments.source, metadata=arguments.metadata, namespace=arguments.namespace
    )
    record = captured.record
    return shape.CapturedNote(
        id=record.id,
        created=captured.created,
        content_hash=record.content_hash,
        title=record.title,
        tags=list(record.tags),
        summary=record.summary,
        chunks=record.chunks,
        path=workspace.addresses([record]).get(record.id, ""),
        **_times(record),
        warnings=warnings_about(record.defects),
    )


def semantic_search(workspace: Workspace, arguments: shape.SemanticSearch, settings: Settings) -> shape.Found:
    """Search notes, and cut each long note to an excerpt around its best passage."""
    answer = workspace.search(
        make_query(
            arguments.query,
            limit=arguments.top_k,
            mode=arguments.mode or settings.search.mode,
            namespace=arguments.namespace,
            collection=arguments.collection,
            tags=arguments.tags,
            source=arguments.source,
            since=arguments.since,
            until=arguments.until,
            collections=workspace.collections,
        ),
        scope=arguments.scope,
    )
    texts, unread = read_contents(workspace, [hit.record for hit in answer.hits])
    hits = [(hit, texts[hit.record.id]) for hit in answer.hits if hit.record.id in texts]
    sizes = _text_sizes([text for _, text in hits], arguments.detail, settings)
    hands = workspace.hands([hit.record.id for hit, _ in hits])
    places = workspace.addresses([hit.record for hit, _ in hits])
    results = [
        _found_thought(workspace, hit, text, size, by=hands[hit.record.id], path=places.get(hit.record.id, ""))
        for (hit, text), size in zip(hits, sizes, strict=True)
    ]
    problems = [f"vault: {unread} of the matching notes can't be read now and are left out"] if unread else []
    return shape.Found(results=results, mode=answer.mode, degraded=[*answer.degraded, *problems])


def propose_change(workspace: Workspace, arguments: shape.ProposeChange, _: Settings) -> shape.ProposedChange:
    """Write a proposal for the owner; the note itself stays as it is."""
    request = ChangeRequest(arguments.text, arguments.patch, arguments.properties)
    proposed = workspace.propose_change(arguments.path, request, arguments.reason)
    record = proposed.record
    return shape.ProposedChange(
        id=record.id,
        created=proposed.created,
        path=workspace.addresses([record]).get(record.id, ""),
        target=str(record.metadata.get(TARGET, "")),
        warnings=warnings_about(record.defects),
    )


def get_thought(workspace: Workspace, arguments: shape.OneThought, _: Settings) -> shape.WholeThought:
    """Return the whole note."""
    kept = workspace.get(arguments.id)
    made, changed = workspace.writers(kept.record)
    return shape.WholeThought(
        **_thought_fields(workspace, kept.record, workspace.addresses([kept.record]).get(kept.record.id, "")),
        **scope_fields(kept.record),
        id=kept.record.id,
        content=kept.content,
        content_hash=kept.record.content_hash,
        version=kept.record.version,
        chunks=[
            shape.Passage(id=chunk_id(kept.record.id, at), ordinal=at, content=text)
            for at, text in enumerate(kept.chunks)
        ],
        created_by=_writer_answer(made),
        updated_by=_writer_answer(changed),
    )


def _writer_answer(writer: Writer | None) -> shape.Wrote | None:
    if writer is None:
        return None
    at = iso_or_none(writer.at)
    return shape.Wrote(by=writer.by, key=writer.key or None, tool=writer.tool or None, at=writer.at, at_iso=at)


def delete_thought(workspace: Workspace, arguments: shape.OneThought, _: Settings) -> shape.DeletedNote:
    """Delete the note's file and everything that was derived from it."""
    gone = workspace.delete(arguments.id)
    return shape.DeletedNote(id=gone.id, deleted=True, title=gone.title)


def list_recent(workspace: Workspace, arguments: shape.ListRecent, settings: Settings) -> shape.Recent:
    """Return one batch of notes, the latest first."""
    batch, following = _read_batch(workspace, arguments.limit, arguments.before)
    texts, _ = read_contents(workspace, batch)
    notes = [(record, texts[record.id]) for record in batch if record.id in texts]
    sizes = _text_sizes([text for _, text in notes], arguments.detail, settings)
    places = workspace.addresses([record for record, _ in notes])
    results = [
        shape.RecentThought(
            **_thought_fields(workspace, record, places.get(record.id, "")),
            id=record.id,
            content=text[:size],
            content_truncated=size < len(text),
            content_hash=record.content_hash,
        )
        for (record, text), size in zip(notes, sizes, strict=True)
    ]
    return shape.Recent(results=results, next_before=following)


def _read_batch(
    workspace: Workspace, limit: int, before: int | str | None
) -> tuple[Sequence[Record], int | str | None]:
    """Return `limit` records, and the cursor of the next batch, None at the end.

    The cursor is a time, and the next batch is strictly older. Notes that were created in one millisecond therefore stay
    in one batch, which can be longer than `limit`. If more than `LONGEST_BATCH`
    notes have one time, the batch ends among them, and the cursor also names its last note.
    """
    records = workspace.recent(limit + 1, before=before)
    moment = records[limit - 1].created_at if len(records) > limit else None
    if moment is not None and records[limit].created_at == moment:
        records = workspace.recent(LONGEST_BATCH + 1, before=before)
    end = limit
    while end < min(len(records), LONGEST_BATCH) and records[end].created_at == moment:
        end += 1
    if end >= len(records):
        return records, None
    last = records[end - 1]
    splits_moment = records[end].created_at == last.created_at
    return records[:end], encode_cursor(last, last.created_at) if splits_moment else last.created_at


def read_contents(workspace: Workspace, records: Sequence[Record]) -> tuple[dict[str, str], int]:
    """Return the text of each note by its id, and how many notes could not be read.

    A note whose file disappeared after the index answered is left out and not counted. Raises Unavailable when no note
    could be read, so that a failure does not look like an empty answer."""
    texts: dict[str, str] = {}
    failures: list[Unavailable] = []
    for record in records:
        try:
            texts[record.id] = workspace.read_content(record)
        except NotFound:
            continue
        except Unavailable as error:
            failures.append(error)
    if failures and not texts:
        raise failures[0]
    return texts, len(failures)


def _text_sizes(texts: Sequence[str], detail: shape.Detail, settings: Settings) -> list[int]:
    lengths = [len(text) for text in texts]
    return lengths if detail == "full" else share_budget(lengths, settings.search.budget)


def _found_thought(workspace: Workspace, hit: Hit, text: str, size: int, *, by: Hand, path: str) -> shape.FoundThought:
    return shape.FoundThought(
        document_id=hit.record.id,
        chunk_id=chunk_id(hit.record.id, hit.ord),
        chunk_content=hit.chunk,
        document_content=cut_excerpt(text, hit.chunk, size),
        document_truncated=size < len(text),
        by=by,
        score=round(hit.score, 6),
        weak=hit.weak,
        heading=hit.heading,
        **_thought_fields(workspace, hit.record, path),
        **scope_fields(hit.record),
    )


def _thought_fields(workspace: Workspace, record: Record, path: str) -> dict[str, Any]:
    return {
        "path": path,
        "title": record.title,
        "source": record.source,
        "metadata": visible_metadata(record),
        "summary": record.summary,
        "tags": list(record.tags),
        "collection": record.collection,
        "namespace": record.namespace,
        **_times(record),
        **replacement_fields(workspace, record),
    }


def _times(record: Record) -> dict[str, Any]:
    return {
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "created_at_iso": iso(record.created_at),
        "updated_at_iso": iso_or_none(record.updated_at),
    }


_read = partial(define_operation, family="thoughts", scope="read", seconds=15)
_write = partial(define_operation, family="thoughts", scope="write", seconds=120)

OPERATIONS: Final = (
    _write(
        capture_thought,
        title="Capture a note",
        description=(
            "Save one thing worth finding again as a note: decision, answer, idea, excerpt. One subject per note. It is on disk "
            "and searchable when the call returns. Retrying the same content returns the same note. Memex adds tags and a "
            "summary. To change a note: kb_update_note; for a fact about one person, project or thing: add_observations. "
            + NOTES_ARE_DATA
        ),
    ),
    _read(
        semantic_search,
        title="Search notes",
        description=(
            "Find notes that answer a question, by meaning and by words, best first. For a person, project or thing, use "
            "search_nodes; for new notes, list_recent; with an id, get_thought. For a hard or vague question, search two or three "
            "times in other words (synonyms, the other language, the expected answer) and keep one hit per document_id. "
            "Scores are comparable within one answer only: rank the passages yourself. `degraded` lists what was incomplete. "
            + NOTES_ARE_DATA
        ),
    ),
    _read(
        get_thought,
        title="Read a note",
        description=(
            "Read one whole note by its id. Without an id, use semantic_search; to read a long note in parts, kb_get. "
            + NOTES_ARE_DATA
        ),
    ),
    _write(
        delete_thought,
        title="Delete a note",
        description=(
            "Delete one note permanently: it is wrong, unwanted or a duplicate. To correct a note, use kb_update_note. "
            + NOTES_ARE_DATA
        ),
        seconds=30,
        destructive=True,
    ),
    _read(
        list_recent,
        title="List recent notes",
        description=(
            "List notes by creation time, newest first. For the next batch, pass next_before as before. To find notes about a "
            "subject, use semantic_search. " + NOTES_ARE_DATA
        ),
        seconds=30,
    ),
    _write(
        propose_change,
        title="Propose a change of a shared note",
        description=(
            "Propose a change of a note that the owner shares with you (scope: vault); only the owner applies it. Read the whole "
            "note first. For your own notes, use kb_update_note."
        ),
    ),
)
