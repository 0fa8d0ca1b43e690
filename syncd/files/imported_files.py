"""Keep the list of imported inbox files in the ledger, so that no file is imported twice.

Law: the list is only ever a reason to leave a file alone. What it lacks is determined from the file and its note."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from index.model import Stat
from syncd.state.ledger import Ledger
from syncd.vault.vault import FileDigest


class ImportedFiles:
    """The table of the ledger, and the same in memory. Safe from any thread."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._known: dict[str, FileDigest] = {
            path: FileDigest(digest, Stat(size, mtime_ns, 0))
            for path, digest, size, mtime_ns in ledger.query("SELECT path, digest, size, mtime_ns FROM handled")
        }

    def get(self, path: str) -> FileDigest | None:
        """What the file at `path` held when it was read; its inode is not kept."""
        with self._lock:
            return self._known.get(path)

    def paths(self) -> list[str]:
        """All of them."""
        with self._lock:
            return list(self._known)

    def put(self, path: str, file_digest: FileDigest, document_id: str) -> None:
        """The file at `path` was read, or is about to be, for this document."""
        stat = file_digest.stat
        with self._ledger.transaction():
            self._ledger.execute(
                "INSERT OR REPLACE INTO handled VALUES (?, ?, ?, ?, ?)",
                (path, file_digest.digest, stat.size, stat.mtime_ns, document_id),
            )
        with self._lock:
            self._known[path] = FileDigest(file_digest.digest, Stat(stat.size, stat.mtime_ns, 0))

    def forget(self, paths: Iterable[str]) -> None:
        """These files are gone."""
        with self._lock:
            gone = [path for path in paths if path in self._known]
        if gone:
            with self._ledger.transaction():
                for path in gone:
                    self._ledger.execute("DELETE FROM handled WHERE path = ?", (path,))
            with self._lock:
                for path in gone:
                    self._known.pop(path, None)


def documents_of(ledger: Ledger, digest: str) -> list[tuple[str, str]]:
    """The files of these bytes that were read: the path of each, and the id of its document."""
    rows = ledger.query("SELECT path, document_id FROM handled WHERE digest = ?", (digest,))
    return [(path, id) for path, id in rows]


def is_unchanged(stat: Stat, other: Stat) -> bool:
    """Whether two looks at a file tell of no change between them, as far as size and time tell."""
    return (stat.size, stat.mtime_ns) == (other.size, other.mtime_ns)
