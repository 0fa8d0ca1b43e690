"""Commits in every kind of repository, work tree and index, and without one, with the real Git."""

from __future__ import annotations

import shutil

import pytest

from index.document_ids import sha256
from index.errors import Conflict
from syncd.commits.commit_builder import CommitBuilder
from syncd.commits.commit_selection import NESTED, ODD
from syncd.git.repository import GitFailed
from tests.support.commit_crash import A, B, git, made

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("home"),
]


def test_nothing_is_committed_in_the_midst_of_an_operation(rig):
    rig.agent(A, "one\n")
    rig.git("switch", "-qc", "other")
    rig.person("Note.md", "theirs\n")
    rig.git("commit", "-qm", "theirs", "Note.md")
    rig.git("switch", "-q", "main")
    rig.person("Note.md", "ours\n")
    rig.git("commit", "-qm", "ours", "Note.md")
    rig.git("merge", "-q", "other", check=False)
    assert rig.commits.flush() == 0
    assert "unresolved conflicts" in rig.commits.problem
    rig.person("Note.md", "both\n")
    rig.git("add", "Note.md")
    assert rig.commits.commit({A: sha256(b"one\n")}, "no") is None
    assert "not finished" in rig.commits.problem
    rig.git("commit", "-qm", "merged")
    assert rig.commits.flush() == 1
    assert rig.commits.problem == ""
    assert rig.subjects()[-1] == "claude-code: 1 note added"


def test_nothing_is_committed_without_a_branch(rig):
    rig.git("switch", "-q", "--detach")
    rig.agent(A, "one\n")
    assert rig.commits.flush() == 0
    assert "no branch is checked out" in rig.commits.problem
    with pytest.raises(Conflict, match="no branch"):
        rig.commits.preview()
    rig.git("switch", "-q", "main")
    assert rig.commits.flush() == 1


def test_the_first_commit_may_be_ours(tmp_path):
    rig = made(tmp_path, begin=False)
    rig.person("Mine.md", "mine\n")
    rig.git("add", "Mine.md")
    rig.agent(A, "one\n")
    assert rig.commits.flush() == 1
    assert rig.git("ls-tree", "-r", "--name-only", "HEAD").split() == [A]
    assert rig.status() == ["A  Mine.md"]
    rig.close()


def test_a_vault_without_a_history_is_no_problem(tmp_path):
    rig = made(tmp_path)
    shutil.rmtree(rig.vault / ".git")
    rig.agent(A, "one\n")
    rig.commits.tick()
    assert (rig.commits.flush(), rig.commits.problem) == (0, "")
    git(rig.vault, "init", "-q", "-b", "main")
    assert rig.commits.flush() == 1  # also what was written before there was one
    rig.close()


def test_a_repository_in_the_vault_is_left_alone(rig):
    git(rig.vault, "init", "-q", "Captures/nested")
    rig.agent("Captures/nested/A.md", "a\n")
    rig.person("Captures/sub/x", "x\n")
    rig.agent(B, "b\n")
    assert rig.commits.flush() == 1
    assert rig.commits.kept == {"Captures/nested/A.md": NESTED}


def test_a_git_that_can_not_tell_what_is_ignored_leaves_everything_uncommitted(rig, monkeypatch):
    def fail(_self, _paths):
        raise GitFailed("git check-ignore failed: killed")

    monkeypatch.setattr(CommitBuilder, "find_ignored", fail)
    git(rig.vault, "init", "-q", "Captures/nested")
    rig.agent("Captures/nested/A.md", "a\n")
    assert rig.commits.flush() == 0
    assert rig.commits.kept == {"Captures/nested/A.md": NESTED}
    rig.agent(A, "a\n")
    rig.agent(B, "b\n")
    assert rig.commits.flush() == 0
    assert rig.commits.kept == {"Captures/nested/A.md": NESTED, A: ODD, B: ODD}


def test_a_submodule_that_is_not_checked_out_is_left_alone(rig):
    head = rig.git("rev-parse", "HEAD").strip()
    rig.person(".gitmodules", '[submodule "sub"]\n\tpath = Captures/sub\n\turl = ../x\n')
    rig.git("update-index", "--add", "--cacheinfo", f"160000,{head},Captures/sub")
    rig.git("add", ".gitmodules")
    rig.git("commit", "-qm", "sub")
    rig.agent("Captures/sub/A.md", "a\n")
    rig.agent(B, "b\n")
    assert rig.commits.flush() == 1
    assert rig.commits.kept == {"Captures/sub/A.md": NESTED}
    assert rig.git("ls-tree", "HEAD", "Captures/sub").split()[0] == "160000"


def test_a_repository_with_longer_names_of_objects(tmp_path):
    rig = made(tmp_path, "--object-format=sha256")
    rig.agent(A, "one\n")
    assert rig.commits.flush() == 1
    rig.agent(A, None)
    assert rig.commits.flush() == 1
    rig.git("fsck", "--strict")
    rig.close()


def test_a_linked_work_tree(tmp_path):
    first = tmp_path / "main"
    git(tmp_path, "init", "-q", "-b", "main", "main")
    (first / "Note.md").write_text("one\n")
    git(first, "add", "-A")
    git(first, "commit", "-qm", "begin")
    git(first, "worktree", "add", "-q", str(tmp_path / "my $HOME vault"), "-b", "notes")
    rig = made(tmp_path)
    rig.agent(A, "one\n")
    assert rig.commits.flush() == 1
    assert rig.subjects() == ["begin", "claude-code: 1 note added"]
    assert git(first, "log", "--format=%s", "main").split() == ["begin"]
    assert rig.status() == []
    rig.close()


def test_a_sparse_checkout_with_a_sparse_index(rig):
    for folder in ("Away", "There"):
        for number in range(3):
            rig.person(f"{folder}/Deep/{number}.md", "x\n")
    rig.git("add", "-A")
    rig.git("commit", "-qm", "more")
    rig.git("sparse-checkout", "init", "--cone", "--sparse-index")
    rig.git("sparse-checkout", "set", "There", "Captures")
    tree = rig.git("ls-tree", "-r", "HEAD")
    rig.agent(A, "one\n")
    rig.agent("Away/Deep/New.md", "new\n")
    assert rig.commits.flush() == 1
    assert set(rig.git("ls-tree", "-r", "HEAD").splitlines()) - set(tree.splitlines()) == {
        line for line in rig.git("ls-tree", "-r", "HEAD").splitlines() if line.endswith(("A.md", "New.md"))
    }
    assert rig.git("diff", "--cached", "--name-status") == ""
    assert not (rig.vault / "Away/Deep/0.md").exists()


def test_other_kinds_of_index(rig):
    for option in ("core.splitIndex", "core.untrackedCache", "index.skipHash", "core.fsmonitor"):
        rig.git("config", option, "true")
    rig.git("update-index", "--refresh", "--split-index")
    rig.agent(A, "one\n")
    assert rig.commits.flush() == 1
    rig.git("config", "core.fsmonitor", "false")
    assert rig.status() == []


def test_a_vault_inside_another_work_tree_is_committed_by_nobody(tmp_path):
    rig = made(tmp_path)
    shutil.rmtree(rig.vault / ".git")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-qm", "begin", "--allow-empty")
    rig.agent(A, "one\n")
    assert (rig.commits.flush(), rig.commits.commit_pending(), rig.commits.problem) == (0, [], "")
    assert (rig.commits.commit({A: sha256(b"one\n")}, "no"), rig.commits.problem) == (None, "")
    assert "no Git history" in rig.commits.hindrance()
    assert git(tmp_path, "log", "--format=%s").split() == ["begin"]
    rig.close()
