"""Run a hybrid search in one scope: ask the store by words and by vector, rank the results, and add the documents.

Law, tested: every result is in the workspace that the query names; without an encoder the search uses
words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from index.errors import Unavailable
from index.model import Answer, Hit, Mode, Query, Record
from index.search.fusion import (
    RankedDocument,
    demote_superseded,
    fuse,
    keywords,
    make_cue,
    rank_by_vector,
    vector_trust,
)
from index.tracing import span

if TYPE_CHECKING:  # both load libraries that only their owners need
    from index.catalog.catalog import Catalog
    from index.encoders.embedder import Embedder
    from index.storage.chunk_store import ChunkStore

POOL: Final = 30  # minimum passages of each leg; between 30 and 100 no measured ranking changes
WIDEST: Final = 800  # maximum passages of each leg
SPARE: Final = 10  # documents ranked beyond the limit, to replace those that disappear meanwhile


def search(query: Query, *, store: ChunkStore, catalog: Catalog, embedder: Embedder | None) -> Answer:
    """Return the documents that match `query`, best first; `embedder` is None while no encoder is ready that fits the index.

    Raises Unavailable when the store can't be read."""
    embedded, cued = _QueryEmbedding(query, embedder), make_cue(query.text)
    by_words = query.mode != "vector" or embedded.make() is None
    words = keywords(query.text) if by_words else None
    if embedder is not None and not embedder.is_near:
        embedded.make()  # a request over the network must not block the store
    pool = max(POOL, 2 * query.limit)
    while True:
        near, word_matches = store.search(vector=embedded.make, words=words, filter=query.filter, pool=pool)
        with span("fuse", found=len(near) + len(word_matches)):
            ranked = fuse(cued, near, word_matches, embedded.weight) if by_words else rank_by_vector(near)
        if len(ranked) >= query.limit or pool >= WIDEST or pool > max(len(near), len(word_matches)):
            break
        pool = min(WIDEST, 4 * pool)  # one long document filled the pool
    with span("hydrate", documents=min(len(ranked), query.limit + SPARE)):
        records = catalog.records([document.doc_id for document in ranked[: query.limit + SPARE]])
    hits = demote_superseded(
        [_make_hit(document, records[document.doc_id]) for document in ranked if document.doc_id in records]
    )
    asked = query.filter.workspace
    kept = [hit for hit in hits if asked is None or hit.record.workspace == asked]  # a second line: the store filters
    return Answer(tuple(kept[: query.limit]), embedded.mode, embedded.degraded)


class _QueryEmbedding:
    """Embeds a query once, when the store needs the vector; the store searches for words meanwhile."""

    mode: Mode
    weight: float
    degraded: tuple[str, ...]

    def __init__(self, query: Query, embedder: Embedder | None) -> None:
        self._query, self._embedder = query, embedder
        self._made = False
        self._vector: np.ndarray | None = None

    def make(self) -> np.ndarray | None:
        """Return the vector, or None; `mode`, `weight` and `degraded` describe the result."""
        if not self._made:
            with span("embed"):
                self.mode, self._vector, self.weight, self.degraded = _embed_query(self._query, self._embedder)
            self._made = True
        return self._vector


def _embed_query(query: Query, embedder: Embedder | None) -> tuple[Mode, np.ndarray | None, float, tuple[str, ...]]:
    """Return the possible mode, the query's vector, its weight, and the reasons why the requested mode is impossible."""
    if query.mode == "text":
        return "text", None, 0.0, ()
    if embedder is None:
        return "text", None, 0.0, ("no embedding model is ready for this index, so the search used words only",)
    try:
        weight = vector_trust(embedder.count_tokens([query.text])[0], query.text)
        if query.mode == "hybrid" and not weight:
            return "hybrid", None, 0.0, ()  # the encoder does not know the script: its vector would only add noise
        return query.mode, embedder.embed_query(query.text), weight, ()
    except Unavailable as error:
        return "text", None, 0.0, (f"the search used words only: {error.message}",)


def _make_hit(document: RankedDocument, record: Record) -> Hit:
    return Hit(record, document.ord, document.heading, document.chunk, document.score)
