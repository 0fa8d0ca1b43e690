"""Finishing a pull after a crash, beside the edits, links and folders of a person."""

from __future__ import annotations

import json
import shutil
import time

import pytest

from syncd.git.repository import Repository
from syncd.remote.fast_forward import INDEX, JOURNAL, ForwardStep, apply_step, finish_interrupted
from tests.support.git_states import intercept, run

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("person"),
]


class TwoCommits:
    """A vault at the first of two commits, of which a pull brings the second; None removes a file."""

    def __init__(self, folder, before, after):
        self.root, self.state = folder / "vault", folder / "state"
        self.root.mkdir(parents=True)
        self.state.mkdir()
        run(self.root, "init", "-q", "-b", "main")
        self.commits = []
        for files in (before, after):
            self.write(files)
            run(self.root, "add", "-A")
            run(self.root, "commit", "-qm", "x")
            self.commits.append(run(self.root, "rev-parse", "HEAD"))
        run(self.root, "reset", "-q", "--hard", self.commits[0])
        self.repo = Repository(self.root)

    def write(self, files):
        for path, text in files.items():
            if text is None:
                (self.root / path).unlink()
                continue
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)

    def pull(self):
        return apply_step(self.repo, self.state, ForwardStep.between(self.repo, "refs/heads/main", *self.commits))

    def finish(self):
        return finish_interrupted(self.repo, self.state)

    def crash(self):
        """Begin a pull, and end the daemon before Git changes a file."""
        old, new = self.commits
        record = {"old": old, "new": new, "branch": "refs/heads/main", "began": time.time_ns()}
        (self.state / JOURNAL).write_text(json.dumps(record))

    def head(self):
        return run(self.root, "rev-parse", "HEAD")

    def link_away(self, folder):
        """Move a folder out of the vault, and put a link in its place; return where it is now."""
        away = self.root.parent / "away"
        (self.root / folder).rename(away)
        (self.root / folder).symlink_to(away)
        return away


@pytest.fixture
def made(tmp_path):
    def make(before, after):
        return TwoCommits(tmp_path, before, after)

    return make


ARCHIVE = {"Archive/x.md": "mine\n", "keep.md": "one\n"}


def test_a_pull_that_finds_its_files_already_there_removes_no_file_through_a_link(made):
    tree = made(ARCHIVE, {"Archive/x.md": None, "keep.md": "two\n"})
    away = tree.link_away("Archive")
    tree.write({"keep.md": "two\n"})  # another tool has brought it
    tree.pull()
    assert ((away / "x.md").read_text(), tree.head()) == ("mine\n", tree.commits[1])
    assert (tree.root / "Archive").is_symlink()


def test_the_rest_of_a_pull_does_not_replace_a_link_to_a_folder(made):
    tree = made(ARCHIVE, {"Archive/x.md": "theirs\n", "keep.md": "two\n"})
    away = tree.link_away("Archive")
    tree.crash()
    tree.write({"keep.md": "two\n"})  # as if Git had written one file before it was killed
    assert tree.finish() == ["Archive/x.md"]
    assert ((tree.root / "Archive").is_symlink(), (away / "x.md").read_text()) == (True, "mine\n")


def test_the_rest_of_a_pull_does_not_replace_an_edited_file_by_a_folder(made):
    tree = made({"a": "one\n", "keep.md": "one\n"}, {"a": None, "a/b.md": "new\n", "keep.md": "two\n"})
    tree.crash()
    tree.write({"keep.md": "two\n", "a": "a person's\n"})
    assert tree.finish() == ["a", "a/b.md"]
    assert (tree.root / "a").read_text() == "a person's\n"


def test_a_folder_that_replaced_a_file_is_no_edit_of_the_file(made):
    tree = made({"a": "one\n", "keep.md": "one\n"}, {"a": None, "a/b.md": "new\n", "keep.md": "two\n"})
    tree.crash()
    tree.write({"a": None, "a/b.md": "new\n"})
    assert tree.finish() == []
    assert (tree.root / "keep.md").read_text() == "two\n"
    assert not (tree.state / JOURNAL).exists()


def test_what_is_saved_while_the_rest_of_a_pull_is_prepared_is_left(made, tmp_path, monkeypatch):
    before = {"edited.md": "one\n", "gone.md": "one\n", "keep.md": "one\n", "other.md": "one\n"}
    tree = made(before, {"edited.md": "two\n", "gone.md": None, "keep.md": "two\n", "other.md": "two\n"})
    tree.crash()
    tree.write({"keep.md": "two\n"})
    intercept(monkeypatch, tmp_path, "read-tree", 'cd "$2"; echo mine > edited.md; echo mine > gone.md')
    assert tree.finish() == ["edited.md", "gone.md"]
    texts = [(tree.root / name).read_text() for name in ("edited.md", "gone.md", "other.md")]
    assert (texts, tree.head()) == (["mine\n", "mine\n", "two\n"], tree.commits[1])


def test_a_lock_that_a_killed_git_left_in_the_private_index_stops_nothing(made):
    tree = made({"a.md": "one\n", "keep.md": "one\n"}, {"a.md": "two\n", "keep.md": "two\n"})
    tree.crash()
    tree.write({"keep.md": "two\n"})
    (tree.state / f"{INDEX}.lock").touch()
    assert tree.finish() == []
    assert (tree.root / "a.md").read_text() == "two\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ['"Hello" he said.md', '"', "back\\slash.md", "tab\t.md"])
def test_the_rest_of_a_pull_takes_any_name(made, name):
    tree = made({name: "one\n", "keep.md": "one\n"}, {name: "two\n", "keep.md": "two\n"})
    tree.crash()
    tree.write({"keep.md": "two\n"})
    assert tree.finish() == []
    assert (tree.root / name).read_text() == "two\n"
