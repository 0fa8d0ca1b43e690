"""Look at an index that nobody has open, and say what is wrong with it.

Law, tested: it is looked at and not mended: no byte of it changes, however damaged it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from index import catalog, heal, table
from index.errors import MemexError


def examined(folder: Path, scope: str, *, uri: str, options: Mapping[str, str] | None = None) -> str:
    """What is wrong with the index of `scope` in `folder`, whose chunks lie at `uri`; "" = nothing."""
    try:
        known = catalog.examined(folder / f"{scope}.db")
        stored = f"{uri}/{scope}.lance"
        where = heal.folder(stored)
        if where and heal.torn(where / f"{table.NAME}.lance"):
            return "the newest manifest of the chunks is cut short"
        held = table.tallied(stored, options or {})
    except MemexError as error:
        return error.message
    return differing(known, held)


def differing(known: Mapping[str, int], held: Mapping[str, int]) -> str:
    """How catalog (`known`) and store (`held`) differ in the chunks of each document; "" = not at all."""
    fewer = sum(held.get(key, 0) != chunks for key, chunks in known.items())
    orphans = len(held.keys() - known.keys())
    told = [f"{fewer:,} notes whose chunks are not those that the catalog counts"] if fewer else []
    told += [f"{orphans:,} notes have chunks and no entry in the catalog"] if orphans else []
    return "; ".join(told)
