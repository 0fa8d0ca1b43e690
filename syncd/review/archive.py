"""Move dismissed, expired and unused captures into the archive, and restore them.

The archive is the folder `Archive/` beside the workspaces; agents can't read it. A capture moves there with its
stored file, and Memex updates every link to it from notes of the vault. Laws, tested: nothing is lost, because each
move goes through the change journal and is one commit; a note that is being edited is archived later; the only
property with which an agent can archive a note is `expires`."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from index.document_ids import sha256
from index.errors import Conflict, MemexError, NotFound
from index.model import Document, Record
from index.names import fold
from index.timings import now_ms
from syncd.commits.own_changes import trace_steps
from syncd.documents.owner_marks import OwnerMarks, read_marks
from syncd.git.repository import Repository
from syncd.history.audit_log import AuditLog
from syncd.history.change_journal import ChangeJournal, FileChange, MovePlan, move_steps, note_step
from syncd.indexes import note_lookup
from syncd.notes.front_matter import FrontmatterError, decode, edit, encode, read_properties, split
from syncd.notes.inline_syntax import find_wikilinks
from syncd.notes.property_reader import as_text
from syncd.promotion.link_updates import plan_link_updates
from syncd.promotion.plan import describe_links, free_id, is_in_use, refuse_unseen_change
from syncd.promotion.promoted_note import HINDERING, Problem, candidate_names
from syncd.promotion.promotions import Promotions
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.promotion.waiting_captures import WaitingCaptures
from syncd.review.archive_rules import UNUSED, archive_path, archive_reason, archive_text, inbox_path, restore_text
from syncd.review.bases_table import DISMISSED
from syncd.vault.location import ARCHIVE
from syncd.vault.path_rules import join

log = logging.getLogger(__name__)

WAYS: Final = ("dismiss", "expire", "unarchive")  # in the journal
EVERY_S: Final = 600  # seconds between two checks for expired captures when nothing has changed
RUN_S: Final = 5.0  # most seconds of a run; the next run continues


class Archive:
    """Archives captures and restores them. Safe to use from any thread."""

    def __init__(
        self,
        snapshot: VaultSnapshot,
        promotions: Promotions,
        waiting: WaitingCaptures,
        audit: AuditLog,
        repo: Repository,
        *,
        united: ChangeJournal,
    ) -> None:
        """Create it. `united`: the journal of the consolidation, which says how it merged duplicates."""
        self._united = united
        self._snapshot, self._promotions, self._waiting = snapshot, promotions, waiting
        self._audit, self._repo = audit, repo
        self._moment: object = None  # state of the inbox when nothing was left to do

    # Requests of the owner

    def dismiss(self, reference: str, *, shown: str | None = None) -> dict[str, Any]:
        """Archive the capture with this id or path, and return the result. Raises the reason if it can't be archived.

        `shown`: the SHA-256 of the capture that the owner saw; another one raises Conflict."""
        return self._set_aside(self._snapshot.find_capture(reference), DISMISSED, shown)

    def bring_back(self, reference: str) -> dict[str, Any]:
        """Move an archived capture back, and return the result. Raises the reason if it can't be moved back."""
        return self._promotions.carry_out_move(lambda: self._plan_return(reference))

    def latest(self, limit: int) -> list[dict[str, Any]]:
        """List the archived captures, the one that was archived last first; those that Memex did not archive are the last."""
        index, folder = self._snapshot.notes.index, f"{self._snapshot.inbox}/{ARCHIVE}/"
        archived = self._united.newest_changes_below(folder)
        paths = sorted(path for path in list(index.manifest) if path.startswith(folder))
        paths.sort(key=lambda path: archived.get(path, 0), reverse=True)
        records = [record for path in paths[:limit] if (record := index.record_at(path))]
        return [
            {"id": record.id, "path": record.path, "title": record.title, "created_at": record.created_at}
            for record in records
        ]

    # The job

    def run(self, stopping: threading.Event | None = None) -> int:
        """Archive due captures that are not being edited, and return their number."""
        if not self._snapshot.sync.ready.is_set() or self._repo.busy_reason():
            return 0
        done, begun, now = 0, time.monotonic(), now_ms()
        moment = self._waiting.version, now // (EVERY_S * 1000)
        if moment == self._moment:
            return 0
        due = [
            (record, why)
            for record, marks in self._waiting.find_captures(self._may_be_due)
            if (why := self._due_reason(record, marks, now))
        ]
        left = False
        for record, why in due:
            if (stopping and stopping.is_set()) or time.monotonic() - begun > RUN_S:
                left = True
                break
            try:
                if is_in_use(self._snapshot, self._repo, record.path):
                    left = True
                    continue
                self._set_aside(record, why, record.digest)  # its owner may have changed it since
            except Problem as error:  # not tried again until the capture changes
                log.info("a capture can't be archived: %s", error)
            except MemexError as error:
                log.info("a capture is not archived yet: %s", error)
                left = True
            else:
                done += 1
        self._moment = None if left or done else moment
        return done

    def _may_be_due(self, marks: OwnerMarks) -> bool:
        days = self._snapshot.settings.review.expire_days
        return marks.review == DISMISSED or marks.expires is not None or days > 0

    def _due_reason(self, record: Record, marks: OwnerMarks, now: int) -> str:
        if record.type == "entity" or marks.twice:
            return ""
        days, changed = self._snapshot.settings.review.expire_days, record.updated_at or record.created_at
        why = archive_reason(marks, now=now, untouched_since=changed, expire_days=days)
        return "" if why == UNUSED and self._has_other_writers(record) else why

    def _has_other_writers(self, record: Record) -> bool:
        """Return whether not only Memex has created and changed the file, as far as the audit log knows."""
        return trace_steps(self._audit.entries_backwards(record.path), record.digest, ("",)) is None

    # Moves

    def _set_aside(self, record: Record, why: str, shown: str | None = None) -> dict[str, Any]:
        by = None if why == DISMISSED else ""
        return self._promotions.carry_out_move(
            lambda: self._plan_archiving(self._snapshot.find_capture(record.path), why, shown), by=by
        )

    def _plan_archiving(self, record: Record, why: str, shown: str | None) -> MovePlan:
        """Plan the move of a capture into the archive. Raises Problem, or Conflict when it has just changed."""
        snapshot = self._snapshot
        raw, stat = snapshot.vault.read(record.path)
        refuse_unseen_change(self._promotions.journal, record.path, raw, shown)
        document = snapshot.parse(raw, record.path, stat)
        if sha256(raw) != record.digest or document.claimed_id is None:
            raise Conflict("the capture was changed a moment ago; try again in a moment", retryable=True)
        if document.type == "entity":
            raise Problem("it is an entity of the graph, which is not reviewed; to delete it: memex node remove")
        if not document.writable:
            raise Problem("its properties can't be read: fix them")
        if any(defect.name == "conflict-copy" for defect in document.defects):
            raise Problem(HINDERING["conflict-copy"])
        owner_marks = read_marks(decode(raw))
        if why != DISMISSED and not self._due_reason(record, owner_marks, now_ms()):
            raise Conflict("its owner has just marked the capture")
        try:
            text = encode(archive_text(decode(raw), why))
        except FrontmatterError as error:
            raise Problem(f"its properties can't be changed line by line: {error}") from error
        target = self._free_path(archive_path(record.path, snapshot.inbox))
        files = self._stored_file_archiving(document)
        return self._make_move_plan(document, raw, text, {record.path: target} | files, why)

    def _stored_file_archiving(self, document: Document) -> dict[str, str]:
        """Return the move of the capture's stored file, as old path → new path; empty if another note uses the file."""
        old = document.file
        if old is None or self._snapshot.vault.stat(old) is None:
            return {}
        if {record.path for record in self._snapshot.captures.index.catalog.records_of_file(old)} - {document.path}:
            return {}
        return {old: self._free_path(archive_path(old, self._snapshot.inbox))}

    def _plan_return(self, reference: str) -> MovePlan:
        """Plan the move of a capture out of the archive. Raises NotFound, Problem or Conflict."""
        snapshot, index = self._snapshot, self._snapshot.notes.index
        folder = f"{snapshot.inbox}/{ARCHIVE}/"
        record = note_lookup.find_note([index], reference, lambda note: note.path.startswith(folder))
        if record is None:
            raise NotFound(f"{reference[:200]!r} is not an archived capture; to list them: memex unarchive --list")
        raw, stat = snapshot.vault.read(record.path)
        document = snapshot.parse(raw, record.path, stat)
        if document.claimed_id is None:
            raise Problem("it has no `id`: move it back into its workspace manually")
        try:
            original = self._undo_supersession(decode(raw), document.claimed_id)
            text = encode(restore_text(original, now_ms()))
        except FrontmatterError as error:
            raise Problem(f"its properties can't be changed line by line: {error}") from error
        target = inbox_path(record.path, snapshot.inbox)
        workspace = target.removeprefix(f"{snapshot.inbox}/").partition("/")[0]
        if workspace not in snapshot.vault.list_folders(snapshot.inbox):
            raise Conflict(
                f"the workspace {workspace!r} no longer exists; to create it: memex workspace create {workspace}"
            )
        files = self._stored_file_return(raw, record.path)
        return self._make_move_plan(document, raw, text, {record.path: self._free_path(target)} | files, "")

    def _undo_supersession(self, text: str, id: str) -> str:
        """Remove `superseded_by` from `text` if consolidation wrote it there and nobody has changed it since."""
        entry = next(
            (candidate for candidate in reversed(self._united.entries_about(id)) if candidate.state == "done"), None
        )
        if entry is None or json.loads(entry.about)["ids"][-1] != id:
            return text
        successor = read_marks(text).superseded_by
        if successor is None:
            return text
        made = {step.path for step in self._united.steps(entry.seq) if not step.was}
        steps = self._united.complete_steps(entry.seq, self._promotions.changes.read_version, paths=made)
        after = [step.after for step in steps if step.path in made]
        if successor not in [read_marks(decode(raw)).superseded_by for raw in after if raw]:
            return text
        return edit(text, {key: None for key in read_properties(split(text)[0]) if key.casefold() == "superseded_by"})

    def _stored_file_return(self, raw: bytes, path: str) -> dict[str, str]:
        """Return the move of an archived note's stored file back, as old path → new path; empty if it has none."""
        snapshot = self._snapshot
        values = {key.casefold(): value for key, value in read_properties(split(decode(raw))[0]).items()}
        link = next((wikilink.target for wikilink in find_wikilinks(as_text(values.get("file")) or "")), "")
        old = link if "/" in link else join(path.rpartition("/")[0], link)
        if not link or not old.startswith(f"{snapshot.inbox}/{ARCHIVE}/") or snapshot.vault.stat(old) is None:
            return {}
        return {old: self._free_path(inbox_path(old, snapshot.inbox))}

    def _free_path(self, path: str) -> str:
        """Return `path` if it is free, otherwise a free path with a similar name in its folder."""
        folder, _, name = path.rpartition("/")
        there = {fold(existing) for existing in self._snapshot.names_in(folder)}
        stem, dot, ending = name.rpartition(".")
        return next(
            join(folder, f"{candidate}{dot}{ending}")
            for candidate in candidate_names(stem, stem)
            if fold(f"{candidate}{dot}{ending}") not in there
        )

    def _make_move_plan(
        self, document: Document, raw: bytes, text: bytes, moves: Mapping[str, str], why: str
    ) -> MovePlan:
        """Plan the move of a note, which gets the content `text`, with its stored file.

        `moves`: old path → new path of both. `why`: the reason for archiving; "" = the note is restored."""
        snapshot, path = self._snapshot, document.path
        kind = "dismiss" if why == DISMISSED else "expire" if why else "unarchive"
        target = moves[path]
        updates = plan_link_updates(snapshot.vault, moves, texts={path: text}, inbox=snapshot.inbox)
        made = updates.changes[path][1] if path in updates.changes else text
        changed = {other: pair for other, pair in updates.changes.items() if other != path}
        if not why:
            changed = free_id(snapshot, made, target, changed)
        steps: list[FileChange] = [note_step(target, None, made)]
        steps += [note_step(other, *pair) for other, pair in sorted(changed.items())]
        steps.append(note_step(path, raw, None))
        for old, new in moves.items():
            if old == path:
                continue
            copied, gone = move_steps(old, new, snapshot.vault.digest_file(old).digest)
            steps = [copied, *steps, gone]
        about = {"title": document.title, "origin": document.source or "", "tool": kind}
        assert document.claimed_id is not None, "only a note with an id is archived"
        return MovePlan(
            kind, document.claimed_id, path, target, steps, about | describe_links(updates, sorted(changed))
        )
