"""`python -m tests.bench.retrieval [--data DIR] [--json FILE] [--sets NAME ...] [--all]`: how well search finds.

Each labelled set is indexed by the real pipeline with the bundled model (a second run reuses its vectors) and asked its
questions four ways: by BM25 alone, by vectors alone, by both with fixed weights (0.7 and 0.3 of scores spread over
0..1), and by `search`. The first three are what `search` has to beat; they rank the same chunks of the same index.

Of the 4,442 Japanese questions the 1,500 are asked whose ids have the smallest SHA-256: a sample that no run of luck
and no reading of the file can move. `--all` asks them all."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

from index.encoders.embedder import Embedder, EmbedSettings
from index.model import Filter, Hit, Query, Stat
from index.scope.index import Index
from index.scope.prepared_document import fingerprint
from index.storage.chunk_rows import Match
from index.text.chunking import chunk_sizes
from tests.bench.measure import ROOT, Row, p50, p95
from tests.support.parsed_notes import parse

SETS = ("locomo_dev", "jsquad_valid", "known_tasks_docs")
SAMPLE = 1_500
DENSE = 0.3  # of the fusion with fixed weights
DEEP = 100  # ranks that are looked at, and matches of a leg in the other ways
SHOWN = 20  # documents that search is asked for
BATCH = 200  # documents in one commit

Ranking: TypeAlias = list[str]  # note ids, best first


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and the notes that answer it."""

    qid: str
    text: str
    relevant: frozenset[str]
    exclude: frozenset[str]  # notes that are dropped from a ranking before it is scored
    category: str
    workspace: str | None


@dataclass(frozen=True, slots=True)
class Scores:
    """How good one ranking is, or the mean of many."""

    recall_5: float
    recall_10: float
    hit_5: float
    mrr: float
    ndcg_10: float


HEADS = ("R@5", "R@10", "Hit@5", "MRR", "nDCG@10")


def scores(ranked: Sequence[str], question: Question) -> Scores:
    """The scores of a ranking of note ids, which may repeat; gain is 0 or 1."""
    shown = [note for note in dict.fromkeys(ranked) if note not in question.exclude][:DEEP]
    places = [place for place, note in enumerate(shown, 1) if note in question.relevant]
    wanted = len(question.relevant)
    first = places[0] if places else None
    best = sum(1 / math.log2(place + 1) for place in range(1, min(wanted, 10) + 1))
    gained = sum(1 / math.log2(place + 1) for place in places if place <= 10)
    return Scores(
        recall_5=sum(place <= 5 for place in places) / wanted,
        recall_10=sum(place <= 10 for place in places) / wanted,
        hit_5=1.0 if first is not None and first <= 5 else 0.0,
        mrr=1 / first if first is not None else 0.0,
        ndcg_10=gained / best,
    )


def mean(each: Sequence[Scores]) -> Scores:
    """The mean of each score."""
    return Scores(*(sum(getattr(one, field.name) for one in each) / len(each) for field in fields(Scores)))


def questions(folder: Path, *, everything: bool = False) -> list[Question]:
    """The questions of a labelled set, in the order of the file; of a large set a sample."""
    lines = [json.loads(line) for line in (folder / "qrels.jsonl").read_text("utf-8").splitlines() if line.strip()]
    if not everything and len(lines) > 2 * SAMPLE:
        lines = sorted(lines, key=lambda line: hashlib.sha256(line["qid"].encode()).digest())[:SAMPLE]
    return [
        Question(
            line["qid"],
            line["query"],
            frozenset(line["relevant"]),
            frozenset(line.get("exclude", ())),
            line.get("category", "-"),
            line.get("conversation"),
        )
        for line in lines
    ]


def filter_of(workspace: str | None) -> Filter:
    """The filter of a search in a workspace by a key that is bound to none."""
    return Filter(workspace=workspace, reads_all=True)


