"""Delete a document together with its stored file and the relations to it; this never reaches beyond its workspace.

Law, tested: a file is removed only with the one document that it was stored for, only while it holds the bytes that
were read, and only inside this document's workspace; whatever a note claims, nothing else is removed. A file that a
person put there is theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from index.errors import NotFound
from index.memos.relations import end_of
from index.model import Record
from index.scope.index import Index
from syncd.captures.batch_writer import Change, DeletedStoredFile, NoteDrafts, write_batch
from syncd.captures.writer import hide_file_name, lock_workspace
from syncd.documents.file_note import digest_of
from syncd.documents.memo_relations import drop_relations
from syncd.documents.owner_marks import read_marks
from syncd.files.inbox_file_scanner import SOURCE
from syncd.notes.front_matter import FrontmatterError, encode
from syncd.vault.location import FILES

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox


def stored_file_removals(inbox: Inbox, note: str, raw: bytes) -> list[DeletedStoredFile]:
    """Return the stored file to remove together with the note of these bytes, if there is one, with its current digest.

    Raises Unavailable if Memex can't determine it now."""
    document = inbox.parse_note(raw, note, mtime_ms=0)
    path = document.file  # the parser accepts only paths inside the note's workspace
    if (
        path is None
        or document.source == SOURCE
        or path.split("/")[-2] != FILES  # Memex stores files only there, so a person put it there
        or {record.path for record in inbox.captures.index.catalog.records_of_file(path)} - {note}
    ):
        return []
    try:
        with hide_file_name(path):
            if inbox.vault.stat(path) is None:  # missing, or not a file
                return []
            file_digest = inbox.vault.digest_file(path)
    except NotFound:
        return []
    return [DeletedStoredFile(path, file_digest)] if file_digest.digest == digest_of(raw) else []


def deletion_changes(inbox: Inbox, index: Index, record: Record, drafts: NoteDrafts) -> list[Change]:
    """Return the changes that delete a document together with its stored file and the relations of other notes to it."""
    text, ties = drafts.text(record.path), index.memos.ties
    drafts.delete(record.path)
    for path in {tie.source.path for tie in ties.incoming([end_of(record)])} - {record.path}:
        source = index.record_at(path)
        if source is not None and source.writable and drafts.exists(path):
            if read_marks(drafts.text(path)).promote:
                continue  # no agent may change it; the entry stays, without a target
            try:
                drafts.set_text(path, drop_relations(drafts.text(path), partial(ties.leads_to, record)))
            except FrontmatterError:
                continue  # its owner is editing it
    return [*stored_file_removals(inbox, record.path, encode(text)), *drafts.changes()]


def delete_document(inbox: Inbox, workspace: str, find: Callable[[], Record]) -> Record:
    """Delete the document of this workspace that `find` finds, as `deletion_changes` does; return its last row.

    The document must not be an entity. Raises Conflict if a person has just edited it."""

    def decide(index: Index) -> tuple[list[Change], Record]:
        record = find()
        return deletion_changes(inbox, index, record, NoteDrafts(inbox)), record

    with lock_workspace(
        inbox, workspace, indexed=False
    ):  # a relation of a note that is not indexed yet stays, without a target
        return write_batch(inbox, decide)
