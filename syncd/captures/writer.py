"""The writer creates, changes and removes notes of the inbox; each result is durable and searchable when the call returns.

Law: a call that fails leaves files and index as they were; bytes that nobody has read are never overwritten."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from index.document_ids import sha256
from index.errors import Conflict, MemexError, Unavailable
from index.model import Document, Record, Stat
from index.names import fold, note_name
from index.process_memory import LARGE_TEXT
from index.scope.index import Index
from index.scope.prepared_document import PreparedDocument
from index.topics.summary_and_tags import Enrichment
from index.tracing import span
from syncd.captures.automatic_values import Name, Value
from syncd.captures.value_renewal import filled_values
from syncd.documents.capture_note import automatic_title, compose_note, title_of
from syncd.documents.collection_membership import plain_tags
from syncd.documents.file_names import free_name
from syncd.enrichment.enricher import EnrichmentResult, fill_missing, missing_properties
from syncd.history.audit_log import take_back
from syncd.indexes.index_builds import ScopeIndex
from syncd.notes.front_matter import FrontmatterError, decode, encode, split
from syncd.notes.secret_patterns import redact
from syncd.vault.disk_errors import NameTaken

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox

T = TypeVar("T")

UNWRITTEN: Final = Stat(0, 0, 0)
ROUNDS: Final = 100  # a round fails when another note takes the name, or the index is replaced by a new build
WRITING_S: Final = 120.0  # after this time no other name is tried: the caller has timed out by then


class MissedAttempt(Enum):
    """Says why an attempt to write a note failed."""

    SWITCHED = "the index was replaced by another build"
    TAKEN = "another note or file has the name"


@contextmanager
def hold_commits(captures: ScopeIndex) -> Iterator[Index]:
    """Yield the index in use, and hold back all other commits."""
    while True:
        index = captures.index
        with index.lock:
            if index is captures.index:  # otherwise a new build replaced it while we waited
                yield index
                return


@contextmanager
def lock_workspace(inbox: Inbox, workspace: str, *, indexed: bool = True) -> Iterator[None]:
    """Lock the workspace for writes to entities or memos, embedding included; `indexed`: once all its notes are indexed."""
    with inbox.writing.setdefault(workspace, threading.Lock()):
        if indexed:
            check_workspace_indexed(inbox, workspace)
        yield


def check_workspace_indexed(inbox: Inbox, workspace: str) -> None:
    """Raise Unavailable until all notes of a workspace are indexed: missing ones might be created twice."""
    index = inbox.captures.index
    if index.is_complete:
        return
    manifest = index.manifest
    if not all(path in manifest for path in inbox.vault.list_notes(f"{inbox.folder}/{workspace}").files):
        raise Unavailable("the notes of this workspace are still being read; try again in a moment", retryable=True)


@contextmanager
def undo_on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Undo a write if it can't be indexed."""
    try:
        yield
    except BaseException:
        take_back(undo)
        raise


@contextmanager
def hide_file_name(*paths: str) -> Iterator[None]:
    """Replace the files' names in errors, because they would reveal other notes of the vault."""
    try:
        yield
    except MemexError as error:
        words = error.message
        for path in sorted(paths, key=len, reverse=True):
            words = words.replace(f"at {path}", "at the place of the note").replace(path, "the file of the note")
        raise type(error)(words, retryable=error.retryable, **error.details) from error


def require_row(record: Record | None) -> Record:
    """Return the row of a committed note."""
    assert record is not None, "a committed document has a row"
    return record


