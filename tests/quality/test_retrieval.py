"""retrieval: what it promises, held on the real thing."""

from __future__ import annotations

import importlib.util
import json
import os
from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.measure import ROOT
from tests.bench.retrieval import SAMPLE, Question, Run, Scores, _compared, mean, questions, runs, scores, table

DATA = Path(os.environ.get("MEMEX_DATA", ROOT.parent / "shared/data"))
REACHED = {  # recall at 5 and at 10, and MRR, rounded down: what a change must not lose
    "locomo_dev": (0.923, 0.966, 0.882),
    "jsquad_valid": (0.979, 0.982, 0.948),
    "known_tasks_docs": (0.977, 0.985, 0.947),
}
SEVERAL_NOTES = 0.66  # recall at 5 of the questions that several notes answer together


def question(*relevant: str, exclude: tuple[str, ...] = ()) -> Question:
    return Question("q", "text", frozenset(relevant), frozenset(exclude), "-", None)


@pytest.mark.parametrize(
    ("ranked", "asked", "wanted"),
    [
        pytest.param(["a"], question("a"), (1, 1, 1, 1, 1), id="first"),
        pytest.param(["x", "a"], question("a"), (1, 1, 1, 0.5, 0.6309), id="second"),
        pytest.param(["x"] * 9 + ["a"], question("a"), (1, 1, 1, 0.5, 0.6309), id="a repeated note takes one rank"),
        pytest.param([*"uvwxyza"], question("a"), (0, 1, 0, 1 / 7, 0.3333), id="seventh"),
        pytest.param(["a", "x", "b"], question("a", "b", "c"), (2 / 3, 2 / 3, 1, 1, 0.7039), id="two of three"),
        pytest.param(["x", "a"], question("a", exclude=("x",)), (1, 1, 1, 1, 1), id="an excluded note does not count"),
        pytest.param([], question("a"), (0, 0, 0, 0, 0), id="nothing"),
    ],
)
def test_scores_are_those_of_their_definitions(ranked, asked, wanted):
    assert astuple(scores(ranked, asked)) == pytest.approx(wanted, abs=1e-4)


def test_the_mean_is_taken_score_by_score():
    assert astuple(mean([Scores(1, 1, 1, 1, 0), Scores(0, 1, 0, 0.5, 0)])) == (0.5, 1, 0.5, 0.75, 0)


@pytest.fixture(scope="module")
def official():
    if not (DATA / "score.py").is_file():
        pytest.skip(f"no {DATA / 'score.py'}: set MEMEX_DATA to the folder of labelled sets")
    found = importlib.util.spec_from_file_location("score", DATA / "score.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@given(st.lists(st.sampled_from("abcdefghijklmnop"), max_size=30), st.sets(st.sampled_from("abcdef"), min_size=1))
def test_scores_agree_with_those_of_the_labelled_sets(official, ranked, relevant):
    wanted = official.metrics(ranked, relevant)
    assert astuple(scores(ranked, question(*relevant))) == pytest.approx(tuple(wanted.values()))


def test_a_large_set_is_sampled_the_same_way_each_time(tmp_path):
    lines = [{"qid": f"q{n}", "query": "x", "relevant": ["a"]} for n in range(2 * SAMPLE + 1)]
    (tmp_path / "qrels.jsonl").write_text("\n".join(map(json.dumps, lines)))
    sample = questions(tmp_path)
    (tmp_path / "qrels.jsonl").write_text("\n".join(map(json.dumps, reversed(lines))))
    assert len(sample) == SAMPLE
    assert questions(tmp_path) == sample
    assert len(questions(tmp_path, everything=True)) == len(lines)


def test_a_set_is_met_when_no_score_is_below_the_best_of_the_others():
    def run(way: str, mrr: float) -> Run:
        return Run("s", way, Scores(0.9, 0.9, 0.9, mrr, 0.9), {}, 1, 2)

    others = [run("BM25", 0.7), run("dense", 0.8)]
    assert _compared("s", [*others, run("memex", 0.8)]).met is True
    assert _compared("s", [*others, run("memex", 0.79)]).met is False
    assert _compared("s", [*others, run("memex", 0.8)], above=True).met is False


def test_the_table_has_a_line_for_every_way():
    run = Run(
        "s", "memex", Scores(1, 1, 1, 1, 1), {"a": (1, Scores(1, 1, 1, 1, 1)), "b": (2, Scores(0, 0, 0, 0, 0))}, 1, 2
    )
    assert table([run]).count("\n") == 5


@pytest.mark.slow
@pytest.mark.parametrize("collection", REACHED)
def test_search_finds_as_much_as_it_found(collection, tmp_path):
    if not (DATA / collection).is_dir():
        pytest.skip(f"no {DATA / collection}: set MEMEX_DATA to the folder of labelled sets")
    run = next(run for run in runs(DATA, tmp_path, [collection]) if run.way == "memex")
    found = (run.scores.recall_5, run.scores.recall_10, run.scores.mrr)
    assert all(now >= before for now, before in zip(found, REACHED[collection], strict=True)), found
    assert "multi-hop" not in run.categories or run.categories["multi-hop"][1].recall_5 >= SEVERAL_NOTES
