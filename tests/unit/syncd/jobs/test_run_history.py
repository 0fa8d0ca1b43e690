"""The last runs of each job: what is recorded, what is forgotten, and what a run that can't be recorded leaves."""

from __future__ import annotations

import logging

import pytest

from index.errors import Unavailable
from syncd.jobs.run_history import KEPT, Run, RunHistory
from syncd.jobs.scheduler import Scheduler

DAY = 86_400.0


def fails(error):
    def work():
        raise error

    return work


@pytest.fixture
def kept(ledger):
    return RunHistory(ledger)


@pytest.mark.parametrize("failure", [ValueError("no file \udce9.md"), Unavailable("no file \udce9.md")])
def test_a_failure_whose_text_is_not_unicode_is_recorded(kept, caplog, failure):
    caplog.set_level(logging.CRITICAL, "syncd.jobs.scheduler")  # the report of a test must be Unicode
    jobs = Scheduler(kept)
    jobs.every("deep", DAY, fails(failure))
    assert jobs.run("deep").error == "no file \\xe9.md"
    assert [run.error for run in kept.runs_of("deep")] == ["no file \\xe9.md"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_run_that_can_t_be_recorded_has_ended_all_the_same(kept, monkeypatch):
    def fail(*_):
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(RunHistory, "add", fail)
    jobs, runs = Scheduler(kept), []
    jobs.every("deep", DAY, lambda: runs.append(1))
    jobs.start()
    assert jobs.run("deep").error == ""
    assert not jobs.states()["deep"].running
    monkeypatch.undo()
    assert jobs.run("deep").error == ""
    assert len(runs) == 2
    jobs.stop()


def test_only_so_many_runs_of_a_job_are_kept(kept):
    for number in range(KEPT + 10):
        kept.add("a", Run(number, 1.0, ""))
        kept.add("b", Run(number, 1.0, ""))
    assert [run.started_at for run in kept.runs_of("a")] == list(range(KEPT + 9, 9, -1))
    assert len(kept.runs_of("b")) == KEPT
    assert [run.started_at for run in kept.runs_of("b", 2)] == [KEPT + 9, KEPT + 8]
