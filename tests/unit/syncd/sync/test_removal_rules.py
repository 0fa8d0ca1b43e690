"""syncd/sync/removal_rules.py: which absences may be believed."""

import errno
import os
import shutil
import time

import pytest

from syncd.git import head_moves
from syncd.git.repository import GitPosition
from syncd.sync import removal_rules
from syncd.sync.removal_rules import RemovalRules
from tests.support.world import World

FIRST = "a" * 40
MANY = [f"n{number}.md" for number in range(30)]


class History:
    """What Git would say."""

    def __init__(self):
        self.at, self.taken = FIRST, set()

    def head(self):
        return self.at

    def position(self):
        return GitPosition(self.at, None, 7)

    def removed_paths(self, since):
        assert (since.head, since.log) == (FIRST, 7)
        return self.taken


@pytest.fixture
def head(monkeypatch):
    monkeypatch.setattr(head_moves, "removed_paths", lambda repo, since, _: repo.removed_paths(since))
    return History()


@pytest.fixture
def absences(tmp_path, head):
    return RemovalRules(head, tmp_path / "head", share=0.5)


def test_a_missing_note_is_believed_once_it_stays_missing(absences, monkeypatch):
    gone, wait = absences.decide(["a.md"], 100, at_once=False)
    assert gone == []
    assert 0 < wait["a.md"] <= removal_rules.FINAL
    monkeypatch.setattr(removal_rules, "FINAL", 0.0)
    assert absences.decide(["a.md"], 100, at_once=False) == (["a.md"], {})


def test_a_note_that_comes_back_starts_anew(absences):
    absences.decide(["a.md"], 100, at_once=False)
    absences.mark_present(["a.md"])
    time.sleep(0.01)
    _, wait = absences.decide(["a.md"], 100, at_once=False)
    assert wait["a.md"] > removal_rules.FINAL - 0.01


def test_at_a_start_a_small_absence_is_believed_at_once(absences):
    assert absences.decide(["a.md"], 100, at_once=True) == (["a.md"], {})


def test_a_mass_removal_is_held_also_at_a_start(absences):
    absences.remember_head()
    assert absences.decide(MANY, 40, at_once=True) == ([], {})
    assert len(absences.held_paths) == 30


@pytest.mark.parametrize("left", [b"", b"a", b"a" * 39, b"a" * 40 + b"\0", b"g" * 40])
def test_a_record_of_head_that_a_crash_cut_off_is_none(absences, tmp_path, left):
    (tmp_path / "head").write_bytes(left)
    assert absences._read_last_position() is None
    absences.remember_head()
    assert absences._read_last_position() == GitPosition(FIRST, None, 7)
    assert (tmp_path / "head").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_leaves_the_record_of_head_as_it_was(absences, head, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "no space left")

    absences.remember_head()
    head.at = "b" * 40
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        absences.remember_head()
    assert absences._read_last_position().head == FIRST


def test_a_mass_removal_that_git_made_is_believed(absences, head):
    absences.remember_head()
    head.at = "b" * 40
    assert absences.decide(MANY, 40, at_once=True) == ([], {})  # a commit that did not take them
    assert not absences.is_due()
    head.at, head.taken = "c" * 40, {*MANY, "other.md"}
    assert absences.is_due()
    assert absences.decide(MANY, 40, at_once=True)[0] == MANY


def test_a_note_that_only_has_another_name_is_not_held(absences):
    assert absences.decide(MANY, 40, at_once=True, elsewhere=lambda paths: set(paths))[0] == MANY


def test_what_is_held_is_looked_at_again(absences, monkeypatch):
    monkeypatch.setattr(removal_rules, "LOOKS", (0.01, 0.01))
    assert not absences.is_due()
    absences.decide(MANY, 40, at_once=True)
    time.sleep(0.02)
    assert absences.is_due()


def test_a_mass_removal_that_a_person_agrees_to_is_held_no_longer(absences):
    absences.decide(MANY, 40, at_once=True)
    absences.accept(MANY[:25])
    assert len(absences.held_paths) == 0


def test_a_mass_removal_that_lasts_is_believed(absences, monkeypatch):
    absences.decide(MANY, 40, at_once=False)
    monkeypatch.setattr(removal_rules, "CERTAIN", 0.0)
    monkeypatch.setattr(removal_rules, "FINAL", 0.0)
    assert absences.decide(MANY, 40, at_once=False)[0] == MANY
    assert len(absences.held_paths) == 0


def test_notes_that_come_back_end_the_holding(absences):
    absences.decide(MANY, 40, at_once=False)
    absences.mark_present(MANY[:25])
    absences.decide(MANY[25:], 40, at_once=False)
    assert len(absences.held_paths) == 0


def test_notes_that_a_listing_shows_to_be_in_the_index_no_more_are_missing_no_more(absences):
    """The index knows them under another name by now, so nobody marks them as present."""
    absences.decide(MANY, 40, at_once=False)
    absences.keep_only(MANY[:5])
    assert absences.decide(MANY[:5], 40, at_once=True) == (MANY[:5], {})
    assert absences.held_paths == ()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_checkout_forth_and_back_holds_nothing(tmp_path):
    world = World(tmp_path)
    try:
        for number in range(30):
            world.write(f"n{number}.md", "x\n")
        world.git("init", "-q", "-b", "main")
        world.git("add", "-A")
        world.git("commit", "-qm", "x")
        world.app.opened.sync.run()
        world.git("checkout", "-qb", "side")
        for number in range(100):
            world.write(f"side/n{number}.md", f"y{number}\n")
        world.git("add", "-A")
        world.git("commit", "-qm", "y")
        world.app.opened.sync.run(["side"])  # as the watcher has it looked at
        world.git("checkout", "-q", "main")
        world.app.opened.sync.run(["side"])
        assert len(world.app.opened.sync.held_paths) == 0
        world.git("checkout", "-q", "side")
        world.app.opened.sync.run(["side"])
        shutil.rmtree(world.vault / "side")
        world.app.opened.sync.run(["side"])
        assert len(world.app.opened.sync.held_paths) == 100  # it was not Git that took these
    finally:
        world.close()
