"""Named work at intervals, with its outcomes."""

from __future__ import annotations

import logging
import threading

from syncd.jobs import Jobs


class Beat:
    """Work that counts its runs, may fail, and tells when enough have been made."""

    def __init__(self, enough, failure=None):
        self.runs, self.beside, self.most = 0, 0, 0
        self.enough, self.failure, self.done = enough, failure, threading.Event()

    def __call__(self):
        self.beside += 1
        self.most = max(self.most, self.beside)
        self.runs += 1
        if self.runs >= self.enough:
            self.done.set()
        self.beside -= 1
        if self.failure:
            raise self.failure


def test_a_job_runs_again_and_again_and_its_outcome_is_kept():
    jobs, work = Jobs(), Beat(3)
    jobs.every("beat", 0.02, work)
    assert jobs.outcomes() == {}
    jobs.start()
    assert work.done.wait(10)
    jobs.stop()
    outcome = jobs.outcomes()["beat"]
    assert (outcome.error, outcome.failures) == ("", 0)
    assert outcome.runs == work.runs
    assert outcome.seconds >= 0
    assert outcome.started_at > 1_700_000_000_000


def test_a_job_that_raises_stays_scheduled_and_is_logged(caplog):
    jobs, work = Jobs(), Beat(3, ValueError("no disk"))
    with caplog.at_level(logging.ERROR):
        jobs.every("beat", 0.02, work, soon=True)
        jobs.start()
        assert work.done.wait(10)
        jobs.stop()
    outcome = jobs.outcomes()["beat"]
    assert outcome.error == "no disk"
    assert outcome.failures == outcome.runs >= 3
    assert "the job beat failed" in caplog.text


def test_a_slow_job_never_runs_beside_itself_nor_piles_up(caplog):
    jobs, begun, go, runs = Jobs(), threading.Event(), threading.Event(), []

    def work():
        runs.append(threading.get_ident())
        begun.set()
        go.wait(10)

    jobs.every("slow", 0.01, work, soon=True)
    jobs.start()
    assert begun.wait(10)
    quick = Beat(20)
    jobs.every("quick", 0.01, quick)
    assert quick.done.wait(10), "another job is not held up by the slow one"
    assert len(runs) == 1
    go.set()
    jobs.stop()
    assert "maximum number" not in caplog.text


def test_one_that_is_due_soon_does_not_wait_for_its_interval():
    jobs, work = Jobs(), Beat(1)
    jobs.every("beat", 3600, work, soon=True)
    jobs.start()
    assert work.done.wait(10)
    jobs.stop()
    jobs.stop()


def test_a_first_run_can_be_put_off_or_be_sooner_than_the_interval():
    jobs, sooner, later = Jobs(), Beat(1), Beat(1)
    jobs.every("sooner", 3600, sooner, after=0.05)
    jobs.every("later", 0.01, later, after=3600)
    jobs.start()
    assert sooner.done.wait(10)
    jobs.stop()
    assert later.runs == 0
