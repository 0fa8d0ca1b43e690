"""Frequent jobs of an idle daemon rest, and a change in the vault wakes them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from syncd.jobs.scheduler import STILL_S
from syncd.jobs.timer import REST_S
from tests.support.daemon_process import Memex, daemon
from tests.support.until import until

WATCHED_S = 20.0  # several intervals of the most frequent jobs


def states(memex: Memex) -> dict[str, Any]:
    """Return the states of the jobs that may rest."""
    jobs = memex.ask("status")["jobs"]
    assert jobs.pop("context")["every_s"] < WATCHED_S
    return dict(jobs)


def job_runs(memex: Memex) -> dict[str, int]:
    return {name: job["runs"] for name, job in states(memex).items()}


def rests(memex: Memex) -> bool:
    """Return whether no job is due for a while."""
    due = [job["next_run_at"] for job in states(memex).values() if job["next_run_at"]]
    return bool(min(due) / 1000 > time.time() + WATCHED_S)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_frequent_jobs_rest_until_the_owner_marks_a_capture(tmp_path, models):
    with daemon(tmp_path, models) as memex:
        memex.serve()
        memex.capture("The kiln reached cone six.")
        [capture] = memex.vault.glob("Captures/default/*.md")
        until(lambda: rests(memex), STILL_S + REST_S, pause=2)
        before = job_runs(memex)
        time.sleep(WATCHED_S - 5)
        assert job_runs(memex) == before

        begun = time.monotonic()
        capture.write_text(capture.read_text().replace("promote: false", "promote: true"))
        memex.until(lambda: not capture.exists())
        assert time.monotonic() - begun < WATCHED_S
        assert not rests(memex)
