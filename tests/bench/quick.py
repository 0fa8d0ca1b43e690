"""The quick bench: the ten headline rows in three minutes, on a vault that is prepared once for each state of the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench import headline, yardsticks
from tests.bench.measure import beside_jobs, daemon
from tests.bench.prepared_vault import prepared
from tests.bench.record import Row

IDLE_S = 62.0  # each job that runs once a minute runs once


def quick(work: Path) -> Iterator[Callable[[], list[Row]]]:
    """The headline rows, as measurements that can be repeated while their daemon runs."""
    vault, state = prepared(work)
    yardsticks.query()  # loads the encoder
    bare = yardsticks.imports()

    yield lambda: headline.starts(vault, state)
    with daemon(vault, state, "--made-up") as one:
        one.settled()
        one.ask("run", job="context")  # its first run after a start reads all captures
        yield lambda: [headline.searches(one, "10,000 chunks")]
        yield lambda: [headline.memory(one)]
        yield lambda: [headline.layers(one)]
        yield lambda: [headline.captures(one, state)]
        yield lambda: [headline.saves(one, vault)]
        yield lambda: list(beside_jobs(one, headline.commands(vault, state)))
        yield lambda: [headline.idle(one, bare, IDLE_S)]
