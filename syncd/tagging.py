"""Put other tags on a document of a workspace, or move it to another collection, by the lines that say so.

Law, tested: what is so already is not written, and no line but those of `tags`, `collection` and the stamps of a change is touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from index.errors import Conflict, NotFound
from index.index import Index
from index.model import Record
from syncd import entity
from syncd.batch import Change, Drafts, carried_out
from syncd.collections import filed, retagged
from syncd.note import FrontmatterError, edit, split
from syncd.tag_names import checked_tags
from syncd.timestamps import iso
from syncd.update import compared, read, unread
from syncd.writing import alone, known

if TYPE_CHECKING:
    from syncd.tools import Tools


def set_tags(workspace: str, tools: Tools, id: str, tags: Sequence[str], version: int | None) -> Record:
    """Put these in place of the tags of a document; one like `collection:x` puts it into that collection."""
    collection, plain = filed(None, tags, tools.collections)
    wanted = checked_tags(plain)

    def decide(index: Index) -> tuple[list[Change], str]:
        record = index.record(id, workspace)
        if record is None:
            raise NotFound(f"no document {id[:64]!r} in workspace {workspace!r}")
        drafts = Drafts(tools.vault)
        text, document = read(tools, drafts, record)
        compared(document, version)
        unread(tools, document, record, whole=version is not None)
        now = tools.now()
        try:
            changes = retagged(split(text)[0], wanted, collection)
            if changes and document.node:
                drafts.put(record.path, entity.describe(text, changes, now=now))
            elif changes:
                drafts.put(
                    record.path, edit(text, {"updated_at": iso(now), "version": document.version + 1, **changes})
                )
        except FrontmatterError as error:
            raise Conflict(f"its properties can't be changed: {error}; its owner must mend them") from error
        return drafts.changes(), record.path

    with alone(tools, workspace):
        return known(tools.captures.index.at(carried_out(tools, decide)))
