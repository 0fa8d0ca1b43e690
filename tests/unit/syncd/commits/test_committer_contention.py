"""Commits beside other programs that hold locks, commit themselves or leave no room, with the real Git."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from index.document_ids import sha256
from syncd.commits import commit_selection
from syncd.git.repository import GitPosition
from syncd.history.audit_log import acting_as
from syncd.history.audited_vault import describe_change
from tests.support.commit_crash import CODE, A, B
from tests.support.git_states import intercept
from tests.support.paths import ROOT

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("home"),
]


@pytest.mark.slow
def test_a_lock_that_somebody_holds_is_waited_for(rig):
    rig.agent(A, "one\n")
    lock = rig.vault / ".git/index.lock"
    lock.write_bytes(b"")
    threading.Timer(1.0, lock.unlink).start()
    assert rig.commits.flush() == 1
    rig.agent(A, "two\n")
    lock.write_bytes(b"")
    assert rig.commits.flush(0.2) == 0
    assert "holds the repository" in rig.commits.problem
    assert lock.exists()
    old = time.time() - 3600
    os.utime(lock, (old, old))
    assert rig.commits.flush(0.0) == 0
    assert "memex status shows how to fix this" in rig.commits.problem
    assert lock.exists()
    lock.unlink()
    assert rig.commits.flush() == 1


@pytest.mark.parametrize(("before", "after"), [(None, "new\n"), ("old\n", "new\n"), ("old\n", None)])
def test_a_write_that_is_under_way_during_a_commit_is_committed_later(rig, before, after):
    if before:
        rig.agent(A, before)
        rig.commits.flush()
    old, new = (text and text.encode() for text in (before, after))
    with acting_as(CODE):
        rig.audit.log_writes([describe_change(A, old, new, "Captures")])
    rig.agent(B, "b\n")
    assert rig.commits.flush() == 1
    assert rig.commits.facts()["waiting"] == 1
    rig.close()
    rig.open()
    rig.person(A, after)  # the logged write reaches the disk
    assert rig.commits.flush() == 1
    assert (rig.held(A), rig.commits.facts()["waiting"]) == (new, 0)


@pytest.mark.slow
def test_a_lock_of_twenty_seconds_is_waited_for(rig):
    rig.agent(A, "one\n")
    lock = rig.vault / ".git/index.lock"
    holding = "import sys, time, os; f = open(sys.argv[1], 'x'); print('held', flush=True); time.sleep(20); os.unlink(sys.argv[1])"
    with subprocess.Popen([sys.executable, "-c", holding, str(lock)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        began = time.monotonic()
        assert rig.commits.flush() == 1
        assert 10 < time.monotonic() - began < 40
    assert rig.held(A) == b"one\n"


@pytest.mark.slow
@pytest.mark.parametrize("later", ["two\n", None])
@pytest.mark.parametrize("killed", [False, True])
def test_a_commit_that_fails_leaves_nothing_staged(rig, tmp_path, monkeypatch, killed, later):
    rig.agent(A, "one\n")
    with monkeypatch.context() as failing:
        intercept(failing, tmp_path, "update-ref", "kill -9 $PPID; exit 1" if killed else "exit 128")
        if killed:
            command = [sys.executable, "-m", "tests.support.commit_crash", str(tmp_path), "0"]
            assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
        else:
            assert rig.commits.flush(0.0) == 0
    assert rig.status() == [f"{'A ' if killed else '??'} {A}"]
    rig.agent(A, later)
    assert rig.commits.flush() == bool(later)
    assert (rig.held(A), rig.status()) == (later and later.encode(), [])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["refs/heads/main.lock", "HEAD.lock"])
def test_a_lock_of_a_branch_is_waited_for_too(rig, name):
    rig.agent(A, "one\n")
    lock = rig.vault / ".git" / name
    lock.write_bytes(b"")
    assert rig.commits.flush(0.1) == 0
    assert "holds the repository" in rig.commits.problem
    os.utime(lock, (0, 0))
    assert rig.commits.flush(0.0) == 0
    assert "memex status shows how to fix this" in rig.commits.problem
    assert f"run `rm {shlex.quote(str(lock))}`" in rig.repo.advice(rig.repo.read_state())
    lock.unlink()
    assert (rig.commits.facts()["problem"], rig.commits.flush()) == ("", 1)
    assert rig.status() == []


@pytest.mark.slow
def test_another_program_that_commits_everything_at_once_loses_nothing(rig):
    stop = threading.Event()

    def person():
        while not stop.is_set():
            rig.git("add", "-A", check=False)
            rig.git("commit", "-qm", "vault backup", check=False)

    other = threading.Thread(target=person)
    other.start()
    try:
        for number in range(6):
            rig.agent(f"Captures/default/{number}.md", f"{number}\n")
            rig.person(f"{number}.md", "mine\n")
            rig.commits.flush()
    finally:
        stop.set()
        other.join()
    rig.commits.flush()
    for number in range(6):
        assert rig.held(f"Captures/default/{number}.md") == f"{number}\n".encode()
    ours = rig.git("log", "--author=claude-code", "--format=", "--name-only").split()
    assert all(path.startswith("Captures/") for path in ours)
    rig.git("fsck", "--strict")


def test_a_race_that_is_lost_is_run_again(rig, monkeypatch):
    rig.agent(A, "one\n")
    head = rig.repo.head
    raced = []

    class Racing(type(rig.repo)):
        def head(self):
            if len(raced) < 2 and sys._getframe(1).f_code.co_name == "move_head":
                raced.append(1)
                rig.git("commit", "-qm", "theirs", "--allow-empty")
            return head()

    rig.repo.__class__ = Racing
    assert rig.commits.flush() == 1
    assert rig.subjects() == ["begin", "theirs", "theirs", "claude-code: 1 note added"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_an_object_store_that_can_t_be_written_changes_nothing(rig):
    rig.agent(A, "one\n")
    objects = rig.vault / ".git/objects"
    folders = [objects, *(path for path in objects.iterdir() if path.is_dir())]
    head = rig.git("rev-parse", "HEAD")
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert rig.commits.flush() == 0
        assert "Permission denied" in rig.commits.problem
        assert rig.git("rev-parse", "HEAD") == head
        assert rig.status() == [f"?? {A}"]
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert rig.commits.flush() == 1


def test_the_end_of_the_daemon_waits_for_nobody(rig):
    rig.agent(A, "one\n")
    (rig.vault / ".git/index.lock").write_bytes(b"")
    began = time.monotonic()
    rig.commits.stop(5.0)
    assert time.monotonic() - began < 5.0
    assert rig.subjects() == ["begin"]
    (rig.vault / ".git/index.lock").unlink()
    rig.close()
    rig.open()
    assert rig.commits.flush() == 1


def test_a_disk_that_is_full_changes_nothing(rig):
    path, head = "Captures/default/Files/x.bin", rig.git("rev-parse", "HEAD")
    rig.agent(path, os.urandom(65_500))
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    for most in (65_536, 30_000):  # too little for Git's objects; for the private tree
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, was[1]))
        try:
            assert rig.commits.flush() == 0
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, was)
        assert "File too large" in rig.commits.problem
        assert rig.git("rev-parse", "HEAD") == head
        assert rig.status() == [f"?? {path}"]
    assert rig.commits.flush() == 1
    rig.git("fsck", "--strict")


def test_what_a_stash_takes_and_gives_back_is_committed_then(rig, monkeypatch):
    monkeypatch.setattr(commit_selection, "FRESH_MS", 0)
    rig.agent(A, "one\n")
    rig.person("mine.md", "a person's\n")
    rig.git("stash", "-q", "--include-untracked")
    rig.commits.tick()
    assert rig.commits.facts()["waiting"] == 0
    rig.close()
    rig.open()
    rig.commits.tick()
    rig.git("stash", "pop", "-q")
    rig.commits.tick()
    assert (rig.subjects()[1:], rig.status()) == (["claude-code: 1 note added"], ["?? mine.md"])
    assert rig.commits.edited == set()
    assert rig.commits.facts()["kept"] == []


def test_what_a_stash_gives_back_is_committed_although_git_fails_once(rig, tmp_path, monkeypatch):
    monkeypatch.setattr(commit_selection, "FRESH_MS", 0)
    rig.agent(A, "one\n")
    rig.git("stash", "-q", "--include-untracked")
    rig.commits.tick()
    rig.git("stash", "pop", "-q")
    with monkeypatch.context() as failing:
        intercept(failing, tmp_path, "diff-tree", "exit 128")
        rig.commits.tick()
    assert rig.commits.flush() == 1
    assert rig.held(A) == b"one\n"


def test_a_stash_that_git_has_lost_is_not_asked_for_again(rig):
    rig.agent(A, "one\n")
    assert rig.commits.flush() == 1
    rig.agent(A, "two\n")
    rig.git("stash", "-q")
    rig.commits.tick()
    rig.git("stash", "drop", "-q")
    rig.git("reflog", "expire", "--expire=now", "--all")
    rig.git("gc", "-q", "--prune=now")
    rig.commits.tick()
    assert rig.commits._stash == GitPosition()


def test_a_ledger_that_cannot_be_read_is_named_as_the_reason(rig):
    rig.agent(A, "one\n")
    rig.ledger.close()
    assert rig.commits.commit({A: sha256(b"one\n")}, "x") is None
    assert "ledger" in rig.commits.problem
