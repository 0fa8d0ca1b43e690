"""Kill the daemon wherever it may be in a commit: HEAD is before or after, and nothing of the person's is lost or taken."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.support.commit_crash import CHAT, Rig, git
from tests.support.paths import ROOT

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]

OURS = [f"Captures/default/{name}.md" for name in "ab"] + ["Captures/default/Files/x.bin"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    rig = Rig(tmp_path / "made")
    rig.person("Staged.md", "one\n")
    rig.git("add", "-A")
    rig.git("commit", "-qm", "more")
    rig.agent(OURS[0], "a\n")
    rig.agent(OURS[1], "b\n", CHAT)
    rig.agent(OURS[2], b"\0x")
    rig.person("Note.md", "mine, edited\n")
    rig.person("Staged.md", "two\n")
    rig.git("add", "Staged.md")
    rig.person("Staged.md", "three\n")
    rig.person("Untracked.md", "mine\n")
    rig.close()
    return tmp_path


def copied(folder):
    shutil.rmtree(folder / "one", ignore_errors=True)
    shutil.copytree(folder / "made", folder / "one", symlinks=True)
    return folder / "one"


def begun(one, at=0):
    words = [sys.executable, "-m", "tests.support.commit_crash", str(one), str(at)]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout.readline() == b"begun\n"
    return process


def sound(one):
    """What must hold after a kill; how many commits were made."""
    vault = one / "my $HOME vault"
    git(vault, "fsck", "--strict")
    told = git(vault, "log", "--format=%ae %H").splitlines()
    ours = [line.split()[1] for line in told if line.startswith("memex@")]
    for commit in ours:
        assert set(git(vault, "diff-tree", "-r", "--name-only", "--no-commit-id", commit).split()) <= set(OURS)
    assert git(vault, "show", "HEAD:Note.md") == "mine\n"
    assert git(vault, "show", "HEAD:Staged.md") == "one\n"
    assert git(vault, "show", ":Staged.md") == "two\n"
    assert (vault / "Note.md").read_text() == "mine, edited\n"
    staged = set(git(vault, "diff", "--cached", "--name-only").split())
    assert staged <= {"Staged.md", *OURS}
    assert not {*git(vault, "diff", "--cached", "--name-only", "--diff-filter=D").split()}
    return len(ours)


def mended(one):
    """What the next daemon makes of it: all is committed, and the person's index is as it was."""
    for lock in (one / "my $HOME vault/.git").rglob("*.lock"):
        lock.unlink()  # as status advises: a process that was killed with its Git left it
    rig = Rig(one)
    rig.commits.flush()
    rig.close()
    assert sound(one) == 1
    assert (
        git(rig.vault, "log", "-1", "--author=memex@", "--format=%(trailers)").count("Memex-Agent:") == 2
    )  # both agents
    assert git(rig.vault, "diff", "--cached", "--name-only").split() == ["Staged.md"]
    assert not (one / "state/commit").exists()


def test_a_commit_that_is_killed_at_any_call_is_made_or_not(folder):
    at, seen = 0, set()
    while True:
        at += 1
        one = copied(folder)
        process = begun(one, at)
        code = process.wait(120)
        process.stdout.close()
        seen.add(sound(one))
        mended(one)
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert at > 40
    assert seen == {0, 1}


def test_a_commit_that_is_killed_with_its_git_at_any_moment_is_made_or_not(folder):
    dice, seen = random.Random(5), set()
    began = time.monotonic()
    process = begun(copied(folder))
    process.communicate(timeout=120)
    took = time.monotonic() - began
    for _ in range(40):
        one = copied(folder)
        process = begun(one)
        time.sleep(dice.uniform(0, took))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        seen.add(sound(one))
        mended(one)
    assert len(seen) > 1
