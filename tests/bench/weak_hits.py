"""`python -m tests.bench.weak_hits [--data DIR] [--questions N]`: how many hits are marked weak that should (not) be.

Each labelled set is asked its own questions, and those of the other sets and conversations, to which it holds no answer.
Printed: the share of right first hits that are marked, at most 5 %, and of the hits for absent topics, at least 80 %."""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from index.encoders.embedder import Embedder, EmbedSettings
from index.model import Hit, Query
from tests.bench.measure import ROOT
from tests.bench.retrieval import SETS, Library, Question, filter_of, questions

SEED = 3
LIMIT = 10


def hits(library: Library, text: str, workspace: str | None) -> Sequence[Hit]:
    return library.index.search(Query(text, LIMIT, "hybrid", filter_of(workspace))).hits


def right_first_hits(library: Library, asked: Sequence[Question]) -> list[bool]:
    """Whether each first hit that is right is marked weak."""
    marked = []
    for question in asked:
        found = hits(library, question.text, question.workspace)
        if found and library.note_id(found[0]) in question.relevant:
            marked.append(found[0].weak)
    return marked


def hits_of_absent_topics(library: Library, own: Sequence[Question], asked: Sequence[Question]) -> list[bool]:
    """Whether each hit is marked weak, in a conversation that the question is not about."""
    rng, places = random.Random(SEED), sorted({question.workspace or "" for question in own})
    marked = []
    for question in asked:
        elsewhere = [place for place in places if place != question.workspace]
        marked += [hit.weak for hit in hits(library, question.text, rng.choice(elsewhere) or None)]
    return marked


def share(marked: Sequence[bool]) -> str:
    return f"{100 * sum(marked) / max(1, len(marked)):.1f} % of {len(marked):,}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.weak_hits", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MEMEX_DATA", ROOT.parent / "shared/data")))
    parser.add_argument("--questions", type=int, default=200, help="questions of each set, drawn by chance")
    parser.add_argument("--work", type=Path, default=ROOT / "bench/work/retrieval")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    rng = random.Random(SEED)
    asked = {name: rng.sample(questions(given.data / name), given.questions) for name in SETS}
    embedder = Embedder(EmbedSettings(), cache=given.work / "models")
    embedder.start()
    assert embedder.wait(), embedder.problem
    lines = ["| set | right first hits, marked | hits of absent topics, marked |", "| --- | --- | --- |"]
    for name in SETS:
        own = questions(given.data / name)
        library = Library(given.data / name, given.work, embedder, own)
        others = [question for other in SETS if other != name or own[0].workspace for question in asked[other]]
        right, absent = right_first_hits(library, asked[name]), hits_of_absent_topics(library, own, others)
        lines.append(f"| {name} | {share(right)} | {share(absent)} |")
        library.close()
    embedder.close()
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
