"""What Git brings into a vault is no edit by hand, and what a person commits is one."""

import os
import shutil
import subprocess
import time

import pytest

from syncd.notes.timestamps import iso
from syncd.sync import hand_edits
from tests.support.hand_edits import AT, NOTE, PATH, front, settled, stamps, written
from tests.support.world import World


@pytest.fixture
def tracked(tmp_path):
    opened = World(tmp_path)
    written(opened, NOTE + "old")
    opened.git("init", "-q", "-b", "main")
    opened.git("add", "-A")
    opened.git("commit", "-q", "-m", "one")
    opened.run()
    yield opened
    opened.close()


def pulled(world):
    """Another device's commit, and the pull that brings it."""
    other = world.state.parent / "other"
    subprocess.run(["git", "clone", "-q", world.vault, other], check=True)
    (other / PATH).write_text(NOTE + "from the phone")
    who = ("-c", "user.name=P", "-c", "user.email=p@example.org")
    subprocess.run(["git", "-C", other, *who, "commit", "-qam", "phone"], check=True)
    world.git("pull", "-q", str(other), "main")
    shutil.rmtree(other)


def changed(world, text):
    file = written(world, text, at=None)
    world.git("commit", "-qam", "changed")
    return file


GIT = {
    "a pull": pulled,
    "a checkout of another commit": lambda world: world.git("checkout", "-q", "HEAD~1"),
    "a hard reset": lambda world: world.git("reset", "-q", "--hard", "HEAD~1"),
    "a revert": lambda world: world.git("revert", "--no-edit", "HEAD"),
    "a stash": lambda world: (written(world, NOTE + "unsaved", at=None), world.git("stash", "-q")),
    "a file from an older commit": lambda world: world.git("checkout", "-q", "HEAD~1", "--", PATH),
}


@pytest.mark.parametrize(
    ("how", "running"), [*((how, True) for how in GIT), *((how, False) for how in ("a pull", "a hard reset"))]
)
def test_what_git_brings_is_no_edit(tracked, how, running):
    changed(tracked, NOTE + "two")
    tracked.run()
    file = tracked.vault / PATH
    tracked.git("commit", "-qam", "stamped")
    time.sleep(max(0, 1.05 - time.time() % 1))  # Git tells the time of its moves in whole seconds
    before = tracked.git("rev-parse", "HEAD:" + PATH)
    if not running:
        tracked.app.close()
    GIT[how](tracked)
    brought = file.read_bytes()
    if not running:
        tracked.app = tracked._open()
    tracked.run()
    assert file.read_bytes() == brought
    assert "updated_at" in tracked.git("cat-file", "blob", before.strip())
    settled(tracked)


def test_an_edit_that_was_committed_at_once_is_an_edit(tracked):
    """As a plug-in does that commits every few seconds."""
    file = changed(tracked, NOTE + "by hand")
    tracked.run()
    assert stamps(file)[0] == 2
    settled(tracked)


def test_an_edit_on_top_of_what_git_brought_is_an_edit(tracked):
    pulled(tracked)
    file = written(tracked, (tracked.vault / PATH).read_text() + ", and by hand", at=AT)
    tracked.run()
    assert stamps(file) == (2, iso(AT))
    settled(tracked)


def test_a_note_in_git_keeps_the_creation_time_that_it_states_in_another_property(tracked):
    diary = "Captures/default/Diary.md"
    file = written(tracked, "---\ncreated: 2018-03-04\n---\nThe heron came.\n", diary)
    tracked.git("add", diary)
    tracked.git("commit", "-qm", "diary")
    tracked.run()
    assert front(file)["created_at"] == "2018-03-04T00:00:00.000Z"


def test_while_git_is_at_work_nothing_is_stamped(tracked):
    file = written(tracked, NOTE + "new", at=None)
    lock = tracked.vault / ".git/index.lock"
    lock.touch()
    tracked.run()
    assert stamps(file) == (None, None)
    assert PATH in tracked.app.opened.sync.pending_paths
    lock.unlink()
    tracked.run()
    assert stamps(file)[0] == 2


@pytest.mark.parametrize(("left", "version"), [("index.lock", 2), ("MERGE_HEAD", None)])
def test_a_lock_that_git_left_behind_is_not_waited_for_without_a_limit_but_a_merge_is(tracked, left, version):
    file = written(tracked, NOTE + "new", at=None)
    saved = time.time() - hand_edits.LOCKED_S - 1
    os.utime(file, (saved, saved))
    (tracked.vault / ".git" / left).write_text(tracked.git("rev-parse", "HEAD"))
    tracked.run()
    assert stamps(file)[0] == version


def test_a_repository_that_keeps_no_log_is_believed(tracked):
    tracked.git("config", "core.logAllRefUpdates", "false")
    shutil.rmtree(tracked.vault / ".git/logs")
    pulled(tracked)
    brought = (tracked.vault / PATH).read_bytes()
    settled(tracked)
    assert (tracked.vault / PATH).read_bytes() == brought


def test_git_sees_nothing_in_the_vault_proper(tracked):
    for n in range(5):
        written(tracked, f"note {n}", f"Own {n}.md", at=None)
    tracked.git("add", "-A")
    tracked.git("commit", "-qm", "own")
    tracked.run()
    for n in range(5):
        written(tracked, f"note {n}, changed", f"Own {n}.md", at=None)
    tracked.git("commit", "-qam", "own, changed")
    tracked.run()
    assert tracked.git("status", "--porcelain") == ""
