"""List the captures that wait for their owner's decision, with the marks that the owner has set on each so far.

Law, tested: marks are those of the bytes that the index saw, so no note is read; a look asks the index about the
captures that have changed since the last one, and about no others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass

from index.model import Record
from syncd.documents.owner_marks import OwnerMarks, decode_marks
from syncd.indexes.index_builds import ScopeIndex


def any_marks(_: OwnerMarks) -> bool:
    """Whatever the owner has said, or has not."""
    return True


@dataclass(frozen=True, slots=True)
class MarkedCapture:
    """A capture as far as its marks are concerned."""

    digest: str  # of the bytes that said so
    type: str
    marks: OwnerMarks


class WaitingCaptures:
    """The captures and their marks. Safe from any thread."""

    def __init__(self, captures: ScopeIndex) -> None:
        self._captures = captures
        self._looking, self._telling = threading.Lock(), threading.Lock()
        self._known: dict[str, MarkedCapture] = {}
        self._changed: set[str] = set()
        self._all = True  # to be looked at anew
        self.reads = 0  # rows that were read, all looks together
        captures.told.append(self._add_changes)

    @property
    def version(self) -> object:
        """Something that is another once anything in the inbox has changed; quick to ask."""
        index = self._captures.index
        return id(index), index.generation

    def find_captures(self, only: Callable[[OwnerMarks], bool] = any_marks) -> list[tuple[Record, OwnerMarks]]:
        """The captures whose marks `only` wants, nodes among them, by path; what is not read just now is left out."""
        with self._looking:
            self._refresh()
            wanted = {path: known for path, known in self._known.items() if only(known.marks)}
            records = self._captures.index.records_at(wanted) if wanted else {}
        return [
            (record, wanted[path].marks)
            for path, record in sorted(records.items())
            if record.digest == wanted[path].digest
        ]

    def marked(self) -> dict[str, MarkedCapture]:
        """All captures with their marks, by path, nodes among them; quick, however many there are."""
        with self._looking:
            self._refresh()
            return self._known.copy()

    def marks_of(self, path: str) -> OwnerMarks:
        """The marks of one capture; none where there is no such capture."""
        with self._looking:
            self._refresh()
            return self._known[path].marks if path in self._known else OwnerMarks()

    def _add_changes(self, paths: Collection[str] | None) -> None:
        with self._telling:
            self._all |= paths is None
            self._changed.update(paths or ())

    def _refresh(self) -> None:
        with self._telling:
            everywhere, changed, self._all, self._changed = self._all, self._changed, False, set()
        if not everywhere and not changed:
            return
        try:
            rows = list(self._captures.index.owner_marks(None if everywhere else changed))
        except BaseException:
            with self._telling:
                self._all |= everywhere
                self._changed |= changed
            raise
        for path in list(self._known) if everywhere else changed:
            self._known.pop(path, None)
        self.reads += len(rows)
        for path, digest, kind, marks in rows:
            if digest:  # else nobody knows its bytes: it is about to be read again
                self._known[path] = MarkedCapture(digest, kind, decode_marks(marks))
