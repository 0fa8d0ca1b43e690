"""Write documents to the index of one scope: a catalog and two stores that stay consistent.

Law: a document's rows are in the stores before the catalog claims them. A crash in between leaves the catalog behind
the stores; the next opening compares their counts and reads the documents that differ again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from index import timings
from index.catalog.catalog import Catalog
from index.document_ids import path_id
from index.encoders.embedder import Embedder
from index.errors import Unavailable
from index.graph.graph import Graph, Graphs
from index.graph.vertex import vertex_of
from index.memos.queries import MemoRows
from index.model import COLLECTIONS, Document, Entry, Scope, Stat
from index.names import stem
from index.observations.observation_rows import facet_rows
from index.observations.observation_store import Observations
from index.observations.perspectives import DEFAULTS, hash_perspectives
from index.process_memory import release_unused
from index.scope.integrity_check import describe_difference, store_uris
from index.scope.prepared_document import MANY, ChunkRows, PreparedDocument, has_same_rows, prepare
from index.scope.reader import Looks, Reader
from index.scope.vector_reuse import Vectors
from index.storage.chunk_rows import Row
from index.storage.store_opening import open_later, open_store
from index.text.chunking import Sizes
from index.tracing import span

if TYPE_CHECKING:
    from index.storage.chunk_store import ChunkStore

LOADING_S = 15.0  # how long a bulk run waits for an encoder that is still loading


class Index(Reader):
    """The index of one scope. Preparing may run in any thread, beside anything; a commit holds `lock`."""

    def __init__(
        self,
        scope: Scope,
        catalog: Catalog,
        store: ChunkStore,
        observations: Observations,
        *,
        embedder: Embedder,
        sizes: Sizes,
        made_by: str,
        perspectives: Looks,
        later: bool = False,
    ) -> None:
        super().__init__(
            catalog, store, observations, embedder=embedder, sizes=sizes, made_by=made_by, perspectives=perspectives
        )
        self.scope = scope
        self.lock = threading.RLock()
        self.mending, self._reconciled = False, not later
        self._vectors = Vectors(self._stored_vectors, observations.vectors)
        self.on_commit: Callable[[Collection[str]], object] | None = None  # given the paths; quick, raises nothing
        self.memos = MemoRows(catalog, store, lambda: self.manifest, self._usable_embedder)
        self._swollen = False  # much memory was needed since it was last given back
        self._orphans: set[str] = set()  # keys of rows that no catalog row stands for: removed with the next commit
        if not later:
            self._reconcile_stores()
        self._load()

    def _stored_vectors(self, digests: Collection[str]) -> dict[str, np.ndarray]:
        return self._store.vectors(digests)

    @classmethod
    def open(
        cls,
        scope: Scope,
        folder: Path,
        *,
        uri: str,
        options: Mapping[str, str],
        dimensions: int,
        embedder: Embedder,
        sizes: Sizes,
        made_by: str,
        perspectives: Looks = lambda _: DEFAULTS,
        later: bool = False,
    ) -> Index:
        """Open or make the index in `folder`; its rows are kept at `uri`. Raises StoreDamaged when it must be rebuilt.

        `perspectives` gives those of a workspace. `later`: the stores are opened when something of them is wanted."""
        make = partial(cls, embedder=embedder, sizes=sizes, made_by=made_by, perspectives=perspectives, later=later)
        made: list[Index] = []
        reconcile = (lambda: made[0].reconcile_late()) if later else None  # noqa: PLW0108 - it is made below
        with ExitStack() as opened:
            catalog = Catalog.open(folder / f"{scope}.db")
            opened.callback(catalog.close)
            observed = bool(catalog.facet_counts())
            store, observations = _open_stores(
                store_uris(uri, scope), dimensions, options, observed=observed, later=reconcile
            )
            opened.callback(store.close)
            opened.callback(observations.close)
            index = make(scope, catalog, store, observations)
            opened.pop_all()
        made.append(index)
        return index

    def close(self) -> None:
        """Release all stores; nothing is pending."""
        with self.lock:
            self._store.close()
            self._observations.close()
            self._catalog.close()

    # Changing it

    def prepare(
        self,
        documents: Sequence[tuple[Document, Stat]],
        *,
        urgent: bool = False,
        later: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> list[PreparedDocument]:
        """Cut and embed `documents`; nothing is stored yet. Vectors of unchanged texts are taken from the stores.

        A document whose rows would be those that are stored is neither cut nor embedded.
        `urgent` never waits behind a bulk run and raises Unavailable when there is no encoder. With `later` no encoder is
        asked: documents whose vectors are not known are found by their words until the next pass over the vault."""
        if not urgent:
            self._embedder.wait(LOADING_S)  # else a start would index by words what it embeds a moment later
        embedder = self._usable_embedder()
        if urgent and embedder is None:
            raise Unavailable(self._embedder.problem or "the encoder is not ready yet; try again in a few seconds")
        kept = [self._keep_rows(document, stat) for document, stat in documents]
        changed = [pair for pair, same in zip(documents, kept, strict=True) if same is None]
        made = iter(
            self._cut_and_embed(changed, embedder, urgent=urgent, later=later, progress=progress) if changed else ()
        )
        return [next(made) if same is None else same for same in kept]

    def _cut_and_embed(
        self,
        documents: Sequence[tuple[Document, Stat]],
        embedder: Embedder | None,
        *,
        urgent: bool,
        later: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> list[PreparedDocument]:
        return prepare(
            documents,
            sizes=self.sizes,
            embedder=embedder,
            vectors=self._vectors,
            perspectives=self.perspectives,
            urgent=urgent,
            later=later,
            progress=progress,
        )

    def _keep_rows(self, document: Document, stat: Stat) -> PreparedDocument | None:
        """The document as one whose stored rows stay as they are; None when they have to be replaced."""
        entry = self.manifest.get(document.path)
        if entry is None or not entry.digest or not entry.embedded:
            return None
        record = self._catalog.record_at(document.path)
        if record is None or record.digest != entry.digest or not has_same_rows(document, record):
            return None
        return PreparedDocument(document, stat, (), None, 0, record.chunks, kept=record.chunks)

    def _check_kept(self, prepared: PreparedDocument) -> PreparedDocument:
        """The same, cut and embedded after all if what was to be kept has changed since it was prepared."""
        document, stat = prepared.document, prepared.stat
        if prepared.kept is None or self._keep_rows(document, stat):
            return prepared
        (made,) = self._cut_and_embed([(document, stat)], self._usable_embedder(), urgent=False)
        return made

    def commit(
        self,
        prepared: Sequence[PreparedDocument],
        removed: Collection[str] = (),
        *,
        fresh: Callable[[str], Stat | None] | None = None,
    ) -> list[str]:
        """Make `prepared` findable and `removed` paths gone, durably, in one step. Returns the paths that were left out.

        With `fresh` (path → the file's stat now) a document whose file has changed since it was read is left out."""
        with self.lock:
            stale = {new.document.path: None for new in prepared if fresh and fresh(new.document.path) != new.stat}
            ready = [self._check_kept(new) for new in prepared if new.document.path not in stale]
            replaced = [new for new in ready if new.kept is None]
            gone = [path for path in removed if path in self.manifest and not (fresh and fresh(path))]
            if not ready and not gone:
                return list(stale)
            leaving = dict.fromkeys((*self._orphans, *map(path_id, gone)), ())
            chunks = leaving | {path_id(new.document.path): ChunkRows(new) for new in replaced}
            facets = leaving | {
                path_id(new.document.path): tuple(facet_rows(new.document, new.facets, new.views)) for new in replaced
            }
            try:
                self._write(ready, gone, chunks, facets)
            except BaseException:
                self._forget_rows([*gone, *(new.document.path for new in ready)])
                raise
            self._remember(ready, gone)
            self._swollen |= sum(map(len, chunks.values())) > MANY
            if self.on_commit:
                self.on_commit([*gone, *(new.document.path for new in ready)])
            return list(stale)

    def _write(
        self,
        ready: Sequence[PreparedDocument],
        gone: Collection[str],
        chunks: Mapping[str, Collection[Row]],
        facets: Mapping[str, Collection[Row]],
    ) -> None:
        """Replace the rows of documents in both stores, then write or remove the documents in the catalog."""
        with timings.STORE["write"].measure():
            with span("store", chunks=sum(map(len, chunks.values())), facets=sum(map(len, facets.values()))):
                self._observations.replace(facets)
                self._store.replace(chunks)
            self._catalog.write(
                upserts=[(new.document, new.stat, new.chunk_count, new.has_all_vectors) for new in ready],
                removes=gone,
                facets={
                    new.document.path: (new.perspectives, new.embedded_observations, len(new.facets))
                    for new in ready
                    if new.facets
                },
            )

    def _remember(self, ready: Sequence[PreparedDocument], gone: Collection[str]) -> None:
        """Bring what is kept in memory to what the catalog and the stores hold now."""
        self._orphans = set()
        for path in gone:
            self._remove_entry(path)
            self._graphs.drop(path)
        for new in ready:
            path = new.document.path
            self._add_entry(
                Entry(
                    path, new.document.claimed_id or path_id(path), new.document.digest, new.stat, new.has_all_vectors
                )
            )
            self._graphs.put(new.document.workspace, vertex_of(new.document), path)

    def forget_digests(self, entries: Collection[Entry]) -> None:
        """Take these digests as unknown, unless they have changed meanwhile: the next look reads the files again."""
        with self.lock:
            for entry in entries:
                if self.manifest.get(entry.path) == entry:
                    self.manifest[entry.path] = replace(entry, digest="")

    def _forget_rows(self, paths: Collection[str]) -> None:
        """Nobody knows which rows these have: what is known is read again at the next look, what is new stands for nothing."""
        self._orphans |= {path_id(path) for path in paths if path not in self.manifest}
        for path in paths:
            if entry := self.manifest.get(path):
                self.manifest[path] = replace(entry, digest="")

    def touch(self, stats: Mapping[str, Stat]) -> None:
        """Remember that these files have the same bytes and a new stat."""
        with self.lock:
            known = {path: stat for path, stat in stats.items() if path in self.manifest}
            if known:
                self._catalog.touch(known)
                for path, stat in known.items():
                    entry = self.manifest[path]
                    self.manifest[path] = Entry(path, entry.id, entry.digest, stat, entry.embedded)

    def replace_skipped(
        self,
        skipped: Mapping[str, str],
        workspace: Callable[[str], str],
        *,
        of: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Remember what can't be indexed, and why, in place of all that was known `of` such paths.

        The `workspace` of a path sees it too."""
        with self.lock:
            before = self._catalog.skipped_files()
            skipped = {path: why for path, why in before.items() if not of(path)} | dict(skipped)
            if skipped != before:
                self._catalog.replace_skipped(skipped, workspace=workspace)

    def repair_torn(self) -> tuple[list[Entry], int]:
        """The documents whose rows the store holds not as the catalog says, and how many it held of none: these are gone."""
        with self.lock:
            differ = self._compare_stores()
            orphans = len(self._orphans)
            self.drop_orphans()
            return [entry for path, entry in self.manifest.items() if differ and path_id(path) in differ], orphans

    def _compare_stores(self) -> set[str]:
        """The keys of documents whose rows are not those that the catalog counts; remembers rows of no document."""
        held, known = self._store.row_counts(), self._catalog.chunk_counts()
        seen, facets = self._observations.row_counts(), self._catalog.facet_counts()
        self._orphans |= (held.keys() | seen.keys()) - known.keys()
        differ = {key for key, chunks in known.items() if held.get(key, 0) != chunks}
        differ |= {key for key, rows in facets.items() if seen.get(key, 0) != rows}
        return differ | ((seen.keys() - facets.keys()) & known.keys())

    def _reconcile_stores(self) -> None:
        """After a crash, an undone capture or a repair: what only one of the stores holds is made again, or removed."""
        differ = self._compare_stores()
        healed = self._store.may_lack_rows or self._observations.may_lack_rows
        if healed or differ:
            self._catalog.forget(None if healed else differ)
        self.mending = bool(healed or differ or self._catalog.fresh)

    def reconcile_late(self) -> None:
        """Do so when the first of stores that were to be opened later is opened."""
        with self.lock:
            if not self._reconciled:
                self._reconciled = True
                self._reconcile_stores()
                if self.mending:
                    self._load()

    def describe_differences(self) -> str:
        """How catalog and stores differ just now; "" = not at all."""
        with self.lock:
            differences = (
                describe_difference(self._catalog.chunk_counts(), self._store.row_counts()),
                describe_difference(self._catalog.facet_counts(), self._observations.row_counts(), "observations"),
            )
            return "; ".join(filter(None, differences))

    def forget_outdated(self, collections: Sequence[str] = COLLECTIONS) -> None:
        """Doubt the nodes that are stored under other perspectives than their workspace has now.

        And the documents whose collection was found while others than these were known."""
        with self.lock:
            self._forget_rows(self._catalog.forget_refiled(collections))
            for workspace, perspectives in self._catalog.stored_perspectives():
                if perspectives != hash_perspectives(self.perspectives(workspace)):
                    self._forget_rows(self._catalog.paths_embedded_under(workspace, perspectives))

    def drop_orphans(self) -> None:
        """Remove the rows that no document stands for."""
        with self.lock:
            if self._orphans:
                for store in self._stores:
                    store.replace(dict.fromkeys(self._orphans, ()))
                self._orphans = set()

    def _load(self) -> None:
        self.manifest: dict[str, Entry] = self._catalog.manifest()
        self.names = Counter(stem(path) for path in self.manifest)  # of the files, as links name them
        self._folders = Counter(folder for path in self.manifest for folder in _parent_folders(path))
        self._graphs = Graphs()
        for workspace, node in self._catalog.vertices():
            self._graphs.put(workspace, node, node.path)
        self._wordbound = {path for path, entry in self.manifest.items() if not entry.embedded}

    def _add_entry(self, entry: Entry) -> None:
        if entry.path not in self.manifest:
            self.names[stem(entry.path)] += 1
            self._folders.update(_parent_folders(entry.path))
        self.manifest[entry.path] = entry
        (self._wordbound.discard if entry.embedded else self._wordbound.add)(entry.path)

    def _remove_entry(self, path: str) -> None:
        del self.manifest[path]
        self._wordbound.discard(path)
        for counted, gone in ((self.names, [stem(path)]), (self._folders, _parent_folders(path))):
            for name in gone:
                if counted[name] == 1:
                    del counted[name]
                else:
                    counted[name] -= 1

    def entries(self, under: Collection[str] | None = None) -> dict[str, Entry]:
        """What is known of these paths and of all that lies below them (None: of everything).

        Without a folder among them it costs what they are, however many documents there are."""
        if under is None or "" in under:
            return self.manifest.copy()
        entries = {path: entry for path in under if (entry := self.manifest.get(path)) is not None}
        if folders := tuple(f"{path}/" for path in under if path in self._folders):
            entries |= {path: entry for path, entry in self.manifest.copy().items() if path.startswith(folders)}
        return entries

    def graph(self, workspace: str) -> Graph:
        """The graph of a workspace, as it is now and will be."""
        return self._graphs.of(workspace)

    def lacks_ordinals(self, path: str) -> bool:
        """Whether there is a node at `path` whose note does not state all of its ordinals."""
        return path in self._graphs.unsettled

    @property
    def words_only_count(self) -> int:
        """How many documents can be found by their words only."""
        return len(self._wordbound)

    def words_only_paths(self) -> set[str]:
        """The documents that can be found by their words only."""
        return self._wordbound.copy()

    @property
    def is_complete(self) -> bool:
        """Whether all notes have been indexed once."""
        return self._catalog.is_complete

    @is_complete.setter
    def is_complete(self, value: bool) -> None:
        with self.lock:
            if self._catalog.is_complete != value:
                self._catalog.is_complete = value

    def continue_generation(self, generation: int) -> None:
        """Take the place of an index that had come to `generation`: whoever waits for a greater one sees it."""
        with self.lock:
            self._catalog.continue_generation(generation)

    # Keeping it in shape

    def maintain(self, *, force: bool = False) -> bool:
        """Compact the stores when that is worth it; searches and commits go on. Says whether it was."""
        due = [store for store in self._stores if force or store.needs_maintenance()]
        for store in due:
            store.maintain()
        if due or self._swollen:
            self._swollen = False
            release_unused()
        return bool(due)

    @contextmanager
    def hold_commits(self) -> Iterator[None]:
        """Hold back every commit."""
        with self.lock:
            yield


def _open_stores(
    uris: tuple[str, str],
    dimensions: int,
    options: Mapping[str, str],
    *,
    observed: bool,
    later: Callable[[], None] | None,
) -> tuple[ChunkStore, Observations]:
    """Open the chunks and, if there are any, the observations. `later`: when something of them is wanted, and call this then."""
    with ExitStack() as opened:
        if later:
            store = open_later(uris[0], dimensions=dimensions, options=options, opened=later)
        else:
            store = open_store(uris[0], dimensions=dimensions, options=options)
        opened.callback(store.close)
        observations = Observations(uris[1], dimensions=dimensions, options=options)
        if observed:
            observations.open(later)
        opened.pop_all()
    return store, observations


def _parent_folders(path: str) -> Iterator[str]:
    """The folders that a path lies in, but for the vault itself."""
    cut = path.rfind("/")
    while cut > 0:
        yield path[:cut]
        cut = path.rfind("/", 0, cut)
