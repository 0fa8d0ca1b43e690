"""The daemon follows Git: it looks at what the diff names, waits while Git works, and lists what Git can't name."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time

import pytest

from syncd.git import head_follower
from syncd.git.head_follower import HeadFollower
from syncd.git.hooks import BELLS, HOOKS, MOVED, install
from syncd.git.repository import Repository
from tests.support.git_states import run
from tests.support.world import World, until

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class Heard:
    """What a Follow asks for."""

    def __init__(self):
        self.hints, self.listings = [], 0

    def hint(self, paths):
        self.hints.append(list(paths))

    def list_all(self):
        self.listings += 1


@pytest.fixture
def vault(tmp_path):
    root = tmp_path / "vault"
    root.mkdir()
    run(root, "init", "-q", "-b", "main")
    for number in range(5):
        (root / f"n{number}.md").write_text(f"{number}\n")
    run(root, "add", "-A")
    run(root, "commit", "-qm", "one")
    return root


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def following(vault, heard, tmp_path):
    """A Follow that is looked through by hand, from where Git stands now."""
    repo = Repository(vault)
    one = HeadFollower(repo, tmp_path, heard.hint, heard.list_all)
    one._position = repo.position()
    return one


def test_only_the_notes_that_the_diff_names_are_hinted(vault, following, heard):
    (vault / "n1.md").write_text("changed\n")
    (vault / "Ü.MD").write_text("new\n")
    (vault / "picture.png").write_bytes(b"\x00")
    (vault / "n2.md").unlink()
    run(vault, "add", "-A")
    run(vault, "commit", "-qm", "two")
    following.check()
    assert (heard.hints, heard.listings) == ([["n1.md", "n2.md", "Ü.MD"]], 0)
    following.check()
    assert len(heard.hints) == 1


def test_files_that_are_wanted_are_hinted_too(vault, following, heard):
    following._wanted = lambda path: path.endswith(".pdf")
    (vault / "n1.md").write_text("changed\n")
    (vault / "a.pdf").write_bytes(b"%PDF-")
    run(vault, "add", "-A")
    run(vault, "commit", "-qm", "two")
    following.check()
    assert heard.hints == [["a.pdf"]]


def test_a_name_that_is_no_unicode_stands_for_its_folder(vault, following, heard):
    (vault / "sub").mkdir()
    (vault / "sub" / "\udcff.md").write_text("x")
    run(vault, "add", "-A")
    run(vault, "commit", "-qm", "two")
    following.check()
    assert heard.hints == [["sub"]]


def test_while_git_works_the_look_waits_and_then_it_is_made(vault, following, heard):
    (vault / "n1.md").write_text("changed\n")
    run(vault, "commit", "-qam", "two")
    lock = vault / ".git" / "index.lock"
    lock.write_bytes(b"")
    following.check()
    assert heard.hints == []
    lock.unlink()
    following.check()
    assert heard.hints == [["n1.md"]]


def test_it_does_not_wait_for_ever(vault, following, heard):
    (vault / "n1.md").write_text("changed\n")
    run(vault, "commit", "-qam", "two")
    (vault / ".git" / "index.lock").write_bytes(b"")
    following.check()
    following._busy_since -= head_follower.PATIENCE_S
    following.check()
    assert heard.hints == [["n1.md"]]


def test_what_git_can_t_name_is_listed(vault, following, heard):
    old = following._position.head
    run(vault, "commit", "-q", "--amend", "--no-edit", "--allow-empty", "-m", "other")
    run(vault, "reflog", "expire", "--expire=now", "--all")
    run(vault, "gc", "-q", "--prune=now")
    assert run(vault, "cat-file", "-t", old, check=False) == ""
    following.check()
    assert (heard.hints, heard.listings) == ([], 1)


def test_told_without_a_move_it_lists(vault, following, heard):
    following.check()
    assert heard.listings == 0
    following.notify_change()
    following.check()
    following.check()
    assert heard.listings == 1


def test_the_first_commit_of_a_vault_is_listed(tmp_path, heard):
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    repo = Repository(fresh)
    following = HeadFollower(repo, tmp_path, heard.hint, heard.list_all)
    following.check()
    assert heard.listings == 0
    run(fresh, "init", "-q")
    (fresh / "n.md").write_text("x")
    run(fresh, "add", "-A")
    run(fresh, "commit", "-qm", "one")
    following.check()
    assert (heard.hints, heard.listings) == ([], 1)


@pytest.mark.slow
def test_its_thread_hears_the_hook_and_needs_no_poll(vault, heard, tmp_path, monkeypatch):
    monkeypatch.setattr(head_follower, "POLL_S", 3600.0)
    repo = Repository(vault)
    following = HeadFollower(repo, tmp_path, heard.hint, heard.list_all)
    following.start()
    try:
        install(repo.hooks_folder(), HOOKS, tmp_path)
        until(lambda: following._state_read_at > 0)  # past the first check
        (vault / "n1.md").write_text("changed\n")
        run(vault, "commit", "-qam", "two")
        until(lambda: heard.hints == [["n1.md"]])
        run(vault, "reset", "-q", "--hard", "HEAD~1")  # no hook tells
        (tmp_path / BELLS / MOVED).touch()
        until(lambda: len(heard.hints) == 2)
    finally:
        following.stop()
    assert heard.listings == 0


@pytest.mark.slow
def test_its_thread_polls_head_for_what_no_hook_tells(vault, heard, tmp_path, monkeypatch):
    monkeypatch.setattr(head_follower, "POLL_S", 0.1)
    (vault / "n1.md").write_text("changed\n")
    run(vault, "commit", "-qam", "two")
    following = HeadFollower(Repository(vault), tmp_path, heard.hint, heard.list_all)
    following.start()
    try:
        until(lambda: following._state_read_at > 0)  # past the first check
        run(vault, "reset", "-q", "--hard", "HEAD~1")
        until(lambda: heard.hints == [["n1.md"]])
    finally:
        following.stop()


@pytest.fixture
def full_disk(tmp_path):
    """Let no file for Git's output be created, until the returned function is called."""
    (tmp_path / "file").touch()
    patch = pytest.MonkeyPatch()
    patch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    yield patch.undo
    patch.undo()


