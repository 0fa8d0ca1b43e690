"""Named values are short texts that the ledger keeps under a name, such as how far a module got.

Each module that uses them has names of its own. Only this module reads and writes the table, which is called `tended`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from syncd.state.ledger import Ledger


def read(ledger: Ledger, name: str) -> str | None:
    """Return the value under `name`, or None. Raises Unavailable when the ledger can't be read."""
    rows = ledger.query("SELECT value FROM tended WHERE name = ?", (name,))
    return str(rows[0][0]) if rows else None


def read_prefixed(ledger: Ledger, prefix: str) -> dict[str, str]:
    """Return the values whose names begin with `prefix`, by name without it."""
    rows = ledger.query("SELECT name, value FROM tended WHERE substr(name, 1, length(?)) = ?", (prefix, prefix))
    return {name.removeprefix(prefix): value for name, value in rows}


def write(ledger: Ledger, values: Mapping[str, str]) -> None:
    """Set all of `values` in one transaction. Raises Unavailable when the ledger can't be written."""
    ledger.execute_each("INSERT OR REPLACE INTO tended VALUES (?, ?)", values.items())


def delete(ledger: Ledger, names: Iterable[str]) -> None:
    """Remove the values under these names in one transaction. Raises Unavailable when the ledger can't be written."""
    ledger.execute_each("DELETE FROM tended WHERE name = ?", ((name,) for name in names))
