"""Read the links of notes from the catalog: those of one note, those that may lead to it, and the notes that they may mean.

Laws, tested: no link to a note is missing, whatever the case or the Unicode form of its name; each query reads only the
rows with the name it looks for."""

from __future__ import annotations

from collections.abc import Collection

from index.catalog.catalog import Catalog
from index.model import Link
from index.names import stem


def list_links(catalog: Catalog, path: str) -> list[Link]:
    """List the links of the note at `path`, in their order; those in its properties come last."""
    rows = catalog.rows(
        "select kind, target, subpath, display, line from links where path = ? order by line < 0, ord", path
    )
    return [Link(*row) for row in rows]


def list_candidates(catalog: Catalog, path: str) -> list[tuple[str, str]]:
    """List the notes that link to the name of the note at `path`, each with a target as written; the links may lead to a namesake."""
    return catalog.rows("select distinct path, target from links where stem = ? order by path", stem(path))


def list_named_paths(catalog: Catalog, names: Collection[str]) -> list[str]:
    """List the paths of the notes whose file names, folded, are among these."""
    return [path for (path,) in catalog.rows_in("select path from documents where file_name in", names)]
