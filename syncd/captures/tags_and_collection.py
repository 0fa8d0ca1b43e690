"""Set the tags of a document or move it to another collection, by editing the lines that name them.

Law, tested: a value that is already set is not written, and no line but those of `tags`, `collection` and the stamps
of a change is touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from index.errors import Conflict, NotFound
from index.model import Record
from index.scope.index import Index
from syncd.captures.batch_writer import Change, NoteDrafts, carried_out
from syncd.captures.note_update import compared, read, unread
from syncd.captures.writer import alone, known
from syncd.documents import entity_edits
from syncd.documents.collection_membership import filed, retagged
from syncd.notes.front_matter import FrontmatterError, edit, split
from syncd.notes.tag_names import checked_tags
from syncd.notes.timestamps import iso

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox


def set_tags(workspace: str, inbox: Inbox, id: str, tags: Sequence[str], version: int | None) -> Record:
    """Put these in place of the tags of a document; one like `collection:x` puts it into that collection."""
    collection, plain = filed(None, tags, inbox.collections)
    wanted = checked_tags(plain)

    def decide(index: Index) -> tuple[list[Change], str]:
        record = index.record(id, workspace)
        if record is None:
            raise NotFound(f"no document {id[:64]!r} in workspace {workspace!r}")
        drafts = NoteDrafts(inbox.vault)
        text, document = read(inbox, drafts, record)
        compared(document, version)
        unread(inbox, document, record, whole=version is not None)
        now = inbox.now()
        try:
            changes = retagged(split(text)[0], wanted, collection)
            if changes and document.node:
                drafts.put(record.path, entity_edits.describe(text, changes, now=now))
            elif changes:
                drafts.put(
                    record.path, edit(text, {"updated_at": iso(now), "version": document.version + 1, **changes})
                )
        except FrontmatterError as error:
            raise Conflict(f"its properties can't be changed: {error}; its owner must mend them") from error
        return drafts.changes(), record.path

    with alone(inbox, workspace):
        return known(inbox.captures.index.at(carried_out(inbox, decide)))
