"""The headline rows: what a person or an agent feels first, each against a yardstick that takes turns with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bench import vaults, yardsticks
from tests.bench.measure import ROOT, Daemon, daemon, p50, p95, timed
from tests.bench.record import Row
from tests.bench.yardsticks import Child, beside

MEMEX = [sys.executable, "-m", "syncd.cli"]
WARM = 100  # searches that do not count, of other words
DEBOUNCE_MS = 400.0  # of the default settings: a wait by choice, not a cost
LEAST_IDLE = 0.02  # % of a core: less than this is not told apart
# Jobs of which each minute has a run. The last reads what the others write.
FREQUENT = ("review", "archive", "ticked proposals", "enrichment", "uploads", "maintenance", "context")


def searches(one: Daemon, size: str, *, times: int = 200, tool: str = "semantic_search") -> Row:
    """Search over MCP, embedding included: time, and CPU of the server."""
    asked = vaults.questions(times + WARM)
    timed([lambda text=text: one.tool(tool, query=text) for text in asked[times:]])
    calls: list[Callable[[], object]] = [lambda text=text: one.tool(tool, query=text) for text in asked[:times]]
    jobs, used = one.jobs(), one.cpu
    spent = beside(calls, yardsticks.query)
    cpu = (one.cpu - used) / times * 1000
    ratios = spent.ratios | {"CPU": cpu / spent.yard_cpu}
    return Row(
        f"{'search' if tool == 'semantic_search' else tool} over MCP, {size}",
        "p50 <= 2.5, p95 <= 5, CPU <= 3 x one query encoding",
        f"{p50(spent.calls):.1f} / {p95(spent.calls):.1f} ms, CPU {cpu:.1f} ms",
        ratios["p50"] <= 2.5 and p95(spent.calls) <= 5 * spent.unit and ratios["CPU"] <= 3,
        f"one encoding {spent.unit:.2f} ms, {yardsticks.unit_after_pauses():.2f} ms after a pause, as in a daemon",
        ratios,
        "one query encoding",
        one.jobs_since(jobs),
    )


def layers(one: Daemon, *, times: int = 200) -> Row:
    """What lies above an operation: `list_recent(limit=1)` over MCP less the operation in the daemon's process."""
    jobs = one.jobs()
    inside: list[float] = []

    def call() -> object:
        return one.tool("list_recent", limit=1)

    with yardsticks.echo() as echo:
        timed([call] * 20 + [echo] * 20)
        blocks = []
        for _ in range(4):
            inside += one.ask("recent", times=times // 4)
            blocks.append(beside([call] * (times // 4), echo, 2))
    spent = [ms for block in blocks for ms in block.calls]
    unit = p50([ms for block in blocks for ms in block.yard])
    above = max(0.01, p50(spent) - p50(inside))  # on a busy machine the difference of two medians may vanish
    most = 2 * unit + 1.5
    return Row(
        "the layers above an operation: list_recent(limit=1) over MCP less the operation",
        "<= 2 x one echo + 1.5 ms",
        f"{above:.2f} ms, at most {most:.2f}",
        above <= most,
        f"over MCP {p50(spent):.2f} ms, in process {p50(inside):.2f}, one echo {unit:.2f}",
        {"p50": above / unit},
        "one echo",
        one.jobs_since(jobs),
    )


def captures(one: Daemon, state: Path, *, times: int = 60) -> Row:
    """A capture of one sentence: durable, findable and enriched when it is acknowledged."""
    stamp = time.time_ns()
    jobs = one.jobs()
    calls: list[Callable[[], object]] = [
        lambda n=n: one.tool("capture_thought", content=f"Capture {stamp}.{n} about the weather station")
        for n in range(times)
    ]

    def yardstick() -> None:
        yardsticks.query()
        yardsticks.fsync(state.parent)

    spent = beside(calls, yardstick)
    return Row(
        "capture of one sentence, durable, findable, enriched",
        "p50 <= 30, p95 <= 80 ms",
        f"{p50(spent.calls):.0f} / {p95(spent.calls):.0f} ms",
        p50(spent.calls) <= 30 and p95(spent.calls) <= 80,
        f"one encoding and one fsync {spent.unit:.2f} ms",
        spent.ratios,
        "one query encoding and one fsync",
        one.jobs_since(jobs),
    )


def captures_at_once(one: Daemon, vault: Path, *, clients: int = 8, each: int = 20) -> Row:
    """Clients that capture at once, each its own sentences, as fast as they are answered."""
    stamp, jobs = time.time_ns(), one.jobs()
    folder = vault / "Captures/default"
    before, known = len(list(folder.glob("*.md"))), one.status()["captures"]["documents"]
    unit = yardsticks.unit()

    def client(number: int) -> list[float]:
        return timed(
            [
                lambda n=n: one.tool("capture_thought", content=f"Client {number} of {stamp} saw heron {n} at the weir")
                for n in range(each)
            ]
        )

    begun = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        spent = [ms for answers in pool.map(client, range(clients)) for ms in answers]
    seconds = time.perf_counter() - begun
    files, found = len(list(folder.glob("*.md"))) - before, one.status()["captures"]["documents"] - known
    count = clients * each
    rate = count / seconds
    return Row(
        f"{clients} clients capturing at once",
        ">= 40/s, nothing lost",
        f"{rate:.0f}/s; p50 {p50(spent):.0f}, p95 {p95(spent):.0f} ms; {files} files, {found} indexed of {count}",
        rate >= 40 and (files, found) == (count, count),
        f"one encoding {unit:.2f} ms",
        {"wall of one": seconds / count * 1000 / unit},
        "one query encoding",
        one.jobs_since(jobs),
    )


def saves(one: Daemon, vault: Path, *, times: int = 12) -> Row:
    """A save in the editor, by a file that takes the place of the note's, until a search finds it."""
    spent, yard, stamp = [], [], time.time_ns()
    jobs = one.jobs()
    for number in range(times):
        path = vault / f"Captures/default/Note {number}.md"
        word = f"quokka{stamp}x{number}"
        text = f"{path.read_text('utf-8')}\nAnd then {word} came by.\n"
        begun = time.perf_counter()
        (saved := path.with_name(f".{path.name}.saved")).write_text(text, "utf-8")
        saved.replace(path)
        while not _is_first(one, word):
            time.sleep(0.01)
        spent.append((time.perf_counter() - begun) * 1000)
        yard += timed([yardsticks.query] * 10)
        time.sleep(0.3)
    ratio = max(1.0, p50(spent) - DEBOUNCE_MS) / p50(yard)
    return Row(
        "save in the editor -> findable",
        "p95 <= 0.8 s",
        f"p50 {p50(spent) / 1000:.2f}, p95 {p95(spent) / 1000:.2f} s",
        p95(spent) <= 800,
        f"the debounce of {DEBOUNCE_MS / 1000} s is not part of the ratio; one encoding {p50(yard):.2f} ms",
        {"p50": ratio},
        "one query encoding",
        one.jobs_since(jobs),
    )


def files_at_once(one: Daemon, vault: Path, *, count: int = 200) -> Row:
    """Files in folders made a moment before, until all are found; they are removed afterwards."""
    stamp, jobs = f"{time.time_ns():x}", one.jobs()
    home = vault / f"Captures/default/{stamp}"
    unit = yardsticks.unit()
    begun = time.perf_counter()
    for number in range(count):
        folder = home / f"new{number % 20}/deep"
        folder.mkdir(parents=True, exist_ok=True)
        text = f"A fresh note wombat{stamp}z{number}z in a new folder.\n"
        (folder / f"Fresh {number}.md").write_text(text, "utf-8")
    missing = set(range(count))
    while missing and time.perf_counter() - begun < 60:
        for number in sorted(missing):
            if not _is_first(one, f"wombat{stamp}z{number}z"):
                break
            missing.discard(number)
    spent = time.perf_counter() - begun
    shutil.rmtree(home)
    return Row(
        f"{count} files at once in new folders -> all findable",
        "<= 5 s, none missed",
        f"{spent:.1f} s, {len(missing)} missed",
        spent <= 5 and not missing,
        f"one encoding {unit:.2f} ms",
        {"wall of one": spent * 1000 / count / unit},
        "one query encoding",
        one.jobs_since(jobs),
    )


def _is_first(one: Daemon, word: str) -> bool:
    """Whether a search for a word finds a note that contains it first."""
    hits = one.rest("POST", "/search", json={"query": word, "mode": "text", "top_k": 1})["results"]
    return bool(hits) and word in hits[0]["chunk_content"]


def commands(vault: Path, state: Path, *, times: int = 7) -> Iterator[Row]:
    """A command through the daemon, and the help, which needs none; the daemon runs."""
    through = [*MEMEX, "--state", str(state), "--vault", str(vault), "search", "weather", "--json"]
    for name, command in (("a command through the daemon", through), ("memex --help", [*MEMEX, "--help"])):
        yardsticks.child(*command)
        spent, yard = children(times, lambda command=command: yardsticks.child(*command), yardsticks.interpreter)
        wall, unit = p50([one.seconds for one in spent]), p50([one.seconds for one in yard])
        yield Row(
            name,
            "<= 0.25 s",
            f"{wall:.2f} s",
            wall <= 0.25,
            f"a bare Python {unit:.2f} s",
            {"wall": wall / unit, "CPU": p50([one.cpu for one in spent]) / p50([one.cpu for one in yard])},
            "a bare Python",
        )


def children(times: int, call: Callable[[], Child], yardstick: Callable[[], Child]) -> tuple[list[Child], list[Child]]:
    """Processes of both kinds in turns."""
    pairs = [(call(), yardstick()) for _ in range(times)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def memory(one: Daemon) -> Row:
    """Resident memory of a daemon that has answered some searches, and its private part."""
    rss, private, unshared = one.rss, one.private, one.process.memory_full_info().uss / 1e6
    bare, bare_private = yardsticks.imports_memory()
    return Row(
        "resident memory serving 10,000 notes after 200 searches, and its private part",
        "<= 400 MB; <= 215 MB",
        f"{rss:.0f} MB; {private:.0f} MB",
        rss <= 400 and private <= 215,
        f"the imports alone {bare:.0f} MB; {bare_private:.0f} MB; with pages of files that no other process uses {unshared:.0f} MB",
        {"resident": rss / bare, "private": private / bare_private},
        "the memory of the imports",
    )


def idle(one: Daemon, bare: Child, seconds: float, meanwhile: Callable[[], object] = lambda: None) -> Row:
    """CPU of a daemon that nobody asks, and each job's share; `meanwhile` may use other processes.

    What follows from the start and from the calls before is done first: the first run of a job costs more than the later
    ones, and after a write some jobs work once more, when nothing has changed for some seconds."""
    for _ in range(2):
        for name in FREQUENT:
            one.ask("run", job=name)
        one.quiet(60)
    jobs, used, begun = one.jobs(), one.cpu, time.monotonic()
    meanwhile()
    time.sleep(max(0.0, begun + seconds - time.monotonic()))
    now = one.jobs()
    spent, passed = one.cpu - used, time.monotonic() - begun
    share = spent / passed * 100
    parts = {name: (job["whole"] - jobs[name]["whole"]) / passed * 100 for name, job in now.items()}
    parts |= {"no job": max(0.0, share - sum(parts.values()))}
    again, after = yardsticks.page_reads()
    told = ", ".join(
        f"{name} {part:.3f} %" for name, part in sorted(parts.items(), key=lambda x: -x[1]) if part >= 5e-4
    )
    return Row(
        f"idle CPU in {seconds:.0f} s, 10,000 captures waiting",
        "<= 0.1 % of a core",
        f"{share:.3f} %",
        share <= 0.1,
        f"a minute takes {share * 0.6:.3f} s, the imports {bare.cpu:.2f} s; a page of memory is read in {after:.1f} µs "
        f"after three seconds, in {again:.3f} µs at once",
        {"CPU of a minute": max(share, LEAST_IDLE) / 100 * 60 / bare.cpu},
        "the CPU of the imports",
        told,
    )


def starts(vault: Path, state: Path, *, times: int = 3) -> list[Row]:
    """From the start of the process to the first answers, on an index that is there."""
    words, hybrid, cpu, bare = [], [], [], []
    for _ in range(times):
        bare.append(yardsticks.imports())
        begun = time.perf_counter()
        with daemon(vault, state, "--made-up") as one:
            one.rest("POST", "/search", json={"query": "weather station", "mode": "text"})
            words.append(time.perf_counter() - begun)
            while one.tool("semantic_search", query="weather station")["degraded"]:
                time.sleep(0.02)
            hybrid.append(time.perf_counter() - begun)
            cpu.append(one.cpu)
    unit = Child(p50([one.seconds for one in bare]), p50([one.cpu for one in bare]))
    note, name = f"the imports {unit.seconds:.2f} s, CPU {unit.cpu:.2f} s", "the imports"
    return [
        Row(
            f"start -> first {kind} answer, 10,000 notes",
            f"<= {most} s, <= 1.6 x the imports",
            f"{p50(spent):.2f} s",
            p50(spent) <= most and p50(spent) <= 1.6 * unit.seconds,
            note,
            {"wall": p50(spent) / unit.seconds} | ratios,
            name,
        )
        for kind, spent, most, ratios in (
            ("text", words, 1.8, {}),
            ("hybrid", hybrid, 2.5, {"CPU": p50(cpu) / unit.cpu}),
        )
    ]


def bridge(vault: Path, state: Path, *, times: int = 5) -> Iterator[Row]:
    """The stdio bridge, from the start of its process to the answer to `initialize`."""
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    }
    command = [*MEMEX, "--state", str(state), "--vault", str(vault), "mcp"]
    spent, yard = [], []
    for _ in range(times + 1):
        begun = time.perf_counter()
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(hello).encode() + b"\n")
            process.stdin.flush()
            assert "result" in json.loads(process.stdout.readline())
            spent.append(time.perf_counter() - begun)
            process.stdin.close()
        yard.append(yardsticks.interpreter().seconds)
    wall, unit = p50(spent[1:]), p50(yard[1:])
    yield Row(
        "stdio bridge: initialize, cold",
        "<= 0.25 s",
        f"{wall:.2f} s",
        wall <= 0.25,
        f"a bare Python {unit:.2f} s",
        {"wall": wall / unit},
        "a bare Python",
    )
