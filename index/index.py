"""One scope's documents made findable: a catalog and a store that agree, and the one way to change them.

Law: a document's rows are stored before its catalog row is written, and removed before it is removed; so after a crash
anywhere the catalog never claims what the store does not hold."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.catalog import Catalog
from index.chunk import Sizes, chunks
from index.embed import Embedder
from index.errors import Unavailable
from index.examine import differing
from index.graph import Graph, Graphs
from index.identity import path_id, stem
from index.memory import give_back
from index.model import Answer, Document, Entry, Observation, Query, Record, Scope, Stat
from index.prepared import Prepared, estimate, fingerprint, rows_of
from index.search import search
from index.store import Row, Store
from index.trace import span
from index.vertex import vertex

LOADING_S = 15.0  # how long a bulk run waits for an encoder that is still loading


class Index:
    """The index of one scope. Preparing may run in any thread, beside anything; a commit holds `lock`."""

    def __init__(
        self, scope: Scope, catalog: Catalog, store: Store, *, embedder: Embedder, sizes: Sizes, made_by: str
    ) -> None:
        self.scope = scope
        self.lock = threading.RLock()
        self.sizes = sizes
        self._catalog, self._store, self._embedder, self._made_by = catalog, store, embedder, made_by
        self.on_commit: Callable[[Collection[str]], object] | None = None  # given the paths; quick, raises nothing
        self._orphans: set[str] = set()  # keys of rows that no catalog row stands for: removed with the next commit
        self._agree()
        self._load()

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
    ) -> Index:
        """Open or make the index in `folder`; its chunks are kept at `uri`. Raises StoreDamaged when it must be rebuilt."""
        catalog = Catalog.open(folder / f"{scope}.db")
        try:
            store = Store.open(f"{uri}/{scope}.lance", dimensions=dimensions, options=options)
        except BaseException:
            catalog.close()
            raise
        return cls(scope, catalog, store, embedder=embedder, sizes=sizes, made_by=made_by)

    def close(self) -> None:
        """Release both stores; nothing is pending."""
        with self.lock:
            self._store.close()
            self._catalog.close()

    # What may be asked of the encoder

    @property
    def comparable(self) -> bool:
        """Whether the encoder is ready and is the one this index was built with."""
        return self._fitting() is not None

    def use(self, embedder: Embedder) -> None:
        """Embed with this from now on, as far as it is the encoder this index was built with."""
        self._embedder = embedder

    def _fitting(self) -> Embedder | None:
        """The embedder, if it is ready and its vectors may be compared with those stored."""
        embedder = self._embedder
        fits = embedder.state == "ready" and fingerprint(embedder.identity, self.sizes) == self._made_by
        return embedder if fits else None

    # Changing it

    def prepare(
        self,
        documents: Sequence[tuple[Document, Stat]],
        *,
        urgent: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> list[Prepared]:
        """Cut and embed `documents`; nothing is stored yet. Vectors of unchanged chunks are taken from the store.

        `urgent` never waits behind a bulk run and raises Unavailable when there is no encoder."""
        if not urgent:
            self._embedder.wait(LOADING_S)  # else a start would index by words what it embeds a moment later
        embedder = self._fitting()
        if urgent and embedder is None:
            raise Unavailable(self._embedder.problem or "the encoder is not ready yet; try again in a few seconds")
        count = embedder.count if embedder else estimate
        cut = [(document, stat, tuple(chunks(document, self.sizes, count))) for document, stat in documents]
        digests = [[chunk.digest for chunk in pieces] for _, _, pieces in cut]
        known = self._store.vectors({digest for row in digests for digest in row})
        unknown: dict[str, str] = {}
        for (_, _, pieces), row in zip(cut, digests, strict=True):
            unknown.update(
                (digest, chunk.embedded) for digest, chunk in zip(row, pieces, strict=True) if digest not in known
            )
        fresh: dict[str, NDArray[np.float32]] = {}
        if unknown and embedder:
            try:
                made = embedder.documents(list(unknown.values()), urgent=urgent, progress=progress)
                fresh = dict(zip(unknown, made, strict=True))
            except Unavailable:
                if urgent:
                    raise  # a capture is refused; a note of the vault is indexed by its words until the encoder is back
        prepared = []
        for (document, stat, pieces), row in zip(cut, digests, strict=True):
            vectors = [known.get(digest, fresh.get(digest)) for digest in row]
            asked = sum(digest in fresh for digest in row)
            whole = None if any(vector is None for vector in vectors) else np.array(vectors, np.float32)
            prepared.append(
                Prepared(document, stat, pieces, whole, asked, len(row) - asked if whole is not None else 0)
            )
        return prepared

    def commit(
        self,
        prepared: Sequence[Prepared],
        removed: Collection[str] = (),
        *,
        fresh: Callable[[str], Stat | None] | None = None,
    ) -> list[str]:
        """Make `prepared` findable and `removed` paths gone, durably, in one step. Returns the paths that were left out.

        With `fresh` (path → the file's stat now) a document whose file has changed since it was read is left out."""
        with self.lock:
            stale = [one.document.path for one in prepared if fresh and fresh(one.document.path) != one.stat]
            ready = [one for one in prepared if one.document.path not in set(stale)] if stale else list(prepared)
            gone = [path for path in removed if path in self.manifest and not (fresh and fresh(path))]
            if not ready and not gone:
                return stale
            rows: dict[str, tuple[Row, ...]] = {path_id(path): () for path in gone}
            rows.update((path_id(one.document.path), tuple(rows_of(one))) for one in ready)
            try:
                with span("store", chunks=sum(map(len, rows.values()))):
                    self._store.replace({**dict.fromkeys(self._orphans, ()), **rows})
                self._catalog.write(
                    upserts=[(one.document, one.stat, len(one.chunks), one.vectors is not None) for one in ready],
                    removes=gone,
                )
            except BaseException:
                self._doubt([*gone, *(one.document.path for one in ready)])
                raise
            self._orphans = set()
            for path in gone:
                self._unknow(path)
                self._graphs.drop(path)
            for one in ready:
                path = one.document.path
                own = one.document.claimed_id or path_id(path)
                self._know(Entry(path, own, one.document.digest, one.stat, one.vectors is not None))
                self._graphs.put(one.document.workspace, vertex(one.document), path)
            if self.on_commit:
                self.on_commit([*gone, *(one.document.path for one in ready)])
            return stale

    def doubt(self, entries: Collection[Entry]) -> None:
        """Take these digests as unknown, unless they have changed meanwhile: the next look reads the files again."""
        with self.lock:
            for entry in entries:
                if self.manifest.get(entry.path) == entry:
                    self.manifest[entry.path] = replace(entry, digest="")

    def _doubt(self, paths: Collection[str]) -> None:
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

    def skip(
        self,
        skipped: Mapping[str, str],
        workspace: Callable[[str], str],
        *,
        of: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Remember what can't be indexed, and why, in place of all that was known `of` such paths.

        The `workspace` of a path sees it too."""
        with self.lock:
            before = self._catalog.skipped()
            skipped = {path: why for path, why in before.items() if not of(path)} | dict(skipped)
            if skipped != before:
                self._catalog.skip(skipped, workspace=workspace)

    def forget(self) -> None:
        """Take every digest as unknown: the next listing reads every file again."""
        with self.lock:
            self._catalog.forget()
            self._load()

    def torn(self) -> tuple[list[Entry], int]:
        """The documents whose rows the store holds not as the catalog says, and how many it held of none: these are gone."""
        with self.lock:
            differ = set(self._compare())
            orphans = len(self._orphans)
            self.drop_orphans()
            return [entry for path, entry in self.manifest.items() if differ and path_id(path) in differ], orphans

    def _compare(self) -> list[str]:
        held, known = self._store.documents(), self._catalog.chunks()
        self._orphans |= held.keys() - known.keys()
        return [key for key, chunks in known.items() if held.get(key, 0) != chunks]

    def _agree(self) -> None:
        """After a crash, an undone capture or a repair: what only one of the two holds is made again, or removed."""
        differ = self._compare()
        if self._store.healed or differ:
            self._catalog.forget(None if self._store.healed else differ)
        self.mending = bool(self._store.healed or differ or self._catalog.fresh)

    def examined(self) -> str:
        """How catalog and store differ just now; "" = not at all."""
        with self.lock:
            return differing(self._catalog.chunks(), self._store.documents())

    def drop_orphans(self) -> None:
        """Remove the rows that no document stands for."""
        with self.lock:
            if self._orphans:
                self._store.replace(dict.fromkeys(self._orphans, ()))
                self._orphans = set()

    def _load(self) -> None:
        self.manifest: dict[str, Entry] = self._catalog.manifest()
        self.names = Counter(stem(path) for path in self.manifest)  # of the files, as links name them
        self._graphs = Graphs()
        for workspace, node in self._catalog.vertices():
            self._graphs.put(workspace, node, node.path)
        self._wordbound = {path for path, entry in self.manifest.items() if not entry.embedded}

    def _know(self, entry: Entry) -> None:
        if entry.path not in self.manifest:
            self.names[stem(entry.path)] += 1
        self.manifest[entry.path] = entry
        (self._wordbound.discard if entry.embedded else self._wordbound.add)(entry.path)

    def _unknow(self, path: str) -> None:
        del self.manifest[path]
        self._wordbound.discard(path)
        name = stem(path)
        if self.names[name] == 1:
            del self.names[name]
        else:
            self.names[name] -= 1

    # Asking it

    def search(self, query: Query) -> Answer:
        """Find documents. Answers from full text alone, and says so, while there is no encoder for this index."""
        embedder = self._fitting()
        with span("search", mode=query.mode) as timed:
            answer = search(query, store=self._store, catalog=self._catalog, embedder=embedder)
            timed.note(documents=len(answer.hits))
        return answer

    def record(self, id: str) -> Record | None:
        """The document that answers to `id`."""
        return self._catalog.get(id)

    def captured(self, workspace: str, content_hash: str) -> Record | None:
        """The note of `workspace` that holds exactly this content."""
        return self._catalog.captured(workspace, content_hash)

    def at(self, path: str) -> Record | None:
        """The document at `path`."""
        return self._catalog.at(path)

    def recent(self, *, workspace: str | None, limit: int, before: int | None = None) -> list[Record]:
        """The newest documents by creation, strictly older than `before`."""
        return self._catalog.recent(workspace=workspace, limit=limit, before=before)

    def vocabulary(self, workspace: str, limit: int) -> list[tuple[str, int]]:
        """The tags most used in `workspace`, with the number of documents that have each."""
        return self._catalog.vocabulary(workspace, limit)

    def graph(self, workspace: str) -> Graph:
        """The graph of a workspace, as it is now and will be."""
        return self._graphs.of(workspace)

    def observations(self, paths: Collection[str]) -> dict[str, tuple[Observation, ...]]:
        """The observations of the nodes at these paths, in order of their ordinals."""
        return self._catalog.observations(paths)

    def unlabelled(self, workspace: str | None = None) -> list[str]:
        """The paths of the notes that lack a summary or tags, the oldest first."""
        return self._catalog.unlabelled(workspace)

    def passages(self, record: Record) -> list[str]:
        """The chunks of a document, in order, each exactly as it was cut."""
        return [row.text[row.cut :] for row in self._store.passages(path_id(record.path))]

    def defects(self, workspace: str | None = None) -> list[tuple[str, str]]:
        """The path of every note that is not whole, or not indexed, and what is wrong with it."""
        return [(path, str(defect)) for path, defect in self._catalog.defects(workspace)]

    @property
    def counts(self) -> tuple[int, int]:
        """How many documents, and how many chunks."""
        return self._catalog.counts()

    @property
    def listed(self) -> bool:
        """Whether all notes have been indexed once."""
        return self._catalog.complete

    @listed.setter
    def listed(self, value: bool) -> None:
        with self.lock:
            if self._catalog.complete != value:
                self._catalog.complete = value

    @property
    def generation(self) -> int:
        """Grows with every change made findable."""
        return self._catalog.generation

    def succeed(self, generation: int) -> None:
        """Take the place of an index that had come to `generation`: whoever waits for a greater one sees it."""
        with self.lock:
            self._catalog.succeed(generation)

    @property
    def wordbound(self) -> int:
        """How many documents can be found by their words only."""
        return len(self._wordbound)

    def dump(self) -> dict[str, Any]:
        """All that it holds, in an order that does not depend on how it came there."""
        return {"catalog": self._catalog.dump(), "store": self._store.dump()}

    # Keeping it in shape

    @property
    def damaged(self) -> bool:
        """Whether its files are not what they were, so that searches fail."""
        return self._store.damaged

    def maintain(self, *, force: bool = False) -> bool:
        """Compact the store when that is worth it; searches and commits go on. Says whether it was."""
        if not force and not self._store.due():
            return False
        self._store.maintain()
        give_back()
        return True

    @contextmanager
    def still(self) -> Iterator[None]:
        """Hold back every commit."""
        with self.lock:
            yield
