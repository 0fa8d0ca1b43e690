"""How long commands take where no daemon runs and no encoder is needed, each in a process of its own."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.measure import Row

COMMANDS = ("status", "recent", "key list", "workspace list", "audit", "job list", "node list", "graph")
NOTES, TIMES, TARGET_S = 200, 7, 0.6


def alone(work: Path) -> Iterator[Row]:
    """The median of each command, after one call that does not count."""
    vault, state = work / "alone/vault", work / "alone/state"
    for number in range(NOTES):
        note = vault / f"Captures/default/Note {number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"Note {number} is about the heron at weir {number % 7}.\n", "utf-8")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MEMEX_")}
    environ |= {"HOME": str(work / "alone"), "MEMEX_VAULT": str(vault), "MEMEX_STATE": str(state)}

    def run(*words: str) -> float:
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "syncd.cli", *words], env=environ, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begun

    run("init", "--yes", str(vault))
    run("index")
    for command in COMMANDS:
        run(*command.split())
        took = statistics.median(run(*command.split()) for _ in range(TIMES))
        load = f"load {os.getloadavg()[0]:.1f}"
        yield Row(f"`memex {command}` without a daemon", f"≤ {TARGET_S} s", f"{took:.2f} s", took <= TARGET_S, load)
