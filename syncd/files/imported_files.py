"""Keep the list of imported inbox files in the ledger, so that no file is imported twice.

Law: the list can only make Memex skip a file. For a file that is not listed, Memex checks the file and its note."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from index.model import Stat
from syncd.state.ledger import Ledger
from syncd.vault.vault import FileDigest


class ImportedFiles:
    """Keeps the list in the ledger's table `handled` and in memory. Safe from any thread."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._known: dict[str, FileDigest] = {
            path: FileDigest(digest, Stat(size, mtime_ns, 0))
            for path, digest, size, mtime_ns in ledger.query("SELECT path, digest, size, mtime_ns FROM handled")
        }

    def get(self, path: str) -> FileDigest | None:
        """Return the digest and stat that the file at `path` had when it was imported, without its inode."""
        with self._lock:
            return self._known.get(path)

    def paths(self) -> list[str]:
        """Return the paths of all listed files."""
        with self._lock:
            return list(self._known)

    def document_of(self, path: str, digest: str) -> str:
        """Return the id of the document that the file at `path` with this digest was imported as; "" = none is listed."""
        rows = self._ledger.query("SELECT document_id FROM handled WHERE path = ? AND digest = ?", (path, digest))
        return str(rows[0][0]) if rows else ""

    def put(self, path: str, file_digest: FileDigest, document_id: str) -> None:
        """List a file as imported as this document; call it before or after the import."""
        stat = file_digest.stat
        with self._ledger.transaction():
            self._ledger.execute(
                "INSERT OR REPLACE INTO handled VALUES (?, ?, ?, ?, ?)",
                (path, file_digest.digest, stat.size, stat.mtime_ns, document_id),
            )
        with self._lock:
            self._known[path] = FileDigest(file_digest.digest, Stat(stat.size, stat.mtime_ns, 0))

    def forget(self, paths: Iterable[str]) -> None:
        """Remove files that no longer exist from the list."""
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
    """Return the imported files with this digest: the path of each, and the id of its document."""
    rows = ledger.query("SELECT path, document_id FROM handled WHERE digest = ?", (digest,))
    return [(path, id) for path, id in rows]


def is_unchanged(stat: Stat, other: Stat) -> bool:
    """Return whether two stats of a file have equal sizes and modification times."""
    return (stat.size, stat.mtime_ns) == (other.size, other.mtime_ns)
