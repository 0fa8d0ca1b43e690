"""Make, change and remove notes of the inbox, so that what was done is durable and findable when it returns.

Law: a call that fails leaves files and index as they were; nothing is written over bytes that nobody has read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from index.enrich import Enrichment
from index.errors import Conflict, MemexError, Unavailable
from index.index import Index
from index.model import Record, Stat
from index.names import fold
from index.trace import span
from syncd.audit import taken_back
from syncd.capture import composed, free_name, title_of
from syncd.enrich import Found, filled, lacking
from syncd.note import FrontmatterError, encode
from syncd.secrets import redacted
from syncd.shelf import Slot

if TYPE_CHECKING:
    from syncd.tools import Tools

T = TypeVar("T")

UNWRITTEN: Final = Stat(0, 0, 0)


@contextmanager
def still(captures: Slot) -> Iterator[Index]:
    """The index in use, with every other commit held back."""
    while True:
        index = captures.index
        with index.still():
            if index is captures.index:  # else it was switched for another build while we waited
                yield index
                return


@contextmanager
def alone(tools: Tools, workspace: str) -> Iterator[None]:
    """Nobody else writes to nodes or memos of the workspace, embedding included; all its notes are known."""
    with tools.writing.setdefault(workspace, threading.Lock()):
        known_whole(tools, workspace)
        yield


def known_whole(tools: Tools, workspace: str) -> None:
    """Raises Unavailable while the index does not know all notes of a workspace: what it lacks would be made twice."""
    index = tools.captures.index
    if index.listed:
        return
    manifest = index.manifest
    if not all(path in manifest for path in tools.vault.listing(f"{tools.inbox}/{workspace}").files):
        raise Unavailable("the notes of this workspace are still being read; try again in a moment", retryable=True)


@contextmanager
def undoing(undo: Callable[[], object]) -> Iterator[None]:
    """What was written is taken back when it can't be made findable."""
    try:
        yield
    except BaseException:
        taken_back(undo)
        raise


@contextmanager
def unnamed(path: str) -> Iterator[None]:
    """An error about a file, without the file's name, which tells what other notes the vault has."""
    try:
        yield
    except MemexError as error:
        words = error.message.replace(path, "the file of the note")
        raise type(error)(words, retryable=error.retryable, **error.details) from error


def known(record: Record | None) -> Record:
    """The row of a document that was committed."""
    assert record is not None, "a committed document has a row"
    return record


def created(
    tools: Tools,
    *,
    folder: str,
    title: str | None,
    content: str,
    own: Callable[..., dict[str, Any]],
    now: int,
    instead: Callable[[], T | None],
    progress: Callable[[int], None] | None = None,
) -> Record | T:
    """Make a note of `content` in `folder`, under a name that no note of the vault has; `own(title=…)` gives its properties.

    Unless `instead` has something, which is asked last of all, while every other commit is held back."""
    stem_of = redacted(title or title_of(content))  # names of files go where a note's text does not
    wanted = free_name(stem_of, now, lambda _: False)
    avoid: set[str] = set()
    finding: Callable[[], Found] | None = None
    while True:
        name = free_name(stem_of, now, lambda folded: folded in avoid or tools.taken(folded))
        # A file that had to be named otherwise says its title: the number would tell of a note that is not its reader's.
        raw = encode(composed(own(title=title or (wanted if name != wanted else None)), content))
        document = tools.parsed(raw, f"{folder}/{name}.md", mtime_ms=now)
        finding = finding or tools.enricher.begin(document)
        # Cut and embed before anything is written: a capture that can't be made findable is refused.
        index = tools.captures.index
        with span("prepare") as timed:
            (ready,) = index.prepare([(document, UNWRITTEN)], urgent=True, progress=progress)
            timed.note(chunks=len(ready.chunks), embedded=ready.embedded)
        with span("enrich"):
            found = finding()
        with suppress(FrontmatterError):
            raw, document = filled(raw, document, found.enrichment, read=tools.parsed) or (raw, document)
        ready = replace(ready, document=document)  # no passage shows summary or tags
        with still(tools.captures) as current:
            if (other := instead()) is not None:
                return other
            if current is not index or tools.taken(fold(name)):
                continue  # the name went to another capture, or the index was switched, while this one was embedded
            try:
                with unnamed(document.path), span("write"):
                    stat = tools.vault.create(document.path, raw)
            except Conflict:
                avoid.add(fold(name))  # a file that is not indexed, or not yet, has the name
                continue
            with undoing(partial(tools.vault.remove, document.path, digest=document.digest)), span("commit"):
                index.commit([replace(ready, stat=stat)])
            record = known(index.at(document.path))
        if found.owed:
            tools.enricher.owe(record.id, now)
        return record


def enriched(tools: Tools, workspace: str, path: str, found: Enrichment, *, replacing: bool = False) -> Record | None:
    """As `Workspace.enrich` has it."""
    with still(tools.captures) as index:
        raw, stat = tools.vault.read(path)
        now = tools.now()
        before = tools.parsed(raw, path, mtime_ms=stat.mtime_ns // 1_000_000)
        if before.workspace != workspace or not before.writable or before.type == "entity":
            return None  # a node's summary and tags are set by name
        if not lacking(before, found, replace=replacing):
            return None
        if 0 <= now - stat.mtime_ns // 1_000_000 < tools.quiet_s * 1000:
            raise Conflict("it was changed a moment ago, perhaps by somebody who still writes")
        try:
            made = filled(raw, before, found, read=tools.parsed, replace=replacing)
        except FrontmatterError as error:
            raise Conflict(f"its properties can't be changed: {error}") from error
        assert made is not None, "it lacks something"
        changed, after = made
        stat = tools.vault.replace(path, changed, digest=before.digest)
        with undoing(lambda: tools.vault.replace(path, raw, digest=after.digest)):
            index.commit(index.prepare([(after, stat)]))
        return known(index.at(path))
