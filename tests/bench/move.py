"""What moving notes costs: looking through a vault of 10,000 notes for links that a move would break."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from syncd.promotion.link_updates import plan_link_updates
from syncd.vault.vault import Vault
from tests.bench import vaults, yardsticks
from tests.bench.record import Row

NOTES, FOLDERS, LINKS = 10_000, 97, 4  # links of each kind in a note


def move(work: Path) -> Iterator[Row]:
    """The rows. The vault is in the page cache, as that of a daemon that has just indexed it."""
    root = work / "move"
    shutil.rmtree(root, ignore_errors=True)
    vaults.make(root, NOTES, words=300)
    _link(root)
    vault = Vault(root)
    notes = sorted(vault.list_notes().files)
    for count, wanted in ((1, "≤ 1.5 s"), (100, "≤ 4 s")):
        moves = {path: f"Archive/{path.rpartition('/')[2]}" for path in notes[:: NOTES // count][:count]}
        seconds, changed = min(_timed(vault, moves) for _ in range(3))
        yield Row(
            f"links of {NOTES:,} notes when {count:,} move{'s' if count == 1 else ''}",
            wanted,
            f"{seconds:.2f} s of CPU",
            seconds <= float(wanted[2:-2]),
            f"{changed:,} notes to rewrite",
            {"CPU": seconds * 1000 / yardsticks.unit()},
            "one query encoding",
        )
    vault.close()


def _timed(vault: Vault, moves: Mapping[str, str]) -> tuple[float, int]:
    begun = time.process_time()
    found = plan_link_updates(vault, moves, inbox="Captures")
    assert found.lost == ()
    return time.process_time() - begun, len(found.changes)


def _link(root: Path) -> None:
    """Let each note end in links to others: by name, by path, and as Markdown."""
    dice = random.Random(3)
    notes = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.md"))
    for path in notes:
        chosen = dice.choices(notes, k=3 * LINKS)
        lines = [
            f"[[{one[:-3].rpartition('/')[2]}]] [[{two[:-3]}|there]] [it](<{three}>)"
            for one, two, three in zip(*[iter(chosen)] * 3, strict=True)
        ]
        with (root / path).open("a") as file:
            file.write("\n\n" + "\n\n".join(lines) + "\n")
