"""Convert a file to text, and write and index the note that holds this text.

Law, tested: the note has the planned id and exists once, however an earlier run of the job ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from index.errors import InvalidArgument, NotFound, Unavailable
from index.model import Document, Record
from index.names import note_name
from index.process_memory import LARGE_TEXT, one_large_text, release_unused
from index.query import tag_of
from index.scope.index import Index
from index.scope.prepared_document import PreparedDocument
from syncd.captures.writer import ROUNDS, UNWRITTEN, MissedAttempt, try_create
from syncd.documents.capture_note import compose_note, properties_of
from syncd.documents.collection_membership import choose_collection, is_collection_tag
from syncd.documents.file_names import last_name
from syncd.documents.file_note import FileFacts, clean_text, file_properties, split_uploaded_note
from syncd.documents.file_types import HEAD, media_type_of
from syncd.files.conversion.readers.reader_result import MarkdownReading
from syncd.notes.front_matter import PropertyValue, encode
from syncd.vault.location import FILES
from syncd.vault.vault import FileDigest

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox

SAMPLE: Final = 100_000  # characters of the text from which the summary and tags are derived
PASSAGE: Final = 800  # approximate characters of a passage, to estimate how many must be embedded
LOOK_S: Final = 1.0  # seconds between two checks whether the daemon is stopping


@dataclass(frozen=True, slots=True)
class FileOrder:
    """Describes one job. `given` holds name, title, tags, collection, namespace, source, and an inbox file's path."""

    id: str
    workspace: str
    planned: str  # id for the new document
    given: Mapping[str, Any]
    staged: Path | None  # the uploaded file
    progress: Callable[[int, int, str], None]  # done, total, stage
    stopping: threading.Event
    resources: ExitStack = field(default_factory=ExitStack)  # closed when the job ends; holds the lock of a large text

    @property
    def name(self) -> str:
        """Return the file's original name."""
        return last_name(str(self.given["name"]))


@dataclass(frozen=True, slots=True)
class PlannedNote:
    """Describes a note to write."""

    order: FileOrder
    folder: str
    name: str  # its base name, if that is free
    facts: FileFacts


Noted: TypeAlias = Callable[[str], bool]  # whether a note of the vault has this folded base name
Convert: TypeAlias = Callable[[Path, str, threading.Event, Callable[[int], object]], MarkdownReading]  # of `converter`


def folder_of(inbox: Inbox, workspace: str, namespace: str) -> str:
    """Return the folder for the files of a namespace. Raises NotFound if the workspace does not exist."""
    if workspace not in inbox.vault.list_folders(inbox.folder):
        raise NotFound(
            f"no workspace {workspace!r}: it was removed after the file was sent; to create it again: memex workspace create"
        )
    return inbox.namespace_folder(workspace, namespace, FILES)


def is_done(inbox: Inbox, order: FileOrder, folder: str) -> bool:
    """Return whether an earlier run made the document. Raises Unavailable while its note exists but is not indexed."""
    index, vault = inbox.captures.index, inbox.vault
    if index.record(order.planned, order.workspace) is not None:
        return True
    manifest = index.manifest
    for path, stat in vault.list_notes(folder).files.items():
        entry = manifest.get(path)
        if entry is None or entry.stat != stat:
            with suppress(NotFound):
                raw, _ = vault.read(path)
                if inbox.parse_note(raw, path, mtime_ms=0).claimed_id == order.planned:
                    raise Unavailable("Memex is still reading the document; try again in a moment", retryable=True)
    return False


def read_facts(convert: Convert, order: FileOrder, source: Path, name: str, file_digest: FileDigest) -> FileFacts:
    """Convert the file to text and return the facts about it.

    A large text waits on disk until no other job has one in memory; `order.resources` keeps the others waiting. Raises
    InvalidArgument or ResourceExhausted if the file can't be read, Unavailable if the converter can't run."""

    def wait_for_room(size: int) -> None:
        if size > LARGE_TEXT:
            order.resources.enter_context(hold_large_text(order))

    order.progress(0, 1, "reading")
    with source.open("rb") as file:
        head = file.read(HEAD)
    media_type = media_type_of(name, head)
    read = convert(source, media_type, order.stopping, wait_for_room)
    size, text = file_digest.stat.size, clean_text(read.text)
    return FileFacts(media_type, size, file_digest.digest, text, read.pages, read.cut, read.warnings)


