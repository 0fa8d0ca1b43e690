"""`python -m tests.bench.window_ranking [--data DIR] [--questions N]`: whether shared notes push captures out of an answer.

Captures are one conversation of a labelled set. Shared notes are a documentation vault or, which is harder, all other
conversations. The hits are joined three ways: one list alone, by scores, and as Memex joins them. Printed: recall at 10, MRR."""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from index.encoders.embedder import Embedder, EmbedSettings
from index.model import Hit, Query, Scope
from syncd.sharing.window_ranking import join_hits
from tests.bench.measure import ROOT
from tests.bench.retrieval import Library, Question, filter_of, mean, questions, scores

SEED = 3
LIMIT = 10
CAPTURES, SHARED = "locomo_dev", "known_tasks_docs"


def by_score(hits: Sequence[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: -hit.score)


WAYS: dict[str, Callable[[Sequence[Hit]], list[Hit]]] = {
    "by scores": by_score,
    "as Memex joins them": lambda hits: join_hits(by_score(hits)),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions, the list that answers them, and the hits of both lists for a question."""

    about: str
    questions: Sequence[Question]
    own: Library
    scope: Scope
    both: Callable[[Question], tuple[Sequence[Hit], Sequence[Hit]]]


def shown(hits: Iterable[Hit]) -> list[Hit]:
    return [replace(hit, record=replace(hit.record, scope="vault")) for hit in hits]


def measure(asked: Asked) -> dict[str, list[list[str]]]:
    """Return for each way the ranking of each question, as ids of the set that it belongs to."""
    rankings: dict[str, list[list[str]]] = {way: [] for way in ("alone", *WAYS)}
    for question in asked.questions:
        mine, theirs = asked.both(question)
        alone = mine if asked.scope == "captures" else theirs
        lists = {"alone": list(alone)} | {way: join([*mine, *theirs])[:LIMIT] for way, join in WAYS.items()}
        for way, hits in lists.items():
            ids = [
                asked.own.note_id(hit) if hit.record.scope == asked.scope else f"other {hit.record.path}"
                for hit in hits
            ]
            rankings[way].append(ids)
    return rankings


def comparisons(captures: Library, shared: Library, every: dict[str, list[Question]], count: int) -> Iterator[Asked]:
    rng, places = random.Random(SEED), sorted({question.workspace or "" for question in every[CAPTURES]})

    def found(library: Library, text: str, place: str | None, limit: int = LIMIT) -> Sequence[Hit]:
        return library.index.search(Query(text, limit, "hybrid", filter_of(place))).hits

    def beside_documentation(question: Question) -> tuple[Sequence[Hit], Sequence[Hit]]:
        mine = found(captures, question.text, question.workspace or rng.choice(places))
        return mine, shown(found(shared, question.text, None))

    def beside_other_conversations(question: Question) -> tuple[Sequence[Hit], Sequence[Hit]]:
        others = [hit for hit in found(captures, question.text, None, 50) if hit.record.workspace != question.workspace]
        return found(captures, question.text, question.workspace), shown(others[:LIMIT])

    conversations, documentation = (random.Random(SEED).sample(every[name], count) for name in (CAPTURES, SHARED))
    yield Asked("captures, beside documentation", conversations, captures, "captures", beside_documentation)
    yield Asked("captures, beside like notes", conversations, captures, "captures", beside_other_conversations)
    yield Asked("shared notes", documentation, shared, "vault", beside_documentation)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.window_ranking", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MEMEX_DATA", ROOT.parent / "shared/data")))
    parser.add_argument("--questions", type=int, default=300, help="questions of each set, drawn by chance")
    parser.add_argument("--work", type=Path, default=ROOT / "bench/work/retrieval")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    embedder = Embedder(EmbedSettings(), cache=given.work / "models")
    embedder.start()
    assert embedder.wait(), embedder.problem
    every = {name: questions(given.data / name) for name in (CAPTURES, SHARED)}
    captures, shared = (Library(given.data / name, given.work, embedder, every[name]) for name in (CAPTURES, SHARED))
    lines = ["| questions about | way | R@10 | MRR |", "| --- | --- | --- | --- |"]
    for asked in comparisons(captures, shared, every, given.questions):
        for way, rankings in measure(asked).items():
            each = [scores(ranked, question) for ranked, question in zip(rankings, asked.questions, strict=True)]
            lines.append(f"| {asked.about} | {way} | {mean(each).recall_10:.3f} | {mean(each).mrr:.3f} |")
    captures.close()
    shared.close()
    embedder.close()
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