class Library:
    """A labelled set in a real index: the folders of its notes are workspaces where questions name one."""

    def __init__(self, folder: Path, work: Path, embedder: Embedder, asked: Sequence[Question]) -> None:
        self._embedder = embedder
        notes = sorted((folder / "notes").rglob("*.md"))
        by_path = all(note.endswith(".md") for one in asked for note in one.relevant)
        self._ids: dict[str, str] = {}
        documents = []
        for file in notes:
            inside = file.relative_to(folder / "notes").as_posix()
            path = f"Captures/{inside}" if asked[0].workspace else f"Captures/all/{inside}"
            self._ids[path] = inside if by_path else file.stem
            documents.append((parse(file.read_bytes(), path, mtime_ms=0), Stat(file.stat().st_size, 0, 0)))
        size = chunk_sizes(embedder.max_tokens)
        made_by = fingerprint(embedder.identity, size)
        home = work / made_by[:12] / folder.name
        home.mkdir(parents=True, exist_ok=True)
        self.index = Index(
            "captures",
            home,
            uri=str(home),
            options={},
            dimensions=embedder.dimensions,
            embedder=embedder,
            sizes=size,
            made_by=made_by,
        )
        for start in range(0, len(documents), BATCH):
            self.index.commit(self.index.prepare(documents[start : start + BATCH]))
            sys.stderr.write(f"\r{folder.name}: {min(start + BATCH, len(documents))}/{len(documents)} notes")
        sys.stderr.write("\n")
        self.index.maintain(force=True)
        self._paths = {
            key: record.path for key, record in self.index.catalog.records(list(self.index._store.row_counts())).items()
        }

    def close(self) -> None:
        self.index.close()

    def _legs(self, question: Question, *, near: bool, words: bool) -> tuple[list[Match], list[Match]]:
        vector = self._embedder.embed_query(question.text) if near else None
        asked = question.text if words else None
        return self.index._store.search(vector=vector, words=asked, filter=filter_of(question.workspace), pool=DEEP)

    def _notes(self, keys: Sequence[str]) -> Ranking:
        return [self._ids[self._paths[key]] for key in dict.fromkeys(keys)]

    def bm25(self, question: Question) -> Ranking:
        """Documents by their best chunk's BM25."""
        return self._notes([match.doc_id for match in self._legs(question, near=False, words=True)[1]])

    def dense(self, question: Question) -> Ranking:
        """Documents by their nearest chunk."""
        return self._notes([match.doc_id for match in self._legs(question, near=True, words=False)[0]])

    def fixed(self, question: Question) -> Ranking:
        """Documents by their best chunk when both legs are spread over 0..1 and added with fixed weights."""
        total: dict[tuple[str, int], float] = defaultdict(float)
        for leg, weight in zip(self._legs(question, near=True, words=True), (DENSE, 1 - DENSE), strict=True):
            low, high = min((m.value for m in leg), default=0.0), max((m.value for m in leg), default=0.0)
            for match in leg:
                total[match.doc_id, match.ord] += weight * ((match.value - low) / (high - low) if high > low else 1.0)
        return self._notes([key for key, _ in sorted(total, key=lambda key: (-total[key], key))])

    def note_id(self, hit: Hit) -> str:
        return self._ids[hit.record.path]

    def memex(self, question: Question) -> Ranking:
        """Documents as `search` ranks them."""
        answer = self.index.search(Query(question.text, SHOWN, "hybrid", filter_of(question.workspace)))
        return [self.note_id(hit) for hit in answer.hits]

    @property
    def ways(self) -> dict[str, Callable[[Question], Ranking]]:
        return {"BM25": self.bm25, "dense": self.dense, "fixed weights": self.fixed, "memex": self.memex}


@dataclass(frozen=True, slots=True)
class Run:
    """One way's answers to the questions of one set."""

    collection: str
    way: str
    scores: Scores
    categories: dict[str, tuple[int, Scores]]
    p50_ms: float
    p95_ms: float


