"""Remember in the ledger which captures were reviewed, as they were then, so that a restart reviews none again.

Law: a row saves work and decides nothing; where it is missing or old, the capture is reviewed once more."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from syncd.state.ledger import Ledger

DIGITS: Final = 24  # of a digest: enough to tell one state of a note from another


@dataclass(frozen=True, slots=True)
class ReviewedCapture:
    """A capture as it was when it was reviewed."""

    digest: str  # of its bytes, as `shorten` has it
    visible: str  # and of what agents can read of it
    generation: int  # of the vault's index, of which the suggestions were made
    at: int  # epoch milliseconds


class ReviewedCaptures:
    """The captures that were reviewed, by path."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def read(self) -> dict[str, ReviewedCapture]:
        """All of them."""
        rows = self._ledger.query("SELECT path, digest, visible, generation, at FROM reviewed")
        return {path: ReviewedCapture(*values) for path, *values in rows}

    def keep(self, reviewed: Mapping[str, ReviewedCapture]) -> None:
        """Keep these, in one transaction. Raises Unavailable when they can't be written."""
        rows = [(path, row.digest, row.visible, row.generation, row.at) for path, row in reviewed.items()]
        self._execute("INSERT OR REPLACE INTO reviewed VALUES (?, ?, ?, ?, ?)", rows)

    def forget(self, paths: Collection[str]) -> None:
        """Forget these. Raises Unavailable as `keep` does."""
        self._execute("DELETE FROM reviewed WHERE path = ?", [(path,) for path in paths])

    def _execute(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        if rows := list(rows):
            with self._ledger.transaction():
                for row in rows:
                    self._ledger.execute(statement, row)


def shorten(digest: str) -> str:
    """A digest as it is kept here."""
    return digest[:DIGITS]


def now_ms() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000
