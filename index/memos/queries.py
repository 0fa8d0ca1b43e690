"""Run the queries of the tool family `memory` on the index of captures: memos by metadata or similarity.

Law, tested: a search for the nearest memos of a set finds the nearest of exactly this set, however small a part of the
namespace it is."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from index.errors import Unavailable
from index.memos.metadata_filter import matches, passes, required_properties, required_substrings
from index.memos.relations import NO_MEMOS, MemoRelations
from index.model import Filter
from index.names import fold
from index.query import tag_key, tag_of

if TYPE_CHECKING:  # both load libraries that only their owners need
    from index.catalog.catalog import Catalog
    from index.encoders.embedder import Embedder
    from index.storage.chunk_store import ChunkStore

EXACT: Final = 5_000  # memos up to which all are compared; of more, only those that the vector index finds
POOL: Final = 1_000  # maximum passages in a query of the vector index
POINTS: Final = 8  # maximum vectors in a query of the vector index
PIECES: Final = 64  # most texts of a filter that SQLite looks for; it refuses a condition of 1,000 parts
DIGITS: Final = 6  # digits of a similarity; more digits would depend on how it was computed


class MemoRows:
    """Reads the memos of one index; `paths` returns the paths of its notes, `fitting` the encoder that fits its vectors."""

    def __init__(
        self,
        catalog: Catalog,
        store: ChunkStore,
        paths: Callable[[], Collection[str]],
        fitting: Callable[[], Embedder | None],
    ) -> None:
        self.ties = MemoRelations(catalog, paths)
        self._catalog, self._store, self._fitting = catalog, store, fitting

    def find_matching(self, workspace: str, namespace: str, wanted: Mapping[str, Any]) -> list[str]:
        """Return the keys of the memos whose metadata, title and tags match `wanted`, the last changed first."""
        properties = {key: value for key, value in wanted.items() if key in ("title", "tags")}
        metadata = {key: value for key, value in wanted.items() if key not in properties}
        pieces = list(dict.fromkeys(piece for value in metadata.values() for piece in required_substrings(value)))[
            :PIECES
        ]
        keys = list(required_properties(metadata))[:PIECES]
        others = (
            "and type <> 'file' " if "file_name" in map(fold, metadata) else ""
        )  # agents don't see this property of a file
        columns = ("key", *(["metadata"] if metadata else []), *(["title", "tags"] if properties else []))
        rows = self._catalog.rows(
            f"""select {", ".join(columns)} from documents where workspace = ? and namespace = ?
            and type not in ({", ".join("?" * len(NO_MEMOS))}) {"and instr(metadata, ?) " * len(pieces)}{"and instr(lower(metadata), ?) " * len(keys)}{others}order by coalesce(updated_at, created_at) desc, path""",  # noqa: S608 - no text of anybody's
            workspace,
            namespace,
            *NO_MEMOS,
            *pieces,
            *keys,
        )
        if metadata:
            rows = [row for row in rows if passes(json.loads(row[1]), metadata)]
        if properties:
            if isinstance(tags := properties.get("tags"), list):
                properties["tags"] = [tag_key(tag_of(tag)) if isinstance(tag, str) else tag for tag in tags]
            rows = [row for row in rows if matches({"title": row[-2], "tags": _spellings(row[-1])}, properties)]
        return [row[0] for row in rows]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a query, as a matrix of one row. Raises Unavailable when there is no encoder."""
        embedder = self._fitting()
        if embedder is None:
            raise Unavailable(
                "no embedding model is ready for this index, so memos can't be compared; try again in a moment"
            )
        return np.asarray(embedder.embed_query(text), np.float32).reshape(1, -1)

    def stored_vectors(self, key: str) -> NDArray[np.float32]:
        """Return the stored vectors of a memo, one per row. Raises Unavailable if it has none yet."""
        points = self._store.vectors_of(key)
        if not len(points):
            raise Unavailable("the pivot memo has no vectors yet; try again in a moment")
        return points

    def find_nearest(
        self, points: NDArray[np.float32], keys: Sequence[str], within: Filter, most: int
    ) -> tuple[list[tuple[str, float]], int]:
        """Return the `most` nearest of these memos with their similarities, and the number of compared memos without vectors.

        A memo's similarity is that of its passage nearest to any of `points`. `within` is a filter that all of the memos pass."""
        some = self._choose_likely(points, frozenset(keys), within, most) if len(keys) > EXACT else None
        chosen = keys if some is None else some
        similarities = {key: round(value, DIGITS) for key, value in self._store.similarities(points, chosen).items()}
        best = heapq.nsmallest(most, similarities.items(), key=lambda pair: (-pair[1], pair[0]))
        return best, len(chosen) - len(similarities)

    def _choose_likely(
        self, points: NDArray[np.float32], keys: frozenset[str], within: Filter, most: int
    ) -> list[str] | None:
        """Return the memos that the vector index finds near the points; None if it finds too few."""
        if len(points) > POINTS:
            return None
        likely: set[str] = set()
        for point in points:
            pool, hits = min(POOL, max(100, 4 * most)), frozenset[str]()
            while len(hits) < most:
                (near,) = self._store.nearest([(point, within)], pool)
                hits = keys & {match.doc_id for match in near}
                if pool == POOL:
                    break
                pool = min(POOL, 4 * pool)
            if len(hits) < most:
                return None
            likely |= hits
        return sorted(likely)


def _spellings(tags: str) -> list[str]:
    """Return the tags of a JSON list as they are written, and as they are compared."""
    written = json.loads(tags)
    return [*written, *map(tag_key, written)]