def create_note(
    inbox: Inbox,
    *,
    folder: str,
    title: str | None,
    content: str,
    properties: Callable[..., dict[str, Any]],
    now: int,
    instead: Callable[[], T | None],
    progress: Callable[[int], None] | None = None,
) -> Record | T:
    """Create a note with `content` in `folder`, under a name that is new in the vault; `properties(title=…)` gives its properties.

    `instead` is called last, while all other commits are held back; if it returns a note, that note is returned and
    none is created."""
    stem_of = redact(title) if title else title_of(content)  # file names reach more places than the text of a note
    wanted = free_name(stem_of, now, lambda _: False) if title else automatic_title(content, now)
    avoid: set[str] = set()
    finding: Callable[[], EnrichmentResult] | None = None

    for name in _names_to_try(inbox, folder, stem_of, now, avoid):
        # A file with a numbered name states its title: the number would reveal a note that its reader may not see.
        raw = encode(compose_note(properties(title=title or (wanted if name != wanted else None)), content))
        document = inbox.parse_note(raw, f"{folder}/{name}.md", mtime_ms=now)
        finding = finding or inbox.enricher.begin(document)
        outcome = try_create(
            inbox,
            lambda: (raw, document),  # noqa: B023 - called before the next name is tried
            prepare=partial(_prepare_urgently, progress),
            finding=finding,
            taken=inbox.taken,
            instead=instead,
            automatic={} if title else {"title": wanted},
        )
        if outcome is MissedAttempt.TAKEN:
            avoid.add(fold(name))
        elif outcome is not MissedAttempt.SWITCHED:
            return outcome
    raise Conflict("other notes kept taking the names for this note; try again in a moment", retryable=True)


def _prepare_urgently(progress: Callable[[int], None] | None, index: Index, document: Document) -> PreparedDocument:
    with span("prepare") as timed:
        (ready,) = index.prepare([(document, UNWRITTEN)], urgent=True, progress=progress)
        timed.note(chunks=len(ready.chunks), embedded=ready.embedded)
    return ready


def _names_to_try(inbox: Inbox, folder: str, stem: str, now: int, avoid: set[str]) -> Iterator[str]:
    """Yield base names that are new in the vault; names of files that are not indexed yet are added to `avoid`."""
    late = time.monotonic() + WRITING_S
    for _ in range(ROUNDS):
        name = free_name(stem, now, lambda folded: folded in avoid or inbox.taken(folded))
        while inbox.vault.exists(f"{folder}/{name}.md"):
            avoid.add(fold(name))
            name = free_name(stem, now, lambda folded: folded in avoid or inbox.taken(folded))
        yield name
        if time.monotonic() > late:
            return


def try_create(
    inbox: Inbox,
    compose: Callable[[], tuple[bytes, Document]],
    *,
    prepare: Callable[[Index, Document], PreparedDocument],
    finding: Callable[[], EnrichmentResult],
    taken: Callable[[str], bool],
    instead: Callable[[], T | None] = lambda: None,
    automatic: Mapping[Name, Value] = MappingProxyType({}),
) -> Record | T | MissedAttempt:
    """Write a note and index it, with the summary and tags of `finding` where it lacks them.

    `compose` returns its bytes and document; of a large note this call holds the only ones, and frees them early. The summary
    and tags are recorded as automatic values, together with `automatic`. The note is split and embedded before anything
    is written, so a note that can't be indexed is refused. While all other commits are held back, `instead` is
    called and its result is returned, if any; then `taken` is called with the folded name."""
    index = inbox.captures.index
    ready, raw, values, retry = _prepare_enriched(inbox, compose, partial(prepare, index), finding)
    document = ready.document
    with hold_commits(inbox.captures) as current:
        if (other := instead()) is not None:
            return other
        if current is not index:
            return MissedAttempt.SWITCHED
        if taken(fold(note_name(document.path))):
            return MissedAttempt.TAKEN  # the name went to another note while this one was embedded
        try:
            with hide_file_name(document.path), span("write"):
                stat = inbox.vault.create(document.path, raw)
            del raw
        except NameTaken:
            return MissedAttempt.TAKEN  # a file that is not indexed has the name
        with undo_on_failure(partial(inbox.vault.remove, document.path, digest=document.digest)), span("commit"):
            index.commit([replace(ready, stat=stat)])
        record = require_row(index.record_at(document.path))
    return record_values(inbox, record, {**automatic, **values}, retry=retry)