def runs(data: Path, work: Path, names: Sequence[str] = SETS, *, everything: bool = False) -> Iterator[Run]:
    """Every way on every set that is there. The rankings are kept in `work`, a line of JSON a question."""
    embedder = Embedder(EmbedSettings(), cache=work / "models")
    embedder.start()
    assert embedder.wait(), embedder.problem
    try:
        for name in names:
            asked = questions(data / name, everything=everything)
            library = Library(data / name, work, embedder, asked)
            try:
                for way, ask in library.ways.items():
                    yield _run(name, way, ask, asked, work)
            finally:
                library.close()
    finally:
        embedder.close()


def _run(name: str, way: str, ask: Callable[[Question], Ranking], asked: Sequence[Question], work: Path) -> Run:
    found, spent, groups = [], [], defaultdict(list)
    with (work / f"{name}.{way.replace(' ', '-')}.run.jsonl").open("w", encoding="utf-8") as file:
        for one in asked:
            begun = time.perf_counter()
            ranked = ask(one)
            spent.append((time.perf_counter() - begun) * 1000)
            found.append(scores(ranked, one))
            groups[one.category].append(found[-1])
            file.write(
                json.dumps({"qid": one.qid, "ranked": ranked, "latency_ms": round(spent[-1], 2)}, ensure_ascii=False)
                + "\n"
            )
    return Run(
        name, way, mean(found), {key: (len(each), mean(each)) for key, each in groups.items()}, p50(spent), p95(spent)
    )


def table(found: Sequence[Run]) -> str:
    """Markdown: every way on every set, and the categories of ours."""
    lines = [f"| set | way | {' | '.join(HEADS)} | ms p50 / p95 |", "|" + "---|" * 8]
    for run in found:
        lines.append(f"| {run.collection} | {run.way} | {_cells(run.scores)} | {run.p50_ms:.1f} / {run.p95_ms:.1f} |")
        if run.way == "memex" and len(run.categories) > 1:
            lines += [f"| | … {key} ({n}) | {_cells(each)} | |" for key, (n, each) in sorted(run.categories.items())]
    return "\n".join(lines) + "\n"


def _cells(one: Scores) -> str:
    return " | ".join(f"{getattr(one, field.name):.3f}" for field in fields(one))


def rows(data: Path, work: Path) -> Iterator[Row]:
    """The rows of the benchmark: ours against the best of the others on each set, and on average."""
    names = [name for name in SETS if (data / name / "qrels.jsonl").is_file()]
    if not names:
        yield Row("retrieval", "labelled sets", f"none in {data.name}", None)
        return
    found = list(runs(data, work, names))
    sys.stderr.write(table(found))
    for name in names:
        yield _compared(f"retrieval, {name}", [run for run in found if run.collection == name])
    ways = dict.fromkeys(run.way for run in found)
    averages = [Run("", way, mean([run.scores for run in found if run.way == way]), {}, 0, 0) for way in ways]
    yield _compared("retrieval, mean of the sets", averages, above=True)


def _compared(name: str, found: Sequence[Run], *, above: bool = False) -> Row:
    judged = ("recall_5", "mrr", "ndcg_10")
    own = next(run.scores for run in found if run.way == "memex")
    best = {key: max(getattr(run.scores, key) for run in found if run.way != "memex") for key in judged}
    gains = [getattr(own, key) - best[key] for key in judged]
    figure = " / ".join(f"{getattr(own, key):.3f}" for key in judged)
    target = " / ".join(f"{best[key]:.3f}" for key in judged)
    met = all(gain > 0 if above else gain >= 0 for gain in gains)
    return Row(
        name,
        f"R@5 / MRR / nDCG@10 {'>' if above else '>='} {target}",
        figure,
        met,
        "best of BM25, dense, fixed weights",
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.retrieval", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MEMEX_DATA", ROOT.parent / "shared/data")))
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--all", action="store_true", help="all questions, not a sample of the large set")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "bench/work/retrieval", help="where indexes and rankings are kept"
    )
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    found = list(runs(given.data, given.work, given.sets, everything=given.all))
    if given.json:
        told: list[dict[str, Any]] = [asdict(run) for run in found]
        given.json.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
    sys.stdout.write(table(found))


if __name__ == "__main__":
    main()
