"""Run a hybrid search in one scope: ask the store by words and by vector, rank the results, and add the documents.

Law, tested: every result is in the workspace that the query names; without an encoder the search uses
words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from index.document_ids import path_id
from index.errors import Unavailable
from index.model import Answer, Filter, Hit, Mode, Query, Record
from index.search.fusion import (
    DATE_WEIGHT,
    WORDS_WEIGHT,
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
from index.search.query_dates import DAY_MS, find_periods
from index.search.successors import Successors
from index.tracing import span

if TYPE_CHECKING:  # both load libraries that only their owners need
    from index.catalog.catalog import Catalog
    from index.encoders.embedder import Embedder
    from index.storage.chunk_rows import Match
    from index.storage.chunk_store import ChunkStore

# Passages of each leg. A larger pool only adds documents after those of the smaller ones, even one whose passage was no
# candidate before, so the answer to a smaller limit is the beginning of the answer to a larger one. From 40 to 150 no measured
# ranking changes.
POOLS: Final = (40, 160, 640)
TIMES: Final = 3  # most times of a query that are looked for
LATER_MS: Final = 3 * DAY_MS  # people often write some days later about a time

_Legs: TypeAlias = tuple[list["Match"], list["Match"]]  # the passages that are near, and those with the words


def search(query: Query, *, store: ChunkStore, catalog: Catalog, embedder: Embedder | None) -> Answer:
    """Return the documents that match `query`, best first; `embedder` is None while no encoder is ready that fits the index.

    The answer to a smaller limit is the beginning of the answer to a larger one. Raises Unavailable when the store can't
    be read."""
    embedded, cued = _QueryEmbedding(query, embedder), make_cue(query.text)
    by_words = query.mode != "vector" or embedded.make() is None
    words = keywords(query.text) if by_words else None
    if query.mode == "text" or embedder is None or not embedder.is_near:
        embedded.make()  # it takes no time, or is a request over the network, which must not block the store
    times = _QueryTimes(query, asked=by_words)
    if times.filters and not times.rest:
        embedded.insist()  # words can't find the notes of a time
    successors, hits = Successors(catalog), list[Hit]()
    for pool in POOLS:
        near, word_matches = store.search(vector=embedded.source, words=words, filter=query.filter, pool=pool)
        if by_words and not word_matches and cued.content and embedded.insist():
            near, _ = store.search(vector=embedded.source, words=None, filter=query.filter, pool=pool)
        is_last = pool > max(len(near), len(word_matches)) or pool == POOLS[-1]
        of_times = [store.search(vector=embedded.source, words=words, filter=each, pool=pool) for each in times.filters]
        with span("fuse", found=len(near) + len(word_matches)):
            ranked = (
                _fuse(cued, [(near, word_matches), *of_times], embedded, times.weight, is_last=is_last)
                if by_words
                else rank_by_vector(near)
            )
        known = {path_id(hit.record.path) for hit in hits}
        added = [document for document in ranked if document.doc_id not in known]
        newer = successors.find([document.doc_id for document in added])
        hits += _read_hits(added, cued, query, catalog, hits, newer=newer)
        if len(hits) >= query.limit or is_last:
            break  # otherwise one long document filled the pool
    return Answer(tuple(map(times.judge, hits[: query.limit])), embedded.mode, embedded.degraded)


def _fuse(
    cue: QueryCue, searches: Sequence[_Legs], embedded: _QueryEmbedding, date_weight: float, *, is_last: bool
) -> list[RankedDocument]:
    """Rank what the search found, which is the first of `searches`, with what the same search found in each time of the query.

    Documents that only their time brought in must not fill the answer before a larger pool has found others. Unless the pool
    `is_last`, those at the end are left out; a later pool finds them again."""
    ((near, words), *of_times) = searches
    ranked = fuse(
        *(cue, _merge([leg for leg, _ in searches]), _merge([leg for _, leg in searches])),
        *(embedded.trust, embedded.weight),
        farthest=min((match.value for match in near), default=0.0),
        dated={match.doc_id for legs in of_times for leg in legs for match in leg},
        date_weight=date_weight,
    )
    if of_times and not is_last:
        undated = {match.doc_id for match in (*near, *words)}
        while ranked and ranked[-1].doc_id not in undated:
            ranked.pop()
    return ranked


class _QueryTimes:
    """The times that a query names, and its filter limited to each of them."""

    def __init__(self, query: Query, *, asked: bool) -> None:
        now = query.asked_at or datetime.now()  # noqa: DTZ005 - in the time zone of the machine, as its owner means it
        self._periods, self.rest = find_periods(query.text, now) if asked else ([], query.text)
        self._spans = list(self._limit(query.filter))
        self.filters = [replace(query.filter, since=since, until=until) for since, until in self._spans]
        self.weight = 0.0  # of a note's time in the ranking; it counts like words where it is all that is asked for
        if self.filters:
            self.weight = DATE_WEIGHT if self.rest else WORDS_WEIGHT

    def judge(self, hit: Hit) -> Hit:
        """Return the hit, which isn't weak if a time is all that is asked for and it is of that time."""
        fits = (
            hit.weak and not self.rest and any(since <= hit.record.created_at < until for since, until in self._spans)
        )
        return replace(hit, weak=False) if fits else hit

    def _limit(self, filter: Filter) -> Iterator[tuple[int, int]]:
        for period in self._periods[:TIMES]:
            since = period.start if filter.since is None else max(filter.since, period.start)
            until = period.end + LATER_MS
            until = until if filter.until is None else min(filter.until, until)
            if since < until:
                yield since, until


def _merge(legs: Sequence[list[Match]]) -> list[Match]:
    """Return the matches of all legs, best first, each passage once."""
    if len(legs) == 1:
        return legs[0]
    passages = {(match.doc_id, match.ord): match for leg in legs for match in leg}
    return sorted(passages.values(), key=lambda match: -match.value)


def _read_hits(
    added: list[RankedDocument],
    cue: QueryCue,
    query: Query,
    catalog: Catalog,
    before: list[Hit],
    *,
    newer: Mapping[str, tuple[Record, ...]],
) -> list[Hit]:
    """Return the hits of `added`, which follow `before`: all of them if one is superseded, else as many as are needed.

    `newer`: the successors of those that are superseded. A superseded document changes places with others, and the order must not
    depend on the limit."""
    keys = [document.doc_id for document in added]
    needed = keys[: query.limit - len(before)] if newer.keys().isdisjoint(keys) else keys
    with span("hydrate", documents=len(needed)):
        records = catalog.records(needed)
        if len(records) < len(needed):  # some have disappeared meanwhile; others replace them
            records = catalog.records(keys)
    hits = [
        replace(_make_hit(document, records[document.doc_id], cue), newer=newer.get(document.doc_id, ()))
        for document in added
        if document.doc_id in records
    ]
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

    @property
    def source(self) -> np.ndarray | Callable[[], np.ndarray | None] | None:
        """Return the vector or, as long as it is not made, what makes it."""
        return self._vector if self._made else self.make

    def insist(self) -> bool:
        """Embed a query that the encoder has to spell, if no words of it were found; return whether there is a vector now.

        Even a poor vector finds more than words that are not in the index."""
        if self.make() is not None or self.mode != "hybrid":
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