def _prepare_enriched(
    inbox: Inbox,
    compose: Callable[[], tuple[bytes, Document]],
    prepare: Callable[[Document], PreparedDocument],
    finding: Callable[[], EnrichmentResult],
) -> tuple[PreparedDocument, bytes, dict[Name, Value], bool]:
    """Split, embed and enrich a note; return it, its bytes, the filled-in values, and whether the enrichment must be retried."""
    raw, document = compose()
    if len(raw) <= LARGE_TEXT:
        ready = prepare(document)
        retry, values, raw, document = _enrich(inbox, raw, document, finding)
        return replace(ready, document=document), raw, values, retry  # passages contain neither summary nor tags
    retry, values, raw, document = _enrich(inbox, raw, document, finding)  # before its passages take room as well
    return replace(prepare(document), document=replace(document, content="", text="")), raw, values, retry


def _enrich(
    inbox: Inbox, raw: bytes, document: Document, finding: Callable[[], EnrichmentResult]
) -> tuple[bool, dict[Name, Value], bytes, Document]:
    """Return whether the enrichment must be retried, the filled-in values, and the note with them."""
    with span("enrich"):
        result = finding()
    filled = None
    with suppress(FrontmatterError):
        filled = fill_missing(raw, document, result.enrichment, read=inbox.parse_note)
    filled = filled or (raw, document)
    return result.retry, filled_values(document, decode(raw), filled[1], decode(filled[0])), *filled


def record_values(
    inbox: Inbox, record: Record, values: Mapping[Name, Value], *, retry: bool, from_caller: Collection[str] = ()
) -> Record:
    """Record which values of a written note are automatic, and that its enrichment must be tried again if `retry`; return the note's row."""
    inbox.automatic.record(record.workspace, record.id, values, from_caller=from_caller)
    if retry:
        inbox.enricher.add_retry(record.workspace, record.id, inbox.now())
    return record


def enrich_note(
    inbox: Inbox, workspace: str, document: Document, enrichment: Enrichment, *, replacing: bool = False
) -> Record | None:
    """Write missing properties into a note; see `Workspace.enrich`."""
    path = document.path
    raw, stat = inbox.vault.read(path)
    before = inbox.parse_note(raw, path, mtime_ms=stat.mtime_ms)
    if before.workspace != workspace or not before.writable or before.type == "entity":
        return None  # the summary and tags of an entity are set by name
    missing = missing_properties(before, enrichment, replace=replacing)
    if not missing:
        return None
    if 0 <= inbox.now() - stat.mtime_ms < inbox.quiet_s * 1000:
        raise Conflict("it changed a moment ago; somebody may still be writing")
    if before.content_hash != document.content_hash:
        raise Conflict("its text changed while Memex read it; try again", retryable=True)
    try:
        made = fill_missing(raw, before, enrichment, read=inbox.parse_note, replace=replacing)
    except FrontmatterError as error:
        raise Conflict(f"its properties can't be changed: {error}") from error
    assert made is not None, "it lacks something"
    changed, after = made
    record = _replace_prepared(inbox, raw, changed, after)
    filled: dict[Name, Value] = {"tags": plain_tags(split(decode(changed))[0]), "summary": after.summary}
    written = missing.keys() | ({"summary"} if after.summary_derived else set())
    inbox.automatic.record(
        record.workspace, record.id, {name: value for name, value in filled.items() if name in written}
    )
    return record


def _replace_prepared(inbox: Inbox, before: bytes, raw: bytes, document: Document) -> Record:
    """Replace a note and index it, prepared while other commits go on: the encoder may still be loading."""
    path, index = document.path, inbox.captures.index
    (ready,) = index.prepare([(document, UNWRITTEN)])
    with hold_commits(inbox.captures) as current:
        if current is not index:
            raise Conflict("another build of the index took over a moment ago; try again", retryable=True)
        stat = inbox.vault.replace(path, raw, digest=sha256(before))
        with undo_on_failure(lambda: inbox.vault.replace(path, before, digest=document.digest)):
            index.commit([replace(ready, stat=stat)])
        return require_row(index.record_at(path))
