"""Delete a document together with its stored file; this removal never reaches beyond the document's workspace.

Law, tested: a file is removed only with the one document that it was stored for, only while it holds the bytes that
were read, and only inside this document's workspace; whatever a note claims, nothing else is removed. A file that a
person put there is theirs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from index.errors import Conflict, NotFound
from index.model import Record
from syncd.captures.writer import hide_file_name, hold_commits, undo_on_failure
from syncd.documents.file_note import digest_of
from syncd.files.inbox_file_scanner import SOURCE
from syncd.vault.vault import FileDigest

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox


def find_stored_file(inbox: Inbox, note: str, raw: bytes) -> tuple[str, FileDigest] | None:
    """The file that goes with the note of these bytes, as it is now; None when there is none to go with it.

    Raises Unavailable when that can't be told just now."""
    document = inbox.parse_note(raw, note, mtime_ms=0)
    path = document.file  # leads nowhere but into its own workspace
    if (
        path is None
        or document.source == SOURCE
        or {record.path for record in inbox.captures.index.records_of_file(path)} - {note}
    ):
        return None
    try:
        with hide_file_name(path):
            if inbox.vault.stat(path) is None:  # gone, or no file
                return None
            file_digest = inbox.vault.digest_file(path)
    except NotFound:
        return None
    return (path, file_digest) if file_digest.digest == digest_of(raw) else None


def delete_document(inbox: Inbox, find: Callable[[], Record]) -> Record:
    """Delete the document that `find` finds, which is no node, and with it the file that it was stored for; its last row."""
    before = find()
    with hide_file_name(before.path):
        raw, _ = inbox.vault.read(before.path)
    stored = find_stored_file(inbox, before.path, raw)  # read before everybody waits
    with hold_commits(inbox.captures) as index:
        record = find()
        if record.path != before.path:
            raise Conflict("the document was moved just now; try again", retryable=True)
        with removing_file(inbox, stored):
            with hide_file_name(record.path):
                inbox.vault.remove(record.path, digest=hashlib.sha256(raw).hexdigest())
            with undo_on_failure(lambda: inbox.vault.create(record.path, raw, again=True)):
                index.commit([], [record.path])
        return record


@contextmanager
def removing_file(inbox: Inbox, stored: tuple[str, FileDigest] | None) -> Iterator[None]:
    """Have the file gone, if there is one; it is back when the block fails."""
    if stored is None:
        yield
        return
    path, file_digest = stored
    with hide_file_name(path), inbox.vault.removing(path, file_digest):
        yield
