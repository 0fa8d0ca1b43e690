"""A soak: writes and searches at a steady rate for many minutes; each minute's times, memory, handles, threads, jobs and errors.

`python -m tests.bench.soak --minutes 60 --notes 10000 --writes 5 --searches 2` prints a line a minute and writes them
to `bench/soak.json`. With `--steady`, every second write deletes a capture of a few minutes before, so the number of captures
stays the same: what the daemon grows by then is not what more captures need. Requests are sent when they are due, whether or not the ones before were answered, and their times
count from then: a daemon that stands still for a second makes all that were due in that second late. The idle daemon that a
minute is compared with gets the same searches at the same rate: after a pause of half a second, a search takes 1.6 times as long
as right after another one, because the processor's caches hold other data by then."""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tests.bench import vaults
from tests.bench.measure import ROOT, Daemon, Row, daemon, p50, p95, timed
from tests.bench.speed import fresh

MINUTES, NOTES, WRITES, SEARCHES = 60, 10_000, 5.0, 2.0
IDLE_SEARCHES = 120  # before the load begins
CLIENTS = 16
WAITING = 500  # captures between one that is made and the one that is deleted for it
SEARCH_TARGET, LEVEL_MB, MOST_MB = 4.0, 20.0, 450.0  # times the idle p95; growth within the second half; resident


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of the daemon."""

    minutes: int = MINUTES
    notes: int = NOTES  # captures that are there before
    writes: float = WRITES  # a second
    searches: float = SEARCHES
    steady: bool = False  # every second write is a deletion

    @property
    def captures(self) -> float:
        """Captures a second."""
        return self.writes / 2 if self.steady else self.writes


@dataclass(slots=True)
class Minute:
    """What one minute showed: milliseconds, MB and counts."""

    number: int
    captures: int = 0
    deletions: int = 0
    searches: int = 0
    capture_p50: float = 0.0
    capture_p95: float = 0.0
    search_p50: float = 0.0
    search_p95: float = 0.0
    rss: float = 0.0  # the median of its seconds
    peak: float = 0.0  # the largest of them: maintenance needs memory for a few seconds
    private: float = 0.0
    cpu: float = 0.0  # percent of a core
    handles: int = 0
    threads: int = 0
    jobs: dict[str, int] = field(default_factory=dict)  # how often each job ran
    failed: dict[str, int] = field(default_factory=dict)  # and failed
    errors: dict[str, int] = field(default_factory=dict)  # of requests


class Recorder:
    """Takes the times and errors of the requests, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: dict[str, list[float]] = {"capture": [], "delete": [], "search": []}
        self._errors: Counter[str] = Counter()

    def timed(self, kind: str, due: float, call: Callable[[], object]) -> None:
        """Make a request that was `due` then."""
        try:
            call()
        except Exception as error:
            with self._lock:
                self._errors[f"{kind}: {error}"[:120]] += 1
            return
        with self._lock:
            self._spent[kind].append((time.perf_counter() - due) * 1000)

    def take(self) -> tuple[dict[str, list[float]], dict[str, int]]:
        """What came since the last time."""
        with self._lock:
            spent, errors = self._spent, self._errors
            self._spent, self._errors = {kind: [] for kind in spent}, Counter()
        return spent, dict(errors)


def soak(work: Path, load: Load | None = None) -> Iterator[Row]:
    """The rows on a daemon under steady load."""
    load = load or Load()
    vault, state = fresh(work, "soak")
    vaults.make(vault, load.notes, words=90, captures=True)
    with daemon(vault, state, "--made-up") as one:
        one.settled()
        time.sleep(20)  # maintenance begins once writes have ceased
        one.quiet()
        asked = vaults.questions(500)
        timed([lambda text=text: one.tool("semantic_search", query=text) for text in asked[:30]])
        close = timed([lambda text=text: one.tool("semantic_search", query=text) for text in asked[:IDLE_SEARCHES]])
        [idle] = watched_minutes(one, replace(load, minutes=1, writes=0.0), asked)
        sys.stderr.write(
            f"idle: search {idle.search_p50:.0f} / {idle.search_p95:.0f} ms at {load.searches:g} a second, "
            f"{p50(close):.0f} / {p95(close):.0f} ms one after the other; {one.rss:.0f} MB resident\n"
        )
        minutes = []
        for minute in watched_minutes(one, load, asked):
            minutes.append(minute)
            sys.stderr.write(f"{describe(minute)}\n")
        (work.parent / "soak.json").write_text(json.dumps([asdict(minute) for minute in minutes], indent=1), "utf-8")
    yield from rows(minutes, idle.search_p95, load)


