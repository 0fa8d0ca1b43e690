"""Delete a document together with its stored file; this removal never reaches beyond the document's workspace.

Law, tested: a file is removed only with the one document that it was stored for, only while it holds the bytes that
were read, and only inside this document's workspace; whatever a note claims, nothing else is removed. A file that a
person put there is theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from index.errors import NotFound
from index.model import Record
from index.scope.index import Index
from syncd.captures.batch_writer import Change, DeletedStoredFile, NoteDrafts, write_batch
from syncd.captures.writer import hide_file_name
from syncd.documents.file_note import digest_of
from syncd.files.inbox_file_scanner import SOURCE
from syncd.notes.front_matter import encode
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
        or {record.path for record in inbox.captures.index.records_of_file(path)} - {note}
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


def delete_document(inbox: Inbox, find: Callable[[], Record]) -> Record:
    """Delete the document that `find` finds together with its stored file, and return the document's last row.

    The document must not be an entity. Raises Conflict if a person has just edited it."""

    def decide(_: Index) -> tuple[list[Change], Record]:
        record, drafts = find(), NoteDrafts(inbox.vault)
        text = drafts.text(record.path)
        drafts.delete(record.path)
        return [*stored_file_removals(inbox, record.path, encode(text)), *drafts.changes()], record

    return write_batch(inbox, decide)
