"""Clients and clocks: what a benchmark asks the daemon, and how it sums up what it saw."""

from __future__ import annotations

import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import psutil

from syncd.installation.unit_files import LINUX_ENVIRONMENT
from tests.bench.record import Row
from tests.support.paths import ROOT

NO_DAEMON = "none: no daemon runs"  # in place of the jobs of a row
VERSION = "2026-07-28"
Jobs: TypeAlias = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running daemon and a client of it."""

    process: psutil.Process
    url: str
    key: str
    http: httpx2.Client
    pipes: subprocess.Popen[str]
    asking: threading.Lock = field(default_factory=threading.Lock)

    def rest(self, method: str, path: str, **given: Any) -> Any:
        answer = self.http.request(method, path, **given)
        answer.raise_for_status()
        return answer.json()

    def tool(self, name: str, /, **arguments: Any) -> Any:
        """One tools/call on the newest protocol revision; the structured content of its result."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        body = {
            "jsonrpc": "2.0",
            "id": next(_IDS),
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments, "_meta": meta},
        }
        headers = {
            "mcp-protocol-version": VERSION,
            "mcp-method": "tools/call",
            "mcp-name": name,
            "accept": "application/json, text/event-stream",
        }
        answer = self.http.post("/mcp", json=body, headers=headers)
        answer.raise_for_status()
        if answer.headers["content-type"].startswith("text/event-stream"):
            lines = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
            told = json.loads(lines[-1])
        else:
            told = answer.json()
        assert "result" in told, told
        assert not told["result"].get("isError"), told
        return told["result"]["structuredContent"]

    def status(self) -> dict[str, Any]:
        told: dict[str, Any] = self.http.get("/readyz").json()
        return told

    def settled(self, within: float = 3600.0) -> float:
        """Wait until all is indexed; the seconds it took."""
        begun = time.perf_counter()
        while not ((now := self.status())["ready"] and now["pending"] == 0):
            assert time.perf_counter() - begun < within, now
            time.sleep(0.05)
        return time.perf_counter() - begun

    def quiet(self, within: float = 300.0) -> None:
        """Wait until maintenance is over: until less than a twentieth of a core is used for five seconds."""
        end = time.perf_counter() + within
        while time.perf_counter() < end:
            used = self.cpu
            time.sleep(5)
            if self.cpu - used < 0.25:
                return

    def ask(self, question: str, **given: Any) -> Any:
        """A question about its inside; see `tests.bench.daemon`. Raises RuntimeError where it has no answer."""
        assert self.pipes.stdin is not None and self.pipes.stdout is not None
        with self.asking:
            self.pipes.stdin.write(json.dumps({"ask": question, **given}) + "\n")
            self.pipes.stdin.flush()
            told = json.loads(self.pipes.stdout.readline() or '{"error": "the daemon has ended"}')
        if "error" in told:
            raise RuntimeError(told["error"])
        return told["value"]

    def jobs(self) -> Jobs:
        """What each job has cost since the start: `tests.bench.daemon.JobCost` by the job's name."""
        told: Jobs = self.ask("jobs")
        return told

    def jobs_since(self, before: Jobs) -> str:
        """The jobs that ran since `before`, as a row names them."""
        return named_jobs(before, self.jobs())

    @property
    def private(self) -> float:
        """Resident memory that no file holds, in MB."""
        return private_memory(self.process.pid)

    @property
    def rss(self) -> float:
        """Resident memory in MB."""
        return self.process.memory_info().rss / 1e6

    @property
    def cpu(self) -> float:
        """CPU seconds used so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)


def private_memory(process: int) -> float:
    """Resident memory of a process that no file holds, in MB.

    Pages of programs, libraries and models are left out: the system can drop them at any time, and whether they count as
    the process's own would depend on which other processes use the same files."""
    anonymous = re.search(
        r"^Anonymous:\s+(\d+) kB$", Path(f"/proc/{process}/smaps_rollup").read_text("ascii"), re.MULTILINE
    )
    assert anonymous is not None
    return int(anonymous[1]) * 1024 / 1e6


_IDS = itertools.count(1)


@contextmanager
def daemon(
    vault: Path,
    state: Path,
    *flags: str,
    environ: Mapping[str, str] | None = None,
    module: str = "tests.bench.daemon",
) -> Iterator[Daemon]:
    """A daemon on `vault` in a process of its own, stopped at the end; `environ` is added to a service's environment."""
    command = [sys.executable, "-m", module, str(vault), str(state), *flags]
    environment = os.environ | LINUX_ENVIRONMENT | {"PYTHONPATH": str(ROOT)} | dict(environ or {})
    with (state.parent / f"{state.name}.log").open("a") as log:
        pipe = subprocess.PIPE
        running = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True, env=environment, cwd=ROOT)
        try:
            assert running.stdout is not None
            told = json.loads(running.stdout.readline())
            headers = {"authorization": f"Bearer {told['key']}"}
            with httpx2.Client(base_url=told["url"], headers=headers, timeout=120, trust_env=False) as http:
                yield Daemon(psutil.Process(running.pid), told["url"], told["key"], http, running)
        finally:
            running.terminate()
            running.wait(60)


def named_jobs(before: Jobs, after: Jobs) -> str:
    """What ran between two looks and used a millisecond of CPU or more, the dearest first: `review 0.42 s, listing runs`."""
    spent = {name: job["cpu"] - (before[name]["cpu"] if name in before else 0) for name, job in after.items()}
    dear = [f"{name} {cpu:.3g} s" for name, cpu in sorted(spent.items(), key=lambda one: -one[1]) if cpu >= 0.001]
    return ", ".join(dear + [f"{name} runs" for name, job in after.items() if job["running"]])


def beside_jobs(one: Daemon, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows as they are measured, each with the jobs that ran meanwhile."""
    before = one.jobs()
    for row in rows:
        yield replace(row, jobs=row.jobs or one.jobs_since(before))
        before = one.jobs()


def timed(calls: list[Callable[[], Any]]) -> list[float]:
    """Milliseconds of each call, in order."""
    spent = []
    for call in calls:
        begun = time.perf_counter()
        call()
        spent.append((time.perf_counter() - begun) * 1000)
    return spent


def p50(values: list[float]) -> float:
    """The median."""
    return statistics.median(values)


def p95(values: list[float]) -> float:
    """The 95th percentile."""
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]
