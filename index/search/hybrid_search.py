"""Run a hybrid search in one scope: ask the store by words and by vector, rank the results, and add the documents.

Law, tested: every result is in the workspace that the query names; without an encoder the search uses
words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from index.document_ids import path_id
from index.errors import Unavailable
from index.model import Answer, Hit, Mode, Query, Record
from index.search.fusion import (
    QueryCue,
    RankedDocument,
    demote_superseded,
    fuse,
    is_weak,
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

# Passages of each leg. A larger pool only adds documents behind those of the smaller ones, so the answer to a smaller limit
# is the beginning of the answer to a larger one. From 40 to 150 no measured ranking changes.
POOLS: Final = (40, 160, 640)
SPARE: Final = 10  # documents read beyond the limit, to replace those that disappear meanwhile


def search(query: Query, *, store: ChunkStore, catalog: Catalog, embedder: Embedder | None) -> Answer:
    """Return the documents that match `query`, best first; `embedder` is None while no encoder is ready that fits the index.

    The answer to a smaller limit is the beginning of the answer to a larger one. Raises Unavailable when the store can't
    be read."""
    embedded, cued = _QueryEmbedding(query, embedder), make_cue(query.text)
    by_words = query.mode != "vector" or embedded.make() is None
    words = keywords(query.text) if by_words else None
    if embedder is not None and not embedder.is_near:
        embedded.make()  # a request over the network must not block the store
    hits: list[Hit] = []
    for pool in POOLS:
        near, word_matches = store.search(vector=embedded.make, words=words, filter=query.filter, pool=pool)
        if by_words and not word_matches and cued.asked[-1] and embedded.insist():
            near, _ = store.search(vector=embedded.make, words=None, filter=query.filter, pool=pool)
        with span("fuse", found=len(near) + len(word_matches)):
            ranked = (
                fuse(cued, near, word_matches, embedded.trust, embedded.weight) if by_words else rank_by_vector(near)
            )
        known = {path_id(hit.record.path) for hit in hits}
        added = [document for document in ranked if document.doc_id not in known]
        hits += _read_hits(added, cued, query, catalog, hits)
        if len(hits) >= query.limit or pool > max(len(near), len(word_matches)):
            break  # otherwise one long document filled the pool
    return Answer(tuple(hits[: query.limit]), embedded.mode, embedded.degraded)


def _read_hits(
    added: list[RankedDocument], cue: QueryCue, query: Query, catalog: Catalog, before: list[Hit]
) -> list[Hit]:
    """Return the hits of `added`, which follow `before`: all of them if one is superseded, else as many as are needed.

    A superseded document changes places with others, and the order must not depend on the limit."""
    keys = [document.doc_id for document in added]
    if not catalog.has_superseded(keys):
        added = added[: query.limit - len(before) + SPARE]
    with span("hydrate", documents=len(added)):
        records = catalog.records([document.doc_id for document in added])
    hits = [_make_hit(document, records[document.doc_id], cue) for document in added if document.doc_id in records]
    hits = demote_superseded(hits)
    asked = query.filter.workspace
    # A superseded hit has only a part of its score.
    most = min((hit.score for hit in before if hit.record.superseded_by is None), default=1.0)
    # A second line against hits of another workspace: the store filters.
    return [
        hit if hit.score <= most else replace(hit, score=most)
        for hit in hits
        if asked is None or hit.record.workspace == asked
    ]


class _QueryEmbedding:
    """Embeds a query once, when the store needs the vector; the store searches for words meanwhile."""

    mode: Mode
    trust: float  # in the vector, 0..1
    weight: float  # of the vector, 0..1: above the trust if nothing else finds anything
    degraded: tuple[str, ...]

    def __init__(self, query: Query, embedder: Embedder | None) -> None:
        self._query, self._embedder = query, embedder
        self._made = False
        self._vector: np.ndarray | None = None

    def make(self) -> np.ndarray | None:
        """Return the vector, or None; `mode`, `trust`, `weight` and `degraded` describe the result."""
        if not self._made:
            with span("embed"):
                self.mode, self._vector, self.trust, self.degraded = _embed_query(self._query, self._embedder)
                self.weight = self.trust
            self._made = True
        return self._vector

    def insist(self) -> bool:
        """Embed a query that the encoder has to spell, if no words of it were found; return whether there is a vector now.

        Even a poor vector finds more than words that are not in the index."""
        if self._vector is not None or self.mode != "hybrid":
            return False
        with span("embed"):
            self.mode, self._vector, self.trust, self.degraded = _embed_query(self._query, self._embedder, spelt=True)
            self.weight = 1.0
        return self._vector is not None


def _embed_query(
    query: Query, embedder: Embedder | None, *, spelt: bool = False
) -> tuple[Mode, np.ndarray | None, float, tuple[str, ...]]:
    """Return the possible mode, the query's vector, the trust in it, and the reasons why the requested mode is impossible.

    A query that the encoder has to spell letter by letter gets a vector only with `spelt`."""
    if query.mode == "text":
        return "text", None, 0.0, ()
    if embedder is None:
        return "text", None, 0.0, ("no embedding model is ready for this index, so the search used words only",)
    try:
        trust = vector_trust(embedder.count_tokens([query.text])[0], query.text)
        if query.mode == "hybrid" and not trust and not spelt:
            return "hybrid", None, 0.0, ()  # the encoder does not know the script: its vector would only add noise
        return query.mode, embedder.embed_query(query.text), trust, ()
    except Unavailable as error:
        return "text", None, 0.0, (f"the search used words only: {error.message}",)


def _make_hit(document: RankedDocument, record: Record, cue: QueryCue) -> Hit:
    weak = is_weak(cue, document, record.title)
    return Hit(record, document.ord, document.heading, document.chunk, document.score, weak)
