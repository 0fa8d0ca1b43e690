"""Store the observations of one scope, one row per observation and perspective, in a separate store beside the chunk store.

Law, tested: no part of this store exists, on disk or in memory, before a node has an observation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from index.model import Filter
from index.observations.observation_rows import FoundObservation, to_observation
from index.observations.resident_observations import ObservationVectors
from index.observations.similarity_baseline import Point
from index.storage.chunk_rows import Match, Row
from index.storage.crash_repair import StoreDamaged
from index.storage.store_opening import discard, open_later, open_store

if TYPE_CHECKING:
    from index.storage.chunk_store import ChunkStore

log = logging.getLogger(__name__)


class Observations:
    """Stores and finds observations; the first write, or `open`, opens the store."""

    def __init__(self, uri: str, *, dimensions: int, options: Mapping[str, str]) -> None:
        self._uri, self._dimensions, self._options = uri, dimensions, options
        self._store: ChunkStore | None = None

    def open(self, later: Callable[[], object] | None = None) -> None:
        """Open an existing store. Raises StoreDamaged when it can't be repaired.

        `later`: open the store at its first use, and call this function then."""
        if later:
            self._store = open_later(self._open_store, self._dimensions, later)
        else:
            self._store = self._open_store()

    def _open_store(self) -> ChunkStore:
        return open_store(self._uri, dimensions=self._dimensions, options=self._options, hold=ObservationVectors.of)

    def close(self) -> None:
        """Close the store."""
        if self._store:
            self._store.close()

    @property
    def open_stores(self) -> tuple[ChunkStore, ...]:
        """Return the store, if there is one."""
        return (self._store,) if self._store else ()

    def replace(self, documents: Mapping[str, Collection[Row]], *, buffered: bool = False) -> None:
        """Replace the rows of these documents, as `ChunkStore.replace` does; without rows a document has no observations."""
        if self._store is None:
            if not any(documents.values()):
                return
            self._store = self._create_store()
            documents = {**dict.fromkeys(self._store.row_counts(), ()), **documents}  # drops rows that a crash left
        self._store.replace(documents, buffered=buffered)

    def _create_store(self) -> ChunkStore:
        try:
            return self._open_store()
        except StoreDamaged:
            log.warning(
                "removing a damaged store of observations that the catalog does not know; Memex creates it again"
            )
            discard(self._uri, self._options)
            return self._open_store()

    def row_counts(self) -> dict[str, int]:
        """Return how many rows each document has."""
        return self._store.row_counts() if self._store else {}

    def known_digests(self, digests: Collection[str]) -> set[str]:
        """Return those of `digests` that may be stored, without reading the store."""
        return self._store.known_digests(digests) if self._store else set()

    def vectors(self, digests: Collection[str]) -> Mapping[str, NDArray[np.float32]]:
        """Return the vectors of the texts with these digests, as far as they are stored."""
        return self._store.vectors(digests) if self._store else {}

    def find_nearest(self, workspace: str, points: Sequence[Point], pool: int) -> list[list[Match]]:
        """For each perspective, the `pool` observations of a workspace that are nearest to its point, best first."""
        asked = [(point, Filter(workspace=workspace, type=perspective.name)) for perspective, point, _ in points]
        return self._store.nearest(asked, pool) if self._store else [[] for _ in points]

    def find_words(self, workspace: str, words: str, pool: int, key: str | None) -> list[Match]:
        """Return the observations of a workspace, or of one node, that contain `words`, best first."""
        if not self._store:
            return []
        restriction = Filter(workspace=workspace, documents=None if key is None else frozenset({key}))
        return self._store.search(vector=None, words=words, filter=restriction, pool=pool)[1]

    def compare_node(self, key: str, workspace: str, points: Sequence[Point]) -> Iterator[FoundObservation]:
        """Yield all observations of one node under each perspective, each compared exactly."""
        rows = (
            [row for row in self._store.rows_of(key, vectors=True) if row.workspace == workspace] if self._store else []
        )
        for perspective, point, added in points:
            embedded = [row for row in rows if row.type == perspective.name and row.vector is not None]
            if embedded:
                matrix = np.array([row.vector for row in embedded], np.float32)
                lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(point)
                similar = np.einsum("rd,d->r", matrix, point) / np.where(lengths > 0, lengths, 1.0)
                for row, value in zip(embedded, similar.tolist(), strict=True):
                    yield to_observation(row, perspective.name, value - added)

    def vector_sums(
        self, workspace: str, perspective: str | None, keys: Collection[str] | None = None
    ) -> dict[str, NDArray[np.float32]]:
        """Return the sum of the vectors of each node's observations under a perspective, or all, by key; a zero sum is left out.

        With `keys`, only of the nodes with these keys."""
        wanted = Filter(workspace=workspace, type=perspective, documents=None if keys is None else frozenset(keys))
        sums = self._store.vector_sums(wanted) if self._store else {}
        return {key: total for key, total in sums.items() if total.any()}
