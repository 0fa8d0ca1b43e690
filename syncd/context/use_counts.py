"""Count the uses of notes in answers to agents: an answer with n notes counts 1/n for each of them.

The ledger keeps the counts; those of the last minutes are lost when the daemon is killed, which changes only the order
of a context's lines. A count says nothing about who used a note, or when."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection

from syncd.state.ledger import Ledger


class UseCounts:
    """Counts the uses of notes; safe from any thread."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._lock = ledger, threading.Lock()
        # By workspace and id, since the last flush.
        self._counted: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.version = 0  # grows with every flush that changed a count

    def add(self, workspace: str, ids: Collection[str]) -> None:
        """Count an answer that contains these notes of a workspace. Fast: it does not wait for the disk."""
        distinct = set(ids)
        with self._lock:
            for id in distinct:
                self._counted[workspace, id] += 1 / len(distinct)

    def read(self, workspace: str) -> dict[str, float]:
        """Return the uses of each note of a workspace as of the last flush, by its id. Reads the ledger, because they are needed rarely."""
        rows = self._ledger.query(
            "SELECT id, sum(uses) FROM note_uses WHERE workspace IN (?, '') GROUP BY id", (workspace,)
        )
        return {str(id): float(uses) for id, uses in rows}

    def flush(self) -> None:
        """Write the counted uses to the ledger. Raises Unavailable when it can't be written; they are then kept for the next flush."""
        with self._lock:
            counted = dict(self._counted)
        if not counted:
            return
        with self._ledger.transaction():
            for note, uses in counted.items():
                self._ledger.execute(
                    "INSERT INTO note_uses VALUES (?, ?, ?) "
                    "ON CONFLICT (workspace, id) DO UPDATE SET uses = uses + excluded.uses",
                    (*note, uses),
                )
        with self._lock:
            for note, uses in counted.items():
                self._counted[note] -= uses
                if self._counted[note] <= 0:
                    del self._counted[note]
            self.version += 1

    def forget_missing(self, known: Callable[[], Collection[str]]) -> None:
        """Forget the notes that are not among the `known` ids, which are read only if there are counts."""
        kept = {id for (id,) in self._ledger.query("SELECT id FROM note_uses")}
        gone = kept - set(known()) if kept else set()
        if not gone:
            return
        with self._ledger.transaction():
            for id in gone:
                self._ledger.execute("DELETE FROM note_uses WHERE id = ?", (id,))
