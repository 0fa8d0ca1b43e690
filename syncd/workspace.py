"""The operations on captures: one workspace of the inbox, and the desk that hands workspaces out.

Law: what is built here holds the captures' index and nothing of the vault proper's, so whatever is built on it can't
reach a note outside the inbox. A call that returns has been made durable and findable; one that fails changed nothing."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from index.enrich import Enrichment
from index.errors import Conflict, InvalidArgument, MemexError, NotFound, Unavailable
from index.identity import fold
from index.index import Index
from index.model import Answer, Document, Query, Record
from index.rerank import Reranker
from syncd.audit import Audit, Author
from syncd.capture import checked, iso, metadata_of, namespace_path, properties_of, workspace_name
from syncd.enrich import Enricher, filled, lacking
from syncd.keys import Keys
from syncd.memo_graph import MemoGraph
from syncd.memos import Memos
from syncd.naming import addresses, bare, told
from syncd.nodes import Nodes
from syncd.note import FrontmatterError, decode, edit, encode, split
from syncd.parse import parse
from syncd.place import place
from syncd.pushes import Pushes
from syncd.shelf import Slot
from syncd.telemetry import Sample
from syncd.update import updated
from syncd.vault import Vault
from syncd.writing import created, known, still, undoing, unnamed

MAX_SOURCE = 500  # characters


@dataclass(frozen=True, slots=True)
class Captured:
    """What a capture became; `created` is False when the same content was there already."""

    record: Record
    created: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """A document with its text."""

    record: Record
    content: str  # byte for byte as it was given
    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tools:
    """What every workspace works with: the inbox's files and index, and the clock. Nothing of the vault proper."""

    vault: Vault
    audit: Audit
    captures: Slot
    inbox: str
    taken: Callable[[str], bool]  # whether a folded base name is in use anywhere in the vault
    now: Callable[[], int]  # epoch milliseconds
    degraded: Callable[[], list[str]]  # what does not work as it should just now, in sentences
    enricher: Enricher
    edited: Callable[[Document], bool]  # whether somebody has edited this note by hand and it does not say so yet
    quiet_s: float  # seconds without a change after which a note counts as left by whoever wrote it
    reranker: Reranker | None = None  # puts what was found into a better order, if one is set
    writing: dict[str, threading.Lock] = field(default_factory=dict)  # by workspace: held while nodes or memos change
    drafted: dict[str, str] = field(default_factory=dict)  # drafts of summaries by what was asked about; `Asking`


