"""Remember in the ledger which state of each capture was reviewed, so that a restart reviews none again.

Law: a row only saves work. If it is missing or outdated, Memex reviews the capture again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from syncd.state.ledger import Ledger

PAGE: Final = 2_000  # rows that are in memory at a time
DIGITS: Final = 24  # hex digits of a digest that are enough to distinguish states of a note


@dataclass(frozen=True, slots=True)
class ReviewedCapture:
    """Describes the state of a capture at its review."""

    digest: str  # of its bytes, cut by `shorten`
    visible: str  # digest of the part that agents can read
    generation: int  # of the vault's index at the time of the suggestions
    at: int  # epoch milliseconds


class ReviewedCaptures:
    """Stores the reviewed captures in the ledger, by path."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def read(self) -> dict[str, ReviewedCapture]:
        """Return all reviewed captures."""
        rows = self._ledger.query("SELECT path, digest, visible, generation, at FROM reviewed")
        return {path: ReviewedCapture(*values) for path, *values in rows}

    def find_due(self, digests: Mapping[str, str]) -> dict[str, ReviewedCapture | None]:
        """Return which of these captures, given by path with their digests, were not reviewed in this state.

        Each has its earlier review, or None. Only `PAGE` rows are in memory at a time, because this runs every minute."""
        due: dict[str, ReviewedCapture | None] = dict.fromkeys(digests)
        last = ""
        while rows := self._ledger.query(
            "SELECT path, digest, visible, generation, at FROM reviewed WHERE path > ? ORDER BY path LIMIT ?",
            (last, PAGE),
        ):
            for path, *values in rows:
                review = ReviewedCapture(*values)
                if path in due and review.digest == shorten(digests[path]):
                    del due[path]
                elif path in due:
                    due[path] = review
            last = rows[-1][0]
        return due

    def keep(self, reviewed: Mapping[str, ReviewedCapture]) -> None:
        """Save these captures in one transaction. Raises Unavailable when they can't be written."""
        rows = [(path, row.digest, row.visible, row.generation, row.at) for path, row in reviewed.items()]
        self._execute("INSERT OR REPLACE INTO reviewed VALUES (?, ?, ?, ?, ?)", rows)

    def forget(self, paths: Collection[str]) -> None:
        """Remove these captures. Raises Unavailable as `keep` does."""
        self._execute("DELETE FROM reviewed WHERE path = ?", [(path,) for path in paths])

    def _execute(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        if rows := list(rows):
            with self._ledger.transaction():
                for row in rows:
                    self._ledger.execute(statement, row)


def shorten(digest: str) -> str:
    """Cut a digest to the stored length."""
    return digest[:DIGITS]
