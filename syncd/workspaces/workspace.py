"""Run the operations on the captures of one workspace: capture, search, read, update and delete.

Law: of the vault outside the inbox, a workspace holds only its window: notes that the owner shares with it, read-only. Code
built on it cannot reach any other note there. When a call returns, its result is durable and searchable; a call that fails changed
nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from index.document_ids import sha256
from index.errors import NotFound, PermissionDenied, Unavailable
from index.model import COLLECTIONS, Answer, Document, Query, Record
from index.names import fold
from index.query import make_filter
from index.scope.index import Index
from index.topics.summary_and_tags import Enrichment
from syncd.captures.inbox import Inbox
from syncd.captures.note_update import NoteUpdate, set_tags, unknown_document, update_note
from syncd.captures.queued_note import prepare_request
from syncd.captures.repeated_content import renew_same_content
from syncd.captures.writer import create_note, enrich_note, hide_file_name
from syncd.changes.proposed_text import ChangeRequest
from syncd.context.session_context import SessionContext
from syncd.documents import agent_paths
from syncd.documents.capture_note import CHANGE, before_diff, check_content, check_source, properties_of, split_metadata
from syncd.documents.collection_membership import choose_collection
from syncd.files.document_removal import delete_document
from syncd.graph.nodes import Nodes
from syncd.history.write_lineage import Hand, Writer, find_creator, find_last_editor
from syncd.indexes.note_lookup import find_successor
from syncd.jobs.queued_job import Job, Status
from syncd.memos.memo_graph import MemoGraph
from syncd.memos.memos import Memos
from syncd.notes.front_matter import decode, replace_undecoded, split
from syncd.sharing.window import PREFIX as SHARED_ID
from syncd.sharing.window import SharedNote, WorkspaceWindow
from syncd.uploads.upload_sessions import Uploads
from syncd.vault.location import locate
from syncd.vault.path_rules import is_note
from syncd.workspaces.change_proposals import propose_change
from syncd.workspaces.window_search import SearchScope, search_scopes
from syncd.workspaces.workspace_totals import WorkspaceTotals, count_totals

SUGGEST: Final = "to change it, use propose_change"


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """Holds the note of a capture; `created` is False when the content existed already."""

    record: Record
    created: bool


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """Holds a document with its text."""

    record: Record
    content: str  # the exact text
    chunks: tuple[str, ...]


class Workspace:
    """Provides one workspace of the inbox, or one `namespace` of it; everything it returns is inside it.

    `reads_all` says that its caller may read the other workspaces too; scores then depend on the words of all."""

    def __init__(
        self,
        name: str,
        inbox: Inbox,
        progress: Callable[[int], None] | None = None,
        *,
        namespace: str | None = None,
        reads_all: bool = False,
    ) -> None:
        self.name, self.namespace, self._inbox, self._progress = name, namespace, inbox, progress
        self._reads_all = reads_all

    def with_progress(self, progress: Callable[[int], None]) -> Workspace:
        """Return this workspace with a callback for the number of embedded passages of a capture."""
        return Workspace(self.name, self._inbox, progress, namespace=self.namespace, reads_all=self._reads_all)

    @property
    def memos(self) -> Memos:
        """Return its memos."""
        return Memos(self.name, self._inbox, self._progress)

    @property
    def memo_graph(self) -> MemoGraph:
        """Return the relations between its memos."""
        return MemoGraph(self.memos, self._inbox)

    @property
    def nodes(self) -> Nodes:
        """Return the nodes of this workspace."""
        return Nodes(self.name, self._inbox, self._progress)

    @property
    def collections(self) -> tuple[str, ...]:
        """Return the collections that a document can be in."""
        return self._inbox.collections

    @property
    def uploads(self) -> Uploads:
        """Return the running uploads of all workspaces; each call names this workspace."""
        return self._inbox.uploads

    @property
    def _index(self) -> Index:
        return self._inbox.captures.index

    def capture(
        self,
        content: str,
        *,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        namespace: str = "default",
        collection: str | None = None,
    ) -> CaptureResult:
        """Save `content` as a note. Equal content is the same note: only its `updated_at` changes.

        A tag `collection:x` sets the collection too. A note of another collection than the given one does not count."""
        now = self._inbox.now()
        content_hash = sha256(check_content(content))
        rest, title, metadata_tags = split_metadata(metadata or {})
        named, tags = choose_collection(collection, metadata_tags, self.collections)
        check_source(source)
        folder = self._inbox.namespace_folder(self.name, self.namespace or namespace)
        if again := self._renew(content_hash, named, now):
            return again
        note_properties = partial(
            properties_of,
            id=str(uuid.uuid4()),
            created_at=now,
            source=source,
            collection=named or COLLECTIONS[0],
            tags=tags,
            metadata=rest,
        )
        made = create_note(
            self._inbox,
            folder=folder,
            title=title,
            content=content,
            properties=note_properties,
            now=now,
            instead=partial(self._renew, content_hash, named, now),
            progress=self._progress,
        )
        return made if isinstance(made, CaptureResult) else CaptureResult(made, created=True)

    def add_note(
        self,
        text: str,
        *,
        key: str,
        title: str | None = None,
        tags: Sequence[str] = (),
        collection: str | None = None,
        namespace: str = "default",
        source: str | None = None,
    ) -> Job:
        """Queue `text` to become a note. If a note has this text already, it gets these tags too."""
        namespace = self.namespace or namespace
        self._inbox.namespace_folder(self.name, namespace)  # raises now instead of in the job
        arguments, about = prepare_request(
            text, self.collections, title=title, tags=tags, collection=collection, namespace=namespace, source=source
        )
        return self._inbox.queue.add_note(key, self.name, arguments, title=about)

    def job(self, key: str | None, id: str) -> Job:
        """Return a job that this key has queued here (None: any key). Raises NotFound for any other."""
        return self._inbox.queue.job(id, key=key, workspace=self.name)

    def jobs(
        self, key: str | None, *, status: Status | None = None, limit: int = 20, before: str | None = None
    ) -> list[Job]:
        """Return the newest jobs that this key has queued here (None: any key), older than the job `before`."""
        return self._inbox.queue.jobs(key=key, workspace=self.name, status=status, limit=limit, before=before)

    def job_counts(self, key: str | None = None) -> dict[Status, int]:
        """Return the number of jobs here in each status: those of a key, or of all keys."""
        return self._inbox.queue.counts(self.name, key)

    def enrich(self, document: Document, enrichment: Enrichment, *, replacing: bool = False) -> Record | None:
        """Write the summary and tags of `document` into its note; None when there is nothing to write.

        Raises Conflict if its text is another by now or somebody edits it, and when its properties can't be changed line by line."""
        return enrich_note(self._inbox, self.name, document, enrichment, replacing=replacing)

    def search(self, query: Query, *, scope: SearchScope = "captures") -> Answer:
        """Search the documents of this workspace, or what its owner shares with it; the answer says why it may be incomplete."""
        namespace = self.namespace or query.filter.namespace
        within = replace(query.filter, workspace=self.name, namespace=namespace, reads_all=self._reads_all)
        narrowed = replace(query, filter=within)
        answer = search_scopes(narrowed, scope, self._index.search, self.window, self._inbox.reranker)
        captured = [hit.record.id for hit in answer.hits if hit.record.scope == "captures"]
        self._inbox.searches.record(query.text, captured)
        degraded = self._inbox.degraded_search(self._counted_folder)
        return replace(answer, degraded=tuple(dict.fromkeys((*answer.degraded, *degraded))))

    @property
    def window(self) -> WorkspaceWindow | None:
        """Return the notes of the vault that the owner shares with this workspace; None if there are none, and for one namespace."""
        return self._inbox.window.of(self.name) if self.namespace is None else None

    def propose_change(self, path: str, request: ChangeRequest, reason: str) -> CaptureResult:
        """Propose a change of the shared note at `path` to the owner; see `change_proposals.propose_change`."""
        return CaptureResult(*propose_change(self._inbox, self.name, self.window, path, request, reason=reason))

    def _shared_note(self, id: str) -> SharedNote:
        if (window := self.window) is None:
            raise unknown_document(id, self.name)
        return window.read(id)

    def get(self, id: str) -> StoredDocument:
        """Return the document with this `id`."""
        if id.startswith(SHARED_ID):
            note = self._shared_note(id)
            return StoredDocument(note.record, note.content, note.chunks)
        record = self._record(id)
        return StoredDocument(record, self.read_content(record), tuple(self._index.passages(record)))

    def record(self, id: str) -> Record:
        """Return the row of the document with this `id`."""
        return self._shared_note(id).record if id.startswith(SHARED_ID) else self._record(id)

    def successor(self, record: Record) -> str | None:
        """Return the id of the document of this workspace that replaces `record`, at the end of a chain of such documents.

        None if no document does, or the link leads elsewhere."""
        replacement = find_successor(self._index, record)
        return replacement.id if replacement and self._sees(replacement) else None

    def writers(self, record: Record) -> tuple[Writer | None, Writer | None]:
        """Return who created a document and who changed it last; None = unknown, or nobody changed it.

        Writes made while it was in another workspace, or in the vault, are not reported: somebody moved it here."""
        if record.scope == "vault":
            return None, None
        entries = [entry for entry in self._inbox.audit.entries_about(id=record.id) if entry.workspace == self.name]
        made = find_creator(entries, record.created_at, whole=not self._inbox.audit.base().seq)
        return made, find_last_editor(entries, record.digest, record.updated_at)

    @property
    def logs_reads(self) -> bool:
        """Return whether the audit log records reads."""
        return self._inbox.audit.reads

    def log_reads(self, ids: Collection[str], names: Collection[str] = ()) -> None:
        """Log that text of these documents and nodes is about to be returned."""
        nodes = self._node_ids(names)
        if self.logs_reads and (ids or nodes):
            real = self._real_ids(ids)
            self._inbox.audit.log_read(self.name, list(dict.fromkeys((*(real.get(id, id) for id in ids), *nodes))))

    def context(self, project: str = "") -> SessionContext:
        """Return what an agent gets at the start of a session here; facts of `project` come first."""
        return self._inbox.contexts.read(self.name, project=project, namespace=self.namespace)

    def count_uses(self, ids: Collection[str], names: Collection[str] = ()) -> None:
        """Count an answer that contains these documents and nodes, for the choice of the context if there is one."""
        if not self._inbox.contexts.is_on:
            return
        captured = (id for id in ids if not id.startswith(SHARED_ID))
        self._inbox.contexts.uses.add(self.name, (*captured, *self._node_ids(names)))

    def _node_ids(self, names: Collection[str]) -> list[str]:
        return [node.id for name in names if (node := self.nodes.graph.get(name))]

    def hands(self, ids: Collection[str]) -> dict[str, Hand]:
        """Return whether only people wrote each document ("hand"), or an agent too ("key"); pruned entries count as an agent's.

        An entry of another workspace counts unless a note has the id there now: this one may have been moved from there."""
        real = self._real_ids(ids)
        entries = self._inbox.audit.notes_from_agents([real.get(id, id) for id in ids])
        from_keys = {
            id for id, workspace in entries if workspace == self.name or self._index.record(id, workspace) is None
        }
        return {id: "key" if real.get(id, id) in from_keys else "hand" for id in ids}

    def _real_ids(self, ids: Collection[str]) -> dict[str, str]:
        """Return the ids by which the audit log knows the shared notes among `ids`."""
        return window.real_ids(ids) if (window := self.window) else {}

    def file_exists(self, record: Record) -> bool:
        """Return whether a document's file exists now, as far as known; the index accepts an absence a little later."""
        try:
            return self._inbox.vault.stat(record.path) is not None
        except Unavailable:
            return True

    def totals(self) -> WorkspaceTotals:
        """Return the totals of this workspace."""
        return count_totals(self._index, self.name, self.namespace, self._inbox.degraded(self._counted_folder))

    def read_content(self, record: Record) -> str:
        """Return the body of a document exactly as in its file; for a node see `agent_paths.strip_link_numbers`."""
        if record.scope == "vault":
            return self._shared_note(record.id).content
        with hide_file_name(record.path):
            raw, _ = self._inbox.vault.read(record.path)
        body = replace_undecoded(split(decode(raw))[1])
        if record.type == CHANGE:
            return before_diff(body)
        return agent_paths.strip_link_numbers(body) if record.type == "entity" else body

    def document_at(self, address: str, *, shared: bool = False) -> Record:
        """Return the document at `address`, a path below the workspace's folder as agents see it. Raises NotFound.

        The address of a stored file leads to the document with its text. `shared`: also look for a shared note at this path."""
        record = self._documents_by_base([address]).get(address)
        if record is None and not is_note(address):
            beside = self._documents_by_base([f"{address}.md"]).get(f"{address}.md")
            record = beside if beside and beside.file else self._find_by_file(f"{self.root}{address}")
        if record is None and shared and (window := self.window):
            with suppress(NotFound):
                return window.read_at(address).record
        if record := record or agent_paths.find_by_form(address, self._paths, self._known_ids, self._assign_addresses):
            return record
        raise unknown_document(address, self.name)

    def _find_by_file(self, file: str) -> Record | None:
        """Return the document of a file at the path where a person put it, under its original name."""
        records = (record for record in self._index.catalog.records_of_file(file) if self._sees(record))
        return next((record for record in records if record.path.rpartition("/")[0] != file.rpartition("/")[0]), None)

    def addresses(self, records: Iterable[Record]) -> dict[str, str]:
        """Return the address of each of these documents, by id: of a shared note, its path in the vault."""
        records = list(records)
        shared = {record.id: record.path for record in records if record.scope == "vault"}
        wanted_addresses = {
            record.id: self._plain_address(record.path, agent_paths.name_of(record), record.type)
            for record in records
            if record.id not in shared
        }
        by_address = self._documents_by_base(wanted_addresses.values(), records)
        return shared | {record.id: address for address, record in by_address.items() if record.id in wanted_addresses}

    def node_addresses(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the address of the document at each of these paths, by path."""
        records = self._index.records_at(set(paths)).values()
        addresses = self.addresses(records)
        return {record.path: addresses[record.id] for record in records if record.id in addresses}

    def matching_addresses(self, text: str, limit: int) -> list[str]:
        """Return at most `limit` addresses that contain `text`, ignoring letter case; those that begin with it first."""
        wanted = fold(text)
        core = wanted.rpartition(" (")[0] or wanted  # a part of an id may follow, which paths don't contain

        def rank(address: str) -> tuple[bool, bool, str]:
            return not fold(address).startswith(wanted), not fold(address).startswith(core), address

        paths = self._paths()
        ids = self._known_ids(agent_paths.texts_in_brackets(paths))
        bare = {path: agent_paths.bare_path(path, ids) for path in paths}
        plain = {name for path, name in bare.items() if core in fold(f"{name}.md") or core in fold(path)}
        alike = frozenset(sorted(plain, key=rank)[: limit + 1])
        by_address = self._assign_addresses(path for path, name in bare.items() if name in alike)
        return sorted((address for address in by_address if wanted in fold(address)), key=rank)[:limit]

    def tags(self, limit: int) -> list[str]:
        """Return the most used tags, most used first."""
        return [tag for tag, _ in self._index.catalog.vocabulary(self.name, limit, self.namespace)]

    @property
    def root(self) -> str:
        """Return the path of its folder in the vault, with a slash at the end."""
        return f"{self._inbox.folder}/{self.name}/"

    def _paths(self) -> list[str]:
        """Return the paths of all documents here, below the workspace's folder."""
        root, inbox = self.root, self._inbox.folder
        paths = [path for path in list(self._index.manifest) if path.startswith(root)]
        if self.namespace is not None:
            paths = [path for path in paths if locate(path, inbox).namespace == self.namespace]
        return [path[len(root) :] for path in paths]

    def _plain_address(self, path: str, title: str, type: str) -> str:
        return agent_paths.strip_number(path.removeprefix(self.root), title, type)

    def _documents_by_base(self, addresses: Collection[str], known: Iterable[Record] = ()) -> dict[str, Record]:
        """Return the documents with the base of one of these addresses, by address; `known` documents are not read again."""
        ids = self._known_ids(agent_paths.texts_in_brackets(addresses))
        wanted = {agent_paths.base_of(address, ids) for address in addresses}
        stems = {f"{self.root}{name}" for address_base in wanted for name in agent_paths.possible_stems(address_base)}
        plain = {path: self._plain_address(path, *named) for path, *named in self._index.notes_with_stems(stems)}
        ids = self._known_ids(agent_paths.texts_in_brackets(plain.values()))
        paths = [path for path, address in plain.items() if agent_paths.base_of(address, ids) in wanted]
        return self._assign_addresses((path.removeprefix(self.root) for path in paths), known)

    def _known_ids(self, texts: Collection[str]) -> set[str]:
        return self._index.known_ids(self.name, texts)

    def _assign_addresses(self, paths: Iterable[str], known: Iterable[Record] = ()) -> dict[str, Record]:
        root = self.root
        full = {f"{root}{path}" for path in paths}
        records = {record.path: record for record in known if record.path in full}
        records |= self._index.records_at(full - records.keys())
        return agent_paths.assign_addresses([record for record in records.values() if self._sees(record)], root)

    def recent(self, limit: int = 20, *, before: int | str | None = None) -> list[Record]:
        """Return the newest documents by creation: with a time `before`, strictly older ones; with a cursor, those after its document."""
        return self._index.recent(workspace=self.name, limit=limit, before=before, namespace=self.namespace)

    def documents(
        self, *, limit: int = 20, cursor: str | None = None, address: str | None = None, **where: Any
    ) -> tuple[list[Record], str | None]:
        """Return documents page by page, as `index.list_recent` orders them; `where` as in `make_filter`.

        `address`: only the document that `document_at` finds there."""
        request = make_filter(workspace=self.name, collections=self.collections, namespace=self.namespace, **where)
        path = None
        if address is not None:
            try:
                path = self.document_at(address).path
            except NotFound:
                path = ""  # matches no document; the cursor is still checked
        return self._index.list_recent(request, limit, cursor, path=path)

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
        """Change a note's text, title, tags or collection (None: unchanged); return it, and whether it changed.

        Raises Conflict, with the version, if it has another than `version`, or if a person has just edited it."""
        update = NoteUpdate(text, title, tags, collection, version)
        return update_note(self._inbox, self.name, partial(self._changeable, id), update, self._progress)

    def set_tags(self, id: str, tags: Sequence[str], *, version: int | None = None) -> Record:
        """Replace the tags of a document; a tag like `collection:x` puts it into that collection.

        Raises Conflict, with the version, if it has another than `version`."""
        self._changeable(id)
        return set_tags(self.name, self._inbox, id, tags, version)

    def delete(self, id: str) -> Record:
        """Remove a document: its note, its chunks and their vectors, and the relations of other notes to it.

        The stored file with its text is removed too, if it is still the file that was read."""
        if (node := self._changeable(id)).type == "entity":
            self.nodes.delete_note(node.path)
            return node
        return delete_document(self._inbox, self.name, partial(self._record, id))

    def _record(self, id: str) -> Record:
        record = self._index.record(id, self.name)
        if record is None or not self._sees(record):
            raise unknown_document(id, self.name)
        return record

    def _changeable(self, id: str) -> Record:
        """Return the document with this `id` for a change. A node belongs to more than one namespace."""
        if id.startswith(SHARED_ID):
            path = self._shared_note(id).record.path
            raise PermissionDenied(f"{path!r} is a note of your owner that you can only read; {SUGGEST}", path=path)
        record = self._record(id)
        if record.type == "entity" and self.namespace is not None:
            raise PermissionDenied(
                "a node belongs to the graph of the whole workspace, but the key is bound to a namespace"
            )
        return record

    def _sees(self, record: Record) -> bool:
        """Return whether a document is in this workspace and namespace."""
        return record.workspace == self.name and self.namespace in (None, record.namespace)

    @property
    def _counted_folder(self) -> str:
        """Return the folder in which degraded notes are counted; for a namespace that is a folder, only there."""
        return self.name if self.namespace in (None, "default") else f"{self.name}/{self.namespace}"

    def _renew(self, content_hash: str, collection: str | None, now: int) -> CaptureResult | None:
        """Return the existing note with this content, with its `updated_at` set to `now`."""
        record = renew_same_content(self._inbox, self.name, self.namespace, content_hash, collection, now=now)
        return CaptureResult(record, created=False) if record else None
