"""How often Memex commits by itself: an hour of ordinary use, with the real Git and a clock that the test sets."""

from __future__ import annotations

import shutil

import pytest

from tests.support.commit_hour import DECISIONS, HOUR_S, REVIEW, Hour

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("home"),
]


@pytest.fixture
def hour(tmp_path):
    made = Hour(tmp_path)
    yield made
    made.rig.close()


def test_an_hour_of_ordinary_use_gives_four_automatic_commits_at_most(hour):
    hour.pass_ordinary_hour()
    assert len(hour.subjects) - len(hour.automatic) == DECISIONS
    assert 1 <= len(hour.automatic) <= 4
    hour.pass_time(HOUR_S)
    assert hour.rig.status() == [], "what came last is committed later"
    told = hour.rig.git("log", "--format=%(trailers:key=Memex-Agent,valueonly,separator=%x2C)").splitlines()
    assert all(len(names.split(",")) == len(set(names.split(","))) for names in told)
    assert {name for names in told for name in names.split(",") if name} == {"claude-code", "chat", "cursor"}


@pytest.mark.slow
def test_suggestions_cause_no_commit_of_their_own_and_go_into_the_next_one(hour):
    hour.rig.agent("Captures/default/A.md", "one\n")
    hour.rig.agent("Captures/Review.base", "views: []\n", REVIEW)
    hour.pass_time(600)
    assert len(hour.subjects) == 1
    hour.rig.agent("Captures/default/A.md", "---\npromote: false\n---\none\n", REVIEW)
    hour.pass_time(2 * HOUR_S)
    hour.rig.commits.stop()
    assert len(hour.subjects) == 1
    assert hour.rig.status() == [" M Captures/default/A.md"]
    hour.rig.agent("Captures/default/B.md", "two\n")
    hour.pass_time(600)
    assert hour.subjects == ["claude-code: 1 note and 1 file added", "claude-code: 1 note added, 1 note changed"]
    assert hour.rig.status() == []


def test_a_capture_is_committed_once_it_is_quiet_with_what_was_suggested_for_it(hour):
    hour.rig.agent("Captures/default/A.md", "one\n")
    hour.pass_time(60)
    hour.rig.agent("Captures/default/A.md", "---\npromote: false\n---\none\n", REVIEW)
    hour.pass_time(50)
    assert hour.subjects == []
    hour.pass_time(30)
    assert hour.subjects == ["claude-code: 1 note added"]
    assert b"promote" in hour.rig.held("Captures/default/A.md")


@pytest.mark.slow
def test_an_agent_that_writes_all_the_time_is_committed_all_the_same(hour):
    events = [
        (second, lambda second=second: hour.rig.agent("Captures/default/A.md", f"{second}\n"))
        for second in range(0, HOUR_S, 60)
    ]
    hour.pass_time(HOUR_S, events)
    assert 3 <= len(hour.subjects) <= 4


def test_a_clock_that_was_set_back_makes_nothing_wait(hour):
    hour.rig.agent("Captures/default/A.md", "one\n")
    hour.pass_time(600)
    hour.now -= 10 * HOUR_S * 1000
    hour.rig.agent("Captures/default/B.md", "two\n")
    hour.pass_time(300)
    assert len(hour.subjects) == 2
