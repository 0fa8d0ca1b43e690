"""How long commands take alone, where no daemon runs, each in a process of its own; all but a search need no encoder."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench import yardsticks
from tests.bench.headline import children
from tests.bench.measure import NO_DAEMON, p50
from tests.bench.record import Row
from tests.bench.yardsticks import Child

QUICK = (
    *("status", "recent", "key list", "workspace list", "audit", "audit show 1", "job list", "node list", "graph"),
    *(
        "log 'Captures/default/Note 1.md'",
        "share list",
        "consolidate --list",
        "unarchive --list",
        "export",
        "review --json",
    ),
)
COMMANDS = dict.fromkeys(QUICK, 0.6) | {
    "search heron": 1.8
}  # seconds at most; a search loads the index and the encoder
NOTES, TIMES = 10_000, 7
WRITTEN = 1_750_000_000  # epoch seconds: the notes are old, so that the first index gives them ids


def alone(work: Path) -> Iterator[Row]:
    """The median of each command, after one call that does not count."""
    vault, state = work / "alone/vault", work / "alone/state"
    for number in range(NOTES):
        note = vault / f"Captures/default/Note {number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"Note {number} is about the heron at weir {number % 7}.\n", "utf-8")
        os.utime(note, (WRITTEN, WRITTEN))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MEMEX_")}
    environ |= {"HOME": str(work / "alone"), "MEMEX_VAULT": str(vault), "MEMEX_STATE": str(state)}

    def run(command: str) -> Child:
        return yardsticks.child(
            sys.executable,
            "-m",
            "syncd.cli",
            *shlex.split(command),
            environ=environ,
        )

    run(f"init --yes {vault}")
    run("index")
    for command in COMMANDS:
        run(command)
        spent, yard = children(TIMES, lambda command=command: run(command), yardsticks.interpreter)
        took = p50([one.seconds for one in spent])
        most = COMMANDS[command]
        yield Row(
            f"`memex {command}` without a daemon",
            f"≤ {most} s",
            f"{took:.2f} s",
            took <= most,
            f"load {os.getloadavg()[0]:.1f}",
            {
                "wall": took / p50([one.seconds for one in yard]),
                "CPU": p50([one.cpu for one in spent]) / p50([one.cpu for one in yard]),
            },
            "a bare Python",
            NO_DAEMON,
        )
