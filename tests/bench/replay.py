"""What a commit costs that Git brings into a vault, beside how large the vault is."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench import vaults, yardsticks
from tests.bench.measure import p50, p95
from tests.bench.record import Row
from tests.support.vault_replay import Author, Live

SIZES = (300, 3_000, 10_000)
COMMITS, MOVED = 20, 12
GROWTH = 1.5  # times the work for a commit in the smallest vault that it may be in the largest


def replay(work: Path) -> Iterator[Row]:
    """Commits of 5 edits, a new note, a deletion and 12 moves, by `git merge --ff-only`, until all of it is found."""
    least = 0.0
    for size in SIZES:
        folder = work / "replay"
        shutil.rmtree(folder, ignore_errors=True)
        vaults.make(folder / "notes", size, words=120)
        author = Author(folder / "author", folder / "notes", 7)
        live = Live(folder, author, hooks=True)
        for scope_index in live.world.app.opened.builds.scopes.values():
            scope_index.index.maintain(
                force=True
            )  # as it is half a minute after a first index, whose pieces cost each search
        found, seconds, own, git = [], [], [], []
        try:
            with live.world.serving():
                for _ in range(COMMITS):
                    commit = author.even(MOVED)
                    before, theirs = time.process_time(), children()
                    brought, took, _ = live.goes(commit, "merge")
                    own.append(time.process_time() - before)
                    git.append(children() - theirs)
                    found.append(brought)
                    seconds.append(took)
        finally:
            live.world.close()
        least = least or p50(own)
        yield Row(
            f"a commit pulled into {size:,} notes, until all of it is found",
            "does not grow with the vault",
            f"our CPU p50 {p50(own):.2f} s; what it brought: p50 {p50(found):.2f} s, p95 {p95(found):.2f} s; all: p50 {p50(seconds):.2f} s",
            p50(own) <= GROWTH * least,
            f"{COMMITS} commits of 5 edits, 1 new, 1 deleted, {MOVED} moved; Memex accepts a deletion after 2 s; a fake model; "
            f"CPU of Git's own, which goes through its list of all files: p50 {p50(git):.2f} s",
            {"CPU": p50(own) * 1000 / yardsticks.unit()},
            "one query encoding",
        )


def children() -> float:
    """Seconds of CPU that the processes have used which were started here and have ended."""
    times = os.times()
    return times.children_user + times.children_system
