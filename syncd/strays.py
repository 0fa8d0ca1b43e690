"""Which notes with an id somebody has moved by hand, into the inbox, out of it or within: told by the ids in the index.

Law, tested: what Memex moved or removed itself is none of these, nor is a copy; what was moved while nobody looked, or
on another machine, is found too. What is known of one is kept until it is dealt with."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from index.errors import Unavailable
from index.identity import path_id
from index.index import Index
from syncd.audit import Audit
from syncd.ledger import Ledger
from syncd.place import place
from syncd.promotable import Ground

KEPT_MS: Final = 30 * 24 * 3600 * 1000  # so long a note that has gone may turn up elsewhere
_NAME: Final = "stray:"  # in the ledger, before the id


@dataclass(frozen=True, slots=True)
class Stray:
    """A note that is not where it was."""

    id: str
    old: str
    new: str
    since: int  # epoch ms: when it was noticed


def _ringing(bell: threading.Event) -> Callable[[Collection[str] | None], None]:
    """What a slot tells of changes: the event, and nothing that leads to the vault proper, as agents hold a slot too."""

    def told(_: Collection[str] | None) -> None:
        bell.set()

    return told


class Strays:
    """The notes that were moved. `look` from one thread at a time."""

    def __init__(self, ground: Ground, ledger: Ledger, audit: Audit) -> None:
        self._ground, self._ledger, self._audit = ground, ledger, audit
        self._changed = threading.Event()
        self._first = True
        self._where = self._now()
        rows = ledger.rows("SELECT name, value FROM tended WHERE name LIKE ?", (f"{_NAME}%",))
        self._left: dict[str, tuple[str, int]] = {name[len(_NAME) :]: tuple(json.loads(value)) for name, value in rows}
        for slot in (ground.captures, ground.notes):
            slot.told.append(_ringing(self._changed))

    def look(self) -> list[Stray]:
        """Those that are elsewhere now, and not dealt with yet."""
        if self._first and self._ground.sync.ready.is_set():
            self._first = False
            self._recall()
        if self._changed.is_set():
            self._changed.clear()
            self._compare()
        if not self._left:
            return []
        now, strays, gone = time.time_ns() // 1_000_000, [], []
        for id, (old, since) in self._left.items():
            new = self._found(id)
            if new == old or (new is None and now - since > KEPT_MS) or self._there(old):
                gone.append(id)
            elif new is not None:
                strays.append(Stray(id, old, new, since))
        self.settled(gone)
        return strays

    def settled(self, ids: Collection[str]) -> None:
        """Nothing is to be done for these any more."""
        for id in ids:
            self._left.pop(id, None)
        if ids:
            with self._ledger.writing():
                for id in ids:
                    self._ledger.run("DELETE FROM tended WHERE name = ?", (_NAME + id,))

    # How

    def _now(self) -> dict[str, str]:
        """Where each note is that says its id; of a note of the vault proper and a capture the capture counts."""
        return {**_claimed(self._ground.notes.index), **_claimed(self._ground.captures.index)}

    def _compare(self) -> None:
        """Notice what is no longer where it was at the last look."""
        now = self._now()
        gone = []
        for id, path in self._where.items():
            if now.get(id) == path or id in self._left or not self._inbox(path, now.get(id)):
                continue
            try:
                if self._there(path):
                    continue  # a copy elsewhere, or it has another id by now
            except Unavailable:
                now[id] = path  # nobody knows: it is looked at again
                self._changed.set()
                continue
            if not self._ours(path):
                gone.append((id, path))
        self._where = now
        self._keep(gone)

    def _inbox(self, *paths: str | None) -> bool:
        return any(path is not None and self._capture(path) for path in paths)

    def _capture(self, path: str) -> bool:
        return place(path, self._ground.inbox).scope == "captures"

    def _there(self, path: str) -> bool:
        return self._ground.vault.stat(path) is not None

    def _ours(self, path: str) -> bool:
        """Whether it was Memex that took the file away."""
        last = self._audit.last(path)
        return last is not None and not last.after and last.surface != "file"

    def _found(self, id: str) -> str | None:
        """Where the note of this id is; None when it is nowhere, or nobody can tell which one it is."""
        for slot in (self._ground.captures, self._ground.notes):
            paths = [path for path in slot.index.claiming(id) if self._there(path)]
            if paths:
                return paths[0] if len(paths) == 1 else None
        return None

    def _recall(self) -> None:
        """Notes of the vault proper that the audit log knows as captures: the index may have been made anew meanwhile."""
        rows = self._ledger.rows(
            "SELECT id, path, after, surface, max(seq) FROM audit WHERE workspace != '' AND type != 'file'"
            " AND id NOT IN (SELECT document_id FROM promotions) GROUP BY id"
        )
        notes = {id for id, path in self._now().items() if not self._capture(path)}
        self._keep(
            (id, path)
            for id, path, after, surface, _ in rows
            if id in notes and id not in self._left and (after or surface == "file") and not self._there(path)
        )

    def _keep(self, found: Iterable[tuple[str, str]]) -> None:
        now = time.time_ns() // 1_000_000
        kept = {id: (path, now) for id, path in found}
        if kept:
            self._left |= kept
            with self._ledger.writing():
                for id, value in kept.items():
                    self._ledger.run("INSERT OR REPLACE INTO tended VALUES (?, ?)", (_NAME + id, json.dumps(value)))


def _claimed(index: Index) -> dict[str, str]:
    return {entry.id: path for path, entry in index.manifest.copy().items() if entry.id != path_id(path)}
