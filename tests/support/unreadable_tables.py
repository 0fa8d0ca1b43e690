"""Make a table of the real ledger unreadable for a while, as a failing disk does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from syncd.state.ledger import Ledger


@contextmanager
def unreadable(ledger: Ledger, table: str) -> Iterator[None]:
    """Let each statement about `table` fail inside the block; the rows are there again after it."""
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute(f"ALTER TABLE {table} RENAME TO away")
        try:
            yield
        finally:
            other.execute(f"ALTER TABLE away RENAME TO {table}")
