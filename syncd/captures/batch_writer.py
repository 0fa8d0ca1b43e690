"""Write and index a batch of inbox notes: all of them or none.

Law, tested: a batch that fails changed nothing. A file that somebody changed meanwhile is never overwritten: the
batch is decided again from the current files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from index.document_ids import sha256
from index.errors import Conflict, NotFound
from index.model import Document, Stat
from index.names import stem
from index.scope.index import Index
from index.scope.prepared_document import PreparedDocument
from syncd.captures.writer import UNWRITTEN, hide_file_name, hold_commits
from syncd.documents.owner_marks import EDITED, MarkedByOwner
from syncd.history.audit_log import TOGETHER, take_back
from syncd.notes.front_matter import decode, encode
from syncd.sync.hand_edits import visible_digest
from syncd.vault.disk_errors import FolderBlocked
from syncd.vault.vault import FileDigest, Replacement, Vault

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox

T = TypeVar("T")
TRIES: Final = 8  # each is lost to another program that writes the same file at the same moment
EMBEDDED: Final = 100  # notes that change with those that go, at most, whose vectors a caller waits for
UNDATED: Final = -1  # epoch ms: in place of the time of a file that is still to be written


@dataclass(frozen=True, slots=True)
class NewFile:
    """Describe a file to create."""

    path: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """Describe a file to change."""

    path: str
    before: bytes
    raw: bytes


@dataclass(frozen=True, slots=True)
class DeletedFile:
    """Name a file to delete."""

    path: str
    before: bytes


@dataclass(frozen=True, slots=True)
class DeletedStoredFile:
    """Name a stored file to delete with its note."""

    path: str
    was: FileDigest


Change: TypeAlias = NewFile | ChangedFile | DeletedFile | DeletedStoredFile


class NoteDrafts:
    """Holds the texts of notes during an operation: it reads each file once, and then keeps the changed text."""

    def __init__(self, inbox: Inbox, compare: Callable[[str, bytes], object] = lambda *_: None) -> None:
        self._inbox, self._compare = inbox, compare
        self._before: dict[str, bytes] = {}
        self._texts: dict[str, str | None] = {}

    def text(self, path: str) -> str:
        """Return the note's present text. Raises NotFound if its file is missing."""
        if path not in self._texts:
            with hide_file_name(path):
                self._before[path], _ = self._inbox.vault.read(path)
            self._texts[path] = decode(self._before[path])
        text = self._texts[path]
        if text is None:
            raise NotFound("the note no longer exists")
        return text

    def exists(self, path: str) -> bool:
        """Return whether the note exists."""
        try:
            self.text(path)
        except NotFound:
            return False
        return True

    def version(self, path: str) -> int:
        """Return the note's present version, after `compare_before`."""
        self.compare_before(path)
        return self._inbox.parse_note(encode(self.text(path)), path, mtime_ms=UNDATED).version

    def compare_before(self, path: str) -> None:
        """Call `compare` with the note's path and bytes; it raises, for example, if a person has just edited the note."""
        self.text(path)
        self._compare(path, self._before[path])

    def set_text(self, path: str, text: str) -> None:
        """Change the note's text to `text`."""
        self._texts[path] = text

    def delete(self, path: str) -> None:
        """Mark the note for deletion."""
        self.text(path)
        self._texts[path] = None

    def changes(self) -> list[Change]:
        """Return the changes, deletions last: after a crash in between, the same call completes them."""
        changed: list[Change] = []
        gone: list[Change] = []
        for path, text in self._texts.items():
            before = self._before[path]
            if text is None:
                gone.append(DeletedFile(path, before))
            elif (raw := encode(text)) != before:
                changed.append(ChangedFile(path, before, raw))
        return changed + gone


def write_batch(
    inbox: Inbox,
    decide: Callable[[Index], tuple[Sequence[Change], T]],
    progress: Callable[[int], None] | None = None,
) -> T:
    """Carry out the changes that `decide` returns, and return its answer. A file that changed meanwhile makes it decide again.

    All notes are split and embedded before anything is written. If a deletion changes more than `EMBEDDED` notes, their
    vectors follow later. Raises Conflict when files keep changing, and when a person has just edited a note to delete."""
    for _ in range(TRIES):
        index = inbox.captures.index
        changes, answer = decide(index)
        if not changes:
            return answer
        for change in changes:
            if isinstance(change, DeletedFile):
                _refuse_unread_removal(inbox, index, change)
        documents = _parse_new(inbox, changes)
        # Embedding every note that linked to a deleted one takes far longer than all other work.
        later = len(documents) > EMBEDDED and any(isinstance(change, DeletedFile) for change in changes)
        ready = index.prepare(
            [(document, UNWRITTEN) for document in documents], urgent=True, later=later, progress=progress
        )
        with hold_commits(inbox.captures) as current:
            taken = any(inbox.taken(stem(change.path)) for change in changes if isinstance(change, NewFile))
            if current is not index or taken:
                continue
            try:
                _write_all(inbox.vault, changes, ready, index)
            except _MeanwhileChanged:
                continue
            return answer
    raise Conflict("the notes keep changing; try again in a moment", retryable=True)