class Workspace:
    """One workspace of the inbox; everything it returns lies in it."""

    def __init__(self, name: str, tools: Tools, progress: Callable[[int], None] | None = None) -> None:
        self.name, self._tools, self._progress = name, tools, progress

    def reporting(self, progress: Callable[[int], None]) -> Workspace:
        """This workspace, telling `progress` how many passages of a capture have been embedded so far."""
        return Workspace(self.name, self._tools, progress)

    @property
    def memos(self) -> Memos:
        """Its memos."""
        return Memos(self.name, self._tools, self._progress)

    @property
    def memo_graph(self) -> MemoGraph:
        """The relations between its memos."""
        return MemoGraph(self.memos, self._tools)

    @property
    def nodes(self) -> Nodes:
        """The nodes of this workspace."""
        return Nodes(self.name, self._tools, self._progress)

    @property
    def _index(self) -> Index:
        return self._tools.captures.index

    def capture(
        self,
        content: str,
        *,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        namespace: str = "default",
        collection: str = "documents",
    ) -> Captured:
        """Keep `content` as a note. The same content again is the same note: its `updated_at` moves, nothing else."""
        now = self._tools.now()
        body = checked(content)
        rest, title, tags = metadata_of(metadata or {})
        if source is not None and (len(source) > MAX_SOURCE or any(ord(c) < 32 for c in source)):
            raise InvalidArgument(f"source must be one line of at most {MAX_SOURCE} characters")
        folder = "/".join(filter(None, (self._tools.inbox, self.name, namespace_path(namespace))))
        content_hash = hashlib.sha256(body).hexdigest()
        if again := self._again(content_hash, now):
            return again
        own = partial(
            properties_of,
            id=str(uuid.uuid4()),
            created_at=now,
            source=source,
            collection=collection,
            tags=tags,
            metadata=rest,
        )
        made = created(
            self._tools,
            folder=folder,
            title=title,
            content=content,
            own=own,
            now=now,
            instead=partial(self._again, content_hash, now),
            progress=self._progress,
        )
        return made if isinstance(made, Captured) else Captured(made, created=True)

    def update_note(
        self,
        id: str,
        text: str | None,
        *,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        collection: str | None = None,
        version: int | None = None,
    ) -> tuple[Record, bool]:
        """Give a note another text, title, tags or collection (None: as it is); the note, and whether that changed it.

        Raises InvalidArgument for a node or a file, and Conflict, with the version, when it has another than `version`,
        or when a person has just edited it."""
        return updated(
            self._tools,
            self.name,
            partial(self._record, id),
            text=text,
            title=title,
            tags=tags,
            collection=collection,
            version=version,
            progress=self._progress,
        )

    def enrich(self, path: str, found: Enrichment, *, replacing: bool = False) -> Record | None:
        """Write what was found into the note at `path`, into lines of its own; None when there was nothing to write.

        Raises Conflict while somebody edits the note, and when its properties can't be changed by line."""
        with still(self._tools.captures) as index:
            raw, stat = self._tools.vault.read(path)
            now = self._tools.now()
            before = parse(raw, path, mtime_ms=stat.mtime_ns // 1_000_000, inbox=self._tools.inbox)
            if before.workspace != self.name or not before.writable or before.type == "entity":
                return None  # a node's summary and tags are set by name
            if not lacking(before, found, replace=replacing):
                return None
            if 0 <= now - stat.mtime_ns // 1_000_000 < self._tools.quiet_s * 1000:
                raise Conflict("it was changed a moment ago, perhaps by somebody who still writes")
            try:
                made = filled(raw, before, found, inbox=self._tools.inbox, replace=replacing)
            except FrontmatterError as error:
                raise Conflict(f"its properties can't be changed: {error}") from error
            assert made is not None, "it lacks something"
            changed, after = made
            stat = self._tools.vault.replace(path, changed, digest=before.digest)
            with undoing(lambda: self._tools.vault.replace(path, raw, digest=after.digest)):
                index.commit(index.prepare([(after, stat)]))
            return known(index.at(path))

    def search(self, query: Query) -> Answer:
        """Find documents of this workspace; the answer says what kept it from being complete."""
        own = replace(query, filter=replace(query.filter, workspace=self.name))
        reranker = self._tools.reranker
        answer = reranker.answer(own, self._index.search) if reranker else self._index.search(own)
        return replace(answer, degraded=tuple(dict.fromkeys((*answer.degraded, *self._tools.degraded()))))

    def get(self, id: str) -> Kept:
        """The document that answers to `id`."""
        record = self._record(id)
        return Kept(record, self.content(record), tuple(self._index.passages(record)))

    def content(self, record: Record) -> str:
        """The body of a document, byte for byte, as its file holds it now; a node's as `naming.told` has it."""
        with unnamed(record.path):
            raw, _ = self._tools.vault.read(record.path)
        body = split(decode(raw))[1].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return told(body) if record.type == "entity" else body

    def at(self, address: str) -> Record:
        """The document at `address`, a path below the workspace's folder as agents know it. NotFound without one."""
        alike = bare(address)
        found = self._addressed(path for path in self._paths() if bare(path) == alike).get(address)
        if found is None:
            raise NotFound(f"no document {address[:200]!r} in workspace {self.name!r}")
        return found

    def addresses(self, records: Iterable[Record]) -> dict[str, str]:
        """The address of each of these documents, by id."""
        asked = {record.id: bare(record.path.removeprefix(self._root)) for record in records}
        alike = frozenset(asked.values())
        found = self._addressed(path for path in self._paths() if bare(path) in alike)
        return {record.id: address for address, record in found.items() if record.id in asked}

    def matching(self, text: str, limit: int) -> list[str]:
        """Addresses that hold `text`, letter case aside, those that begin with it first; at most `limit`."""
        wanted = fold(text)
        core = wanted.rpartition(" (")[0] or wanted  # what may follow is a part of an id, which no path has

        def rank(address: str) -> tuple[bool, str]:
            return not fold(address).startswith(wanted), address

        paths = self._paths()
        plain = {bare(path) for path in paths if core in fold(f"{bare(path)}.md") or core in fold(path)}
        alike = frozenset(sorted(plain, key=rank)[: limit + 1])
        found = self._addressed(path for path in paths if bare(path) in alike)
        return sorted((address for address in found if wanted in fold(address)), key=rank)[:limit]

    def tags(self, limit: int) -> list[str]:
        """The tags most used here, the most used first."""
        return [tag for tag, _ in self._index.vocabulary(self.name, limit)]

    @property
    def _root(self) -> str:
        return f"{self._tools.inbox}/{self.name}/"

    def _paths(self) -> list[str]:
        """The paths of all documents here, below the workspace's folder."""
        root = self._root
        return [path[len(root) :] for path in list(self._index.manifest) if path.startswith(root)]

    def _addressed(self, paths: Iterable[str]) -> dict[str, Record]:
        index, root = self._index, self._root
        records = (index.at(f"{root}{path}") for path in paths)
        return addresses([record for record in records if record and record.workspace == self.name], root)

    def recent(self, limit: int = 20, *, before: int | None = None) -> list[Record]:
        """The newest documents by creation; with `before`, those created strictly before that time."""
        return self._index.recent(workspace=self.name, limit=limit, before=before)

    def delete(self, id: str) -> Record:
        """Remove a document: its file, its chunks and their vectors; of a node also the relations that lead to it."""
        if (node := self._record(id)).type == "entity":
            self.nodes.discard(node.path)
            return node
        with still(self._tools.captures) as index:
            record = self._record(id)
            with unnamed(record.path):
                raw, _ = self._tools.vault.read(record.path)
                self._tools.vault.remove(record.path, digest=hashlib.sha256(raw).hexdigest())
            with undoing(lambda: self._tools.vault.create(record.path, raw, again=True)):
                index.commit([], [record.path])
            return record

    def _record(self, id: str) -> Record:
        record = self._index.record(id, self.name)
        if record is None:
            raise NotFound(f"no document {id[:64]!r} in workspace {self.name!r}")
        return record

    def _again(self, content_hash: str, now: int) -> Captured | None:
        """The note that holds this content already, with its `updated_at` moved to `now`."""
        with still(self._tools.captures) as index:
            record = index.captured(self.name, content_hash)
            if record is None:
                return None
            try:
                with unnamed(record.path):
                    raw, _ = self._tools.vault.read(record.path)
            except NotFound:
                return None  # removed a moment ago, and the index not told yet
            before = parse(raw, record.path, mtime_ms=now, inbox=self._tools.inbox)
            if before.content_hash != content_hash:
                return None  # edited a moment ago, likewise
            try:
                changed = encode(edit(decode(raw), {"updated_at": iso(now)}))
            except FrontmatterError:
                return Captured(record, created=False)  # a person is in the middle of editing its properties
            document = parse(changed, record.path, mtime_ms=now, inbox=self._tools.inbox)
            with unnamed(record.path):
                stat = self._tools.vault.replace(record.path, changed, digest=before.digest)
            with undoing(lambda: self._tools.vault.replace(record.path, raw, digest=document.digest)):
                index.commit(index.prepare([(document, stat)], urgent=True))
            return Captured(known(index.at(record.path)), created=False)


class Desk:
    """What is handed to the rim: the workspaces and the keys, and how the daemon is doing."""

    def __init__(
        self,
        tools: Tools,
        keys: Keys,
        status: Callable[[Collection[str] | None], dict[str, Any]],
        pushes: Pushes,
        samples: Callable[[], list[Sample]] = list,
    ) -> None:
        self._tools, self.keys, self.status = tools, keys, status
        self.pushes, self.samples = pushes, samples

    def on_change(self, told: Callable[[Collection[str] | None], object]) -> Callable[[], None]:
        """Have `told` called with the paths of captures that changed (None: nobody knows which), until what is returned is called.

        It is called in the thread that changed them, while other changes wait, so it must be quick and raise nothing."""
        listeners = self._tools.captures.told
        listeners.append(told)
        return partial(listeners.remove, told)

    def denied(self, author: Author, error: MemexError, workspace: str) -> None:
        """Log a write that `author` was not allowed; what was asked for is told only where it is the name of something."""
        known: list[str] = []
        with suppress(Unavailable):  # the vault is away
            known = self.workspaces()
        self._tools.audit.denied(author, error.code, workspace if workspace in known else "")

    def workspaces(self) -> list[str]:
        """The names of all workspaces: the folders of the inbox that can hold captures."""
        probe = (f"{self._tools.inbox}/{name}/x.md" for name in self._tools.vault.folders(self._tools.inbox))
        return sorted(spot.workspace for path in probe if (spot := place(path, self._tools.inbox)).scope == "captures")

    def workspace(self, name: str) -> Workspace:
        """The workspace of that name. It must exist."""
        if name not in self.workspaces():
            way = (
                "`memex workspace create default` makes it"
                if name == "default"
                else "`memex workspace list` names them"
            )
            raise NotFound(f"no workspace {name!r}: {way}")
        return Workspace(name, self._tools)

    def create_workspace(self, name: str) -> Workspace:
        """Make a workspace; one that exists is returned as it is.

        Raises Conflict for the twin of one: where letter case does not count, both would be one folder."""
        known = self.workspaces()
        twin = next((other for other in known if fold(other) == fold(name)), None)
        if twin and name not in known:
            raise Conflict(f"there is a workspace {twin!r}: choose a name that differs in more than letter case")
        self._tools.vault.make_folder(f"{self._tools.inbox}/{workspace_name(name)}")
        return Workspace(name, self._tools)

    def delete_workspace(self, name: str) -> None:
        """Remove a workspace that holds no file. Raises InvalidArgument when it does."""
        self.workspace(name)
        try:
            self._tools.vault.remove_folder(f"{self._tools.inbox}/{name}")
        except MemexError as error:
            raise InvalidArgument(
                f"workspace {name!r} is not empty; move or delete its notes first", workspace=name
            ) from error
