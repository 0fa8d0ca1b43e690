"""Check the integrity of an index that no process has open, and report what is wrong with it.

Law, tested: the check repairs nothing: no byte of the index changes, however damaged it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from index.catalog import catalog
from index.errors import MemexError
from index.names import pluralize
from index.storage import crash_repair


def check_index(folder: Path, scope: str, *, uri: str, options: Mapping[str, str] | None = None) -> str:
    """Describe the damage of the index of `scope` in `folder`, with its chunks at `uri`; "" = no damage."""
    try:
        known, seen, unsettled = catalog.read_row_counts(folder / f"{scope}.db")
        chunks, observations = store_uris(uri, scope)
        problems = _check_store(chunks, known, unsettled, "chunks", options or {})
        problems += _check_store(observations, seen, unsettled, "observations", options or {}) if seen else []
    except MemexError as error:
        return error.message
    return "; ".join(problems)


def store_uris(uri: str, scope: str) -> tuple[str, str]:
    """Return the URIs below `uri` of the chunks and of the observations of `scope`."""
    return f"{uri}/{scope}.lance", f"{uri}/{scope}-observations.lance"


def _check_store(
    uri: str, known: Mapping[str, int], unsettled: Collection[str], what: str, options: Mapping[str, str]
) -> list[str]:
    from index.storage import lancedb_table  # noqa: PLC0415 - it imports LanceDB, which few commands need

    where = crash_repair.local_folder(uri)
    if where and crash_repair.has_torn_manifest(where / f"{lancedb_table.NAME}.lance"):
        return [f"the newest manifest of the {what} is truncated"]
    held = lancedb_table.count_chunks(uri, options)
    settled, stored = ({key: rows for key, rows in counts.items() if key not in unsettled} for counts in (known, held))
    wrong = describe_difference(settled, stored, what)
    return [wrong] if wrong else []


def describe_difference(known: Mapping[str, int], held: Mapping[str, int], what: str = "chunks") -> str:
    """Describe how catalog (`known`) and store (`held`) differ in the row counts of documents; "" = not at all."""
    fewer = sum(held.get(key, 0) != chunks for key, chunks in known.items())
    orphans = len(held.keys() - known.keys())
    problems = [f"{_count_notes(fewer)} fewer or more {what} than the catalog counts"] if fewer else []
    problems += [f"{_count_notes(orphans)} {what}, but no entry in the catalog"] if orphans else []
    return "; ".join(problems)


def _count_notes(count: int) -> str:
    return f"{pluralize(count, 'note')} {'has' if count == 1 else 'have'}"