def write_note(inbox: Inbox, taken: Noted, planned: PlannedNote, path: str | None, note: str) -> Record | None:
    """Write and index the note of the file at `path` (None: an uploaded note without a stored file).

    Return its row; None if another note has taken its name."""
    now, order = inbox.now(), planned.order
    brief = replace(planned, facts=replace(planned.facts, text=planned.facts.text[:SAMPLE]))
    finding = inbox.enricher.begin(_compose(inbox, brief, path, note, now)[1])
    total = len(planned.facts.text) // PASSAGE + 1
    compose = partial(_compose, inbox, planned, path, note, now)

    def report_progress(count: int) -> None:
        _check_stopping(order)
        order.progress(count, max(count, total), "embedding")

    def prepare(index: Index, document: Document) -> PreparedDocument:
        (ready,) = index.prepare([(document, UNWRITTEN)], progress=report_progress)
        if ready.chunks and ready.vectors is None:
            raise Unavailable("the encoder is not ready yet; the job resumes when it is ready", retryable=True)
        return ready

    for _ in range(ROUNDS):
        outcome = try_create(inbox, compose, prepare=prepare, finding=finding, taken=taken)
        if outcome is MissedAttempt.TAKEN:
            return None
        if outcome is not MissedAttempt.SWITCHED:
            return outcome
    raise Unavailable("the index kept changing to a new build; the job resumes later", retryable=True)


@contextmanager
def hold_large_text(order: FileOrder) -> Iterator[None]:
    """Wait until no other large text is being processed, and make others wait during the block.

    Raises Unavailable if the daemon stops while it waits."""
    while not one_large_text.acquire(timeout=LOOK_S):
        _check_stopping(order)
    try:
        yield
    finally:
        release_unused()  # before the next large text needs room
        one_large_text.release()


def _check_stopping(order: FileOrder) -> None:
    if order.stopping.is_set():
        raise Unavailable("the daemon is stopping; the job resumes at the next start", retryable=True)


def _compose(inbox: Inbox, planned: PlannedNote, path: str | None, note: str, now: int) -> tuple[bytes, Document]:
    """Return the note's bytes and its parsed document."""
    order, arguments = planned.order, planned.order.given
    collection, tags = choose_collection(arguments.get("collection"), arguments.get("tags") or (), inbox.collections)
    note_properties = partial(
        properties_of,
        id=order.planned,
        created_at=now,
        source=arguments.get("source"),
        collection=collection or inbox.collections[0],
    )
    other = planned.name if planned.name != note_name(note) else None
    metadata: dict[str, PropertyValue] = {"type": "file", **file_properties(planned.facts, path, other)}
    text = ""
    if path is None:
        more, title, tagged, body = split_uploaded_note(planned.facts.text)
        with suppress(InvalidArgument):  # if its own properties can't be written, they stay text
            title = arguments.get("title") or title or order.name
            text = compose_note(
                note_properties(title=title, tags=_clean_tags((*tags, *tagged)), metadata={**metadata, **more}), body
            )
    text = text or compose_note(
        note_properties(title=arguments.get("title") or order.name, tags=_clean_tags(tags), metadata=metadata),
        planned.facts.text,
    )
    raw = encode(text)
    del text  # frees one copy of a large text while the note is parsed
    return raw, inbox.parse_note(raw, note, mtime_ms=now)


def _clean_tags(raw_tags: Collection[str]) -> tuple[str, ...]:
    """Return tags that Obsidian accepts, without collection tags: an uploaded note can't choose its collection."""
    tags = (tag_of(tag) for tag in raw_tags)
    return tuple(dict.fromkeys(tag for tag in tags if tag and not is_collection_tag(tag)))