def test_a_full_disk_at_the_start_ends_no_thread(vault, heard, tmp_path, monkeypatch, full_disk):
    monkeypatch.setattr(head_follower, "BELL_S", 0.05)
    monkeypatch.setattr(head_follower, "POLL_S", 0.05)
    follower = HeadFollower(Repository(vault), tmp_path, heard.hint, heard.list_all)
    follower.start()
    try:
        time.sleep(0.3)
        full_disk()
        until(lambda: heard.listings)  # Git may have moved before
        (vault / "n1.md").write_text("changed\n")
        run(vault, "commit", "-qam", "two")
        until(lambda: heard.hints == [["n1.md"]])
    finally:
        follower.stop()


def test_a_reported_change_is_checked_again_after_a_full_disk(vault, heard, tmp_path, full_disk):
    follower = HeadFollower(Repository(vault), tmp_path, heard.hint, heard.list_all)
    follower.notify_change()
    with pytest.raises(NotADirectoryError):
        follower.check()
    full_disk()
    follower._position = follower._repo.position()
    follower.check()
    assert heard.listings == 1


def test_an_unwell_repository_is_told_of_and_a_healthy_one_is_not_asked_again(vault, heard, tmp_path, monkeypatch):
    monkeypatch.setattr(head_follower, "STATE_READS_S", (0.0, 3600.0))
    following = HeadFollower(Repository(vault), tmp_path, heard.hint, heard.list_all)
    following._check_state(time.monotonic())
    assert following.unwell == ""
    asked = []
    monkeypatch.setattr(following._repo, "read_state", lambda: asked.append(1))
    following._check_state(time.monotonic())
    assert asked == []
    monkeypatch.undo()
    monkeypatch.setattr(head_follower, "STATE_READS_S", (0.0, 3600.0))
    lock = vault / ".git" / "index.lock"
    lock.write_bytes(b"")
    os.utime(lock, (0, 0))
    following._check_state(time.monotonic())
    assert following.unwell.startswith("git: a stale lock")
    lock.unlink()
    following._check_state(time.monotonic())
    assert following.unwell == ""


# With the pipe behind it


def reads_of(world, monkeypatch):
    """The paths that the vault reads from now on."""
    seen, read = [], world.app.opened.vault.read

    def counting(path):
        seen.append(path)
        return read(path)

    monkeypatch.setattr(world.app.opened.vault, "read", counting)
    return seen


def grown(folder, count):
    world = World(folder)
    for number in range(count):
        world.write(f"Notes/{number % 50}/n{number}.md", f"# Note {number}\n\nzq{number}x lies by the water\n")
    world.git("init", "-q", "-b", "main")
    world.git("add", "-A")
    world.git("commit", "-qm", "Begin")
    world.run()
    return world


@pytest.mark.slow
def test_a_commit_is_read_in_proportion_to_its_diff_and_not_to_the_vault(tmp_path, monkeypatch):
    world = grown(tmp_path, 300)
    follower = world.app.head_follower
    follower._position = world.app.opened.repo.position()
    world.app.opened.sync._pending_paths.wait(lambda: True)  # the listing that every start wishes for
    seen = reads_of(world, monkeypatch)
    for number in (7, 8, 9):
        world.write(f"Notes/{number}/n{number}.md", f"changed yz{number}w\n")
    world.git("rm", "-q", "Notes/10/n10.md")
    world.git("commit", "-qam", "Three")
    follower.check()
    due = []

    def are_due():
        with world.app.opened.sync._pending_paths.processing_due() as paths:
            due.extend(paths)
        return len(due) >= 4

    until(are_due)
    world.app.opened.sync.run(due)
    assert sorted(seen) == [f"Notes/{number}/n{number}.md" for number in (7, 8, 9)]
    assert not world.app.opened.sync._pending_paths._listing
    assert world.found("yz8w", mode="text") == ["Notes/8/n8.md"]
    world.close()


@pytest.mark.slow
def test_the_time_of_a_commit_does_not_grow_with_the_vault(tmp_path, monkeypatch, capsys):
    """Printed: from the diff to the indexed change, for one note, in vaults of 300 and of 6,000; the best of nine, in turns."""
    worlds = {count: grown(tmp_path / str(count), count) for count in (300, 6_000)}
    took = {count: [] for count in worlds}
    for world in worlds.values():
        world.app.head_follower._position = world.app.opened.repo.position()
    for round_ in range(9):
        for count, world in worlds.items():
            world.write("Notes/7/n7.md", f"changed {round_}\n")
            world.git("commit", "-qam", "x")
            hinted = []
            monkeypatch.setattr(world.app.head_follower, "_hint", hinted.extend)
            begun = time.perf_counter()
            world.app.head_follower.check()
            world.app.opened.sync.run(hinted)
            took[count].append(time.perf_counter() - begun)
            assert hinted == ["Notes/7/n7.md"]
    for world in worlds.values():
        world.close()
    with capsys.disabled():
        told = (f"{count} notes: {min(seconds) * 1000:.0f} ms" for count, seconds in took.items())
        sys.stderr.write(", ".join(told) + "\n")
    assert min(took[6_000]) < 3 * min(took[300])
