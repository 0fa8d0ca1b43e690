"""List the captures that wait for their owner's decision, with the marks that the owner has set on each so far.

Laws, tested: marks are those of the bytes in the index, so no note is read; a refresh asks the index only about the
captures that changed since the last one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass

from index.model import Record
from syncd.documents.owner_marks import OwnerMarks, decode_marks
from syncd.indexes.index_builds import ScopeIndex


@dataclass(frozen=True, slots=True)
class MarkedCapture:
    """Holds what the index knows about a capture's marks."""

    digest: str  # of the bytes with these marks
    type: str
    marks: OwnerMarks


class ChangedPaths:
    """Collects the paths that an index reports as changed.

    It refers to nothing else, as agents hold the captures' index too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: set[str] | None = set()  # None: all may have changed

    def add_changes(self, paths: Collection[str] | None) -> None:
        """Add changed paths; None = everything may have changed."""
        with self._lock:
            if paths is None:
                self._paths = None
            elif self._paths is not None:
                self._paths.update(paths)

    def take_changes(self) -> set[str] | None:
        """Return the paths that changed since the last call, and clear them."""
        with self._lock:
            paths, self._paths = self._paths, set()
        return paths


class WaitingCaptures:
    """Holds the captures and their marks. Safe from any thread."""

    def __init__(self, captures: ScopeIndex) -> None:
        self._captures = captures
        self._refresh_lock = threading.Lock()
        self._known: dict[str, MarkedCapture] = {}
        self._changed_paths = ChangedPaths()
        self._changed_paths.add_changes(None)  # read all captures at the next refresh
        captures.listeners.append(self._changed_paths.add_changes)

    @property
    def version(self) -> object:
        """Return a value that differs once anything in the inbox has changed; cheap to get."""
        index = self._captures.index
        return id(index), index.generation

    def find_captures(self, only: Callable[[OwnerMarks], bool]) -> list[tuple[Record, OwnerMarks]]:
        """Return the captures whose marks `only` accepts, entities included, by path; captures being read now are left out."""
        with self._refresh_lock:
            self._refresh()
            wanted = {path: known for path, known in self._known.items() if only(known.marks)}
            records = self._captures.index.records_at(wanted) if wanted else {}
        return [
            (record, wanted[path].marks)
            for path, record in sorted(records.items())
            if record.digest == wanted[path].digest
        ]

    def marked(self) -> dict[str, MarkedCapture]:
        """Return all captures with their marks by path, entities included; fast for any number of captures."""
        with self._refresh_lock:
            self._refresh()
            return self._known.copy()

    def count(self) -> list[tuple[str, OwnerMarks, int]]:
        """Count the captures of each type and marks, entities included; captures being read now are left out."""
        counts = self._captures.index.catalog.count_owner_marks()
        return [(kind, decode_marks(marks), count) for kind, marks, count in counts]

    def _refresh(self) -> None:
        changed = self._changed_paths.take_changes()
        if changed is not None and not changed:
            return
        try:
            rows = list(self._captures.index.catalog.owner_marks(changed))
        except BaseException:
            self._changed_paths.add_changes(changed)
            raise
        for path in list(self._known) if changed is None else changed:
            self._known.pop(path, None)
        entries = self._captures.index.manifest
        for path, digest, kind, marks in rows:
            if digest:  # else its bytes are unknown: the index reads it again
                entry = entries.get(path)  # its strings are kept, and no copies of them
                held = entry.digest if entry and entry.digest == digest else digest
                self._known[entry.path if entry else path] = MarkedCapture(held, sys.intern(kind), decode_marks(marks))
