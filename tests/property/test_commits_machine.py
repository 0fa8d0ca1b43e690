"""Agents, a person and the daemon work on one vault in any order, and commits of Memex hold nothing of the person."""

from __future__ import annotations

import hashlib
import random
import re
import shutil

import pytest

from tests.support.commit_crash import CHAT, CODE, DAEMON, Rig

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

PATHS = [f"Captures/default/{name}.md" for name in "abc"] + ["Note.md", "Notes/d.md"]


class Story:
    """One vault; each step is an act of one of them, and what must hold is looked at after each flush."""

    def __init__(self, rig, seed):
        self.rig, self.dice, self.count = rig, random.Random(seed), 0

    def step(self):
        act = self.dice.choice(
            [self.writes, self.writes, self.edits, self.stages, self.commits, self.flushes, self.flushes]
        )
        act()

    def text(self, path):
        file = self.rig.vault / path
        return file.read_text() if file.exists() else None

    def writes(self):
        path, now = self.dice.choice(PATHS), None
        now = self.text(path)
        self.count += 1
        line = f"agent {self.count}\n"
        to = self.dice.choice([line, (now or "") + line, line + (now or ""), None])
        if to is not None or now is not None:
            self.rig.agent(path, to, self.dice.choice([CODE, CHAT, DAEMON]))

    def edits(self):
        path = self.dice.choice(PATHS)
        now = self.text(path)
        self.count += 1
        line = f"PERSON-{self.count}\n"
        to = self.dice.choice([line, (now or "") + line, None])
        if to is not None or now is not None:
            self.rig.person(path, to)

    def stages(self):
        path = self.dice.choice(PATHS)
        words = self.dice.choice(
            [
                ["add", "--", path],
                ["add", "-N", "--", path],
                ["reset", "-q", "--", path],
                ["rm", "-q", "--cached", "--", path],
            ]
        )
        self.rig.git(*words, check=False)

    def commits(self):
        self.rig.git("commit", "-qm", "person", *self.dice.choice([[], ["-a"]]), check=False)

    def index(self):
        told = self.rig.git("ls-files", "--stage", "-z").split("\0")
        return {line.partition("\t")[2]: line.partition("\t")[0] for line in told if line}

    def oid(self, index, path):
        return index[path].split()[1] if path in index else None

    def tree(self, commit):
        lines = (line.split("\t") for line in self.rig.git("ls-tree", "-r", commit).splitlines())
        return {path: head.split()[2] for head, path in lines}

    def flushes(self):
        rig = self.rig
        head, index = rig.git("rev-parse", "HEAD").strip(), self.index()
        files = {path: self.text(path) for path in PATHS}
        rig.commits.flush()
        assert {path: self.text(path) for path in PATHS} == files
        touched = set()
        for commit in rig.git("rev-list", "--reverse", f"{head}..HEAD").split():
            assert rig.git("log", "-1", "--format=%ae", commit).strip() == "memex@localhost"
            touched |= self.held(commit)
        now, tree, was = self.index(), self.tree("HEAD"), self.tree(head)
        for path in {*index, *now}:
            if path not in touched:
                assert now.get(path) == index.get(path), path
            else:  # it is what was committed: nothing of it is staged any more
                assert self.oid(now, path) == tree.get(path)
                assert self.oid(index, path) in (was.get(path), tree.get(path)), path  # else they had staged another

    def held(self, commit):
        """The paths of a commit of ours, which holds only what the log says was written, and no word of the person."""
        rig, paths = self.rig, set()
        for path in rig.git("diff-tree", "-r", "--name-only", "--no-commit-id", commit).splitlines():
            paths.add(path)
            new, old = (rig.git("cat-file", "-p", f"{at}:{path}", check=False) for at in (commit, f"{commit}^"))
            there = path in rig.git("ls-tree", "-r", "--name-only", commit).splitlines()
            digest = hashlib.sha256(new.encode()).hexdigest() if there else ""
            after = {
                row[0]
                for row in rig.ledger.query("SELECT after FROM audit WHERE path = ? AND surface != 'file'", (path,))
            }
            assert digest in after, (commit, path)
            words = [set(re.findall(r"PERSON-\d+", text)) for text in (new, old)]
            assert words[0] <= words[1], (commit, path)
        return paths


def lived(tmp_path, seed, steps):
    rig = Rig(tmp_path)
    story = Story(rig, seed)
    try:
        for _ in range(steps):
            story.step()
        rig.git("add", "-A")
        rig.git("commit", "-qm", "person", "--allow-empty")
        assert rig.commits.flush() == 0
        rig.agent("Captures/default/last.md", "last\n")
        assert rig.commits.flush() == 1
        assert rig.status() == []
        rig.git("fsck", "--strict")
        return rig.git("log", "--format=%ae").split().count("memex@localhost")
    finally:
        rig.close()


def test_whatever_happens_our_commits_hold_what_we_wrote(tmp_path):
    assert lived(tmp_path, 1, 60) > 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
def test_the_same_in_many_stories(tmp_path, seed):
    assert lived(tmp_path, seed, 120) > 1
