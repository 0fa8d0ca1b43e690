"""Frequent jobs of an idle daemon rest, and a change in the vault wakes them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from syncd.daemon.background_jobs import CONTEXT_S
from syncd.jobs.scheduler import STILL_S
from syncd.jobs.timer import REST_S
from tests.support.daemon_process import Memex, daemon
from tests.support.until import until

RESTING = ("promotion", "manual moves", "commits", "root", "dropped files")
WATCHED_S = 12.0  # longer than each of their intervals


def job_states(memex: Memex) -> dict[str, Any]:
    return dict(memex.ask("status")["jobs"])


def job_runs(memex: Memex) -> list[int]:
    return [job_states(memex)[name]["runs"] for name in RESTING]


def rests(memex: Memex) -> bool:
    """Return whether none of the jobs is due for a while."""
    states = job_states(memex)
    return all(states[name]["next_run_at"] / 1000 > time.time() + WATCHED_S + 3 for name in RESTING)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_frequent_jobs_rest_until_the_owner_marks_a_capture(tmp_path, models):
    with daemon(tmp_path, models) as memex:
        memex.serve()
        memex.capture("The kiln reached cone six.")
        [capture] = memex.vault.glob("Captures/default/*.md")
        until(lambda: rests(memex), STILL_S + 3 * REST_S, pause=1)
        before, contexts = job_runs(memex), job_states(memex)["context"]["runs"]
        time.sleep(WATCHED_S)
        assert job_runs(memex) == before
        assert job_states(memex)["context"]["runs"] > contexts, f"it runs every {CONTEXT_S:g} s"

        marked = capture.read_text().replace("promote: false", "promote: true")
        until(lambda: rests(memex), 2 * REST_S, pause=1)
        begun = time.monotonic()
        capture.write_text(marked)
        memex.until(lambda: not capture.exists())
        assert time.monotonic() - begun < WATCHED_S
        assert not rests(memex)
