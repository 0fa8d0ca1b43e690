"""`python -m tests.bench.graph_report [--nodes N ...]`: what a report on a graph costs, and how much its index finds.

Nodes are made up: three observations of 17 words each, that name others now and then, ten relations each, and vectors
in topics of some twenty nodes. Times are of the wall, in seconds; recall is against the comparison of all with all."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

from index.encoders.word_frequency import word_ranks
from index.graph.unlinked_names import find
from index.graph.vertex import Edge
from index.search import vector_similarity
from index.search.vector_similarity import Matrix
from syncd.graph import attention_report
from tests.support import sample_entities

PERSPECTIVES = ("general", "technical", "relational", "temporal", "project")
BEYOND = 20_000


def rows(n: int, seed: int, topics: int) -> Matrix:
    """Rows that lie about `topics` directions, as those of texts do."""
    dice = np.random.default_rng(seed)
    middle = dice.standard_normal(384)
    about = 0.6 * middle + dice.standard_normal((topics, 384))
    found = about[dice.integers(0, topics, n)] + 0.9 * dice.standard_normal((n, 384))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def timed(what: str, act: Callable[[], Any]) -> Any:
    """Do it, and tell what it took."""
    begun, used = time.perf_counter(), time.process_time()
    found = act()
    wall, cpu = time.perf_counter() - begun, time.process_time() - used
    sys.stdout.write(f"| {what} | {wall:.2f} s | {cpu:.2f} s |\n")
    return found


def graph(n: int) -> dict[str, Any]:
    """What `consolidate.report` takes, at `n` nodes."""
    dice = random.Random(n)
    words = sorted(word_ranks(), key=word_ranks().__getitem__)
    often = list(accumulate(1 / (20 + place) for place in range(len(words))))  # as words are
    names = sorted({" ".join(dice.choices(words, k=dice.choice((1, 2, 2, 3)))).title() for _ in range(n + n // 10)})[:n]
    made = [
        sample_entities.Entity(
            name,
            dice.choice(("person", "project", "place", "software")),
            tuple(dice.sample(words[:2_000], 2)),
            tuple(
                " ".join(
                    [
                        *dice.choices(words, cum_weights=often, k=16),
                        dice.choice(names) if dice.random() < 0.2 else "end",
                    ]
                )
                + "."
                for _ in range(3)
            ),
            (),
        )
        for name in names
    ]
    paths = [sample_entities.path(one.name) for one in made]
    own = {name: (paths, rows(n, seed, n // 20)) for seed, name in enumerate(PERSPECTIVES)}
    return {
        "vertices": [sample_entities.vertex(one) for one in made],
        "observations": {sample_entities.path(one.name): one.observations for one in made},
        "related": sample_entities.related_names(
            Edge(dice.choice(names), dice.choice(names), "knows") for _ in range(10 * n)
        ),
        "pooled": own["general"],
        "perspectives": lambda _: own,
        "events": None,
        "places": word_ranks(),
    }


def measure(n: int) -> None:
    """The whole report, and its parts."""
    given = graph(n)
    matrix = given["pooled"][1]
    related = [(a, b) for a, b in np.random.default_rng(n).integers(0, n, (10 * n, 2)).tolist() if a != b]
    nodes = [(one.name, (), given["observations"][one.path]) for one in given["vertices"]]
    timed(f"{n:,} nodes: report", lambda: attention_report.build_report(**given))
    timed(f"{n:,} nodes: pending", lambda: attention_report.find_unsummarized(given["vertices"]))
    timed(f"{n:,} nodes: gaps", lambda: find(nodes, lambda a, b: a == b, ordinary=word_ranks()))
    timed(f"{n:,} nodes: similar pairs", lambda: vector_similarity.most_similar_pairs(matrix, related, 20, 0.5))
    timed(f"{n:,} nodes: clusters", lambda: vector_similarity.find_clusters(matrix, near=0.5, most=25))


def recall() -> None:
    """How much of the exact answers is found by cells."""
    for topics in (BEYOND // 20, 50, 10 * BEYOND):
        matrix = rows(BEYOND, 7, topics)
        name = f"{BEYOND:,} nodes of {topics:,} topics"
        exact = timed(
            f"{name}: all with all",
            lambda m=matrix: vector_similarity.most_similar_pairs(m, (), 500, 0.1, exact=BEYOND),
        )
        found = timed(f"{name}: cells", lambda m=matrix: vector_similarity.most_similar_pairs(m, (), 500, 0.1))
        share = len({pair[:2] for pair in exact} & {pair[:2] for pair in found}) / len(exact)
        sys.stdout.write(f"| {name}: recall of the first {len(exact)} pairs | {share:.3f} | |\n")


def main() -> None:
    """Print a table."""
    asked = argparse.ArgumentParser(prog="python -m tests.bench.graph_report", description=__doc__)
    asked.add_argument("--nodes", type=int, nargs="*", default=[1_000, 5_000, 10_000])
    sys.stdout.write("| what | wall | CPU |\n|---|---|---|\n")
    for n in asked.parse_args().nodes:
        measure(n)
    recall()


if __name__ == "__main__":
    main()