def _parse_new(inbox: Inbox, changes: Sequence[Change]) -> list[Document]:
    """Parse the notes that these changes make or rewrite. Raises Conflict for properties that can't be read."""
    documents = [
        inbox.parse_note(change.raw, change.path, mtime_ms=UNDATED)
        for change in changes
        if isinstance(change, NewFile | ChangedFile)
    ]
    for document in documents:
        if not document.writable:
            raise Conflict(f"the properties of {document.title!r} can't be read; its owner must fix them first")
    return documents


def _refuse_unread_removal(inbox: Inbox, index: Index, change: DeletedFile) -> None:
    """Refuse to delete text that no agent can have read. A deletion removes the whole file, so the whole file is compared.

    Memex's own latest write to the note does not count as an edit, unless the file also contains an edit."""
    record = index.record_at(change.path)
    if record is None:
        return
    document = inbox.parse_note(change.before, change.path, mtime_ms=record.created_at)
    known = document.digest == record.digest
    if not known and visible_digest(document) == visible_digest(record):
        last = inbox.audit.last_entry(change.path)
        known = last is not None and last.after == document.digest
    if not known or inbox.edited(document):
        raise Conflict(EDITED, retryable=True, title=record.title)


class _MeanwhileChanged(Exception):
    """Another program has changed or removed a file of the batch."""


def _write_all(vault: Vault, changes: Sequence[Change], ready: Sequence[PreparedDocument], index: Index) -> None:
    """Write and commit. A failure reverts the writes, stored files last."""
    with ExitStack() as unstored, ExitStack() as undo:
        stats: dict[str, Stat | None] = {}
        try:
            changed = [change for change in changes if isinstance(change, ChangedFile)]
            for start in range(0, len(changed), TOGETHER):
                stats |= _replace_files(vault, changed[start : start + TOGETHER], undo)
            for change in changes:
                with hide_file_name(change.path):
                    if isinstance(change, DeletedStoredFile):
                        unstored.enter_context(vault.removing(change.path, change.was))
                    elif not isinstance(change, ChangedFile):
                        stats[change.path] = _write_change(vault, change, undo)
        except (MarkedByOwner, FolderBlocked):
            raise  # for good, until its owner's wish is carried out or the way is free
        except (Conflict, NotFound) as error:
            raise _MeanwhileChanged from error
        index.commit(
            [
                replace(prepared, document=_with_file_time(prepared.document, stat), stat=stat)
                for prepared in ready
                if (stat := stats[prepared.document.path])
            ],
            [path for path, stat in stats.items() if stat is None],
        )
        undo.pop_all()


def _replace_files(vault: Vault, changes: Sequence[ChangedFile], undo: ExitStack) -> dict[str, Stat | None]:
    with hide_file_name(*(change.path for change in changes)):
        stats = vault.replace_all([Replacement(change.path, change.raw, sha256(change.before)) for change in changes])
    for change in changes:
        undo.callback(take_back, partial(vault.replace, change.path, change.before, digest=sha256(change.raw)))
    return {change.path: stat for change, stat in zip(changes, stats, strict=True)}


def _write_change(vault: Vault, change: NewFile | DeletedFile, undo: ExitStack) -> Stat | None:
    match change:
        case NewFile(path, raw):
            stat = vault.create(path, raw)
            undo.callback(take_back, partial(vault.remove, path, digest=sha256(raw)))
            return stat
        case DeletedFile(path, before):
            vault.remove(path, digest=sha256(before))
            undo.callback(take_back, partial(vault.create, path, before, again=True))
            return None


def _with_file_time(document: Document, stat: Stat) -> Document:
    """Give a note without a creation time the time of its file."""
    return replace(document, created_at=stat.mtime_ms) if document.created_at == UNDATED else document
