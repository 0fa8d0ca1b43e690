"""Find a capture whose content is repeated, and renew its time of change, so that equal content is one note."""

from __future__ import annotations

from typing import TYPE_CHECKING

from index.errors import NotFound
from index.model import Document, Record
from syncd.captures.writer import hide_file_name, hold_commits, require_row, undo_on_failure
from syncd.documents.owner_marks import MarkedByOwner
from syncd.notes.front_matter import FrontmatterError, decode, edit, encode
from syncd.notes.timestamps import iso

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox


def read_same_content(inbox: Inbox, record: Record, *, now: int) -> tuple[bytes, Document] | None:
    """Return the file of a note whose content is as indexed: its bytes, and the document that they are; None if it is not."""
    try:
        with hide_file_name(record.path):
            raw, _ = inbox.vault.read(record.path)
    except NotFound:
        return None  # removed a moment ago, and not yet removed from the index
    document = inbox.parse_note(raw, record.path, mtime_ms=now)
    # Otherwise it was edited a moment ago, and is not yet indexed again.
    return (raw, document) if document.content_hash == record.content_hash else None


def renew_same_content(
    inbox: Inbox, workspace: str, namespace: str | None, content_hash: str, collection: str | None, *, now: int
) -> Record | None:
    """Return the note of a workspace with this content, with its `updated_at` set to `now`; None if there is none.

    A note that its owner has marked for promotion, or is editing, stays unchanged."""
    with hold_commits(inbox.captures) as index:
        record = index.catalog.find_capture(workspace, content_hash, collection, notes_of=namespace)
        same = read_same_content(inbox, record, now=now) if record else None
        if record is None or same is None:
            return None
        raw, before = same
        try:
            changed = encode(edit(decode(raw), {"updated_at": iso(now)}))
        except FrontmatterError:
            return record  # a person is editing its properties
        document = inbox.parse_note(changed, record.path, mtime_ms=now)
        try:
            with hide_file_name(record.path):
                stat = inbox.vault.replace(record.path, changed, digest=before.digest)
        except MarkedByOwner:
            return record
        with undo_on_failure(lambda: inbox.vault.replace(record.path, raw, digest=document.digest)):
            index.commit(index.prepare([(document, stat)], urgent=True))
        return require_row(index.record_at(record.path))
