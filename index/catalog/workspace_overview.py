"""Read an overview of all documents of a workspace from the catalog, with only the columns that a comparison needs.

Law, tested: the answers depend on the documents and not on the order in which they were written."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from index.catalog.catalog import Catalog
from index.catalog.recent_documents import CHANGED
from index.model import DocumentOverview
from index.names import stem


def list_documents(catalog: Catalog, workspace: str) -> list[DocumentOverview]:
    """List the documents of `workspace`, in order of their ids."""
    rows = catalog.rows(
        "select id, key, path, title, type, tags, created_at, updated_at, content_hash from records "
        "where workspace = ? order by id",
        workspace,
    )
    return [
        DocumentOverview(id, key, path, title, type, tuple(json.loads(tags)), *rest)
        for id, key, path, title, type, tags, *rest in rows
    ]


def newest_paths(
    catalog: Catalog, workspace: str, limit: int, ids: Collection[str] | None = None, *, without: str = ""
) -> list[str]:
    """Return the paths of the `limit` documents of `workspace` that changed last, of all or of those with these `ids`.

    Documents of the type `without` are left out, and those of one time are in order of their ids. Without `ids`, only
    `limit` rows are read, however many there are."""
    if ids is None:
        query = f"select path from records where workspace = ? and type <> ? order by {CHANGED} desc, id limit ?"  # noqa: S608 - a constant
        return [path for (path,) in catalog.rows(query, workspace, without, limit)]
    order = {
        path: (-changed, id)
        for column in ("claimed", "key")  # an id is one of both
        for path, id, where, kind, changed in catalog.rows_in(
            f"select path, id, workspace, type, {CHANGED} from records where {column} in",  # noqa: S608 - constants
            ids,
        )
        if where == workspace and kind != without and id in ids
    }
    return sorted(order, key=order.__getitem__)[:limit]


def linked_names(catalog: Catalog, but: Sequence[str] = ()) -> set[str]:
    """Return the names, folded by `stem`, to which notes link; links to themselves and notes below the folders `but` are left out."""
    rows = catalog.rows("select distinct path, target from links where target <> ''")
    memo_rows = catalog.rows("select distinct path, link from memo_relations where link <> ''")
    folders = tuple(f"{folder}/" for folder in but)
    return {stem(to) for path, to in (*rows, *memo_rows) if stem(to) != stem(path) and not path.startswith(folders)}
