"""Find documents of one index that are related to a document of another, by its stored vectors and a few of its words.

Law, tested: nothing is embedded and nothing is written; the answer depends on the content of both stores, not on the
order in which it came there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from index.model import Filter, SimilarDocument
from index.search.fusion import HALF

if TYPE_CHECKING:  # both load libraries that only their owners need
    from index.catalog.catalog import Catalog
    from index.storage.chunk_store import ChunkStore

POINTS: Final = 6  # vectors of a document that are compared: of a longer one, passages from all of it
POOL: Final = 60  # passages that each of them and the words find
WORDS: Final = 120  # characters of words that are looked for: the time of full text grows with them


def find_similar(
    points: NDArray[np.float32], words: str, *, store: ChunkStore, catalog: Catalog
) -> list[SimilarDocument]:
    """Find the documents nearest to any of `points` (one per row) or that contain `words`, the nearest first."""
    near: dict[str, float] = {}
    word_scores: dict[str, float] = {}
    if len(points):
        for matches in store.nearest([(point, Filter()) for point in _sample(points)], POOL):
            for match in matches:
                near[match.doc_id] = max(match.value, near.get(match.doc_id, 0.0))
    if asked := words[:WORDS].strip():
        for match in store.search(vector=None, words=asked, filter=Filter(), pool=POOL)[1]:
            word_scores[match.doc_id] = max(match.value / (match.value + HALF), word_scores.get(match.doc_id, 0.0))
    records = catalog.records(near.keys() | word_scores.keys())
    similar = [
        SimilarDocument(record, round(near.get(key, 0.0), 4), round(word_scores.get(key, 0.0), 4))
        for key, record in records.items()
    ]
    return sorted(similar, key=lambda document: (-document.near, -document.words, document.record.path))


def _sample(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of the vectors, and up to `POINTS` of them, evenly from the whole document."""
    at = np.unique(np.linspace(0, len(points) - 1, min(POINTS, len(points))).round().astype(np.int64))
    return np.concatenate([points.mean(axis=0, keepdims=True), points[at]]) if len(points) > 1 else points
