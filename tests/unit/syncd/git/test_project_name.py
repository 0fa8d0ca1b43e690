"""Unit tests of `project_name`: the remote names a project, otherwise the folder at the top of its work tree."""

from __future__ import annotations

import subprocess

import pytest

from syncd.git.project_name import find_project_name


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "Some Folder"
    (folder / "src/deep").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://ada:secret@example.org/ada/heron.git", "heron"),
        ("git@example.org:ada/heron.git", "heron"),
        ("ssh://example.org:22/ada/heron/", "heron"),
        ("/srv/git/heron.git", "heron"),
        ("../heron", "heron"),
        ("C:\\git\\heron.git", "heron"),
    ],
)
def test_the_remote_names_the_project(repository, url, name):
    subprocess.run(["git", "-C", str(repository), "remote", "add", "other", "https://example.org/other"], check=True)
    subprocess.run(["git", "-C", str(repository), "remote", "add", "origin", url], check=True)
    assert find_project_name(repository / "src/deep") == name


def test_another_remote_counts_if_there_is_no_origin(repository):
    subprocess.run(["git", "-C", str(repository), "remote", "add", "up", "https://example.org/other"], check=True)
    assert find_project_name(repository) == "other"


def test_without_a_remote_the_folder_names_the_project(repository, tmp_path):
    assert find_project_name(repository / "src") == "Some Folder"
    assert find_project_name(tmp_path / "plain") == "plain"


def test_a_linked_work_tree_has_the_remote_of_its_repository(repository, tmp_path):
    git = ["git", "-C", str(repository), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "begin"], check=True)
    subprocess.run([*git, "remote", "add", "origin", "https://example.org/heron.git"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "linked")], check=True, capture_output=True)
    assert find_project_name(tmp_path / "linked") == "heron"


def test_an_unreadable_configuration_is_no_remote(repository):
    (repository / ".git/config").write_bytes(b'\xff\n[remote "origin"\nurl\n[core]\nurl = x\n')
    assert find_project_name(repository) == "Some Folder"