def watched_minutes(one: Daemon, load: Load, asked: list[str]) -> Iterator[Minute]:
    """Each minute of the load."""
    recorder, over, ids = Recorder(), threading.Event(), deque(_latest(one, WAITING) if load.steady else ())
    rng, (words, weights) = random.Random(23), vaults.vocabulary()

    def capture(number: int) -> None:
        text = " ".join(rng.choices(words, weights, k=20))
        ids.append(one.tool("capture_thought", content=f"Observation {number}: {text}.")["id"])

    def delete(_: int) -> object:
        return one.tool("delete_thought", id=ids.popleft())

    def search(number: int) -> object:
        return one.tool("semantic_search", query=asked[number % len(asked)])

    def send(kind: str, rate: float, call: Callable[[int], object]) -> None:
        begun, number = time.perf_counter(), 0
        while rate and not over.wait(max(0.0, begun + number / rate - time.perf_counter())):
            pool.submit(recorder.timed, kind, begun + number / rate, lambda number=number: call(number))
            number += 1

    with ThreadPoolExecutor(CLIENTS) as pool:
        senders = [
            threading.Thread(target=send, args=("capture", load.captures, capture)),
            threading.Thread(target=send, args=("delete", load.writes - load.captures, delete)),
            threading.Thread(target=send, args=("search", load.searches, search)),
        ]
        for sender in senders:
            sender.start()
        try:
            begun, used, counted = time.perf_counter(), one.cpu, job_counts(one)
            for number in range(1, load.minutes + 1):
                resident = [one.rss]
                while (left := begun + number * 60 - time.perf_counter()) > 0:
                    time.sleep(min(1.0, left))
                    resident.append(one.rss)
                now, cpu = job_counts(one), one.cpu
                yield _minute(one, number, recorder, resident, cpu - used, counted, now)
                used, counted = cpu, now
        finally:
            over.set()
            for sender in senders:
                sender.join()


def _latest(one: Daemon, number: int) -> list[str]:
    """The ids of the latest captures, the oldest first: `number` of them or a few more."""
    batch = one.tool("list_recent", limit=50)
    ids = [each["id"] for each in batch["results"]]
    while len(ids) < number and (before := batch["next_before"]):
        batch = one.tool("list_recent", limit=50, before=before)
        ids += [each["id"] for each in batch["results"]]
    return ids[::-1]


Counts = tuple[Mapping[str, int], Mapping[str, int]]


def _minute(
    one: Daemon, number: int, recorder: Recorder, resident: list[float], cpu: float, before: Counts, now: Counts
) -> Minute:
    spent, errors = recorder.take()
    captures, searches = spent["capture"] or [0.0], spent["search"] or [0.0]
    ran, failed = (
        {name: count - then.get(name, 0) for name, count in counts.items()}
        for then, counts in zip(before, now, strict=True)
    )
    return Minute(
        number,
        len(spent["capture"]),
        len(spent["delete"]),
        len(spent["search"]),
        *(p50(captures), p95(captures), p50(searches), p95(searches)),
        *(p50(resident), max(resident), one.private, cpu / 60 * 100),
        *(one.process.num_fds(), one.process.num_threads()),
        {name: count for name, count in ran.items() if count},
        {name: count for name, count in failed.items() if count},
        errors,
    )


