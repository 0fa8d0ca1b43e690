"""Which bytes come from commits to which HEAD lately moved, asked of real Git for many paths at once."""

from __future__ import annotations

import subprocess
import time

import pytest

from syncd.git import head_moves
from syncd.git.head_moves import RecentCommits
from syncd.git.repository import Repository

PATHS = ("a.md", "folder/b c.md", "é.md", "none.md")


@pytest.fixture
def vault(tmp_path):
    """A vault in which Git has just put the files of another branch; they are older than this commit."""
    vault = tmp_path / "vault"
    (vault / "folder").mkdir(parents=True)
    git(vault, "init", "-q", "-b", "main")
    git(vault, "commit", "-q", "--allow-empty", "-m", "begin")
    git(vault, "checkout", "-q", "-b", "other")
    for path in PATHS[:3]:
        (vault / path).write_text(f"of {path}\n")
    git(vault, "add", "-A")
    git(vault, "commit", "-qm", "other")
    git(vault, "checkout", "-q", "main")
    git(vault, "merge", "-q", "--ff-only", "other")
    return vault


@pytest.fixture
def repo(vault):
    return Repository(vault)


def git(vault, *words):
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(vault), *who, *words], check=True, capture_output=True)


@pytest.mark.parametrize("at_once", [1, 2, 1_000])
def test_each_path_has_its_own_bytes_however_many_are_asked_at_once(repo, monkeypatch, at_once):
    monkeypatch.setattr(head_moves, "AT_ONCE", at_once)
    recent = RecentCommits(repo, dict.fromkeys(PATHS, 0))
    for path in PATHS:
        assert [recent.have(path, f"of {other}\n".encode()) for other in PATHS] == [
            other == path != "none.md" for other in PATHS
        ]
        assert recent.are_current(path, 0)


def test_a_commit_made_here_counts_only_for_files_that_are_younger(vault, repo):
    (vault / "mine.md").write_text("mine\n")
    git(vault, "add", "-A")
    git(vault, "commit", "-qm", "mine")
    now = int(time.time())
    recent = RecentCommits(repo, {"mine.md": now - 60, "a.md": now - 60})
    assert not recent.have("mine.md", b"mine\n")
    assert recent.have("a.md", b"of a.md\n")
    assert RecentCommits(repo, {"mine.md": now + 60}).have("mine.md", b"mine\n")


def test_answers_about_another_file_or_head_are_not_current(vault, repo):
    recent = RecentCommits(repo, {"a.md": 5})
    assert recent.are_current("a.md", 5)
    assert not recent.are_current("a.md", 6)
    assert not recent.are_current("b.md", 5)
    git(vault, "commit", "-q", "--allow-empty", "-m", "next")
    assert not recent.are_current("a.md", 5)


def test_a_question_that_git_does_not_answer_is_asked_again(vault, repo):
    assert repo.head()
    (vault / ".git/config").write_text("[broken\n")
    recent = RecentCommits(repo, {"a.md": 0})
    assert not recent.have("a.md", b"of a.md\n")
    assert not recent.are_current("a.md", 0)


def test_a_vault_without_git_has_no_commits(tmp_path):
    repo = Repository(tmp_path)
    recent = RecentCommits(repo, {"a.md": 0})
    assert not recent.have("a.md", b"")
    assert recent.are_current("a.md", 0)
