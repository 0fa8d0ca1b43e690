"""Keep the history of each job's last runs in the ledger.

Law: the history of a job survives the daemon, and the ledger does not grow over the years: the oldest runs of each
job are deleted."""

from __future__ import annotations

from dataclasses import dataclass

from syncd.state import named_values
from syncd.state.ledger import Ledger

KEPT = 50  # runs kept for each job


@dataclass(frozen=True, slots=True)
class Run:
    """Describes one finished run of a job; `error` is "" if it succeeded."""

    started_at: int  # epoch milliseconds
    seconds: float
    error: str


class RunHistory:
    """Stores the finished runs."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def add(self, job: str, run: Run) -> None:
        """Store `run`, and delete the oldest runs beyond `KEPT`. Raises Unavailable when it can't be written."""
        with self._ledger.transaction():
            self._ledger.execute(
                "INSERT INTO job_runs (job, started_at, seconds, error) VALUES (?, ?, ?, ?)",
                (job, run.started_at, run.seconds, run.error),
            )
            self._ledger.execute(
                "DELETE FROM job_runs WHERE job = ? AND id NOT IN "
                "(SELECT id FROM job_runs WHERE job = ? ORDER BY id DESC LIMIT ?)",
                (job, job, KEPT),
            )

    def known_since(self, job: str, now: int) -> int:
        """Return when `job` was first known, in epoch milliseconds; for a new job, store and return `now`.

        Raises Unavailable."""
        name = f"job {job}"
        known_at = named_values.read(self._ledger, name)
        if known_at is None:
            named_values.write(self._ledger, {name: str(now)})
        return now if known_at is None else int(known_at)

    def runs_of(self, job: str, limit: int = KEPT) -> list[Run]:
        """Return the runs of `job`, newest first."""
        asked = "SELECT started_at, seconds, error FROM job_runs WHERE job = ? ORDER BY id DESC LIMIT ?"
        rows = self._ledger.query(asked, (job, limit))
        return [Run(*row) for row in rows]
