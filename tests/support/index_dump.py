"""Dump an index: its whole content, in an order that does not depend on how it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from index.storage.arrow_rows import COLUMNS, PLAIN

if TYPE_CHECKING:
    from index.catalog.catalog import Catalog
    from index.scope.index import Index
    from index.storage.chunk_store import ChunkStore

QUERIES = {
    "documents": "select * from records order by path",
    "tags": "select path, workspace, key, tag from tags order by path, key, tag",
    "tag_uses": "select * from tag_uses order by workspace, key, tag",
    "links": "select * from links order by path, ord",
    "nodes": "select * from nodes order by path",
    "observations": "select * from observations order by path, ordinal",
    "relations": "select * from relations order by path, ord",
    "facets": "select path, workspace, perspectives, observations, rows from facets order by path",
    "memo_relations": "select * from memo_relations order by path, ord",
    "skipped": "select * from skipped order by path",
}


def dump_index(index: Index) -> dict[str, Any]:
    """Dump the catalog and both stores."""
    return {
        "catalog": dump_catalog(index.catalog),
        "store": dump_store(index._store),
        "observations": [row for store in index._observations.open_stores for row in dump_store(store)],
    }


def dump_catalog(catalog: Catalog) -> dict[str, list[tuple[Any, ...]]]:
    """Dump everything about the documents except the files' times."""
    return {name: list(map(tuple, catalog.rows(query))) for name, query in QUERIES.items()}


def dump_store(store: ChunkStore, *, vectors: bool = False) -> list[tuple[Any, ...]]:
    """Dump all rows, sorted by their values. `vectors`: include the vectors, as tuples."""
    table = store._run_read(store._table.select(COLUMNS if vectors else PLAIN))
    return sorted(
        tuple(tuple(value) if isinstance(value, list) else value for value in row.values()) for row in table.to_pylist()
    )
