"""Make documents of uploaded files: store the file in `Files/`, and write its text into a note beside it.

Law, tested: however a run ends, the next run of its job makes the one planned document of the one file; a file that
cannot be read is still kept; answers to agents never depend on the names of other files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from index.errors import Conflict, InvalidArgument, MemexError, NotFound, ResourceExhausted, Unavailable
from index.model import Stat
from index.names import fold
from syncd.captures.writer import hide_file_name
from syncd.documents.file_names import known_ending, numbered_names, stored_name, uploaded_note_name
from syncd.documents.file_note import without_front_matter
from syncd.documents.file_types import MARKDOWN
from syncd.files.file_note_writer import (
    Convert,
    FileOrder,
    Noted,
    PlannedNote,
    folder_of,
    is_done,
    read_facts,
    write_note,
)
from syncd.files.imported_files import ImportedFiles
from syncd.uploads.chunk_files import has_space
from syncd.vault.disk_errors import NameTaken
from syncd.vault.taken_names import OtherFileNames
from syncd.vault.vault import FileDigest

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox

UNPUT: Final = 0  # in place of the modification time, in nanoseconds, of a file that is not written yet


class UploadedFiles:
    """Imports uploaded files, for all workspaces. Safe from any thread. `free` bytes of the vault's disk stay free."""

    def __init__(
        self,
        inbox: Inbox,
        handled: ImportedFiles,
        other_files: OtherFileNames,
        convert: Convert,
        taken: Noted,
        *,
        free: int,
    ) -> None:
        self._inbox, self._handled, self._other_files, self._convert = inbox, handled, other_files, convert
        self._taken, self._free = taken, free

    def import_file(self, order: FileOrder) -> str:
        """Run a job, and return the id of its document.

        Raises the error that prevented it; a file of a known type that can't be read is still stored."""
        with order.resources:
            return self._import_file(order)

    def _import_file(self, order: FileOrder) -> str:
        folder = folder_of(self._inbox, order.workspace, str(order.given.get("namespace") or "default"))
        if is_done(self._inbox, order, folder):
            return order.planned
        source = order.staged
        if source is None:
            raise NotFound("the uploaded file is no longer there; upload it again")
        file_digest = _measure(source)
        try:
            file_facts = read_facts(self._convert, order, source, order.name, file_digest)
        except (InvalidArgument, ResourceExhausted):
            if known_ending(order.name):
                self._keep_file(order, folder, source, file_digest)
            raise
        if file_facts.media_type == MARKDOWN and not file_facts.cut:
            return self._write_note(PlannedNote(order, folder, uploaded_note_name(order.name), file_facts))
        name = stored_name(order.name, file_facts.media_type)
        planned = PlannedNote(order, folder, name, without_front_matter(file_facts))
        return self._write_pair(planned, source, file_digest)

    def _write_pair(self, planned: PlannedNote, source: Path, file_digest: FileDigest) -> str:
        """Store the file and write the note beside it; return the document's id."""
        inbox = self._inbox
        with closing(self._reserve_paths(planned.order, planned.folder, planned.name, file_digest)) as homes:
            for path, there in homes:
                if not there:
                    self._store_file(path, planned.order, source, file_digest)
                if record := write_note(inbox, self._taken, planned, path, f"{path}.md"):
                    return record.id
                self._remove_file(path, file_digest)  # a person has just given a note this name
        raise AssertionError

    def _keep_file(self, order: FileOrder, folder: str, source: Path, file_digest: FileDigest) -> None:
        """Store the file without a note; a retry of the job finds it."""
        name = stored_name(order.name, "")
        with closing(self._reserve_paths(order, folder, name, file_digest)) as homes:
            path, there = next(homes)
            if not there:
                self._store_file(path, order, source, file_digest)

    def _write_note(self, planned: PlannedNote) -> str:
        """Write an uploaded note as a note, without a stored file beside it; return its id."""
        for name in numbered_names(planned.name, ""):
            with self._other_files.reserve(fold(name)) as ours:
                if not ours or self._inbox.taken(fold(name)):
                    continue
                if record := write_note(self._inbox, self._taken, planned, None, f"{planned.folder}/{name}.md"):
                    return record.id
        raise AssertionError

    def _store_file(self, path: str, order: FileOrder, source: Path, file_digest: FileDigest) -> None:
        """Store the file, and list it as imported first, so that the scanner does not import it again."""
        with suppress(OSError):  # the vault is unavailable, and writing reports it
            if not has_space(self._inbox.vault.root, file_digest.stat.size, free=self._free):
                raise Unavailable(
                    "the vault's disk is almost full; Memex stores the file when there is room", retryable=True
                )
        self._handled.put(path, file_digest, order.planned)
        try:
            with hide_file_name(path):
                stat = self._inbox.vault.create_from_file(path, source, file_digest.digest)
        except NameTaken as error:
            self._handled.forget([path])
            raise Unavailable(
                "another file has just taken the name; Memex looks for a free name", retryable=True
            ) from error
        except Conflict:
            self._handled.forget([path])
            raise
        self._other_files.add(path)
        self._handled.put(path, FileDigest(file_digest.digest, stat), order.planned)

    def _remove_file(self, path: str, file_digest: FileDigest) -> None:
        """Remove the stored file again, unless a person has replaced or removed it."""
        with suppress(Conflict, NotFound), hide_file_name(path):
            self._inbox.vault.remove_file(path, digest=file_digest.digest)
        self._handled.forget([path])

    def _reserve_paths(
        self, order: FileOrder, folder: str, name: str, file_digest: FileDigest
    ) -> Generator[tuple[str, bool]]:
        """Yield free paths for the file, each with whether an earlier run of the job stored the file there.

        Each path is reserved until the next one is requested."""
        for candidate in numbered_names(name, known_ending(name)):
            path, folded = f"{folder}/{candidate}", fold(candidate)
            with self._other_files.reserve(path, folded) as ours:
                if not ours or self._taken(folded):
                    continue
                others = self._other_files.find_paths(folded)
                if path in others and self._is_leftover(path, order, file_digest):
                    yield path, True
                elif not others:
                    yield path, False

    def _is_leftover(self, path: str, order: FileOrder, file_digest: FileDigest) -> bool:
        """Return whether an earlier run of the job stored this file at `path`, and no note refers to it.

        A file with equal bytes that a person put there stays theirs: deleting this document would delete it."""
        if self._handled.document_of(path, file_digest.digest) != order.planned:
            return False
        if self._inbox.captures.index.catalog.records_of_file(path):
            return False
        with suppress(MemexError):  # a file that can't be read is not a leftover of this job
            stat = self._inbox.vault.stat(path)
            if stat is not None and stat.size == file_digest.stat.size:
                return self._inbox.vault.digest_file(path).digest == file_digest.digest
        return False


def _measure(source: Path) -> FileDigest:
    """Return the digest and size of an uploaded file."""
    try:
        with source.open("rb", buffering=0) as file:
            size, digest = os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256")
    except FileNotFoundError as error:
        raise NotFound("the uploaded file is no longer there; upload it again") from error
    except OSError as error:
        raise Unavailable(f"the uploaded file can't be read: {error.strerror}", retryable=True) from error
    return FileDigest(digest.hexdigest(), Stat(size, UNPUT, 0))
