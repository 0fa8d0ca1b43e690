"""The daemon for measuring: it knows the jobs that rows name, tells what it can't do, and carries the headline rows; commands alone end well."""

from __future__ import annotations

import pytest

from syncd.jobs.job_names import NAMES
from tests.bench import alone, headline, prepared_vault, quick, vaults
from tests.bench.measure import daemon
from tests.bench.record import measure

SMALL = 40  # captures
JOBS = {*headline.FREQUENT, *prepared_vault.SETTLE}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    home = tmp_path_factory.mktemp("bench")
    vaults.make(home / "vault", SMALL, words=30, captures=True)
    with daemon(home / "vault", home / "state", "--made-up") as one:
        one.settled()
        yield one


def test_every_job_that_rows_name_is_there():
    assert NAMES.keys() >= JOBS


@pytest.mark.slow  # it starts a daemon
@pytest.mark.parametrize("job", sorted(JOBS))
def test_a_job_that_rows_name_runs_without_an_error(measured, job):
    assert measured.ask("run", job=job) == ""


@pytest.mark.slow
def test_a_question_without_an_answer_is_told_and_the_next_one_answered(measured):
    with pytest.raises(RuntimeError, match="NotFound: no job 'weather'"):
        measured.ask("run", job="weather")
    assert measured.ask("run", job="review") == ""


@pytest.mark.slow
def test_the_rows_of_calls_have_a_figure_and_ratios(measured):
    rows = [headline.searches(measured, "40 chunks", times=3), headline.layers(measured, times=8)]
    assert all(row.figure and min(row.ratios.values()) > 0 for row in rows)


@pytest.mark.slow
def test_the_quick_bench_runs_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(prepared_vault, "NOTES", SMALL)
    monkeypatch.setattr(quick, "IDLE_S", 1.0)
    rows = list(measure(lambda: quick.quick(tmp_path), [], [].append))
    assert len(rows) == 10 and all(row.figure for row in rows)


@pytest.mark.slow
def test_each_command_that_is_timed_alone_ends_well(tmp_path, monkeypatch):
    monkeypatch.setattr(alone, "NOTES", SMALL)
    monkeypatch.setattr(alone, "TIMES", 1)
    assert len([row for row in alone.alone(tmp_path) if row.figure]) == len(alone.COMMANDS)
