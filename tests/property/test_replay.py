"""A vault is taken through a history of moves, renames and edits while the daemon runs: the index follows, commit by commit."""

from __future__ import annotations

import shutil
import statistics
import sys

import pytest

from syncd.sync import removal_rules
from tests.bench.vaults import DEMO
from tests.support.vault_replay import DATA, Author, Live, told
from tests.support.world import until

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def quick(monkeypatch):
    """A removal is believed sooner than in life, where it waits for two seconds."""
    monkeypatch.setattr(removal_rules, "FINAL", 0.2)


def replayed(folder, notes, commits, *, seed, hooks, every, back=10):
    """The seconds of each commit; after each the index is what the files say, and `every` so many what is built anew.

    After `back` commits it goes back to one before, and forth again."""
    author = Author(folder / "author", notes, seed)
    live = Live(folder, author, hooks=hooks)
    seconds, before = [], []
    try:
        with live.world.serving():
            for number in range(1, commits + 1):
                commit = author.step()
                how = "checkout" if number % 3 == 0 else "merge"
                if before and number % back == 0:
                    *_, touched = live.goes(author.dice.choice(before[-15:]), "checkout")
                    true(live, touched, number)
                    how = "checkout"
                _, took, touched = live.goes(commit, how)
                true(live, touched, number)
                seconds.append(took)
                before.append(commit)
                if number % every == 0 or number == commits:
                    again = live.world.rebuilt(folder / "again")
                    until(lambda again=again: live.world.dump() == again, 60)
        assert live.world.git("status", "--porcelain", "--untracked-files=no") == ""  # no byte of a note was changed
    finally:
        live.world.close()
    return seconds


def test_the_index_follows_a_history_commit_by_commit(tmp_path, quick):
    replayed(tmp_path, DEMO, 8, seed=6, hooks=True, every=100, back=4)


def true(live, touched, number):
    """The index is what the files say, once the pass under way has ended."""
    found = live.differences(touched)
    if found:
        until(lambda: live.world.app.opened.sync.progress is None)
        found = live.differences(touched)
    assert found == [], f"after commit {number}"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("hooks", "commits"), [(True, 300), (False, 60)], ids=["with hooks", "without"])
def test_a_real_vault_goes_through_hundreds_of_commits(tmp_path, quick, capsys, hooks, commits):
    """Printed: the time from a commit's checkout until all that it touched was found."""
    notes = DATA / "vault_oldwinter_md"
    if not notes.is_dir():
        pytest.skip(f"{notes} is not there; MEMEX_DATA names another place")
    seconds = replayed(tmp_path, notes, commits, seed=11, hooks=hooks, every=100)
    third = len(seconds) // 3
    with capsys.disabled():
        sys.stderr.write(told(seconds, len(list(notes.rglob("*.md")))) + "\n")
        first, last = statistics.median(seconds[:third]), statistics.median(seconds[-third:])
        sys.stderr.write(f"the first third of them {first:.2f} s, the last {last:.2f} s\n")
