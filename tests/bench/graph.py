"""The rows on the knowledge graph: traversal, search and writes over MCP at 1,000 and 10,000 nodes, and many writers at once.

The graphs are written as entity files, as a restore or a pull would bring them, and indexed by the daemon; the vectors of
that fill are made up from the words, those of questions and of writes that are measured are the model's."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bench import vaults, yardsticks
from tests.bench.measure import Daemon, beside_jobs, daemon, p50, p95, timed
from tests.bench.record import Row, Step
from tests.bench.speed import fresh
from tests.bench.yardsticks import Beside, beside

FACTS = 5
TYPES = ("person", "project", "place", "idea", "machine")
RELATIONS = ("knows", "part_of", "depends_on", "mentions", "built")
WRITERS = 20
FILL = "vectors of the fill made up"


def make(root: Path, nodes: int, relations: int, *, seed: int = 7) -> None:
    """Write `nodes` entities with `relations` relations in all between them, evenly at random."""
    rng = random.Random(seed)
    words, weights = vaults.vocabulary()
    folder = root / "Captures/default/Entities"
    folder.mkdir(parents=True)
    out: list[set[tuple[str, int]]] = [set() for _ in range(nodes)]
    made = 0
    while made < relations:
        source, target = rng.randrange(nodes), rng.randrange(nodes)
        edge = (rng.choice(RELATIONS), target)
        made += edge not in out[source]
        out[source].add(edge)
    for number in range(nodes):
        facts = "".join(f"- {' '.join(rng.choices(words, weights, k=14))} ^o{n}\n" for n in range(1, FACTS + 1))
        edges = "".join(f"- {kind}:: [[Node {target}]]\n" for kind, target in sorted(out[number]))
        summary = " ".join(rng.choices(words, weights, k=12))
        (folder / f"Node {number}.md").write_text(
            f"---\nid: node-{number}\ntype: entity\nentity_type: {TYPES[number % 5]}\nsummary: {summary}\ntags: [made, t{number % 20}]\n"
            f"created_at: 2026-01-{1 + number % 28:02d}T10:00:00.000Z\nlast_ordinal: {FACTS}\n---\n"
            f"## Observations\n{facts}\n## Relations\n{edges}",
            "utf-8",
        )


def graph(work: Path) -> Iterator[Step]:
    """All rows, at both sizes."""
    for nodes, relations in ((1_000, 5_000), (10_000, 100_000)):
        vault, state = fresh(work, f"graph-{nodes}")
        make(vault, nodes, relations)
        with daemon(vault, state, "--made-up") as one, yardsticks.echo() as echo:
            one.http.headers["X-Memory-Workspace"] = "default"
            took = one.settled()
            told = one.tool("get_stats")
            assert (told["node_count"], told["relation_count"]) == (nodes, relations), told
            assert told["embedding_coverage"] == 1, told
            size = f"{nodes:,} nodes, {relations:,} relations"
            yield Row(
                f"start -> all indexed, {size}",
                "",
                f"{took:.0f} s",
                None,
                f"{nodes * FACTS:,} observations; {FILL}",
                jobs=one.jobs_since({}),
            )
            yield lambda: list(beside_jobs(one, searches(one, f"{size}, before maintenance")))  # noqa: B023 - measured before the next turn
            one.ask("maintain")
            one.quiet()
            yield lambda: list(beside_jobs(one, walks(one, nodes, size, echo)))  # noqa: B023 - as above
            yield lambda: list(beside_jobs(one, searches(one, size)))  # noqa: B023 - as above
            yield lambda: list(beside_jobs(one, reads(one, nodes, size)))  # noqa: B023 - as above
            yield lambda: list(beside_jobs(one, additions(one, nodes, size, state)))  # noqa: B023 - as above
            yield from beside_jobs(one, many_writers(one, size))
            yield lambda: list(beside_jobs(one, whole(one, size)))  # noqa: B023 - as above
            yield from beside_jobs(one, memory(one, size))


def walks(one: Daemon, nodes: int, size: str, echo: Callable[[], None]) -> Iterator[Row]:
    """Neighbourhoods and paths between nodes drawn at random."""
    rng = random.Random(3)
    drawn = [(f"Node {rng.randrange(nodes)}", f"Node {rng.randrange(nodes)}") for _ in range(220)]
    around = [lambda name=name: one.tool("get_neighborhood", name=name, depth=2) for name, _ in drawn]
    paths = [lambda a=a, b=b: one.tool("get_path", from_entity=a, to_entity=b) for a, b in drawn]
    seen = [float(len(call()["nodes"])) for call in around[:20]]
    for what, calls, note in (
        ("neighbourhood to depth 2", around, f"{p50(seen):.0f} nodes in the median answer; "),
        ("shortest path", paths, ""),
    ):
        timed(calls[:20])
        used = one.cpu
        spent = beside(calls[20:], echo)
        each = (one.cpu - used) / len(spent.calls) * 1000
        told = f"{note}{each:.1f} ms of the server's CPU a call"
        yield row(f"{what}, {size}", spent, "one echo", most95=6, note=told)


def searches(one: Daemon, size: str) -> Iterator[Row]:
    """Searches of nodes by their vectors, embedding included."""
    calls = [lambda text=text: one.tool("search_nodes", query=text, mode="embedding") for text in vaults.questions(120)]
    timed(calls[:20])
    yield row(f"search_nodes, embedding, {size}", beside(calls[20:], yardsticks.query), "one query encoding", most50=15)


def reads(one: Daemon, nodes: int, size: str) -> Iterator[Row]:
    """Searches by words, whole nodes, and what ten hits cost a model."""
    asked = vaults.questions(120)
    calls = [lambda text=text: one.tool("search_nodes", query=text, mode="text") for text in asked]
    timed(calls[:20])
    yield row(f"search_nodes, text, {size}", beside(calls[20:], yardsticks.query), "one query encoding")
    cost = [
        len(json.dumps(one.tool("search_nodes", query=text), ensure_ascii=False, separators=(",", ":"))) / 4
        for text in asked[:30]
    ]
    yield Row(
        f"ten search_nodes hits as a model sees them, {size}", "<= 2,000 tokens", f"{p50(cost):.0f}", max(cost) <= 2_000
    )
    rng = random.Random(5)
    opened = [[f"Node {rng.randrange(nodes)}" for _ in range(10)] for _ in range(110)]
    calls = [lambda names=names: one.tool("open_nodes", names=names) for names in opened]
    timed(calls[:10])
    yield row(f"open_nodes, ten at a time, {size}", beside(calls[10:], yardsticks.query), "one query encoding")


def whole(one: Daemon, size: str) -> Iterator[Row]:
    """What looks at all of the graph."""
    for tool in ("get_stats", "get_orphans", "get_relation_gaps", "find_similar_nodes", "get_consolidation_report"):
        calls = [lambda tool=tool: one.tool(tool)] * 3
        most = 3_000 if tool == "get_consolidation_report" else None
        yield row(f"{tool}, {size}", beside(calls, yardsticks.query), "one query encoding", most50=most)


def memory(one: Daemon, size: str) -> Iterator[Row]:
    """Resident memory after all of that."""
    most = 500 if size.startswith("10,000") else None
    bare, _ = yardsticks.imports_memory()
    yield Row(
        f"resident memory, {size}",
        f"<= {most} MB" if most else "",
        f"{one.rss:.0f} MB",
        one.rss <= most if most else None,
        FILL,
        {"resident": one.rss / bare},
        "the memory of the imports",
    )


def additions(one: Daemon, nodes: int, size: str, state: Path) -> Iterator[Row]:
    """Facts that one writer adds, each durable and findable when it is acknowledged."""
    rng, stamp = random.Random(9), time.time_ns()

    def add(number: int) -> None:
        name = f"Node {rng.randrange(nodes)}"
        content = f"Was measured in run {stamp}.{number}"
        one.tool("add_observations", observations=[{"entity_name": name, "contents": [content]}])

    def yardstick() -> None:
        yardsticks.query()
        yardsticks.fsync(state.parent)

    spent = beside([lambda n=n: add(n) for n in range(60)], yardstick)
    yield row(f"add_observations, {size}", spent, "one query encoding and one fsync", most50=40)


def many_writers(one: Daemon, size: str) -> Iterator[Row]:
    """Twenty writers at once: nothing is lost and nothing doubled."""

    def work(number: int) -> list[float]:
        return timed(
            [
                lambda n=n: one.tool(
                    "create_entities",
                    entities=[
                        {"name": f"Writer {number}.{n}", "entity_type": "made", "observations": [f"fact {number} {n}"]}
                    ],
                )
                for n in range(5)
            ]
            + [
                lambda n=n: one.tool(
                    "add_observations", observations=[{"entity_name": "Node 0", "contents": [f"{number} {n}"]}]
                )
                for n in range(5)
            ]
        )

    before = len(one.tool("open_nodes", names=["Node 0"])["entities"][0]["observations"])
    begun = time.perf_counter()
    with ThreadPoolExecutor(WRITERS) as pool:
        spent = [ms for each in pool.map(work, range(WRITERS)) for ms in each]
    took = time.perf_counter() - begun
    kept = len(one.tool("open_nodes", names=["Node 0"])["entities"][0]["observations"]) - before
    found = one.tool("open_nodes", names=[f"Writer {a}.{b}" for a in range(WRITERS) for b in range(5)])
    whole = (len(found["entities"]), kept) == (WRITERS * 5, WRITERS * 5)
    yield Row(
        f"{WRITERS} writers at once, 10 writes each, {size}",
        "nothing lost, nothing doubled",
        f"{len(spent) / took:.0f} writes/s; p50 {p50(spent):.0f}, p95 {p95(spent):.0f} ms",
        whole,
        f"{len(found['entities'])} nodes, {kept} observations of {WRITERS * 5} each",
    )


def row(
    name: str,
    spent: Beside,
    yardstick: str,
    *,
    most50: float | None = None,
    most95: float | None = None,
    note: str = "",
) -> Row:
    """Median and 95th percentile of calls over MCP."""
    held = [
        (figure(spent.calls), most, text)
        for figure, most, text in ((p50, most50, "p50"), (p95, most95, "p95"))
        if most is not None
    ]
    return Row(
        name,
        ", ".join(f"{text} <= {most:,.0f} ms" for _, most, text in held),
        f"{p50(spent.calls):.1f} / {p95(spent.calls):.1f} ms",
        all(figure <= most for figure, most, _ in held) if held else None,
        "; ".join(filter(None, (note, f"{yardstick} {spent.unit:.2f} ms"))),
        spent.ratios,
        yardstick,
    )
