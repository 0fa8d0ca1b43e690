"""Record hand edits of inbox notes, which count as updates, until each note is quiet and gets its update stamp.

Laws, tested: an edit is stamped once, even after a restart or a second report. Changes by a tool, changes that Git
brought, and notes that already state a newer time are not stamped. Until the stamp, no caller that compares versions
confuses the note with its earlier version. A write by Memex on top of an edit does not hide it. The row of an edit
holds the note's earlier state; the note itself shows whether the row is still valid. A note that leaves its workspace
and returns with another text was edited meanwhile."""

from __future__ import annotations

import hashlib
import json
import logging
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from typing import Any, Final

from index.document_ids import path_id, sha256
from index.errors import Unavailable
from index.model import Document, Record, Stat
from index.names import note_name
from index.scope.index import Index
from index.timings import now_ms
from syncd.documents.collection_membership import has_several
from syncd.git import head_moves
from syncd.git.note_commits import find_creation
from syncd.git.repository import Repository
from syncd.history.audit_log import AuditLog
from syncd.notes.front_matter import PropertyValue, readable_properties
from syncd.notes.timestamps import DAY_MS, iso
from syncd.state.ledger import Ledger
from syncd.state.trusted_time import trusted_ms
from syncd.vault.vault import Vault

# How long after an edit a lock of Git is waited for; an unfinished merge is waited for without a limit.
LOCKED_S: Final = 30.0
# Defects of notes that contain several versions of themselves: it is unknown which one counts.
TORN: Final = frozenset({"conflict-copy", "merge-conflict", "unclosed-frontmatter"})
LATEST_MS: Final = 253_402_300_800_000  # the year 10000
AWAY_MS: Final = 90 * DAY_MS  # how long the state of a note that left its workspace is kept

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Edit:
    """Describes a manually edited note: its indexed state before the edit, and when it was written last."""

    path: str
    id: str
    was: str  # its `visible_digest` before
    version: int
    created_at: int
    updated_at: int | None
    edited_at: int
    node: str = ""  # digests of its summary and of each fact before, separated by blanks; "" = unknown


