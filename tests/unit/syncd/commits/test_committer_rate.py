"""How often Memex commits by itself: an hour of ordinary use, with the real Git and a clock that the test sets."""

from __future__ import annotations

import random
import shutil

import pytest

from syncd.history.audit_log import Author
from syncd.settings.automation import GitSettings
from tests.support.commit_crash import CHAT, CODE, Rig

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("home"),
]

REVIEW = Author("daemon", "review")
CURSOR = Author("mcp", "kb_update_note", "k3", "cursor")
BEGIN_MS, TICK_S, HOUR_S = 1_795_000_000_000, 10, 3_600


class Hour:
    """A vault whose daemon looks every ten seconds whether something is to be committed."""

    def __init__(self, folder) -> None:
        settings = GitSettings()
        self.rig = Rig(folder, quiet_s=settings.quiet_s, every_s=settings.every_s)
        self.now = BEGIN_MS
        self.rig.audit.now = lambda: self.now
        self.begun = len(self.rig.subjects())

    def pass_time(self, seconds, events=()):
        """Let time pass; each event is a second and what happens then."""
        due = sorted(events, key=lambda event: event[0])
        for second in range(0, seconds, TICK_S):
            while due and due[0][0] <= second:
                due.pop(0)[1]()
            self.rig.commits.tick()
            self.now += TICK_S * 1000

    @property
    def subjects(self):
        return self.rig.subjects()[self.begun :]


@pytest.fixture
def hour(tmp_path):
    made = Hour(tmp_path)
    yield made
    made.rig.close()


def test_an_hour_of_ordinary_use_gives_four_automatic_commits_at_most(hour):
    dice, rig, events, decisions = random.Random(3), hour.rig, [], 0
    for n in range(30):
        second, author, path = dice.randrange(HOUR_S), dice.choice([CODE, CHAT, CURSOR]), f"Captures/default/N{n}.md"

        def capture(path=path, author=author):
            rig.agent(path, "A thought.\n", author)

        def suggest(path=path):
            rig.agent(path, "---\npromote: false\n---\nA thought.\n", REVIEW)

        events += [(second, capture), (second + 60, suggest)]
    for n in range(3):
        decisions += 1

        def decide(n=n):
            path = f"Notes/Mine {n}.md"
            rig.agent(path, "kept\n", Author("cli", "promote"))
            assert rig.commits.commit({path: b"kept\n"}, f"Promote Mine {n}\n", approved={path})

        events.append((dice.randrange(HOUR_S), decide))
    hour.pass_time(HOUR_S, events)
    automatic = [subject for subject in hour.subjects if not subject.startswith("Promote ")]
    assert len(hour.subjects) - len(automatic) == decisions
    assert 1 <= len(automatic) <= 4
    hour.pass_time(HOUR_S)
    assert rig.status() == [], "what came last is committed later"
    told = rig.git("log", "--format=%(trailers:key=Memex-Agent,valueonly,separator=%x2C)").splitlines()
    assert all(len(names.split(",")) == len(set(names.split(","))) for names in told)
    assert {name for names in told for name in names.split(",") if name} == {"claude-code", "chat", "cursor"}


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
