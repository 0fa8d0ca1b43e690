"""Make documents of inbox files that a person put there: the file stays in place, its note goes to `Files/`.

Law, tested: no byte of the file changes; a note whose text a person has edited is never overwritten; a moved file
keeps its document."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from index.errors import Conflict, NotFound, Unavailable
from index.model import Record
from index.names import fold
from syncd.captures.batch_writer import Change, NoteDrafts, write_batch
from syncd.captures.value_renewal import Renewal, renew_values
from syncd.captures.writer import hide_file_name, lock_workspace, record_values
from syncd.documents.file_names import known_ending, link_to, note_folder, numbered_names, stored_name
from syncd.documents.file_note import FileFacts, digest_of, is_untouched, revise, without_front_matter
from syncd.files.file_note_writer import (
    SAMPLE,
    Convert,
    FileOrder,
    Noted,
    PlannedNote,
    is_done,
    read_facts,
    write_note,
)
from syncd.files.imported_files import ImportedFiles
from syncd.notes.front_matter import FrontmatterError, edit, encode
from syncd.notes.timestamps import iso
from syncd.uploads.chunk_files import has_space
from syncd.vault.location import locate
from syncd.vault.path_rules import objection
from syncd.vault.taken_names import OtherFileNames
from syncd.vault.vault import FileDigest

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox


class InboxFiles:
    """Imports files in place. `scratch` is a private folder for copies; `free` bytes of its disk stay free."""

    def __init__(
        self,
        inbox: Inbox,
        handled: ImportedFiles,
        other_files: OtherFileNames,
        convert: Convert,
        taken: Noted,
        *,
        scratch: Path,
        free: int,
    ) -> None:
        self._inbox, self._handled, self._other_files, self._convert = inbox, handled, other_files, convert
        self._taken, self._scratch, self._free = taken, scratch, free

    def import_file(self, order: FileOrder) -> str:
        """Run a job, and return the id of the file's document. Raises the error that prevented it."""
        path = str(order.given["path"])
        where = locate(path, self._inbox.folder)
        if (where.scope, where.workspace) != ("captures", order.workspace):
            raise NotFound("the file is not in a folder of this workspace")
        folder = note_folder(path, self._inbox.folder)
        with self._other_files.reserve(path) as ours:
            if not ours:
                raise Unavailable("Memex is reading the file already, and checks it again later", retryable=True)
            with order.resources, self._copying(order, path) as (copy, file_digest):
                id = self._make_document(order, folder, path, copy, file_digest)
                self._handled.put(path, file_digest, id)
                return id

    def _make_document(self, order: FileOrder, folder: str, path: str, copy: Path, file_digest: FileDigest) -> str:
        if records := self._inbox.captures.index.catalog.records_of_file(path):
            return self._revise(records[0], path, order, copy, file_digest)
        if moved := self._find_moved(path, order.workspace, file_digest.digest):
            return moved.id
        if is_done(self._inbox, order, folder):
            return order.planned
        name = path.rpartition("/")[2]
        file_facts = without_front_matter(read_facts(self._convert, order, copy, name, file_digest))
        planned = PlannedNote(order, folder, name, file_facts)
        for candidate in self._note_names(folder, name, file_facts.media_type):
            folded = fold(candidate)
            with self._other_files.reserve(folded) as ours:
                if not ours or self._taken(folded) or self._other_files.find_paths(folded) - {path}:
                    continue
                if record := write_note(self._inbox, self._taken, planned, path, f"{folder}/{candidate}.md"):
                    return record.id
        raise AssertionError

    def _note_names(self, folder: str, name: str, media_type: str) -> Iterator[str]:
        """Yield the names, without ".md", for the note of the file `name`, which may have a name that no note can have."""
        if objection(f"{folder}/{name}.md", new=True):
            name = stored_name(name, media_type)
        return numbered_names(name, known_ending(name))

    # A file that already has a note

    def _revise(self, record: Record, path: str, order: FileOrder, copy: Path, file_digest: FileDigest) -> str:
        """Replace the old text in the file's note with the new text, and return the document's id."""
        with hide_file_name(record.path):
            raw, _ = self._inbox.vault.read(record.path)
        if digest_of(raw) != file_digest.digest:
            file_facts = without_front_matter(read_facts(self._convert, order, copy, order.name, file_digest))
            with lock_workspace(self._inbox, order.workspace):
                renewal = write_batch(self._inbox, partial(self._plan_revision, record, path, file_facts))
                record_values(self._inbox, record, renewal.values, retry=renewal.retry)
        return record.id

    def _plan_revision(
        self, record: Record, path: str, file_facts: FileFacts, _: object
    ) -> tuple[list[Change], Renewal]:
        drafts, note = NoteDrafts(self._inbox), record.path
        raw = encode(text := drafts.text(note))
        if digest_of(raw) == file_facts.digest:
            return [], Renewal()
        if not is_untouched(raw):
            raise Conflict(
                "the file has changed, but its note was edited manually, so the note stays unchanged; "
                "to read the file again, delete the note and retry the job"
            )
        revised = partial(revise, raw, path=path, updated_at=iso(self._inbox.now()), version=drafts.version(note) + 1)
        before = self._inbox.parse_note(raw, note, mtime_ms=record.created_at)
        try:
            brief = revised(facts=replace(file_facts, text=file_facts.text[:SAMPLE]))
            renewal = renew_values(self._inbox, record, before, text, after=brief, from_caller={"title"})
            drafts.set_text(note, edit(revised(facts=file_facts), renewal.changes))
        except FrontmatterError as error:
            raise Conflict(f"the note's properties can't be changed: {error}") from error
        return drafts.changes(), renewal

    def _find_moved(self, path: str, workspace: str, digest: str) -> Record | None:
        """Return the document whose file was moved to `path`, with its link updated; None if there is none."""
        vault, index = self._inbox.vault, self._inbox.captures.index
        notes = [note for was, note in index.catalog.stored_files(workspace) if not self._exists(was)]
        # These still name it in a workspace whose folder was renamed.
        notes += index.catalog.notes_without_file(workspace)
        for note in sorted(notes, key=lambda note: not note.endswith(f"/{path.rpartition('/')[2]}.md")):
            with suppress(NotFound):
                raw, _ = vault.read(note)
                if digest_of(raw) == digest:
                    with lock_workspace(self._inbox, workspace):
                        write_batch(self._inbox, partial(self._plan_new_path, note, path))
                    return index.record_at(note)
        return None

    def _plan_new_path(self, note: str, path: str, _: object) -> tuple[list[Change], None]:
        drafts = NoteDrafts(self._inbox)
        try:
            drafts.set_text(note, edit(drafts.text(note), {"file": link_to(path)}))
        except FrontmatterError as error:
            raise Conflict(f"the note's properties can't be changed: {error}") from error
        return drafts.changes(), None

    def _exists(self, path: str) -> bool:
        """Return whether the file exists, or may exist."""
        try:
            return self._inbox.vault.stat(path) is not None
        except Unavailable:
            return True

    @contextmanager
    def _copying(self, order: FileOrder, path: str) -> Iterator[tuple[Path, FileDigest]]:
        """Yield a copy of the file with its digest: the bytes read are the bytes hashed, and no link can replace them."""
        copy = self._scratch / f".{order.id}.copy"  # hidden, so that no backup includes it
        try:
            yield copy, self._copy(path, copy)
        finally:
            copy.unlink(missing_ok=True)

    def _copy(self, path: str, target: Path) -> FileDigest:
        stat = self._inbox.vault.stat(path)
        if stat is None:
            raise NotFound("the file is no longer there")
        try:
            if not has_space(self._scratch, stat.size, free=self._free):
                raise Unavailable("the disk is full; free some space and try again", retryable=True)
            with target.open("wb") as file:
                return self._inbox.vault.digest_file(path, file.write)
        except Conflict as error:
            raise Unavailable("the file is still being written; Memex checks it again later", retryable=True) from error
        except OSError as error:
            raise Unavailable(f"the file can't be copied: {error.strerror}", retryable=True) from error
