"""Scan the inbox for files that people put there, and queue each file for import once it is quiet.

Law, tested: a pass of the sync pipeline reports files as it reports notes, so no file is missed. No file is queued
while a program writes it, twice with the same bytes, or again because its note was deleted. The scanner changes no
file and no note."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from index.errors import Conflict, MemexError, NotFound
from index.model import Stat
from index.names import base_name
from syncd.documents.file_note import digest_of
from syncd.files.imported_files import ImportedFiles, is_unchanged
from syncd.indexes.index_builds import ScopeIndex
from syncd.vault.listing import Listing
from syncd.vault.location import locate
from syncd.vault.path_rules import is_below
from syncd.vault.vault import FileDigest, Vault

EVERY_S: Final = 6.0  # seconds between two checks of waiting files
SOURCE: Final = "inbox"  # the `source` of documents made from inbox files
MISSING: Final = "file-missing: the file whose text the note contains is missing"

log = logging.getLogger(__name__)


class InboxFileScanner:
    """Tracks the files of known types in all workspaces. `add` queues a file: its workspace, and the job's arguments.

    `calm` returns whether all known changes are indexed, because a file's note may arrive with the file."""

    def __init__(
        self,
        vault: Vault,
        captures: ScopeIndex,
        handled: ImportedFiles,
        add: Callable[[str, Mapping[str, Any]], object],
        calm: Callable[[], bool],
        *,
        inbox: str,
        quiet_s: float,
    ) -> None:
        self._vault, self._captures, self._handled, self._add, self._calm = vault, captures, handled, add, calm
        self._inbox, self._quiet_s = inbox, quiet_s
        self._lock = threading.Lock()
        self._there: set[str] = set()
        self._waiting: dict[str, tuple[Stat, float]] = {}  # the stat at the last check, and since when it is unchanged
        self._gone: set[str] = set()
        self.unread: dict[str, str] = {}  # files that can't be read or queued, and why

    def take_listing(self, listing: Listing, under: Collection[str] | None) -> None:
        """Take in what a pass has listed below the folders `under` (None: in the whole vault).

        It reads no file and raises nothing."""
        now, looked = time.monotonic(), partial(is_below, folders=frozenset(("",) if under is None else under))
        with self._lock:
            for path in [path for path in self._there if looked(path) and listing.is_gone(path)]:
                self._there.discard(path)
                self._forget(path)
            if under is None and listing.complete:
                self._gone |= {path for path in self._handled.paths() if listing.is_gone(path)}
            for path, stat in listing.others.items():
                self._there.add(path)
                self._gone.discard(path)
                known, waiting = self._handled.get(path), self._waiting.get(path)
                if known is not None and is_unchanged(known.stat, stat):
                    self._forget(path)
                elif waiting is None or not is_unchanged(waiting[0], stat):
                    self._waiting[path] = stat, now

    def _forget(self, path: str) -> None:
        self._waiting.pop(path, None)
        self.unread.pop(path, None)

    def queue_quiet_files(self) -> None:
        """Queue the files that have not changed for long enough."""
        with self._lock:
            gone, waiting = set(self._gone), dict(self._waiting)
        if gone:
            self._handled.forget(gone)
            with self._lock:
                self._gone -= gone
        if not waiting or not self._calm():
            return
        for path, (stat, since) in sorted(waiting.items()):
            if time.monotonic() - since < self._quiet_s:
                continue
            try:
                quiet = self._check_quiet(path, stat)
                if quiet is not None:
                    self._queue_file(path, quiet)
            except MemexError as error:  # the file has just changed or can't be read, or the queue is full
                log.info("checking a file of the inbox again later: %s", error.message)
                with self._lock:
                    self.unread[path] = error.message
                    self._waiting[path] = stat, time.monotonic()

    def _check_quiet(self, path: str, was: Stat) -> Stat | None:
        """Return the file's stat if it is unchanged; otherwise None, and the file waits again unless it is gone."""
        now = self._vault.stat(path)
        if now is not None and is_unchanged(now, was):
            return now
        with self._lock:
            if now is None:
                self._forget(path)
            else:
                self._waiting[path] = now, time.monotonic()
        return None

    def _queue_file(self, path: str, stat: Stat) -> None:
        """Queue a file, unless its current bytes were already imported."""
        file_digest = self._vault.digest_file(path)
        if not is_unchanged(file_digest.stat, stat):
            raise Conflict("it has just changed")
        known, id = self._handled.get(path), self._find_document(path, file_digest)
        if (known is None or known.digest != file_digest.digest) and id is None:
            name = base_name(path)
            arguments = {"name": name, "path": path, "size": stat.size, "source": SOURCE}
            self._add(locate(path, self._inbox).workspace, arguments)
            log.info("queued a file of the inbox: %a", name)
        self._handled.put(path, file_digest, id or self._handled.document_of(path, file_digest.digest))
        with self._lock:
            self._forget(path)

    def _find_document(self, path: str, file_digest: FileDigest) -> str | None:
        """Return the id of the document that holds the text of these bytes; another machine may have made it."""
        for record in self._captures.index.catalog.records_of_file(path):
            with suppress(NotFound):
                raw, _ = self._vault.read(record.path)
                if digest_of(raw) == file_digest.digest:
                    return record.id
        return None

    # Reports

    def find_missing(self, workspaces: Collection[str] | None = None) -> Iterator[tuple[str, str]]:
        """Yield each note whose file is missing, with the file's path; with `workspaces`, only notes of those."""
        for file, note in self._captures.index.catalog.stored_files():
            if workspaces is not None and locate(note, self._inbox).workspace not in workspaces:
                continue
            if file not in self._there:
                with suppress(MemexError):  # unknown, so not reported
                    if self._vault.stat(file) is None:
                        yield note, file

    def facts(self) -> dict[str, Any]:
        """Return the number of files with documents, the number of waiting files, and the unread and missing files."""
        with self._lock:
            waiting, unread = len(self._waiting), dict(self.unread)
        missing = [file for _, file in self.find_missing()]
        return {
            "known": len(self._captures.index.catalog.stored_files()),
            "waiting": waiting,
            "unread": [{"path": path, "reason": why} for path, why in sorted(unread.items())],
            "missing": missing,
        }
