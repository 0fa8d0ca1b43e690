"""`python -m tests.bench.cpu_profile [--out DIR]`: a profile of the CPU of a start, a search and a capture, by layer.

A daemon with 10,000 captures serves over HTTP, and a sampler inside it counts. Shares are to be trusted, milliseconds less: the
sampler makes everything somewhat slower. What C code does counts for the Python function that called it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench import cpu_sampler, vaults
from tests.bench.measure import ROOT, daemon, timed
from tests.bench.prepared_vault import prepared

TIMES = 300


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cpu_profile", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "bench", help="where the vault is kept")
    work = parser.parse_args().out / "work"
    if not hasattr(time, "pthread_getcpuclockid"):
        sys.exit(
            "This system does not report the CPU time of one thread, so there is no profile. Run the profile on Linux."
        )
    work.mkdir(parents=True, exist_ok=True)
    vault, state = prepared(work)
    with daemon(vault, state, "--made-up", module="tests.bench.profiled_daemon") as one:
        while one.tool("semantic_search", query="weather station")["degraded"]:
            time.sleep(0.02)
        show("a start, until the first hybrid answer", one.ask("cpu"), 1)
        one.settled()
        one.ask("run", job="context")  # its first run after a start reads all captures
        asked, stamp = vaults.questions(TIMES), time.time_ns()
        calls: dict[str, Callable[[int], object]] = {
            "list_recent(limit=1) over MCP": lambda _: one.tool("list_recent", limit=1),
            "a search over MCP": lambda n: one.tool("semantic_search", query=asked[n]),
            "a capture": lambda n: one.tool(
                "capture_thought", content=f"Capture {stamp}.{n} about the weather station"
            ),
        }
        for name, call in calls.items():
            timed([lambda n=n, call=call: call(n) for n in range(20)])
            one.ask("cpu")
            timed([lambda n=n, call=call: call(n) for n in range(20, TIMES)])
            show(f"{name}, mean of {TIMES - 20}", one.ask("cpu"), TIMES - 20)


def show(what: str, taken: dict[str, dict[str, float]], calls: int) -> None:
    """Print the tables of one of them."""
    sys.stdout.write(f"## {what}\n\n{cpu_sampler.table(taken, calls)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
