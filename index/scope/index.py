"""Write documents to the index of one scope: a catalog and two stores that stay consistent.

Law: a document's rows are in the stores before the catalog lists them, or the catalog marks the document until they are. After a
crash, the next pass reads the marked documents again, and those whose numbers of rows differ."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from index import timings
from index.catalog.catalog import Catalog
from index.document_ids import path_id
from index.encoders.embedder import Embedder
from index.errors import Unavailable, run_all
from index.foreground import foreground
from index.graph.graph import Graph, Graphs
from index.graph.vertex import vertex_of
from index.memos.queries import MemoRows
from index.model import COLLECTIONS, Document, Entry, IndexName, Stat
from index.observations.observation_rows import facet_rows
from index.observations.observation_store import Observations
from index.observations.perspectives import DEFAULTS, hash_perspectives
from index.observations.similarity_baseline import SimilarityBaselines
from index.process_memory import one_large_text, release_unused
from index.scope.integrity_check import describe_difference, store_uris
from index.scope.late_writes import LateWrites
from index.scope.prepared_document import MANY, ChunkRows, PreparedDocument, has_same_rows, prepare
from index.scope.reader import Looks, Reader
from index.scope.vector_reuse import Vectors, VectorSource
from index.storage.chunk_rows import Row
from index.storage.store_opening import open_later, open_store
from index.text.chunking import Sizes
from index.tracing import span

POSTPONED = 10  # most times in a row that maintenance is postponed because a large text is in memory
LOADING_S = 15.0  # seconds that a bulk run waits for an encoder that is still loading


class Index(Reader):
    """Writes the index of one scope. Any thread may prepare documents at any time; a commit holds `lock`."""

    def __init__(
        self,
        scope: IndexName,
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
    ) -> None:
        """Open or create the index in `folder`, with its rows at `uri`. Raises StoreDamaged when it must be rebuilt.

        `perspectives` returns those of a workspace. `later`: open the stores at their first use."""
        self.sizes, self.perspectives = sizes, perspectives
        self._embedder, self._made_by, self._scale = embedder, made_by, SimilarityBaselines()
        self.lock = threading.RLock()
        self.mending, self._reconciled, self._is_reconciling = False, not later, False
        self.on_commit: Callable[[Collection[str]], object] | None = None  # given the paths; quick, raises nothing
        self._postponed = 0  # how often maintenance was postponed since it ran last
        self._orphans: set[str] = set()  # keys of rows without a row in the catalog; the next commit removes them
        with ExitStack() as opened:
            self.catalog = Catalog(folder / f"{scope}.db")
            opened.callback(self.catalog.close)
            self._open_stores(store_uris(uri, scope), dimensions, options, opened, later=later)
            self._vectors = Vectors(self._store, self._observations)
            self._cut_and_embed = partial(prepare, sizes=sizes, perspectives=perspectives)
            self.memos = MemoRows(self.catalog, self._store, lambda: self.manifest, self._usable_embedder)
            self._late_writes = LateWrites(self.catalog, lambda: self._stores, self.lock)
            if not later:
                self._reconcile_stores()
            self._load()
            opened.pop_all()

    def _open_stores(
        self, uris: tuple[str, str], dimensions: int, options: Mapping[str, str], opened: ExitStack, *, later: bool
    ) -> None:
        """Open the chunk store and, if any exist, the observations; with `later`, each at its first use."""
        open_it = partial(open_store, uris[0], dimensions=dimensions, options=options)
        self._store = open_later(open_it, dimensions, self.reconcile_late) if later else open_it()
        opened.callback(self._store.close)
        self._observations = Observations(uris[1], dimensions=dimensions, options=options)
        opened.callback(self._observations.close)
        if self.catalog.facet_counts():
            self._observations.open(self.reconcile_late if later else None)

    @property
    def passage_vectors(self) -> VectorSource:
        """Return the store of the vectors of passages."""
        return self._store

    def close(self) -> None:
        """Write what only memory has, and release all stores."""
        with self.lock:
            self._store.close()
            self._observations.close()
            self._late_writes.close()
            self.catalog.close()

    # Writing

    def prepare(
        self,
        documents: Sequence[tuple[Document, Stat]],
        *,
        urgent: bool = False,
        later: bool = False,
        progress: Callable[[int], None] | None = None,
        lent: VectorSource | None = None,
    ) -> list[PreparedDocument]:
        """Cut and embed `documents` without storing anything. Vectors of unchanged texts come from the stores.

        A document whose stored rows would stay the same is neither cut nor embedded. With `urgent`, the call never waits
        behind a bulk run, and raises Unavailable without an encoder. With `later`, nothing is embedded: documents without
        stored vectors are found by their words until the next pass over the vault. `lent` has vectors of another index."""
        kept = [self._keep_rows(document, stat) for document, stat in documents]
        changed = [pair for pair, same in zip(documents, kept, strict=True) if same is None]
        if changed and not urgent:
            self._embedder.wait(LOADING_S)  # otherwise a start would index by words only, and embed a moment later
        embedder = self._usable_embedder()
        if urgent and embedder is None:
            raise Unavailable(self._embedder.problem or "the encoder is not ready yet; try again in a few seconds")
        known = self._vectors if lent is None else Vectors(self._store, self._observations, lent)
        made = iter(
            self._cut_and_embed(
                changed, embedder=embedder, vectors=known, urgent=urgent, later=later, progress=progress
            )
            if changed
            else ()
        )
        return [next(made) if same is None else same for same in kept]

    def _keep_rows(self, document: Document, stat: Stat) -> PreparedDocument | None:
        """Return the prepared document if its stored rows can stay; None if they must be replaced."""
        entry = self.manifest.get(document.path)
        if document.type == "entity" or entry is None or not entry.digest or not entry.embedded:
            return None  # an entity's facts have rows of their own, so an entity is always written
        record = self.catalog.record_at(document.path)
        if record is None or record.digest != entry.digest or not has_same_rows(document, record):
            return None
        return PreparedDocument(document, stat, (), None, 0, record.chunks, kept=record.chunks)

    def _check_kept(self, prepared: PreparedDocument) -> PreparedDocument:
        """Return the document unchanged, or cut and embedded if the rows that should stay have changed since it was prepared."""
        document, stat = prepared.document, prepared.stat
        if prepared.kept is None or self._keep_rows(document, stat):
            return prepared
        (made,) = self._cut_and_embed(
            [(document, stat)], embedder=self._usable_embedder(), vectors=self._vectors, urgent=False
        )
        return made

    def commit(
        self,
        prepared: Sequence[PreparedDocument],
        removed: Collection[str] = (),
        *,
        fresh: Callable[[str], Stat | None] | None = None,
    ) -> list[str]:
        """Write the `prepared` documents and remove the `removed` paths, durably and in one step. Returns the paths left out.

        With `fresh` (path → the file's current stat), a document whose file has changed since it was read is left out."""
        with self.lock:
            self.reconcile_late()  # not in a store that a second thread writes, which would wait for this lock
            stale = {new.document.path: None for new in prepared if fresh and fresh(new.document.path) != new.stat}
            ready = [self._check_kept(new) for new in prepared if new.document.path not in stale]
            replaced = [new for new in ready if new.kept is None]
            gone = [path for path in removed if path in self.manifest and not (fresh and fresh(path))]
            changed = [*gone, *(new.document.path for new in ready)]
            if not changed:
                return list(stale)
            leaving = dict.fromkeys((*self._orphans, *map(path_id, gone)), ())
            chunks = leaving | {path_id(new.document.path): ChunkRows(new) for new in replaced}
            facets = leaving | {
                path_id(new.document.path): tuple(facet_rows(new.document, new.facets, new.views)) for new in replaced
            }
            if many := sum(map(len, chunks.values())) > MANY:
                release_unused()  # what preparing took, before the rows need room
            try:
                self._write(ready, gone, chunks, facets)
            except BaseException:
                self._late_writes.abandon(path_id(path) for path in changed if path in self.manifest)
                self._forget_rows(changed)
                raise
            self._remember(ready, gone)
            if many:
                release_unused()
            if self.on_commit:
                self.on_commit(changed)
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
            replaced = [new.document.path for new in ready if new.kept is None]
            self.catalog.mark_unsettled([path_id(path) for path in replaced if path in self.manifest])
            with span("store", chunks=sum(map(len, chunks.values())), facets=sum(map(len, facets.values()))):
                foreground.run_both(
                    partial(self._store.replace, chunks, buffered=True),
                    partial(self._observations.replace, facets, buffered=True),
                )
            unwritten = self._late_writes.find({*chunks, *(path_id(new.document.path) for new in ready)})
            self.catalog.write(
                upserts=[(new.document, new.stat, new.chunk_count, new.has_all_vectors) for new in ready],
                removes=gone,
                facets={
                    new.document.path: (new.perspectives, new.embedded_observations, len(new.facets))
                    for new in ready
                    if new.facets
                },
                unsettled=unwritten,
            )
            self._late_writes.add(unwritten)

    def _remember(self, ready: Sequence[PreparedDocument], gone: Collection[str]) -> None:
        """Update the data in memory to match the catalog and the stores."""
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
        """Mark these digests as unknown unless they changed meanwhile, so that the next pass reads the files again."""
        with self.lock:
            for entry in entries:
                if self.manifest.get(entry.path) == entry:
                    self.manifest[entry.path] = replace(entry, digest="")

    def _forget_rows(self, paths: Collection[str]) -> None:
        """Mark the rows of these paths as unknown: the next pass reads known files again, and removes rows of unknown ones."""
        self._orphans |= {path_id(path) for path in paths if path not in self.manifest}
        for path in paths:
            if entry := self.manifest.get(path):
                self.manifest[path] = replace(entry, digest="")

    def touch(self, stats: Mapping[str, Stat]) -> None:
        """Store the new stat of files whose bytes are unchanged."""
        with self.lock:
            known = {path: stat for path, stat in stats.items() if path in self.manifest}
            if known:
                self.catalog.touch(known)
                for path, stat in known.items():
                    entry = self.manifest[path]
                    self.manifest[path] = replace(entry, stat=stat)

    def replace_skipped(
        self,
        skipped: Mapping[str, str],
        workspace: Callable[[str], str],
        *,
        of: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Replace the list of files that can't be indexed, with reasons, for all paths that `of` accepts.

        The `workspace` of a path sees its entry too."""
        with self.lock:
            before = self.catalog.skipped_files()
            skipped = {path: why for path, why in before.items() if not of(path)} | dict(skipped)
            if skipped != before:
                self.catalog.replace_skipped(skipped, workspace=workspace)

    def repair_torn(self) -> tuple[list[Entry], int]:
        """Return the documents whose stored rows differ from the catalog, and the number of removed rows without a document."""
        with self.lock:
            differ = self._compare_stores()
            orphans = len(self._orphans)
            self.drop_orphans()
            return [entry for path, entry in self.manifest.items() if differ and path_id(path) in differ], orphans

    def _compare_stores(self) -> set[str]:
        """Return the keys of documents whose row counts differ from the catalog, and remember rows without a document."""
        held, known = self._store.row_counts(), self.catalog.chunk_counts()
        seen, facets = self._observations.row_counts(), self.catalog.facet_counts()
        self._orphans |= (held.keys() | seen.keys()) - known.keys()
        differ = {key for key, chunks in known.items() if held.get(key, 0) != chunks}
        differ |= {key for key, rows in facets.items() if seen.get(key, 0) != rows}
        return differ | ((seen.keys() - facets.keys()) & known.keys())

    def _reconcile_stores(self) -> None:
        """Reconcile the stores after a crash, an undone capture or a repair: restore or remove what only one of them contains."""
        differ = self._compare_stores()
        unsettled = self.catalog.take_unsettled()
        healed = any(store.may_lack_rows for store in self._stores)
        if healed or differ:
            self.catalog.forget(None if healed else differ)
        self.mending = bool(healed or differ or unsettled or self.catalog.fresh)

    def reconcile_late(self) -> None:
        """Reconcile the stores when the first deferred store opens; after a failure, at the next use."""
        if self._reconciled or self._is_reconciling:  # the other store may open in a second thread while a commit waits
            return
        with self.lock:
            self._is_reconciling = not self._reconciled
            try:
                if self._is_reconciling:
                    self._reconcile_stores()
                    if self.mending:
                        self._load()
                    self._reconciled = True
            finally:
                self._is_reconciling = False

    def describe_differences(self) -> str:
        """Describe how the catalog and the stores differ; "" = not at all."""
        with self.lock:
            differences = (
                describe_difference(self.catalog.chunk_counts(), self._store.row_counts()),
                describe_difference(self.catalog.facet_counts(), self._observations.row_counts(), "observations"),
            )
            return "; ".join(filter(None, differences))

    def forget_outdated(self, collections: Sequence[str] = COLLECTIONS) -> None:
        """Mark outdated documents for reading again.

        These are entities stored under other perspectives than their workspace has now, and documents whose collection was
        determined with other known `collections`."""
        with self.lock:
            self._forget_rows(self.catalog.forget_refiled(collections))
            for workspace, perspectives in self.catalog.stored_perspectives():
                if perspectives != hash_perspectives(self.perspectives(workspace)):
                    self._forget_rows(self.catalog.paths_embedded_under(workspace, perspectives))

    def drop_orphans(self) -> None:
        """Remove the rows without a document."""
        with self.lock:
            if self._orphans:
                for store in self._stores:
                    store.replace(dict.fromkeys(self._orphans, ()))
                self._orphans = set()

    def _load(self) -> None:
        self.manifest: dict[str, Entry] = self.catalog.manifest()
        self._folders = Counter(folder for path in self.manifest for folder in _parent_folders(path))
        self._graphs = Graphs()
        for workspace, node in self.catalog.vertices():
            self._graphs.put(workspace, node, node.path)
        self._wordbound = {path for path, entry in self.manifest.items() if not entry.embedded}

    def _add_entry(self, entry: Entry) -> None:
        if (before := self.manifest.get(entry.path)) is None:
            self._folders.update(_parent_folders(entry.path))
        else:
            entry = replace(entry, path=before.path)  # other parts hold that string, and no copy of it
        self.manifest[entry.path] = entry
        (self._wordbound.discard if entry.embedded else self._wordbound.add)(entry.path)

    def _remove_entry(self, path: str) -> None:
        del self.manifest[path]
        self._wordbound.discard(path)
        for folder in _parent_folders(path):
            if self._folders[folder] == 1:
                del self._folders[folder]
            else:
                self._folders[folder] -= 1

    def entries(self, under: Collection[str] | None = None) -> dict[str, Entry]:
        """Return the entries of these paths and of all paths below them (None: all entries).

        Without a folder among the paths, the time depends only on their number."""
        if under is None or "" in under:
            return self.manifest.copy()
        entries = {path: entry for path in under if (entry := self.manifest.get(path)) is not None}
        if folders := tuple(f"{path}/" for path in under if path in self._folders):
            entries |= {path: entry for path, entry in self.manifest.copy().items() if path.startswith(folders)}
        return entries

    def graph(self, workspace: str) -> Graph:
        """Return the graph of a workspace, which follows all later changes."""
        return self._graphs.of(workspace)

    def lacks_ordinals(self, path: str) -> bool:
        """Return whether there is a node at `path` whose note does not state all of its ordinals."""
        return path in self._graphs.unsettled

    def words_only_paths(self) -> set[str]:
        """Return the paths of documents without vectors, which only words find."""
        return self._wordbound.copy()

    @property
    def is_complete(self) -> bool:
        """Return whether all notes have been indexed once."""
        return self.catalog.is_complete

    @is_complete.setter
    def is_complete(self, value: bool) -> None:
        with self.lock:
            if self.catalog.is_complete != value:
                self.catalog.is_complete = value

    def continue_generation(self, generation: int) -> None:
        """Continue counting from `generation`, the number of the index that this one replaces, so that waiting readers notice a change."""
        with self.lock:
            self.catalog.continue_generation(generation)

    # Maintenance

    def maintain(self, *, force: bool = False) -> bool:
        """Compact the stores if it is worth the time, while searches and commits continue. Return whether it was.

        While a large text is in memory, this is postponed to a later call, because both need much memory."""
        self._late_writes.finish()
        due = [store for store in self._stores if force or store.needs_maintenance()]
        alone = bool(due) and one_large_text.acquire(blocking=False)
        if due and not alone and not force and self._postponed < POSTPONED:
            self._postponed += 1
            return False
        self._postponed = 0
        try:
            run_all(store.maintain for store in due)
        finally:
            if alone:
                one_large_text.release()
        return bool(due)


def _parent_folders(path: str) -> Iterator[str]:
    """Yield the parent folders of a path, except the vault itself."""
    cut = path.rfind("/")
    while cut > 0:
        yield path[:cut]
        cut = path.rfind("/", 0, cut)
