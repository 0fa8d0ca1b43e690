"""Finish a person's manual moves of notes into, out of or within the inbox: properties, stored file and links.

Laws, tested: a capture that a person dragged out of the inbox is promoted, and this can be undone; only links that
are broken now and led to a moved file before are repaired; copied notes, notes that are still being edited, and those of
an inbox that was moved or renamed are left alone; a move that can't be finished delays no other one. Two machines that see
the same move write equal bytes."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from index.document_ids import sha256
from index.errors import Conflict, MemexError
from index.model import Document, Stat
from index.names import base_name
from syncd.documents.file_note import digest_of
from syncd.git import head_moves
from syncd.git.repository import Repository
from syncd.history.audit_log import Author, acting_as
from syncd.history.change_journal import FileChange, MovePlan, move_steps, note_step
from syncd.notes.front_matter import FrontmatterError, decode, edit, encode, read_properties, readable_properties, split
from syncd.notes.inline_syntax import find_wikilinks
from syncd.notes.property_reader import as_text
from syncd.promotion.link_updates import LinkUpdates, plan_link_updates
from syncd.promotion.marked_captures import written_at
from syncd.promotion.moved_note_detection import MovedNote, MovedNotes
from syncd.promotion.plan import StoredFile, describe_links, find_stored_file, resolve_folder
from syncd.promotion.promoted_note import INBOX_ONLY, PROMOTED_AT, Problem, is_inside, promote_text
from syncd.promotion.promotions import Promotions
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.sync.hand_edits import TORN
from syncd.vault.location import locate
from syncd.vault.path_rules import objection

log = logging.getLogger(__name__)

AUTHOR: Final = Author("daemon", "drag")
AGAIN_S: Final = 60.0  # seconds until a move that could not be finished is tried again, unless its file changes


@dataclass(frozen=True, slots=True)
class ManualMove:
    """Holds a moved note: its current bytes, and the bytes it gets before its links are updated."""

    moved_note: MovedNote
    document: Document  # parsed as the note at its old path
    raw: bytes
    text: bytes
    out: bool  # it was a capture, and is now a note of the vault
    stored: StoredFile | None = None  # the stored file that Memex still has to move
    followed: Mapping[str, str] | None = None  # the stored file that the person moved too: old path → new path


@dataclass(frozen=True, slots=True)
class _Delay:
    """Holds why a move could not be finished, the state of its file then, and until when it is left alone."""

    reason: str
    stat: Stat | None
    until: float  # by the monotonic clock


class ManualMoves:
    """Runs the job that finishes manual moves."""

    def __init__(
        self, snapshot: VaultSnapshot, promotions: Promotions, moved_notes: MovedNotes, repo: Repository
    ) -> None:
        self._snapshot, self._promotions, self._moved_notes, self._repo = snapshot, promotions, moved_notes, repo
        self.is_inbox_moved = False  # whether a person moved or renamed the inbox, or a whole folder of it
        self._delays: dict[str, _Delay] = {}  # path of a moved note → why the last try could not finish its move

    def run(self) -> None:
        """Finish the moves of notes that nobody is editing."""
        if not self._snapshot.sync.ready.is_set():
            return
        with acting_as(AUTHOR):
            try:
                every = self._moved_notes.find_moved()
                moved_notes = [note for note in every if not self._has_moved_with_workspace(note)]
                self.is_inbox_moved = len(moved_notes) < len(every)
                delayed = {note.new for note in moved_notes if self._is_delayed(note)}
                moved_notes = [note for note in moved_notes if note.new not in delayed]
                if moved_notes and not self._is_git_busy() and all(self._is_quiet(note) for note in moved_notes):
                    delays = self._finish_notes(moved_notes)
                    self._delays = {path: self._delays[path] for path in delayed} | delays
            except MemexError as error:
                log.info("finishing manual moves later: %s", error.message)

    def _is_delayed(self, note: MovedNote) -> bool:
        """Return whether the move could not be finished a moment ago and the file is unchanged: each try reads the vault."""
        delay = self._delays.get(note.new)
        return (
            delay is not None and time.monotonic() < delay.until and self._snapshot.vault.stat(note.new) == delay.stat
        )

    def _finish_notes(self, moved_notes: Sequence[MovedNote]) -> dict[str, _Delay]:
        """Finish the moves of these notes, and return by path why some of them could not be finished."""
        try:
            # together, because they may link to each other
            self._finish_moves([move for note in moved_notes if (move := self._plan_move(note))])
        except MemexError as error:
            if len(moved_notes) == 1:
                return {moved_notes[0].new: self._delay(moved_notes[0], error)}
            return {path: delay for note in moved_notes for path, delay in self._finish_notes([note]).items()}
        return {}

    def _delay(self, note: MovedNote, error: MemexError) -> _Delay:
        before = self._delays.get(note.new)
        if before is None or before.reason != error.message:
            log.warning("finishing a manual move later: %s", error.message)
        wait = 0.0 if isinstance(error, Conflict) else AGAIN_S  # a file has just changed
        return _Delay(error.message, self._snapshot.vault.stat(note.new), time.monotonic() + wait)

    def _has_moved_with_workspace(self, note: MovedNote) -> bool:
        """Return whether the note left the inbox together with the folder of its workspace."""
        inside = note.old.removeprefix(f"{self._snapshot.inbox}/")
        out = inside != note.old and not is_inside(note.new, self._snapshot.inbox)
        workspace = f"{self._snapshot.inbox}/{inside.partition('/')[0]}"
        return out and f"/{note.new}".endswith(f"/{inside}") and not self._snapshot.vault.exists(workspace)

    # Planning

    def _is_git_busy(self) -> bool:
        busy = self._repo.busy_reason()
        return bool(busy) and not busy.endswith(".lock")

    def _is_quiet(self, note: MovedNote) -> bool:
        """Return whether nobody is editing the note: some time has passed, as Obsidian may still ask whether to update links."""
        is_recent = 0 <= time.time() - note.since / 1000 < self._snapshot.settings.sync.adopt_s
        return not is_recent and self._is_at_rest(note.new)

    def _is_at_rest(self, path: str) -> bool:
        stat = self._snapshot.vault.stat(path)
        return stat is not None and not 0 <= time.time() - stat.mtime_ns / 1e9 < self._snapshot.settings.sync.adopt_s

    def _plan_move(self, note: MovedNote) -> ManualMove | None:
        """Plan what to do with a moved note. None when there is nothing to do, or nothing can be done now."""
        snapshot = self._snapshot
        raw, stat = snapshot.vault.read(note.new)
        document = snapshot.parse(raw, note.old, stat)
        if document.claimed_id != note.id or any(defect.name in TORN for defect in document.defects):
            return None
        was, is_ = (locate(path, snapshot.inbox).scope == "captures" for path in (note.old, note.new))
        out = was and not is_inside(note.new, snapshot.inbox)
        try:
            text = self._edit_properties(decode(raw), note, document, out=out, back=is_ and not was)
        except FrontmatterError as error:
            log.info("left the properties of a moved note unchanged: %s", error)
            text, out = raw, False
        try:
            stored, followed = self._find_stored_file(document, note, raw, out=out)
        except Problem as problem:
            log.warning("left the file of a moved note in the inbox: %s", problem.message)
            stored, followed = None, None
        return ManualMove(note, document, raw, text, out, stored, followed)

    def _edit_properties(self, text: str, note: MovedNote, document: Document, *, out: bool, back: bool) -> bytes:
        keys = {key.casefold() for key in read_properties(split(text)[0])}
        if out and (PROMOTED_AT not in keys or keys & INBOX_ONLY):
            return encode(promote_text(text, written_at(self._snapshot, self._repo, note.new, document)))
        if back and PROMOTED_AT in keys:
            return encode(edit(text, {PROMOTED_AT: None}))
        return encode(text)

    def _find_stored_file(
        self, document: Document, note: MovedNote, raw: bytes, *, out: bool
    ) -> tuple[StoredFile | None, dict[str, str] | None]:
        """Return the stored file of a note: the file to move out if it stayed behind, or the path to which the person moved it.

        Raises Problem if the file can't be moved."""
        snapshot = self._snapshot
        if not out or document.file is None or snapshot.vault.stat(document.file) is None:
            return None, self._find_followed(document, note, raw)
        folder = resolve_folder(snapshot, snapshot.settings.promote.attachments or note.new.rpartition("/")[0], {})
        stored = find_stored_file(snapshot, document, folder, {})
        if stored and (wrong := objection(stored.new, new=True)):
            raise Problem(f"the path {stored.new!r} {wrong}")
        return stored, None

    def _find_followed(self, document: Document, note: MovedNote, raw: bytes) -> dict[str, str] | None:
        """Return the old and the new path of a stored file that was moved with its note; None if it was not, or it is unclear."""
        vault, digest = self._snapshot.vault, digest_of(raw)
        # `file` may name it in an inbox that was renamed, where the parser accepts no stored file.
        named = as_text(readable_properties(decode(raw)).get("file")) or ""
        old = document.file or next((link.target for link in find_wikilinks(named)), "")
        if not old or digest is None or objection(old) or vault.stat(old) is not None:
            return None
        along = _move_with_note(old, note)
        if along and vault.stat(along) is not None and vault.digest_file(along).digest == digest:
            return {old: along}
        name = base_name(old)
        candidates = [path for path in vault.walk_other_files() if base_name(path) == name]
        same = [path for path in candidates if vault.digest_file(path).digest == digest]
        return {old: same[0]} if len(same) == 1 else None

    # Execution

    def _finish_moves(self, moves: Sequence[ManualMove]) -> None:
        done = {move.moved_note.old: move.moved_note.new for move in moves}
        for move in moves:
            done |= move.followed or {}
        along = {move.stored.old: move.stored.new for move in moves if move.stored}
        texts = {move.moved_note.old: move.text for move in moves}
        updates = plan_link_updates(
            self._snapshot.vault, done, texts=texts, inbox=self._snapshot.inbox, moved=True, along=along
        )
        moved_paths = {move.moved_note.new for move in moves}
        others = {path: pair for path, pair in updates.changes.items() if path not in moved_paths}
        if not all(self._is_at_rest(path) for path in others):
            return  # somebody is editing a note whose links need repair
        for move in sorted(moves, key=lambda move: not move.out):
            text = updates.changes.get(move.moved_note.new, (b"", move.text))[1]
            if move.out and (text != move.raw or move.stored or others):
                self._promotions.finish_move(_make_move_plan(move, text, others, updates), by=self._git_author_of(move))
            else:
                for path, (before, after) in {**others, move.moved_note.new: (move.raw, text)}.items():
                    self._write_file(path, before, after)
            others = {}
            self._moved_notes.forget([move.moved_note.id])

    def _git_author_of(self, move: ManualMove) -> str | None:
        """Return who moved the note, if Git brought the move; None = the owner of this vault."""
        path, at = move.moved_note.new, self._snapshot.vault.stat(move.moved_note.new)
        if at is None or not head_moves.is_from_git(self._repo, path, move.raw, at.mtime_ns // 1_000_000_000):
            return None
        author = self._repo.query(
            "log", "--max-count=1", "--format=%an <%ae>", "HEAD", "--stdin", stdin=f"--\n{path}\n"
        )
        return (author or "").strip() or None

    def _write_file(self, path: str, before: bytes, after: bytes) -> None:
        if before != after:
            self._snapshot.vault.replace(path, after, digest=sha256(before))
            self._snapshot.sync.hint([path])


def _move_with_note(path: str, note: MovedNote) -> str | None:
    """Return the new path of a file if a folder was moved or renamed that contains it and the note."""
    old, new = note.old.split("/"), note.new.split("/")
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    root = "/".join([*old, ""])
    return "/".join([*new, path.removeprefix(root)]) if path.startswith(root) else None


def _make_move_plan(
    move: ManualMove, text: bytes, others: Mapping[str, tuple[bytes, bytes]], updates: LinkUpdates
) -> MovePlan:
    """Plan the rest of a promotion whose note is already at its destination."""
    note, document = move.moved_note, move.document
    # The journal keeps the capture's bytes: its file is gone, and a rollback does not bring it back.
    steps = [note_step(note.new, move.raw, text), FileChange(note.old, "", "", before=move.raw)]
    steps[1:1] = [note_step(path, *pair) for path, pair in sorted(others.items())]
    if move.stored:
        copied, gone = move_steps(move.stored.old, move.stored.new, move.stored.digest)
        steps = [copied, *steps, gone]
    about: dict[str, Any] = {
        "title": document.title,
        "origin": document.source or "",
        "tool": "drag",
        "chosen": "you",
        **describe_links(updates, sorted(others)),
    }
    return MovePlan("promote", note.id, note.old, note.new, steps, about)
