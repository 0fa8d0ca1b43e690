"""Moving the work tree on, and a kill at every call by which Git does so: what is there after is whole, and nobody's edit is lost."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import sys

import pytest

from syncd.git.repository import Repository
from syncd.remote import fast_forward as module
from syncd.remote.fast_forward import JOURNAL, ForwardStep, apply_step, finish_interrupted
from tests.support.git_states import run

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("git", "strace")), reason="git and strace are needed"
)
CALLS = ("openat", "write", "unlink", "rename", "mkdir", "rmdir", "symlink", "close")
BEFORE = {
    "changed.md": b"one\n" * 9_000,
    "sub/gone.md": b"to be deleted\n",
    "sub/deeper/alone.md": b"moves away, with its folder\n",
    "crlf.md": b"with\r\nline ends\r\n",
    "becomes/folder.md": b"x\n",
    "stays.md": b"as it is\n",
}
AFTER = {
    "changed.md": b"two\n" * 9_000 + b"and more\n",
    "moved ü.md": b"moves away, with its folder\n",
    "crlf.md": b"with\r\nother\r\nline ends\r\n",
    "becomes": b"a file\n",
    "new/folder/of.md": b"new\n" * 3_000,
    "new/empty.md": b"",
    "stays.md": b"as it is\n",
}


class Crash(BaseException):
    """The daemon dies here too."""


class Tree:
    """A repository whose branch is at the first of two commits, and a `git` that can be killed."""

    def __init__(self, folder):
        self.root, self.state = folder / "vault", folder / "state"
        self.root.mkdir(parents=True)
        self.state.mkdir()
        run(self.root, "init", "-q", "-b", "main")
        self.write({".gitattributes": b"crlf.md text eol=crlf\n", **BEFORE})
        self.commit()
        self.old = run(self.root, "rev-parse", "HEAD")
        for path in BEFORE:
            (self.root / path).unlink()
        shutil.rmtree(self.root / "becomes")
        self.write(AFTER)
        (self.root / "link.md").symlink_to("stays.md")
        self.commit()
        self.new = run(self.root, "rev-parse", "HEAD")
        run(self.root, "reset", "-q", "--hard", self.old)
        self.repo = Repository(self.root)

    def write(self, files):
        for path, raw in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(raw)

    def commit(self):
        run(self.root, "add", "-A")
        run(self.root, "commit", "-qm", "x")

    def forward(self):
        apply_step(self.repo, self.state, ForwardStep.between(self.repo, "refs/heads/main", self.old, self.new))

    def files(self):
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file() and not path.is_symlink() and ".git" not in path.relative_to(self.root).parts
        }

    def whole(self, *, edited=None):
        """Everything is as the later commit has it, but for what a person has edited."""
        edited = edited or {}
        assert run(self.root, "rev-parse", "HEAD") == self.new
        assert self.files() == {".gitattributes": b"crlf.md text eol=crlf\n", **AFTER, **edited}
        assert str((self.root / "link.md").readlink()) == "stays.md"
        assert run(self.root, "diff", "--cached", "--name-only") == ""
        shown = run(self.root, "-c", "core.quotepath=off", "status", "--porcelain", "-z").split("\0")
        assert {line.lstrip()[2:].strip() for line in shown if line} == set(edited)
        assert list((self.root / ".git").rglob("*.lock")) == []
        assert not (self.state / JOURNAL).exists()
        assert not (self.root / "sub").exists()


@pytest.fixture
def killed(tmp_path, monkeypatch):
    """Let `git merge` die at the nth of these calls; 0 = not at all."""
    folder, real = tmp_path / "bin", shutil.which("git")
    folder.mkdir()

    def at(call, number):
        inject = f"strace -f -o /dev/null -e trace={call} -e inject={call}:signal=KILL:when={number}"
        (folder / "git").write_text(
            f'#!/bin/sh\ncase " $* " in *" --ff-only "*) exec {inject if number else ""} {real} "$@";; *) exec {real} "$@";; esac\n'
        )
        (folder / "git").chmod(0o755)

    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return at


def test_the_work_tree_is_moved_on_and_the_journal_is_gone(tmp_path):
    tree = Tree(tmp_path / "t")
    tree.forward()
    tree.whole()


def crash(*_):
    raise Crash


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.faults
def test_a_kill_at_any_call_leaves_what_the_next_start_makes_whole(tmp_path, monkeypatch, killed, call):
    every(tmp_path, monkeypatch, killed, call, itertools.count(1))


def every(tmp_path, monkeypatch, killed, call, numbers, *, edits=False):
    seed = random.randrange(1 << 30)
    sys.stderr.write(f"seed {seed}\n")
    dice, torn, real = random.Random(seed), 0, module.finish_interrupted
    for number in numbers:
        tree = Tree(tmp_path / f"{call}{number}")
        killed(call, number)
        monkeypatch.setattr(module, "finish_interrupted", crash)
        try:
            tree.forward()
        except Crash:
            pass
        else:
            tree.whole()
            return torn
        finally:
            monkeypatch.setattr(module, "finish_interrupted", real)
        torn += tree.files() != {".gitattributes": b"crlf.md text eol=crlf\n", **BEFORE}
        edited = {}
        if edits:
            path = dice.choice(
                [path for path in ("changed.md", "new/folder/of.md", "crlf.md") if (tree.root / path).exists()]
            )
            edited = {path: f"a person's, {number}\n".encode()}
            tree.write(edited)
        finish_interrupted(tree.repo, tree.state)
        if run(tree.root, "rev-parse", "HEAD") == tree.old:  # it had not begun: Git is asked again
            killed(call, 0)
            try:
                tree.forward()
            except module.UncommittedChanges as blocked:
                assert set(blocked.paths) <= set(edited), number
                assert {path: (tree.root / path).read_bytes() for path in edited} == edited
                continue
        tree.whole(edited=edited)
        shutil.rmtree(tree.root.parent)
    return torn


@pytest.mark.slow
@pytest.mark.parametrize("call", ["unlink", "rename"])
def test_a_kill_at_the_calls_that_change_most_is_made_whole(tmp_path, monkeypatch, killed, call):
    assert every(tmp_path, monkeypatch, killed, call, itertools.count(1, 2)) > 0


@pytest.mark.parametrize("call", ["openat", "write", "rename"])
@pytest.mark.faults
def test_what_a_person_edits_after_the_crash_is_left_to_them(tmp_path, monkeypatch, killed, call):
    every(tmp_path, monkeypatch, killed, call, itertools.count(1), edits=True)