def job_counts(one: Daemon) -> Counts:
    """How often each job ran, and how often it failed, until now."""
    ran, failed = {}, {}
    for line in one.http.get("/metrics").text.splitlines():
        for name, counts in (("memex_job_runs", ran), ("memex_job_failures", failed)):
            for prefix in (f'{name}{{job="', f'{name}_total{{job="'):
                if line.startswith(prefix):
                    job, count = line[len(prefix) :].split('"} ')
                    counts[job] = int(float(count))
    return ran, failed


def describe(minute: Minute) -> str:
    """One line."""
    ran = " ".join(f"{name}:{count}" for name, count in minute.jobs.items() if count < 20)
    line = (
        f"{minute.number:3} | search {minute.search_p50:.0f} / {minute.search_p95:.0f} ms ({minute.searches}) | "
        f"capture {minute.capture_p50:.0f} / {minute.capture_p95:.0f} ms ({minute.captures}) | "
        f"{minute.rss:.0f} MB, at most {minute.peak:.0f}, {minute.private:.0f} private | {minute.cpu:.0f} % CPU | "
        f"{minute.handles} handles, {minute.threads} threads | {ran}"
    )
    return (
        line
        + (f" | FAILED {minute.failed}" if minute.failed else "")
        + (f" | {minute.errors}" if minute.errors else "")
    )


def rows(minutes: list[Minute], idle: float, load: Load) -> Iterator[Row]:
    """What the minutes come to."""
    writes = f"{load.captures:g} captures" + (f", {load.writes - load.captures:g} deletions" if load.steady else "")
    name = f"{writes} and {load.searches:g} searches a second for {len(minutes)} min, {load.notes:,} notes"
    worst = max(minute.search_p95 for minute in minutes)
    yield Row(
        f"{name}: search p95 of the worst minute",
        f"<= {SEARCH_TARGET:g} x idle",
        f"{worst:.0f} ms, {worst / idle:.1f} x",
        worst <= SEARCH_TARGET * idle,
        f"idle {idle:.0f} ms; median of the minutes {p50([minute.search_p95 for minute in minutes]):.0f} ms",
    )
    captures = sum(minute.captures for minute in minutes)
    errors = sum((Counter(minute.errors) + Counter(minute.failed) for minute in minutes), Counter[str]())
    yield Row(
        f"{name}: failed requests and jobs",
        "none",
        f"{errors.total()} beside {captures:,} captures",
        not errors,
        "; ".join(f"{count} x {what}" for what, count in errors.most_common(3)),
    )
    half = [minute.rss for minute in minutes[len(minutes) // 2 :]]
    yield Row(
        f"{name}: memory",
        f"second half within {LEVEL_MB:g} MB, <= {MOST_MB:g} MB",
        f"{min(half):.0f} to {max(half):.0f} MB, first minute {minutes[0].rss:.0f}",
        max(half) - min(half) <= LEVEL_MB and max(half) <= MOST_MB,
        f"medians of minutes; at most {max(minute.peak for minute in minutes):.0f} MB, for seconds",
    )
    handles, threads = ([getattr(minute, what) for minute in minutes] for what in ("handles", "threads"))
    yield Row(
        f"{name}: handles; threads", "level", f"{handles[0]} -> {handles[-1]}; {threads[0]} -> {threads[-1]}", None
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=int, default=MINUTES)
    parser.add_argument("--notes", type=int, default=NOTES, help="captures that are there before")
    parser.add_argument("--writes", type=float, default=WRITES, help="writes a second")
    parser.add_argument("--steady", action="store_true", help="make every second write a deletion")
    parser.add_argument("--searches", type=float, default=SEARCHES, help="searches a second")
    parser.add_argument("--out", type=Path, default=ROOT / "bench", help="where the results and the scratch files go")
    given = parser.parse_args()
    work = given.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    for row in soak(work, Load(given.minutes, given.notes, given.writes, given.searches, given.steady)):
        sys.stdout.write(f"| {row.name} | {row.target} | {row.figure} | {row.met} | {row.note} |\n")


if __name__ == "__main__":
    main()
