"""List the captures that wait for their owner's decision, with the marks that the owner has set on each so far.

Law, tested: a note is read again only when the index has seen it change, and its marks are those of the bytes that
the index saw."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection

from index.errors import MemexError
from index.model import Entry, Record
from syncd.documents.owner_marks import OwnerMarks, read_marks
from syncd.indexes.index_builds import ScopeIndex
from syncd.notes.front_matter import decode
from syncd.vault.vault import Vault


def any_marks(_: OwnerMarks) -> bool:
    """Whatever the owner has said, or has not."""
    return True


class WaitingCaptures:
    """The captures and their marks. Safe from any thread."""

    def __init__(self, captures: ScopeIndex, vault: Vault) -> None:
        self._captures, self._vault = captures, vault
        self._looking, self._telling = threading.Lock(), threading.Lock()
        self._known: dict[str, tuple[str, OwnerMarks]] = {}  # path → the digest of the bytes that said it, and what
        self._changed: set[str] = set()
        self._all = True  # to be looked at anew
        self.reads = 0  # notes that were read, all looks together
        captures.told.append(self._add_changes)

    @property
    def version(self) -> object:
        """Something that is another once anything in the inbox has changed; quick to ask."""
        index = self._captures.index
        return id(index), index.generation

    def find_captures(self, only: Callable[[OwnerMarks], bool] = any_marks) -> list[tuple[Record, OwnerMarks]]:
        """The captures whose marks `only` wants, nodes among them, by path; what can't be read just now is left out."""
        with self._looking:
            self._refresh()
            wanted = sorted(path for path, (_, marks) in self._known.items() if only(marks))
            rows = [(self._captures.index.record_at(path), *self._known[path]) for path in wanted]
        return [(record, marks) for record, digest, marks in rows if record is not None and record.digest == digest]

    def marks_of(self, path: str) -> OwnerMarks:
        """The marks of one capture; none where there is no such capture."""
        with self._looking:
            self._refresh()
            return self._known[path][1] if path in self._known else OwnerMarks()

    def _add_changes(self, paths: Collection[str] | None) -> None:
        with self._telling:
            self._all |= paths is None
            self._changed.update(paths or ())

    def _refresh(self) -> None:
        with self._telling:
            everywhere, changed, self._all, self._changed = self._all, self._changed, False, set()
        manifest = self._captures.index.manifest
        if everywhere:
            manifest = manifest.copy()
            changed = manifest.keys() | self._known.keys()
        unread = {path for path in changed if not self._read_marks(path, manifest.get(path))}
        with self._telling:
            self._changed |= unread

    def _read_marks(self, path: str, entry: Entry | None) -> bool:
        """Remember what the note at `path` says; False when that can't be told just now. `entry`: None = it is gone."""
        before = self._known.get(path)
        if before is not None and entry is not None and before[0] == entry.digest:
            return True
        self._known.pop(path, None)
        if entry is None:
            return True
        self.reads += 1
        try:
            raw, _ = self._vault.read(path)
        except MemexError:
            return False
        if hashlib.sha256(raw).hexdigest() == entry.digest:
            self._known[path] = entry.digest, read_marks(decode(raw))
        return path in self._known
