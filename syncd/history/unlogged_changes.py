"""Find and log unlogged changes: nodes that a person edited, and logged writes that a crash prevented.

Law, tested: the search never stops the sync pipeline, and logs nothing about a write that is still under way."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from index.document_ids import sha256
from index.errors import MemexError, NotFound
from index.scope.index import Index
from index.timings import now_ms
from syncd.history.audit_log import ADOPTION, LATELY, AuditLog, Author, Change, acting_as
from syncd.history.audited_vault import describe_change
from syncd.history.digest_chain import Entry
from syncd.indexes.index_builds import ScopeIndex
from syncd.vault.vault import Vault

UNDER_WAY_MS: Final = 60_000  # how long to wait for a note to which a pass is writing an id

log = logging.getLogger(__name__)


class UnloggedChanges:
    """Collects the paths that the captures' index commits, and logs unlogged changes of them later."""

    def __init__(self, audit: AuditLog, vault: Vault, captures: ScopeIndex, *, inbox: str) -> None:
        self._audit, self._vault, self._captures, self._inbox = audit, vault, captures, inbox
        self._lock = threading.Lock()
        self._paths: set[str] = set()
        captures.listeners.append(self._on_commit)

    def _on_commit(self, paths: Collection[str] | None) -> None:
        with self._lock:  # None: a new index replaced the old one, with the same notes
            self._paths |= set(self._captures.index.manifest if paths is None else paths)

    def log_hand_edits(self) -> None:
        """Log the nodes that were changed manually since the last call. Raises nothing: failures are tried again."""
        with self._lock:
            paths, self._paths = self._paths, set()
        if not paths:
            return
        try:
            index = self._captures.index
            if unlogged := {path for path in paths if self._is_unlogged(index, path)}:
                with index.lock:  # then no tool is between its log entry and its commit
                    self._log(index, unlogged)
        except MemexError as error:
            log.info("logging manual changes later: %s", error.message)
            with self._lock:
                self._paths |= paths

    def _is_unlogged(self, index: Index, path: str) -> bool:
        """Return whether the last entry about a node differs from its state in the index."""
        entry, last = index.manifest.get(path), self._audit.last_entry(path)
        if (entry.digest if entry else "") == (last.after if last else ""):
            return False
        if last and last.type == "entity":
            return True
        if entry is None:
            return False
        record = index.record_at(path)
        return record is None or record.type == "entity"

    def _log(self, index: Index, paths: Iterable[str]) -> None:
        changes: dict[str, Change] = {}
        for path in sorted(paths):
            last, entry = self._audit.last_entry(path), index.manifest.get(path)
            change = self._describe_change(path, last, entry.id if entry else "")
            known = entry.digest if entry else ""
            if change.after != known or change.before == change.after:
                continue  # the file has changed again, and will be reported again
            if last and _is_under_way(last, change):
                with self._lock:
                    self._paths.add(path)
                continue
            changes[path] = change
        self._audit.log_hand_edits(list(_add_kinds(changes)))

    def _describe_change(self, path: str, last: Entry | None, indexed_id: str) -> Change:
        """Describe the change of a file since its last entry, from its current bytes; `indexed_id`: its id, if it has one."""
        raw: bytes | None = None
        with suppress(NotFound):
            raw, _ = self._vault.read(path)
        change = describe_change(path, None, raw, self._inbox)
        known = indexed_id or (last.id if last else change.id)
        return Change(path, last.after if last else "", change.after, change.bytes, known, "entity", change.workspace)

    # After a crash

    def log_unfinished(self) -> None:
        """Log the last entries whose writes did not happen as undone: the process ended in between."""
        done = self._audit.done_entries()
        for entry in self._audit.find(LATELY):
            if entry.kind in ("create", "update", "delete") and entry.surface != "file" and entry.seq not in done:
                try:
                    self._log_unfinished(entry)
                except MemexError as error:
                    log.info("could not find out whether a write happened: %s", error.message)

    def _log_unfinished(self, entry: Entry) -> None:
        known = self._captures.index.manifest.get(entry.path)
        if (known.digest if known else "") == entry.after or self._audit.last_entry(entry.path) != entry:
            return  # it happened and was acknowledged, or another write followed
        digest = ""
        with suppress(NotFound):
            raw, _ = self._vault.read(entry.path)
            digest = sha256(raw)
        if digest == entry.before:
            about = {name: getattr(entry, name) for name in Change.__slots__}
            with acting_as(Author("daemon", "start", request=entry.request)):
                self._audit.log_undone({entry.seq: Change(**about)}, "INTERRUPTED")


def _is_under_way(last: Entry, change: Change) -> bool:
    """Return whether the last entry may be for a write that is about to happen: a pass holds back no commits."""
    lately = 0 <= now_ms() - last.at < UNDER_WAY_MS
    return lately and (last.surface, last.tool) == (ADOPTION.surface, ADOPTION.tool) and last.before == change.after


def _add_kinds(changes: dict[str, Change]) -> Iterable[tuple[str, Change]]:
    """Yield the changes with their kinds: a node that left one path and appeared at another was moved."""
    came = {change.id for change in changes.values() if not change.before}
    left = {change.id for change in changes.values() if not change.after}
    for change in changes.values():
        moved = change.id in came & left
        yield ("moved" if not change.after else "update") if moved else "", change
