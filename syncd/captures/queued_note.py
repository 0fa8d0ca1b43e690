"""Check a queued note when it is accepted, and create it when its turn comes.

Law, tested: if the workspace, namespace and collection already have a note with this text, no second note is
created, and the existing one gets the tags that it lacks; nothing is created twice, however often a job runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from index.document_ids import sha256
from index.errors import Conflict, NotFound
from index.model import COLLECTIONS, Record
from index.names import fold
from index.query import tag_of
from index.scope.index import Index
from syncd.captures.batch_writer import Change, NoteDrafts, write_batch
from syncd.captures.repeated_content import read_same_content
from syncd.captures.writer import create_note, lock_workspace, require_row
from syncd.documents.capture_note import check_content, check_source, compose_note, properties_of, title_of
from syncd.documents.collection_membership import choose_collection, tag_texts
from syncd.jobs.queued_job import Job
from syncd.jobs.worker import RunningJob
from syncd.notes.front_matter import FrontmatterError, PropertyValue, edit, encode, read_properties, split
from syncd.notes.timestamps import iso

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox


def prepare_request(
    text: str,
    known: Sequence[str],
    *,
    title: str | None,
    tags: Sequence[str],
    collection: str | None,
    namespace: str,
    source: str | None,
) -> tuple[dict[str, Any], str]:
    """Check a note for the queue, and return the request to keep and its title; the caller checks the namespace.

    Refuses at once what would fail later. `known` are the existing collections."""
    check_content(text)
    named, plain = choose_collection(collection, tags, known)
    check_source(source)
    request: dict[str, Any] = {
        "text": text,
        "title": (title or "").strip() or None,
        "tags": list(dict.fromkeys(filter(None, map(tag_of, plain)))),
        "collection": named or COLLECTIONS[0],
        "namespace": namespace,
        "source": source,
    }
    compose_note(_properties(request, id="0", created_at=0), text)
    return request, request["title"] or title_of(text)


def create_document(inbox: Inbox, running: RunningJob) -> str:
    """Create the note of a queued job, and return its id. Work done before a crash is found and not repeated."""
    job, request = running.job, running.job.given
    if inbox.captures.index.record(job.planned, job.workspace):
        return job.planned
    text: str = request["text"]
    same: Callable[[], Record | None] = partial(_find_same, inbox, job, sha256(text.encode()))
    note = same() or create_note(
        inbox,
        folder=inbox.namespace_folder(job.workspace, request["namespace"]),
        title=request["title"],
        content=text,
        properties=lambda title: _properties({**request, "title": title}, id=job.planned, created_at=job.created_at),
        now=job.created_at,
        instead=same,
        progress=lambda done: running.progress(done, 0, "embedding"),
    )
    record = require_row(note)
    if record.id != job.planned:
        try:
            with lock_workspace(inbox, job.workspace):
                write_batch(inbox, partial(_add_missing_tags, inbox, record, request["tags"]))
        except NotFound as error:
            raise _changed_error() from error
    return record.id


def _properties(request: Mapping[str, Any], *, id: str, created_at: int) -> dict[str, Any]:
    return properties_of(
        id=id,
        created_at=created_at,
        source=request["source"],
        collection=request["collection"],
        title=request["title"],
        tags=tuple(request["tags"]),
        metadata={},
    )


def _find_same(inbox: Inbox, job: Job, digest: str) -> Record | None:
    """Return the note that already has this text, according to its file."""
    namespace, collection = job.given["namespace"], job.given["collection"]
    record = inbox.captures.index.catalog.find_capture(job.workspace, digest, collection, notes_of=namespace)
    return record if record and read_same_content(inbox, record, now=inbox.now()) else None


def _add_missing_tags(inbox: Inbox, record: Record, tags: Sequence[str], _: Index) -> tuple[list[Change], None]:
    """Plan to add the tags that a note lacks."""
    drafts = NoteDrafts(inbox)
    text = drafts.text(record.path)
    before = inbox.parse_note(encode(text), record.path, mtime_ms=0)
    if before.content_hash != record.content_hash:
        raise _changed_error()
    held = {fold(tag) for tag in before.tags}
    if lacking := [tag for tag in tags if fold(tag) not in held]:
        stamps: dict[str, PropertyValue] = {"updated_at": iso(inbox.now()), "version": before.version + 1}
        try:
            drafts.set_text(record.path, edit(text, {"tags": [*_read_tags(text), *lacking], **stamps}))
        except FrontmatterError as error:
            raise Conflict(
                f"another note already has this text, and its properties can't be changed: {error}"
            ) from error
    return drafts.changes(), None


def _changed_error() -> Conflict:
    return Conflict("the note with this text has just changed; Memex tries again", retryable=True)


def _read_tags(text: str) -> list[str]:
    """Return the tags in the properties of a note."""
    values = read_properties(split(text)[0])
    return tag_texts(next((value for key, value in values.items() if key.casefold() == "tags"), None))
