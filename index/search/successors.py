"""Find the successors of a superseded note: the newer notes that its link and theirs name, one after the other.

Law, tested: only notes of the same index count, in the same workspace, whether or not a search has found them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from index.catalog.note_links import list_named_paths
from index.document_ids import path_id
from index.model import Record
from index.names import stem
from index.search.fusion import choose_linked

LONGEST = 100  # most notes of a chain; a person replaces a note a few times

if TYPE_CHECKING:  # it loads a library that only its owner needs
    from index.catalog.catalog import Catalog


class Successors:
    """Finds the successors of superseded documents for one search, and reads each link only once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._newer: dict[str, Record | None] = {}  # by path

    def find(self, keys: Collection[str]) -> dict[str, tuple[Record, ...]]:
        """Return the successors of each superseded document among those with these keys, by key, the nearest first."""
        return {
            path_id(record.path): follow_links(record, self._newer_note) for record in self._catalog.superseded(keys)
        }

    def _newer_note(self, older: Record) -> Record | None:
        if older.path not in self._newer:
            self._newer[older.path] = find_linked(self._catalog, older, older.workspace)
        return self._newer[older.path]


def follow_links(record: Record, newer_note: Callable[[Record], Record | None]) -> tuple[Record, ...]:
    """Return the notes that replace `record`, the nearest first, at most LONGEST; a circle of links ends where it would begin again."""
    chain, seen = [record], {record.path}
    while len(chain) <= LONGEST and (newer := newer_note(chain[-1])) is not None and newer.path not in seen:
        seen.add(newer.path)
        chain.append(newer)
    return tuple(chain[1:])


def find_linked(catalog: Catalog, record: Record, workspace: str) -> Record | None:
    """Return the note of this workspace that the link of the superseded note `record` means; None if there is none."""
    link = record.superseded_by
    if link is None:
        return None
    wanted = stem(link)
    named = [path for path in list_named_paths(catalog, [wanted, f"{wanted}.md"]) if stem(path) == wanted]
    inside = {other.path: other for other in catalog.records_at(named) if other.workspace == workspace}
    return inside.get(choose_linked(link, inside) or "")
