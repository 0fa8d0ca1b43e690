"""Decide the maintenance policy of a store: when maintenance is worth its cost, and which vector index fits its size.

All times are seconds of one clock that never goes back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

VectorIndex: TypeAlias = Literal["none", "sq", "rq"]

APART, REST = 20.0, 20.0  # least time between two passes: in seconds, and as a multiple of the last pass's duration
COMMITS, FEW_COMMITS = 40, 10  # each commit that is not merged makes a search about 0.3 ms slower
MANY_COMMITS = (
    200  # from here on REST does not apply: under steady writing, each longer pass would make the next one longer
)
IDLE, ASLEEP = 15.0, 600.0  # seconds without a write after which FEW_COMMITS, or any commits, are worth a pass
DIRTY_SHARE, DIRTY_ROWS = 0.05, 500  # rows written since the last pass that are worth one: share of all, and at least
HELD, OUTGROWN = 120_000, 150_000  # most rows that are loaded into memory, and most that stay there
# The same for rows of which only the vectors are loaded; each takes 450 bytes.
VECTORS_HELD, VECTORS_OUTGROWN = 400_000, 500_000
AWAITED = 5_000  # most rows that a search by words waits for: loading takes 0.1 s for 1,000
LARGE_WRITE, LARGE_SHARE = 2_000, 0.05  # rows of one write, and their share of all, above which it is a large one
RETRIED = 0.9  # share of a number of rows that did not fit into memory from which they are tried again
BUFFERED = 1_000  # most rows that wait in memory to be written together
SCAN, LARGE = 40_000, 600_000  # vectors from which LanceDB needs an index, and from which it must be a smaller one


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Counts what was written since the last maintenance."""

    rows: int  # in the table
    commits: int
    dirty: int  # rows added or removed
    written: float  # time of the last commit
    kept: float  # time of the last maintenance
    took: float = 0.0  # seconds that the last maintenance took

    def add_commit(self, *, added: int, removed: int, now: float) -> WrittenRows:
        """Return the counts after one more commit."""
        return replace(
            self,
            rows=self.rows + added - removed,
            commits=self.commits + 1,
            dirty=self.dirty + added + removed,
            written=now,
        )


def is_due(work: WrittenRows, now: float) -> bool:
    """Return whether maintenance is worth its cost now."""
    rest = APART if work.commits >= MANY_COMMITS else max(APART, REST * work.took)
    if not work.commits or now - work.kept < rest:
        return False
    idle = now - work.written
    return (
        work.commits >= COMMITS
        or work.dirty >= max(DIRTY_ROWS, DIRTY_SHARE * work.rows)
        or (idle >= IDLE and work.commits >= FEW_COMMITS)
        or idle >= ASLEEP
    )


def is_large_write(added: int, rows: int) -> bool:
    """Return whether one write adds so many rows that those in memory are released: it needs the memory itself.

    Loading them again costs more, the more there are."""
    return added > max(LARGE_WRITE, LARGE_SHARE * rows)


def may_be_held(rows: int, too_many: int) -> bool:
    """Return whether so many rows may be loaded into memory, if `too_many` did not fit the last time (0 = all did)."""
    return rows <= HELD and (not too_many or rows <= RETRIED * too_many)


def choose_vector_index(vectors: int) -> VectorIndex:
    """Choose the index that finds 99 % of the ten nearest of `vectors` unit vectors for the least work.

    Few vectors are all compared. More need an index, even if their rows will be in memory: searches use it until they are
    loaded. Scalar quantization is the fastest up to about a million vectors, where its index (one byte per dimension)
    outgrows the cache; 4-bit RaBitQ is half as large."""
    if vectors < SCAN:
        return "none"
    return "sq" if vectors < LARGE else "rq"


def refine_factor(index: VectorIndex, pool: int) -> int:
    """Return the multiple of `pool` candidates to compare exactly; small pools need a larger multiple."""
    wanted = 40 if index == "sq" else 120
    return max(1, -(-wanted // pool))
