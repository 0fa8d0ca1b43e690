"""The reader answers queries about one scope's documents: searches, entities, tags, defects and metadata.

Law: a query changes nothing, and waits for no write."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from index.catalog.catalog import Catalog
from index.catalog.note_links import list_named_paths
from index.catalog.recent_documents import list_following, list_recent
from index.document_ids import choose_owner, path_id
from index.encoders.embedder import Embedder
from index.encoders.settings import model_name
from index.model import Answer, Filter, ObservationAnswer, ObservationMode, Query, Record, SimilarDocument, given_name
from index.names import fold
from index.observations.observation_search import SearchPlace, find
from index.observations.observation_store import Observations
from index.observations.perspectives import Perspective, hash_perspectives
from index.observations.similarity_baseline import SimilarityBaselines
from index.scope.prepared_document import fingerprint
from index.search.hybrid_search import search
from index.search.related_documents import find_similar
from index.storage.resident_rows import to_unit_length
from index.text.chunking import Sizes
from index.tracing import span

if TYPE_CHECKING:
    from index.storage.chunk_store import ChunkStore

SAMPLED: Final = 64  # vectors that stand for a document; those of a file of 4 MB would take 25 MB

# `claimed < value || '{'`: "{" is the character after "z", the last one that an id may contain.
KNOWN_IDS: Final = """select value from json_each(?1)
  where exists (select 1 from documents where claimed = value and workspace = ?2)
    or exists (select 1 from documents where key = value and workspace = ?2)
    or length(value) = 8 and exists (select 1 from documents where claimed > value and claimed < value || '{' and workspace = ?2)
    or length(value) = 8 and exists (select 1 from documents where key > value and key < value || '{' and workspace = ?2)"""

Looks: TypeAlias = Callable[[str], tuple[Perspective, ...]]  # the perspectives of a workspace


class Reader:
    """Reads the index of one scope; safe to use from any thread. `Index` opens its parts."""

    catalog: Catalog
    sizes: Sizes
    perspectives: Looks
    _store: ChunkStore
    _observations: Observations
    _embedder: Embedder
    _made_by: str
    _scale: SimilarityBaselines

    @property
    def can_embed(self) -> bool:
        """Return whether an encoder is ready that fits the vectors of this index."""
        return self._usable_embedder() is not None

    def use_embedder(self, embedder: Embedder) -> None:
        """Use this embedder from now on, as far as it fits the vectors of this index."""
        self._embedder = embedder

    def _usable_embedder(self) -> Embedder | None:
        """Return the embedder if it is ready and its vectors are comparable with the stored ones."""
        embedder = self._embedder
        fits = embedder.state == "ready" and fingerprint(embedder.identity, self.sizes) == self._made_by
        return embedder if fits else None

    def search(self, query: Query) -> Answer:
        """Search documents. Without an encoder for this index, the search uses words only and reports it as degraded."""
        embedder = self._usable_embedder()
        with span("search", mode=query.mode) as timed:
            answer = search(query, store=self._store, catalog=self.catalog, embedder=embedder)
            timed.note(documents=len(answer.hits))
        return answer

    def record(self, id: str, workspace: str | None = None) -> Record | None:
        """Return the document of `workspace` with this id; without a workspace, the one with the shortest path of all."""
        return self.catalog.get(id, workspace)

    def record_at(self, path: str) -> Record | None:
        """Return the document at `path`."""
        return self.catalog.record_at(path)

    def records_at(self, paths: Collection[str]) -> dict[str, Record]:
        """Return the documents at these paths, by path."""
        return {record.path: record for record in self.catalog.records_at(paths)}

    def paths_claiming_id(self, id: str) -> list[str]:
        """Return the sorted paths of all documents that claim this id."""
        return [path for (path,) in self.catalog.rows("select path from documents where claimed = ? order by path", id)]

    def paths_sharing_ids(self) -> list[tuple[str, str]]:
        """Return each document that claims the id of another one of its workspace, with the path of that owner; no conflict copies."""
        claims = self.catalog.rows(
            "select claimed, workspace, path from documents where defects not like '%conflict-copy%' and claimed in "
            "(select claimed from documents where claimed is not null group by claimed having count(*) > 1)"
        )
        groups: dict[tuple[str, str], list[str]] = {}
        for id, workspace, path in claims:
            groups.setdefault((id, workspace), []).append(path)
        return [
            (path, owner)
            for group in groups.values()
            for owner in [choose_owner(group)]
            for path in group
            if path != owner
        ]

    def paths_titled(self, title: str) -> list[str]:
        """Return the paths of all documents with this title, in any letter case."""
        wanted = fold(title)
        return [path for path, known in self.catalog.rows("select path, title from documents") if fold(known) == wanted]

    def notes_with_stems(self, stems: Collection[str]) -> list[tuple[str, str, str]]:
        """Return path, name and type of the notes named as one of `stems`, alone or followed by a blank and more text.

        It is fast for any number of notes. The name is the title or, for the document of a stored file, the file's original name."""
        rows = self.catalog.rows(
            "select path, title, type, case type when 'file' then metadata end "
            "from (select value as stem from json_each(?)) cross join documents "  # `cross`: by the index of paths
            "where path in (stem || '.md', stem || '.MD', stem || '.Md', stem || '.mD') "
            "or (path > stem || ' ' and path < stem || '!')",
            json.dumps([stem for stem in stems if "\0" not in stem]),  # SQLite would cut a value there
        )
        return [
            (path, given_name(title, json.loads(metadata)) if metadata else title, kind)
            for path, title, kind, metadata in rows
        ]

    def known_ids(self, workspace: str, texts: Collection[str]) -> set[str]:
        """Return those of `texts` that are an id of a document of `workspace`, or the first eight characters of one."""
        return {text for (text,) in self.catalog.rows(KNOWN_IDS, json.dumps(list(texts)), workspace)}

    def tally(self, workspace: str, namespace: str | None = None) -> list[tuple[str, str, int, int, int]]:
        """Count the documents of `workspace`, or of one namespace, by type and collection, with their chunks and those without vectors."""
        return self.catalog.rows(
            """select type, collection, count(*), coalesce(sum(chunks), 0), sum(not embedded) from documents
            where workspace = ?1 and namespace = coalesce(?2, namespace)
            group by type, collection order by type, collection""",
            workspace,
            namespace,
        )

    @property
    def encoder(self) -> tuple[str, int, str]:
        """Return the encoder in use: its model's name, the dimensions of the index's vectors, and its state."""
        name = model_name(self._embedder.chosen or self._embedder.configured[0])
        return name, self._store.dimensions, self._embedder.state

    def recent(
        self, *, workspace: str | None, limit: int, before: int | str | None = None, namespace: str | None = None
    ) -> list[Record]:
        """Return the newest documents by creation: with a time `before`, strictly older ones; with a cursor, those after its document."""
        if isinstance(before, str):
            return list_following(self.catalog, before, limit, workspace=workspace, namespace=namespace)
        return self.catalog.recent(workspace=workspace, limit=limit, before=before, namespace=namespace)

    def list_recent(
        self, restriction: Filter, limit: int, cursor: str | None = None, *, path: str | None = None
    ) -> tuple[list[Record], str | None]:
        """Return the last changed documents, from the start or after `cursor`, and the cursor of the next page, None at the end.

        `path`: only the document there."""
        return list_recent(self.catalog, restriction, limit, cursor, path=path)

    def tags(self) -> list[str]:
        """Return all tags of documents, each spelling once."""
        return [tag for (tag,) in self.catalog.rows("select distinct tag from tag_uses order by tag")]

    def passages(self, record: Record) -> list[str]:
        """Return the chunks of a document, in order, each exactly as it was cut."""
        return [row.text[row.cut :] for row in self._store.rows_of(path_id(record.path))]

    def sample_vectors(self, record: Record) -> NDArray[np.float32]:
        """Return stored vectors from all parts of a document, one per row; none if it was indexed by words only."""
        return self._store.vectors_of(path_id(record.path), SAMPLED)

    def find_similar(self, points: NDArray[np.float32], words: str) -> list[SimilarDocument]:
        """Return the documents similar to a document of another index that has these vectors and words, nearest first."""
        return find_similar(points, words, store=self._store, catalog=self.catalog)

    def note_names(self) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...], bool]]:
        """Path, title, tags and aliases of every document, by path, and whether it is a template."""
        rows = self.catalog.rows("select path, title, tags, aliases, defects from documents order by path")
        return [
            (path, title, tuple(json.loads(tags)), tuple(json.loads(aliases)), '["template",' in defects)
            for path, title, tags, aliases, defects in rows
        ]

    def find_observations(
        self, workspace: str, query: str, limit: int, mode: ObservationMode = "embedding", path: str | None = None
    ) -> ObservationAnswer:
        """Return the best observation of each of `limit` nodes or, with the path of one node, `limit` of its observations."""
        with span("find", mode=mode) as timed:
            answer = find(
                query,
                SearchPlace(workspace, path),
                limit,
                mode,
                perspectives=self.perspectives(workspace),
                observations=self._observations,
                catalog=self.catalog,
                embedder=self._usable_embedder(),
                baselines=self._scale,
            )
            timed.note(observations=len(answer.hits))
        return answer

    def embedded_share(self, workspace: str) -> float:
        """Return the share of observations that are embedded under all perspectives; 1.0 without observations."""
        done, there = self.catalog.embedded_counts(workspace, hash_perspectives(self.perspectives(workspace)))
        return done / there if there else 1.0

    def node_vectors(
        self, workspace: str, perspective: str | None = None, paths: Collection[str] | None = None
    ) -> tuple[list[str], NDArray[np.float32]]:
        """Return the mean direction of each node's observations under a perspective, or all: paths, and unit vectors, a row each.

        With `paths`, only those of the nodes with these paths. A node without vectors is left out."""
        known = self.catalog.node_paths(workspace) if paths is None else {path_id(path): path for path in paths}
        pooled = self._observations.vector_sums(workspace, perspective, None if paths is None else known)
        there = sorted((known[key], key) for key in pooled if key in known)
        matrix = np.array([pooled[key] for _, key in there], np.float32).reshape(len(there), self._store.dimensions)
        return [path for path, _ in there], to_unit_length(matrix)

    def paths_named(self, names: Collection[str]) -> list[str]:
        """Return the paths of the notes whose file names, folded, are among these."""
        return list_named_paths(self.catalog, names)

    def texts(self, workspace: str) -> Iterator[dict[str, str]]:
        """Yield the texts of the documents of `workspace` by `path_id` of their paths, a sixteenth of them at a time."""
        for part in "0123456789abcdef":
            yield self._store.texts(workspace, part)

    def texts_of(self, keys: Collection[str]) -> dict[str, str]:
        """Return the texts of the documents with these keys (`path_id` of their paths)."""
        return self._store.texts_of(keys)

    def document_vectors(self, workspace: str) -> tuple[list[str], NDArray[np.float32]]:
        """Return the mean direction of each document's passages: keys in order, and unit vectors, a row each."""
        pooled = self._store.vector_sums(Filter(workspace=workspace))
        keys = sorted(pooled)
        matrix = np.empty((len(keys), self._store.dimensions), np.float32)
        for n, key in enumerate(keys):
            matrix[n] = pooled.pop(key)  # one by one, because both together may need 200 MB
        return keys, to_unit_length(matrix)

    def defects(self, workspace: str | None = None) -> list[tuple[str, str]]:
        """Return the path of every note with a defect or without an entry in the index, with the reason."""
        return [(path, str(defect)) for path, defect in self.catalog.defects(workspace)]

    @property
    def counts(self) -> tuple[int, int]:
        """Return the numbers of documents and of chunks."""
        return self.catalog.counts()

    @property
    def generation(self) -> int:
        """Return a number that grows with every searchable change."""
        return self.catalog.generation

    @property
    def is_damaged(self) -> bool:
        """Return whether its files are damaged, so that searches fail."""
        return self.catalog.is_damaged or any(store.is_damaged for store in self._stores)

    @property
    def _stores(self) -> tuple[ChunkStore, ...]:
        return (self._store, *self._observations.open_stores)
