"""The audited vault is the vault through which Memex writes: it logs each write in the audit log before it happens.

Laws, tested: one entry for each write, whichever part of Memex makes it; none for a write that is refused before it
begins. Bytes that an agent or a command overwrites or removes are kept first, so that they can be restored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

from index.document_ids import ID, path_id, sha256
from index.errors import Conflict, MemexError, Unavailable
from index.model import Stat
from syncd.documents.owner_marks import find_overreach
from syncd.documents.parser import TYPES
from syncd.history.audit_log import AUTHOR, CONSOLIDATION, TAKING_BACK, AuditLog, Change
from syncd.history.overwritten_bytes import OverwrittenBytes
from syncd.history.write_lineage import AGENTS
from syncd.notes.front_matter import decode, readable_properties
from syncd.vault.disk_errors import NameTaken, open_source
from syncd.vault.location import is_context, locate
from syncd.vault.openat import lstat
from syncd.vault.path_rules import is_note
from syncd.vault.vault import FileDigest, Replacement, Vault
from syncd.vault.write_reservations import WriteReservations

# What the daemon changes by itself follows from what is there, but for the proposals that a person accepts.
KEPT: Final = AGENTS | {"cli"}


class AuditedVault(Vault):
    """Log each write to the vault."""

    def __init__(
        self, root: Path, audit: AuditLog, *, inbox: str, overwritten: OverwrittenBytes | None = None, **options: Any
    ) -> None:
        super().__init__(root, **options)
        self._audit, self._inbox, self._overwritten = audit, inbox, overwritten
        self.reservations = WriteReservations()
        # Called with the path, the bytes and the new bytes of a capture that is about to be replaced: the old ones may contain an unread edit.
        self.on_replace: Callable[[str, bytes, bytes], object] = lambda *_: None

    def ignores(self, path: str, *, folder: bool = False) -> bool:
        """Return whether a path is not indexed: as `Vault.ignores`, or because it is a generated context."""
        return super().ignores(path, folder=folder) or is_context(path, self._inbox)

    def create(self, path: str, data: bytes, *, again: bool = False) -> Stat:
        """Log the write, then do as `Vault.create` does."""
        self._check_path(path, new=not again)
        with self._translate_errors(path):
            if lstat(self._calls.open, self._fd, path) is not None:
                raise NameTaken(f"{path} exists already")
        self._check_allowed(path, None, data)
        with self.reservations.writing(path), self._logging(describe_change(path, None, data, self._inbox)):
            return super().create(path, data, again=again)

    def replace_all(self, changes: Sequence[Replacement]) -> list[Stat]:
        """Replace the files like a vault, after all changes are logged in one commit of the ledger."""
        with self.reservations.writing(*(change.path for change in changes)):
            return super().replace_all(changes)

    @contextmanager
    def _replacing(self, changes: Sequence[Replacement], before: Sequence[bytes]) -> Iterator[None]:
        for change, raw in zip(changes, before, strict=True):
            self._check_allowed(change.path, raw, change.data)
            is_capture = is_note(change.path) and locate(change.path, self._inbox).scope == "captures"
            if is_capture and not TAKING_BACK.get():
                self.on_replace(change.path, raw, change.data)
        self._keep_overwritten(*before)
        with self._logging(
            *(
                describe_change(change.path, raw, change.data, self._inbox)
                for change, raw in zip(changes, before, strict=True)
            )
        ):
            yield

    def remove(self, path: str, *, digest: str) -> None:
        """Log the write, then do as `Vault.remove` does."""
        with self.reservations.writing(path):
            self._check_path(path)
            raw, _ = self.read(path)
            if sha256(raw) != digest:
                raise Conflict(f"{path} has changed since it was read; read it again")
            self._check_allowed(path, raw, None)
            self._keep_overwritten(raw)
            with self._logging(describe_change(path, raw, None, self._inbox)):
                super().remove(path, digest=digest)
        self._remove_emptied(path)

    def create_from_file(self, path: str, source: Path, digest: str, *, again: bool = False) -> Stat:
        """Log the write, then do as `Vault.create_from_file` does."""
        self._check_path(path, new=not again)
        with self._translate_errors(path):
            if lstat(self._calls.open, self._fd, path) is not None:
                raise NameTaken(f"{path} exists already")
        with open_source(source, path) as file:
            size = os.fstat(file.fileno()).st_size
        with self.reservations.writing(path), self._logging(self._describe_file_change(path, "", digest, size)):
            return super().create_from_file(path, source, digest, again=again)

    @contextmanager
    def removing(self, path: str, was: FileDigest) -> Iterator[None]:
        """Log the write, then do as `Vault.removing` does."""
        self._check_path(path)
        with self._keeper.keeping(was.digest) if self._keeper else nullcontext() as write:
            if write is not None:
                self.digest_file(path, write)
        with (
            self.reservations.writing(path),
            self._logging(self._describe_file_change(path, was.digest, "", 0)),
            super().removing(path, was),
        ):
            yield
        self._remove_emptied(path)

    def _remove_emptied(self, path: str) -> None:
        """Remove the folders of the inbox that are empty since the file at `path` is gone; workspaces stay."""
        if path.startswith(f"{self._inbox}/"):
            workspace = locate(path, self._inbox).workspace
            self.remove_empty_folders(path, below=f"{self._inbox}/{workspace}" if workspace else self._inbox)

    @property
    def _keeper(self) -> OverwrittenBytes | None:
        """Return the store for overwritten bytes; None if this write needs none."""
        author = AUTHOR.get()
        kept = author.surface in KEPT or author.tool == CONSOLIDATION.tool
        return self._overwritten if kept and not TAKING_BACK.get() else None

    def _keep_overwritten(self, *raw: bytes) -> None:
        if keeper := self._keeper:
            keeper.keep_all(raw)

    def _check_allowed(self, path: str, was: bytes | None, data: bytes | None) -> None:
        """Raise the error for a write in which an agent changes properties that only the owner may set, whatever the tool."""
        if AUTHOR.get().surface not in AGENTS or TAKING_BACK.get() or not is_note(path):
            return
        texts = (None if raw is None else decode(raw) for raw in (was, data))
        if refused := find_overreach(
            *texts, is_node=lambda: describe_change(path, was, was, self._inbox).type == "entity"
        ):
            raise refused

    def _describe_file_change(self, path: str, before: str, after: str, size: int) -> Change:
        """Return the change of a file that is not a note, for the log."""
        return Change(path, before, after, size, path_id(path), "file", locate(path, self._inbox).workspace)

    @contextmanager
    def _logging(self, *changes: Change) -> Iterator[None]:
        """Log the writes of the block, which happen all or not at all; log them as undone if the block fails."""
        if TAKING_BACK.get():
            for change in changes:
                self._audit.mark_doubtful(change.path)
            yield
            for change in changes:
                self._audit.log_taken_back(change)
            return
        entries = self._audit.log_writes(changes)
        try:
            yield
        except BaseException as error:
            code = error.code if isinstance(error, MemexError) else Unavailable.code
            self._audit.log_undone(dict(zip(entries, changes, strict=True)), code)
            raise
        for entry in entries:
            self._audit.mark_done(entry)


def describe_change(path: str, was: bytes | None, data: bytes | None, inbox: str) -> Change:
    """Return the change of the file at `path`, for the log; `was` or `data` is None if there is no file."""
    where = locate(path, inbox)
    raw = data if data is not None else was or b""
    values = {name.casefold(): value for name, value in readable_properties(decode(raw)).items()}
    note_id, kind = values.get("id"), values.get("type")
    return Change(
        path=path,
        before=sha256(was),
        after=sha256(data),
        bytes=len(data or b""),
        id=note_id if isinstance(note_id, str) and ID.match(note_id) else path_id(path),
        type=kind if isinstance(kind, str) and kind in TYPES else where.type,
        workspace=where.workspace,
    )