class HandEdits:
    """Manages edits that wait for their stamp.

    The pipeline stamps, one pass at a time; any thread may report an edit or query."""

    def __init__(self, ledger: Ledger, audit: AuditLog, repo: Repository, vault: Vault) -> None:
        self._ledger, self._audit, self._repo, self._vault = ledger, audit, repo, vault
        self._rows = {row[0]: Edit(*row) for row in ledger.query("SELECT * FROM edits")}

    @property
    def paths(self) -> frozenset[str]:
        """Return the paths of notes to check again."""
        return frozenset(self._rows)

    def is_pending(self, document: Document) -> bool:
        """Return whether somebody has edited this note and its properties don't show it yet.

        Call it after reading the note's row."""
        return self._pending_edit(document.path, document) is not None

    def notice_edit(self, document: Document, stat: Stat, index: Index) -> bool:
        """Compare a note with its indexed state; return whether it must be stamped once it is quiet.

        Call it before the note is committed, so that a caller who finds the note in the index finds its edit too."""
        if document.scope != "captures" or any(defect.name == "conflict-copy" for defect in document.defects):
            return False
        edit = self._pending_edit(document.path, document) or self._find_edit(document, stat, index)
        if edit is None:
            self.discard(document.path)  # an update by Memex has included the edit
            return False
        path, own_id, claimed = document.path, path_id(document.path), document.claimed_id
        if not document.writable or (claimed is None and edit.id != own_id):  # perhaps half written
            self._save(edit)
            return False
        if claimed not in (None, edit.id) and edit.id != own_id:
            self.discard(path)  # now another note
            return False
        is_same = visible_digest(document) == edit.was and document.version == edit.version
        # A promotion removes the version, so the same text may return with an earlier one, and then counts as edited.
        if document.version > edit.version or is_same:
            self.discard(path)
            return False
        if not self._is_own_write(document):
            edit = replace(edit, edited_at=stat.mtime_ms)
        self._save(edit)
        return not any(defect.name in TORN for defect in document.defects)

    def notice_replaced(
        self, path: str, raw: bytes, new: bytes, index: Index, parsed: Callable[[bytes, str, Stat], Document]
    ) -> None:
        """Notice an edit in the bytes of a note that Memex is about to replace, and that no pass may have read yet.

        An updated link raises the version without a stamp, so the edit goes on waiting for its own."""
        entry, stat = index.manifest.get(path), self._vault.stat(path)
        if stat is None:
            return
        if entry is None or entry.digest != sha256(raw):
            self.notice_edit(parsed(raw, path, stat), stat, index)
        if edit := self._rows.get(path):
            before, after = parsed(raw, path, stat), parsed(new, path, stat)
            if before.version <= edit.version < after.version and after.updated_at == before.updated_at:
                self._save(replace(edit, version=after.version))

    def stamp_properties(self, document: Document, raw: bytes, stat: Stat) -> Mapping[str, PropertyValue] | None:
        """Return the properties to write into an edited note, {} for none; None while a Git operation is under way."""
        edit = self._rows.get(document.path)
        if edit is None:
            return {}
        busy = self._repo.busy_reason()
        if busy and not (busy.endswith(".lock") and time.time() - stat.mtime_ns / 1e9 > LOCKED_S):
            return None
        if head_moves.is_from_git(self._repo, document.path, raw, stat.mtime_ns // 1_000_000_000):
            self.discard(document.path)
            return {}
        before = edit.created_at if edit.updated_at is None else edit.updated_at
        at = max(before, edit.edited_at if 0 <= edit.edited_at < LATEST_MS else before)
        stamps: dict[str, PropertyValue] = {"version": edit.version + 1, **_node_times(edit, document, before, at)}
        if document.updated_at is None or document.updated_at <= before:  # otherwise the editor has set it
            stamps = {"updated_at": iso(at), **stamps}
        if document.has_file_time(stat):  # otherwise it would follow every edit
            stamps = {"created_at": iso(edit.created_at), **stamps}
        return stamps

    def identity_properties(self, document: Document, text: str, stat: Stat) -> dict[str, PropertyValue]:
        """Return the id for a note without one, and its creation time if it has no `created_at`.

        For a note in Git they come from the commit that created it, so every device that adopts the note writes
        equal bytes."""
        made = find_creation(self._repo, document.path)
        id = uuid.uuid5(uuid.NAMESPACE_URL, f"{made.commit} {made.path}") if made else uuid.uuid4()
        undated = document.has_file_time(stat)
        at = made.at if made and undated else document.created_at
        return {"id": str(id), **({"created_at": iso(at)} if undated or not _states_creation(text) else {})}

    def discard(self, path: str) -> None:
        """Drop the edit of the note at `path`: it is stamped, can't be, or is none any more."""
        if self._rows.pop(path, None):
            self._execute("DELETE FROM edits WHERE path = ?", path)

    def forget_missing(self, there: Collection[str]) -> None:
        """Drop the edits of notes that no longer exist, and the states of notes that left long ago."""
        for path in [path for path in self.paths if path not in there]:
            self.discard(path)
        self._execute("DELETE FROM departed WHERE at < ?", trusted_ms(self._ledger) - AWAY_MS)

    def note_departures(self, index: Index, paths: Iterable[str]) -> None:
        """Keep the states of captures that leave their workspace; call it before `index` forgets them."""
        records = [record for path in paths if path in index.manifest and (record := index.record_at(path))]
        rows = [
            (record.workspace, record.id, edit.was, edit.version, edit.created_at, edit.updated_at, now_ms())
            for record in records
            if record.scope == "captures" and record.writable and record.id != path_id(record.path)
            for edit in [self._rows.get(record.path) or _edit_of(record)]
        ]
        with suppress(Unavailable):
            self._ledger.execute_each("INSERT OR REPLACE INTO departed VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    # Details

    def _pending_edit(self, path: str, document: Document) -> Edit | None:
        """Return the edit of the note that is or was at `path`; None if there is none, or if the note shows it as an update."""
        edit = self._rows.get(path)
        return edit if edit is not None and document.version <= edit.version else None

    def _find_edit(self, document: Document, stat: Stat, index: Index) -> Edit | None:
        """Return the edit that this note shows compared with the index; None if there is none, or it is unknown."""
        before = index.record_at(document.path)
        if before is None and document.claimed_id is not None:
            before = index.record(document.claimed_id, document.workspace)
            if before is not None and self._vault.stat(before.path) is not None:
                return None  # a copy
            if before is not None and (edit := self._pending_edit(before.path, document)):
                self.discard(before.path)
                return replace(edit, path=document.path)
        if before is None:
            return self._find_return(document, stat)
        if not before.writable or before.digest == document.digest:
            return None
        was = visible_digest(before)
        unedited = document.writable and (was == visible_digest(document) or document.version > before.version)
        if unedited or self._is_own_write(document):
            return None
        return replace(_edit_of(before), path=document.path, node=_node_digests(before, index))

    def _find_return(self, document: Document, stat: Stat) -> Edit | None:
        """Return the state in which a note left its workspace, if it returns; Memex may have brought it back with an edit."""
        if (id := document.claimed_id) is None:
            return None
        where, at = "FROM departed WHERE workspace = ? AND id = ?", stat.mtime_ms
        with suppress(Unavailable):
            for was, version, created, updated in self._ledger.query(
                f"SELECT was, version, created_at, updated_at {where}", (document.workspace, id)
            ):
                self._execute(f"DELETE {where}", document.workspace, id)
                return Edit(document.path, id, was, version, created, updated, at)
        return None

    def _is_own_write(self, document: Document) -> bool:
        """Return whether these bytes are the last that Memex wrote there."""
        last = self._audit.last_entry(document.path)
        return last is not None and last.after == document.digest

    def _save(self, edit: Edit) -> None:
        if self._rows.get(edit.path) != edit:
            self._rows[edit.path] = edit
            self._execute("INSERT OR REPLACE INTO edits VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *astuple(edit))

    def _execute(self, statement: str, *values: Any) -> None:
        """Save across restarts. If that fails, the edit is kept in memory only, so that the pipeline goes on."""
        with suppress(Unavailable), self._ledger.transaction():
            self._ledger.execute(statement, values)


def _edit_of(record: Record) -> Edit:
    """Return an edit of a note that is indexed as `record`."""
    return Edit(record.path, record.id, visible_digest(record), record.version, record.created_at, record.updated_at, 0)


def _node_digests(record: Record, index: Index) -> str:
    facts = index.catalog.observations([record.path]).get(record.path, ())
    return " ".join(map(_short_digest, [record.summary or "", *(fact.content for fact in facts)]))


def _node_times(edit: Edit, document: Document, before: int, at: int) -> dict[str, PropertyValue]:
    """Return new times for the summary and for the facts: only for what the edit changed, and only if the editor has not set that time."""
    times: dict[str, PropertyValue] = {}
    if (node := document.node) is None or not edit.node:
        return times
    summary, *facts = edit.node.split()
    if _short_digest(document.summary or "") != summary and (node.summary_updated_at or 0) <= before:
        times["summary_updated_at"] = iso(at) if document.summary else None
    known = {*facts}
    is_new = any(_short_digest(fact.content) not in known for fact in node.observations)
    if is_new and (node.observed_at or 0) <= before:
        times["observed_at"] = iso(at)
    return times


def _short_digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _states_creation(text: str) -> bool:
    properties = readable_properties(text).items()
    return any(key.casefold() == "created_at" and value is not None for key, value in properties)


def visible_digest(note: Document | Record) -> str:
    """Return a digest of what agents can read and write of a note: text, title, tags, collection, summary and metadata.

    A person's own marks (`promote`, `promote_to`, `review`), relations and the file's name are not included, nor a summary
    that Memex derives from the text: another version of Memex may derive another one."""
    title = None if note.title == note_name(note.path) else note.title
    filed = [note.collection, has_several(note)]
    summary = None if note.summary_derived else note.summary
    fields = [note.content_hash, title, sorted(note.tags), filed, summary, dict(note.metadata)]
    return sha256(json.dumps(fields, sort_keys=True).encode())
