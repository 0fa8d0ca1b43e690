"""Adopt a note that a person put into the inbox or edited there: write the properties that Memex needs.

Memex does this once the note is quiet. Law, tested: only the lines of the written keys change; a property that
cannot be written now is written later."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from index.document_ids import path_id
from index.errors import Conflict, NotFound, Unavailable
from index.model import Document, Stat
from index.scope.index import Index
from syncd.documents.collection_membership import CollectionChanges, has_several
from syncd.documents.entity_edits import state_ordinals
from syncd.notes.front_matter import FrontmatterError, decode, edit, encode
from syncd.sync.hand_edits import HandEdits
from syncd.sync.pending_paths import PendingPaths
from syncd.vault.vault import Vault

BUSY = 10.0  # seconds before a failed stamp is tried again
# Defects of notes that get no id.
UNADOPTED = frozenset({"bad-id", "conflict-copy", "merge-conflict", "unclosed-frontmatter"})


class NoteAdoption:
    """Writes missing properties: the id, a node's ordinals, a single collection, the stamp of an edit."""

    def __init__(
        self,
        vault: Vault,
        pending_paths: PendingPaths,
        edits: HandEdits,
        filing: CollectionChanges,
        parsed: Callable[[bytes, str, Stat], Document],
    ) -> None:
        self._vault, self._pending_paths, self._edits = vault, pending_paths, edits
        self._filing, self._parsed = filing, parsed

    def adopt(self, document: Document, raw: bytes, stat: Stat) -> tuple[Document, Stat]:
        """Write the `id` and `created_at` of a new note, the ordinals of a node's new facts, and a single collection.

        An edit gets its stamp; nothing else changes."""
        text = decode(raw)
        stamps = self._edits.stamp_properties(document, raw, stat)
        if stamps is None:
            self._pending_paths.recheck(document.path, BUSY)
        try:
            if document.claimed_id is None and is_adoptable(document):
                text = edit(text, self._edits.identity_properties(document, text, stat))
            if document.node:
                with suppress(Conflict):  # a fact is in unclosed code, or the ordinals are used up
                    text = state_ordinals(text, now=int(time.time() * 1000))
            text = edit(self._filing.settle(document.path, text), stamps or {})
            if text == decode(raw):
                return document, stat
            raw = encode(text)
            stat = self._vault.replace(document.path, raw, digest=document.digest)
        except FrontmatterError:
            self._edits.discard(document.path)
            return document, stat  # its defect is recorded already
        except (Conflict, NotFound, Unavailable):  # changed a moment ago, or the disk is full or read-only
            if stamps:
                self._pending_paths.recheck(document.path, BUSY)
            return document, stat  # it is searchable anyway, and adopted later
        if stamps:
            self._edits.discard(document.path)
        return self._parsed(raw, document.path, stat), stat


def is_adoptable(document: Document) -> bool:
    """Return whether a note of the inbox lacks something that `adopt` would write."""
    lacks = (
        document.claimed_id is None or (document.node is not None and document.node.unsettled) or has_several(document)
    )
    able = document.scope == "captures" and document.writable
    return lacks and able and not any(defect.name in UNADOPTED for defect in document.defects)


def list_unadopted(paths: Iterable[str], index: Index, edited: Collection[str]) -> list[str]:
    """Return those of these known inbox notes that were not quiet yet when they were read.

    They lack an id or ordinals, name several collections, or were `edited`."""
    manifest, several = index.manifest, {*index.catalog.contested_paths(), *edited}
    known = ((path, entry) for path in paths if (entry := manifest.get(path)))
    return [path for path, entry in known if entry.id == path_id(path) or index.lacks_ordinals(path) or path in several]
