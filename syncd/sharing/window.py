"""The window shows the agents of a workspace the notes of the vault that the owner shares with them, and nothing else.

Law, tested: it fails closed. Before an answer contains a note, Memex reads its file, and the path, the bytes, the properties and
the rules of now must all allow it. Of all indexes, the window holds the shared one alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final

from index.document_ids import path_id, sha256
from index.errors import MemexError, NotFound, Unavailable
from index.model import Answer, Query, Record
from index.scope.index import Index
from syncd.indexes.note_lookup import spell_path
from syncd.indexes.shared_index import SharedIndex
from syncd.notes.front_matter import decode, replace_undecoded, split
from syncd.sharing.share_property import why_withheld
from syncd.sharing.share_rules import ShareRules
from syncd.sharing.shares import Shares
from syncd.vault.vault import Vault

PREFIX: Final = "vault:"  # of the id of a shared note; no capture's id can contain a colon, so none looks like it
SPARE: Final = 10  # further hits that replace those that no longer are shared
TRIES: Final = 5  # of a search while shared notes are being indexed
FILLING: Final = "window: the notes that your owner shares are being indexed; until then searches miss some of them"
CHANGED: Final = "window: some shared notes have changed a moment ago and are left out until they are indexed again"


@dataclass(frozen=True, slots=True)
class SharedNote:
    """Holds a shared note as it is now."""

    record: Record
    raw: bytes  # the file
    content: str  # its body
    chunks: tuple[str, ...]


class _IndexLag(Exception):
    """The note is shared, but the index does not have it as it is."""


@dataclass(slots=True)
class Window:
    """Reads shared notes for all workspaces; safe to use from any thread."""

    shared: SharedIndex
    vault: Vault
    shares: Shares
    # The documents of each workspace, with the rules and the generation of the index that they were chosen by.
    _permitted: dict[str, tuple[ShareRules, int, frozenset[str]]] = field(default_factory=dict)

    def of(self, workspace: str) -> WorkspaceWindow | None:
        """Return the window of `workspace`; None while its owner shares nothing with it."""
        return WorkspaceWindow(workspace, self) if self.shares.rules.is_open(workspace) else None

    def documents_of(self, workspace: str, index: Index) -> frozenset[str] | None:
        """Return the keys of the documents in `index` that `workspace` may read; None if no other workspace reads any."""
        rules, generation = self.shares.rules, index.generation
        if sum(map(bool, rules.entries.values())) < 2:
            return None
        known = self._permitted.get(workspace)
        if known is None or known[0] is not rules or known[1] != generation:
            keys = frozenset(path_id(path) for path in list(index.manifest) if rules.shares(path, workspace))
            known = self._permitted[workspace] = rules, generation, keys
        return known[2]


@dataclass(frozen=True, slots=True)
class WorkspaceWindow:
    """Reads the notes that are shared with one workspace."""

    workspace: str
    _window: Window

    def search(self, query: Query) -> Answer:
        """Search the shared notes; hits that are no longer shared are left out."""
        with self._window.shared.read() as index:
            if index is None:
                return Answer((), query.mode, (FILLING,))
            answer = self._search_one_state(index, replace(query, limit=query.limit + SPARE))
        degraded = () if self._window.shared.is_complete else (FILLING,)
        checked = self.keep_shared(replace(answer, degraded=(*answer.degraded, *degraded)))
        hits = (replace(hit, record=_shown(hit.record)) for hit in checked.hits[: query.limit])
        return replace(checked, hits=tuple(hits))

    def keep_shared(self, answer: Answer) -> Answer:
        """Return `answer` without the notes of the vault that are not shared now, or not as they were indexed."""
        hits, degraded = [], list(answer.degraded)
        for hit in answer.hits:
            try:
                if hit.record.scope != "captures":
                    self._read_raw(hit.record)
            except NotFound:
                continue
            except _IndexLag:
                degraded.append(CHANGED)
                continue
            hits.append(hit)
        return replace(answer, hits=tuple(hits), degraded=tuple(dict.fromkeys(degraded)))

    def _search_one_state(self, index: Index, query: Query) -> Answer:
        """Search the index between two commits: otherwise a hit might join an old passage with the new record of its note."""
        documents = self._window.documents_of(self.workspace, index)
        narrowed = replace(query, filter=replace(query.filter, workspace=None, namespace=None, documents=documents))
        for _ in range(TRIES):
            generation = index.generation
            answer = index.search(narrowed)
            if index.generation == generation:
                return answer
        return Answer((), query.mode, (CHANGED,))

    def read(self, id: str) -> SharedNote:
        """Return the shared note with this id as it is now. Raises NotFound for any other, and Unavailable until an edit is indexed."""
        with self._window.shared.read() as index:
            key = id.removeprefix(PREFIX)
            record = index.catalog.records([key]).get(key) if index is not None and id.startswith(PREFIX) else None
            return self._note(index, record, id)

    def read_at(self, path: str) -> SharedNote:
        """Return the shared note at `path` as it is now; raises as `read` does."""
        with self._window.shared.read() as index:
            return self._note(index, None if index is None else index.record_at(spell_path(index, path)), path)

    def real_ids(self, ids: Collection[str]) -> dict[str, str]:
        """Return the ids by which the audit log knows these shared notes, by the ids that agents know."""
        by_key = {id.removeprefix(PREFIX): id for id in ids if id.startswith(PREFIX)}
        with self._window.shared.read() as index:
            records = {} if index is None or not by_key else index.catalog.records(list(by_key))
        return {by_key[key]: record.id for key, record in records.items()}

    def _note(self, index: Index | None, record: Record | None, name: str) -> SharedNote:
        # Anybody can compute the id of a path, so another workspace's note must cost and say no more than a missing one.
        if index is None or record is None or not self._window.shares.rules.shares(record.path, self.workspace):
            raise not_shared(name)
        passages = tuple(index.passages(record))
        try:
            raw = self._read_raw(record)
        except NotFound:
            raise not_shared(name) from None
        except _IndexLag:
            raise Unavailable(f"{record.path!r} has changed a moment ago; read it again in a second") from None
        body = replace_undecoded(split(decode(raw))[1])
        return SharedNote(_shown(record), raw, body, passages)

    def _read_raw(self, record: Record) -> bytes:
        """Return the bytes of the note as they are now. Raises NotFound if it is not shared now, and _IndexLag if it is not as indexed."""
        path, vault = record.path, self._window.vault
        try:
            raw, _ = vault.read(path)
        except MemexError:
            raise not_shared(path) from None
        text = decode(raw)
        # The rules come last: they may have changed while the file was read.
        if vault.ignores(path) or why_withheld(text) or not self._window.shares.rules.shares(path, self.workspace):
            raise not_shared(path)
        if sha256(raw) != record.digest:
            raise _IndexLag
        return raw


def _shown(record: Record) -> Record:
    """Return the record as agents see it: under an id that no capture can have."""
    return replace(record, id=f"{PREFIX}{path_id(record.path)}")


def not_shared(name: str) -> NotFound:
    """Return the error for a note that is not shared, or does not exist: agents must not learn which."""
    return NotFound(
        f"no note {name[:200]!r} is shared with this workspace; a search returns the paths of those that are"
    )
