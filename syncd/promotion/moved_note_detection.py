"""Detect the notes that a person moved into, out of or within the inbox, by the ids in the index.

Laws, tested: notes that Memex moved or removed, copies, and notes whose id an agent uses are not reported; a move
made while Memex did not run, or on another machine, is found too. A detected move is remembered until it is handled."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from index.document_ids import path_id
from index.errors import MemexError, Unavailable
from index.scope.index import Index
from index.timings import now_ms
from syncd.history.audit_log import AuditLog
from syncd.history.change_journal import document_ids
from syncd.history.write_lineage import AGENTS
from syncd.notes.front_matter import FrontmatterError, decode, read_properties, split
from syncd.notes.property_reader import as_time
from syncd.notes.timestamps import DAY_MS
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.promotion.waiting_captures import ChangedPaths
from syncd.state import named_values
from syncd.state.ledger import Ledger
from syncd.state.trusted_time import trusted_ms
from syncd.vault.location import locate

KEPT_MS: Final = 30 * DAY_MS  # how long a missing note may still turn up elsewhere
MADE_MS: Final = 3600 * 1000  # longest wait between queueing a note and its entry in the audit log
MANY: Final = 500  # above this number of changed notes, comparing all notes costs less
_NAME: Final = "stray:"  # prefix of the named values in the ledger; the id follows


@dataclass(frozen=True, slots=True)
class MovedNote:
    """Describes a note that is no longer at its old path."""

    id: str
    old: str
    new: str
    since: int  # epoch ms: when it was noticed


class MovedNotes:
    """Keeps the list of moved notes. Call `find_moved` from one thread at a time."""

    def __init__(self, snapshot: VaultSnapshot, ledger: Ledger, audit: AuditLog) -> None:
        self._snapshot, self._ledger, self._audit = snapshot, ledger, audit
        self._first = True
        # id → old path of its note, when the move was noticed, and notes to which agents had given the id by then
        self._left: dict[str, tuple[str, int, list[str]]] = {
            id: (*json.loads(value), [])[:3] for id, value in named_values.read_prefixed(ledger, _NAME).items()
        }
        self._changed_paths = (ChangedPaths(), ChangedPaths())
        for scope_index, changed_paths in zip((snapshot.captures, snapshot.notes), self._changed_paths, strict=True):
            scope_index.listeners.append(changed_paths.add_changes)
        # path → the id of the note that was there at the last check, in order of arrival. The indexes report every later change.
        self._where = self._current_ids()

    def find_moved(self) -> list[MovedNote]:
        """Return the moved notes that are not handled yet."""
        self._compare_changes()
        if self._first and self._snapshot.sync.ready.is_set():
            self._recall_captures()
            self._first = False
        moved_notes, gone, now = [], [], trusted_ms(self._ledger)
        for id, (old, since, others) in self._left.items():
            new = self._find_note(id, others)
            if new == old or self._exists(old) or (new is None and now - since > KEPT_MS):
                gone.append(id)
            elif new is not None:
                moved_notes.append(MovedNote(id, old, new, since))
        self.forget(gone)
        return moved_notes

    def forget(self, ids: Collection[str]) -> None:
        """Forget these moved notes: nothing is left to do for them."""
        for id in ids:
            self._left.pop(id, None)
        if ids:
            named_values.delete(self._ledger, [_NAME + id for id in ids])

    # Details

    def _current_ids(self, paths: Collection[str] | None = None) -> dict[str, str]:
        """Return the ids that notes state, by path: of all notes, or of those at `paths`.

        Nothing says whether a note or a capture with the same id was there first; the note counts as first, because
        agents can give a capture any id."""
        return {
            path: id
            for scope_index in (self._snapshot.notes, self._snapshot.captures)
            for path, id in _stated_ids(scope_index.index, paths)
        }

    def _compare_changes(self) -> None:
        """Compare the paths that changed since the last call. After a failure the next call compares them again."""
        changes = [changed_paths.take_changes() for changed_paths in self._changed_paths]
        changed = set().union(*(paths or () for paths in changes))
        if not changed and None not in changes:
            return
        try:
            self._compare_paths(None if None in changes or len(changed) > MANY else changed)
        except BaseException:
            for changed_paths, paths in zip(self._changed_paths, changes, strict=True):
                changed_paths.add_changes(paths)
            raise

    def _compare_paths(self, changed: set[str] | None) -> None:
        """Find the notes that are no longer where they were at the last check."""
        was, gone = self._where, []
        scopes = (self._snapshot.notes, self._snapshot.captures)
        there = self._current_ids(changed)
        left = (set(was) if changed is None else changed & was.keys()) - there.keys()
        if not left:
            was |= there  # no copy: every capture has an entry
            return
        now = {path: id for path, id in was.items() if path not in left} | there
        came = {path: number for number, path in enumerate(was)}
        for path in left:
            id = was[path]
            claims = [other for scope_index in scopes for other in scope_index.index.paths_claiming_id(id)]
            others = [
                other
                for other in claims
                if other in came and (came[other] < came[path] or self._was_made_by_agent(id, other))
            ]
            moved = (path, *(other for other in claims if other not in others))
            if id in self._left or all(locate(at, self._snapshot.inbox).scope != "captures" for at in moved):
                continue
            try:
                if self._exists(path):
                    continue  # it exists, but can't be read now
            except Unavailable:
                now[path] = id  # unknown: check again
                self._changed_paths[0].add_changes([path])
                continue
            if not self._was_moved_by_memex(path):
                gone.append((id, path, others))
        self._remember_missing(gone)
        self._where = now

    def _exists(self, path: str) -> bool:
        return self._snapshot.vault.stat(path) is not None

    def _was_moved_by_memex(self, path: str) -> bool:
        """Return whether Memex itself removed the file."""
        last = self._audit.last_entry(path)
        return last is not None and not last.after and last.surface != "file"

    def _find_note(self, id: str, others: Collection[str]) -> str | None:
        """Return the path of the note with this id, except `others`; None when there is none, or it is unclear which one it is."""
        for scope_index in (self._snapshot.captures, self._snapshot.notes):
            paths = [
                path for path in scope_index.index.paths_claiming_id(id) if path not in others and self._exists(path)
            ]
            if len(paths) > 1 or self._is_in_vault(id, paths):
                paths = [path for path in paths if not self._was_made_by_agent(id, path)]
            if paths:
                return paths[0] if len(paths) == 1 else None
        return None

    def _is_in_vault(self, id: str, paths: Collection[str]) -> bool:
        """Return whether a note of the vault has the id of these captures."""
        return any(self._exists(path) for path in self._snapshot.notes.index.paths_claiming_id(id) if path not in paths)

    def _was_made_by_agent(self, id: str, path: str) -> bool:
        """Return whether an agent created the note at `path` with this id, so that nobody moved it there."""
        entries = self._audit.entries_about(path=path)
        return any(entry.kind == "create" and entry.surface in AGENTS and entry.id == id for entry in entries)

    def _recall_captures(self) -> None:
        """Find notes of the vault that the audit log lists as captures: the index may have been rebuilt since they moved."""
        notes = {id: path for path, id in _stated_ids(self._snapshot.notes.index)}
        if not notes:
            return
        moved = document_ids(self._ledger)
        self._remember_missing(
            (id, path, [])
            for id, path, after, surface in self._audit.latest_notes()
            if id in notes
            and id not in moved
            and id not in self._left
            and (after or surface == "file")
            and not self._exists(path)
            if self._may_be_same(id, notes[id])
        )

    def _may_be_same(self, id: str, note: str) -> bool:
        """Return whether a note may be the capture that an agent created with this id: their creation times agree."""
        made = [
            entry.at for entry in self._audit.entries_about(id=id) if entry.kind == "create" and entry.surface in AGENTS
        ]
        with suppress(MemexError, FrontmatterError):
            values = read_properties(split(decode(self._snapshot.vault.read(note)[0]))[0])
            at = as_time(next((value for key, value in values.items() if key.casefold() == "created_at"), None))
            return not made or (at is not None and any(0 <= moment - at <= MADE_MS for moment in made))
        return not made

    def _remember_missing(self, gone: Iterable[tuple[str, str, list[str]]]) -> None:
        now = now_ms()
        kept = {id: (path, now, others) for id, path, others in gone}
        if kept:
            named_values.write(self._ledger, {_NAME + id: json.dumps(value) for id, value in kept.items()})
            self._left |= kept


def _stated_ids(index: Index, paths: Collection[str] | None = None) -> Iterator[tuple[str, str]]:
    """Return the path and id of the notes that state their id: all of them, or those at `paths`."""
    if paths is None:
        entries = list(index.manifest.copy().values())
    else:
        entries = [entry for path in paths if (entry := index.manifest.get(path))]
    # The paths of the entries, so that a caller who keeps them keeps no copies.
    return ((entry.path, entry.id) for entry in entries if entry.id != path_id(entry.path))
