"""`python -m tests.bench.query_times [--data DIR]`: what the times in queries change in the ranking.

Of each labelled set, the questions that name a time are asked with its weight and without; relative times count from the end
of the conversations. Printed: both scores, and the milliseconds of a search."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from index.encoders.embedder import Embedder, EmbedSettings
from index.model import Query
from index.search import hybrid_search
from index.search.query_dates import find_periods
from tests.bench.measure import ROOT, p50
from tests.bench.retrieval import SETS, Library, Question, Scores, filter_of, mean, questions, scores

ASKED_AT = datetime(2023, 12, 31, tzinfo=UTC)
LIMIT = 50
MOST = hybrid_search.TIMES


def asked(library: Library, found: Sequence[Question]) -> tuple[Scores, float]:
    """The mean scores of the questions, and the median milliseconds of a search."""
    judged, spent = [], []
    for question in found:
        begun = time.perf_counter()
        query = Query(question.text, LIMIT, "hybrid", filter_of(question.workspace), ASKED_AT)
        answer = library.index.search(query)
        spent.append((time.perf_counter() - begun) * 1000)
        judged.append(scores([library.note_id(hit) for hit in answer.hits], question))
    return mean(judged), p50(spent)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.query_times", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MEMEX_DATA", ROOT.parent / "shared/data")))
    parser.add_argument("--work", type=Path, default=ROOT / "bench/work/retrieval")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    embedder = Embedder(EmbedSettings(), cache=given.work / "models")
    embedder.start()
    assert embedder.wait(), embedder.problem
    try:
        for name in SETS:
            every = questions(given.data / name, everything=True)
            found = [question for question in every if find_periods(question.text, ASKED_AT)[0]]
            library = Library(given.data / name, given.work, embedder, every)
            try:
                asked(library, found)  # fills the caches
                for way, most in (("with times", MOST), ("without", 0)):
                    hybrid_search.TIMES = most  # type: ignore[misc]  # the other way to count
                    score, half = asked(library, found)
                    sys.stdout.write(
                        f"{name}, {len(found)} of {len(every)} questions, {way}: R@5 {score.recall_5:.3f}, "
                        f"R@10 {score.recall_10:.3f}, MRR {score.mrr:.3f}, nDCG@10 {score.ndcg_10:.3f}, {half:.1f} ms\n"
                    )
            finally:
                library.close()
    finally:
        embedder.close()


if __name__ == "__main__":
    main()
