"""Search the observations of one workspace under every perspective, and keep the best match of each observation.

Laws, tested: every result is in the workspace that the search names; without an encoder the search uses words; the answer
to a smaller limit is the beginning of the answer to a larger one, unless a perspective has more rows than the store compares
exactly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from index.document_ids import path_id
from index.errors import Unavailable
from index.model import ObservationAnswer, ObservationHit, ObservationMode
from index.names import fold
from index.observations.observation_rows import FoundObservation, to_observation
from index.observations.perspectives import Perspective, hash_perspectives
from index.observations.similarity_baseline import Point, SimilarityBaselines
from index.search.fusion import keywords
from index.tracing import span

if TYPE_CHECKING:  # they load libraries that only their owners need
    from index.catalog.catalog import Catalog
    from index.encoders.embedder import Embedder
    from index.observations.observation_store import Observations

POOL: Final = 30  # minimum observations from each perspective
WIDEST: Final = 800  # maximum observations from each perspective
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class SearchPlace:
    """Describes what a search covers: one node or all nodes of a workspace."""

    workspace: str
    path: str | None = None


def find(
    query: str,
    place: SearchPlace,
    limit: int,
    mode: ObservationMode,
    *,
    perspectives: Sequence[Perspective],
    observations: Observations,
    catalog: Catalog,
    embedder: Embedder | None,
    baselines: SimilarityBaselines,
) -> ObservationAnswer:
    """Return the observations that match `query`, best first: the best one of each node or, for one node, all of them.

    Raises Unavailable when the store can't be read."""
    points, degraded = _query_points(query, perspectives, embedder, baselines) if mode == "embedding" else ([], ())
    used: ObservationMode = "embedding" if points else "text"
    if not points:
        ranked = _search_words(query, place, limit, observations, catalog)
    elif place.path is None:
        ranked = rank_nodes(place.workspace, points, limit, observations)
    else:
        with span("within"):
            compared = observations.compare_node(path_id(place.path), place.workspace, points)
            ranked = _best_of_each(compared, by_node=False)
    hits = _make_hits(ranked[:limit], place.workspace, catalog)
    return ObservationAnswer(
        tuple(hits), used, degraded or (_missing_vectors(place, perspectives, catalog) if points else ())
    )


def _query_points(
    query: str, perspectives: Sequence[Perspective], embedder: Embedder | None, baselines: SimilarityBaselines
) -> tuple[list[Point], tuple[str, ...]]:
    """Return the query under each perspective, or the reason why the search uses words only."""
    if embedder is None:
        return [], ("no embedding model is ready for this index, so the search used words only",)
    try:
        with span("embed", texts=len(perspectives)):
            return baselines.query_points(query, perspectives, embedder), ()
    except Unavailable as error:
        return [], (f"the search used words only: {error.message}",)


def rank_nodes(
    workspace: str, points: Sequence[Point], limit: int, observations: Observations
) -> list[FoundObservation]:
    """Return the best observation of each node under all of `points`, best first; the first `limit` are right and complete.

    Where a store compares only candidates, as it does with more than COMPARED rows, a few of the nearest may be missing.
    The search is widened under each perspective in which an observation that was not found could still be as good as the last
    of them, because one long node may fill a pool. Beyond WIDEST, it could be incomplete."""
    pool, asked = max(POOL, 2 * limit), list(points)
    legs: dict[str, list[FoundObservation]] = {}
    while True:
        matches = observations.find_nearest(workspace, asked, pool)
        for (perspective, _, added), leg in zip(asked, matches, strict=True):
            legs[perspective.name] = [to_observation(match, perspective.name, match.value - added) for match in leg]
        best = _best_of_each(chain.from_iterable(legs.values()), by_node=True)
        last = best[limit - 1 : limit]
        full = [point for point in asked if len(legs[point[0].name]) >= pool]
        asked = [point for point in full if not last or _rank(legs[point[0].name][-1]) < _rank(last[0])]
        if not asked or pool >= WIDEST:
            return best
        pool = min(WIDEST, 4 * pool)


def _search_words(
    query: str, place: SearchPlace, limit: int, observations: Observations, catalog: Catalog
) -> list[FoundObservation]:
    """Return the best observations by words; widen the search until `limit` are found, because one long node may fill a pool."""
    pool = max(POOL, 2 * limit)
    key = None if place.path is None else path_id(place.path)
    words = keywords(query)
    for (name,) in [] if place.path is None else catalog.rows("select name from nodes where path = ?", place.path):
        words = _without_name(words, name)
    while True:
        matches = observations.find_words(place.workspace, words, pool, key)
        candidates = [to_observation(match, None, match.value) for match in matches]
        best = _best_of_each(candidates, by_node=key is None)
        if len(best) >= limit or pool >= WIDEST or pool > len(matches):
            return best
        pool = min(WIDEST, 4 * pool)


def _without_name(words: str, name: str) -> str:
    """Remove a node's name from a query of this node, because every row of the node contains it."""
    folded = fold(name)
    parts = {*folded.split(), *_WORD.findall(folded)}
    return " ".join(word for word in words.split() if fold(word) not in parts) or words


def _best_of_each(observations: Iterable[FoundObservation], *, by_node: bool) -> list[FoundObservation]:
    """Return each observation, or each node, once, with its highest score."""
    best: dict[tuple[str, int], FoundObservation] = {}
    for observation in observations:
        same = (observation.key, -1 if by_node else observation.place)
        before = best.get(same)
        if before is None or (-observation.score, observation.place) < (-before.score, before.place):
            best[same] = observation
    return sorted(best.values(), key=_rank)


def _rank(observation: FoundObservation) -> tuple[float, str, int]:
    return -observation.score, observation.key, observation.place


def _missing_vectors(place: SearchPlace, perspectives: Sequence[Perspective], catalog: Catalog) -> tuple[str, ...]:
    if catalog.is_embedded(place.workspace, hash_perspectives(perspectives)):
        return ()
    done, there = catalog.embedded_counts(place.workspace, hash_perspectives(perspectives))
    return (f"{there - done:,} of {there:,} observations are not embedded under every perspective yet",)


def _make_hits(observations: Sequence[FoundObservation], workspace: str, catalog: Catalog) -> list[ObservationHit]:
    records = catalog.records({observation.key for observation in observations})
    paths = {key: record.path for key, record in records.items() if record.workspace == workspace}
    contents = {
        (path, observation.ordinal): observation.content
        for path, stored in catalog.observations(list(paths.values())).items()
        for observation in stored
    }
    return [
        ObservationHit(
            paths[observation.key], observation.ordinal, content, observation.perspective, max(0.0, observation.score)
        )
        for observation in observations
        if observation.key in paths
        and (content := contents.get((paths[observation.key], observation.ordinal))) is not None
    ]
