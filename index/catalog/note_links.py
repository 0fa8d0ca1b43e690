"""Read the links of notes from the catalog: those of one note, and those that may lead to it.

Law, tested: no link to a note is missing, whatever the case or the Unicode form of its name."""

from __future__ import annotations

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
    name = stem(path)
    # SQLite compares only ASCII without case. A target of other letters may have the name in another form.
    rows = catalog.rows(
        "select distinct path, target from links where instr(lower(target), ?) or target glob '*[^ -~]*' order by path",
        name,
    )
    return [(source, target) for source, target in rows if stem(target) == name]
