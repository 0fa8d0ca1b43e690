"""Search while background work runs: what a caller pays for a bulk index, for suggestions, and for a consolidation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import vaults, yardsticks
from tests.bench.measure import Daemon, daemon, p50, p95, timed
from tests.bench.prepared_vault import prepared
from tests.bench.record import Row, Step
from tests.bench.speed import fresh

TIMES, PAUSE_S = 150, 0.05  # searches, and the pause after each: a person's client does not ask without end
BULK = 5_000


@dataclass
class Meanwhile:
    """Searches that were made while something ran, and those that came after its end: milliseconds each."""

    during: list[float] = field(default_factory=list)
    after: int = 0


def background(work: Path) -> Iterator[Step]:
    """The rows. The suggestions and the consolidation are those of 10,000 captures that no process has looked at yet."""
    yield lambda: list(bulk(work))
    yield lambda: [graph_built(work)]
    for job, what in (("review", "10,000 captures get suggestions"), ("consolidation", "a consolidation runs")):
        vault, state = prepared(work)
        with daemon(vault, state, "--made-up") as one:
            one.settled()
            yield lambda: [job_row(one, job, what)]  # noqa: B023 - it is measured before the next turn


def job_row(one: Daemon, job: str, what: str) -> Row:
    """Search while a job runs. It is begun again whenever it has ended: a job works in slices, a minute apart."""
    quiet = _undisturbed(one)
    jobs = one.jobs()
    over = threading.Event()

    def keep_running() -> None:
        while not over.wait(0.05):
            if not one.jobs()[job]["running"]:
                one.ask("begin", job=job)

    runner = threading.Thread(target=keep_running)
    runner.start()
    try:
        while not one.jobs()[job]["running"]:
            time.sleep(0.01)
        found = _searches(one, lambda: True)
    finally:
        over.set()
        runner.join()
    return _row(what, quiet, found, one.jobs_since(jobs), "")


def bulk(work: Path) -> Iterator[Row]:
    """Search while 5,000 notes are indexed with the real model, and the memory that this takes."""
    vault, state = fresh(work, "bulk")
    vaults.make(vault, 1_000, words=90, captures=True)
    with daemon(vault, state) as one:
        one.settled()
        one.quiet()
        quiet, jobs = _undisturbed(one), one.jobs()
        with peak(one) as most:
            vaults.make(vault / "Bulk", BULK, words=120, seed=3)
            while one.status()["pending"] < 1_000:
                time.sleep(0.1)
            found = _searches(one, lambda: one.status()["pending"] > 0)
        left = one.status()["pending"]
        note = f"{left:,} still pending at the end" if left else "the bulk run ended before the searches did"
        yield _row(f"{BULK:,} notes are indexed", quiet, found, one.jobs_since(jobs), note)
        bare, _ = yardsticks.imports_memory()
        yield Row(
            "resident memory during a bulk index",
            "<= 500 MB",
            f"{max(most):.0f} MB",
            max(most) <= 500,
            f"{most[0]:.0f} MB before",
            {"resident": max(most) / bare},
            "the memory of the imports",
        )


def graph_built(work: Path) -> Row:
    """Memory of a start at which the encoder's graph is built first, as where no set-up did it."""
    vault, state = fresh(work, "graph-built")
    (vault / "Captures/default/Note.md").write_text("A heron stood at the weir.\n", "utf-8")
    with daemon(vault, state, "--build-graph") as one, peak(one) as most:
        begun = time.perf_counter()
        while one.tool("semantic_search", query="heron")["degraded"]:
            time.sleep(0.05)
        seconds = time.perf_counter() - begun
    bare, _ = yardsticks.imports_memory()
    return Row(
        "resident memory with an encoder graph not yet built",
        "<= 500 MB",
        f"{max(most):.0f} MB",
        max(most) <= 500,
        f"the first hybrid answer after {seconds:.1f} s; children not counted",
        {"resident": max(most) / bare},
        "the memory of the imports",
    )


def _undisturbed(one: Daemon) -> list[float]:
    """Searches of an idle daemon, at the same pace."""
    asked = vaults.questions(TIMES)
    timed([lambda text=text: one.tool("semantic_search", query=text) for text in asked[:30]])
    return _searches(one, lambda: True).during


def _searches(one: Daemon, running: Callable[[], bool]) -> Meanwhile:
    found = Meanwhile()
    for text in vaults.questions(TIMES):
        spent = timed([lambda text=text: one.tool("semantic_search", query=text)])
        if running():
            found.during += spent
        else:
            found.after += 1
        time.sleep(PAUSE_S)
    return found


def _row(what: str, quiet: list[float], found: Meanwhile, jobs: str, note: str) -> Row:
    ratio = p95(found.during) / p95(quiet) if found.during else 0.0
    told = f"{found.after} searches came after its end; " if found.after else ""
    return Row(
        f"search p95 while {what}",
        "<= 3 x that of an idle daemon",
        f"p50 {p50(found.during):.0f}, p95 {p95(found.during):.0f} ms; {ratio:.1f} x",
        ratio <= 3 and len(found.during) >= TIMES // 2,
        f"idle p50 {p50(quiet):.0f}, p95 {p95(quiet):.0f} ms; {told}{note}".removesuffix("; "),
        {"p50": p50(found.during) / p50(quiet), "p95": ratio},
        "the same search of an idle daemon",
        jobs,
    )


@contextmanager
def peak(one: Daemon) -> Iterator[list[float]]:
    """Look at the daemon's memory twenty times a second; all that was seen, in MB."""
    seen, over = [one.rss], threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            seen.append(one.rss)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        over.set()
        looking.join()
