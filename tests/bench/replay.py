"""What a commit costs that Git brings into a vault, beside how large the vault is."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench import vaults
from tests.bench.measure import Row, p50, p95
from tests.replay import Author, Live

SIZES = (300, 3_000, 10_000)
COMMITS, MOVED = 20, 12
GROWTH = 1.5  # times that the largest vault's commits may take as long as the smallest one's


def replay(work: Path) -> Iterator[Row]:
    """Commits of 5 edits, a new note, a deletion and 12 moves, by `git merge --ff-only`, until all of it is found."""
    smallest = 0.0
    for size in SIZES:
        folder = work / "replay"
        shutil.rmtree(folder, ignore_errors=True)
        vaults.make(folder / "notes", size, words=120)
        author = Author(folder / "author", folder / "notes", 7)
        live = Live(folder, author, hooks=True)
        found, seconds, used = [], [], []
        try:
            with live.world.serving():
                for _ in range(COMMITS):
                    commit = author.even(MOVED)
                    before = time.process_time()
                    brought, took, _ = live.goes(commit, "merge")
                    used.append(time.process_time() - before)
                    found.append(brought)
                    seconds.append(took)
        finally:
            live.world.close()
        smallest = smallest or p50(found)
        yield Row(
            f"a commit pulled into {size:,} notes, until all of it is found",
            "does not grow with the vault",
            f"what it brought: p50 {p50(found):.2f} s, p95 {p95(found):.2f} s; all: p50 {p50(seconds):.2f} s; CPU p50 {p50(used):.2f} s",
            p50(found) <= GROWTH * smallest,
            f"{COMMITS} commits of 5 edits, 1 new, 1 deleted, {MOVED} moved; a deletion is believed after 2 s; stand-in for the model",
        )
