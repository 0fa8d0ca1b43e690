"""Commits that one `git fast-import` writes, in many kinds of repositories, with the real Git."""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.errors import Unavailable
from syncd.commits.commit_builder import CommitBuilder, NewCommit
from tests.support.commit_crash import A, git, made

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("home"),
]

FOLDERS = ("", "a/", "a/b/", 'ü \\ "q"/', " lead/")
PATHS = tuple(f"{folder}{name}" for folder in FOLDERS for name in ("x.md", '"y" z.md', "\\n.md"))


def add(rig, *commits, author="chat"):
    """Add commits of these changes (path → bytes, None = removed), and move HEAD; return the name of each."""
    folder = rig.state / "commit"
    with CommitBuilder(rig.repo, folder, rig.repo.head()) as builder:
        names = builder.add_commits(
            [NewCommit(changes, f"Commit {number}\n", author) for number, changes in enumerate(commits)]
        )
        builder.move_head()
    return names


def tree(rig, commit):
    """Return mode, blob and path of all files of a commit."""
    return rig.git("ls-tree", "-r", "-z", commit)


@settings(max_examples=25, deadline=None)
@given(
    before=st.dictionaries(st.sampled_from(PATHS), st.binary(max_size=3)),
    changes=st.dictionaries(st.sampled_from(PATHS), st.none() | st.binary(max_size=3), min_size=1),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
)
def test_each_commit_has_the_files_that_git_itself_would_commit(tmp_path_factory, before, changes, sizes):
    rig = made(tmp_path_factory.mktemp("import"))
    for path, raw in before.items():
        rig.person(path, raw)
    rig.git("add", "-A")
    rig.git("commit", "-qm", "before", "--allow-empty")
    parent, left = rig.git("rev-parse", "HEAD").strip(), list(changes.items())
    series = [dict(left[sum(sizes[:n]) : sum(sizes[: n + 1])]) for n in range(len(sizes))]
    names = add(rig, *series)
    for changed, name in zip(series, names, strict=True):
        rig.git("reset", "-q", "--hard", parent)
        for path, raw in changed.items():
            if raw is not None or (rig.vault / path).exists():
                rig.person(path, raw)
        rig.git("add", "-A")
        assert bool(name) == bool(rig.git("diff", "--cached", "--name-only"))
        if name:
            rig.git("commit", "-qm", "expected")
            assert tree(rig, name) == tree(rig, "HEAD")
            assert rig.git("rev-parse", f"{name}^").strip() == parent
            parent = name
    rig.git("fsck", "--strict")
    rig.close()


def test_a_series_is_one_pack_and_leaves_nothing_else(rig):
    references = rig.git("for-each-ref").split()[2::3]
    names = add(rig, *({f"Notes/N{number}.md": b"x%d\n" % number} for number in range(20)))
    assert len(set(names)) == 20
    packs = rig.vault / ".git/objects/pack"
    assert sorted(file.suffix for file in packs.iterdir()) == [".idx", ".pack"]
    assert rig.git("for-each-ref").split()[2::3] == references
    assert rig.git("log", "--format=%an <%ae>|%cn|%s", "-1") == "chat <memex@localhost>|Memex|Commit 19\n"
    assert not list(rig.vault.glob(".git/fast_import_crash*"))
    add(rig, {A: b"alone\n"})
    assert len(list(packs.iterdir())) == 2
    rig.git("fsck", "--strict")


def test_an_author_s_name_can_add_nothing_to_a_commit(rig):
    [name] = add(rig, {A: b"x\n"}, author="a> 1 +0000\ncommitter b <c@d> 1 +0000\n\nfake")
    lines = rig.git("cat-file", "commit", name).split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in lines] == ["tree", "parent", "author", "committer"]
    assert lines[2].count("<") == lines[2].count(">") == 1
    assert lines[3].startswith("committer Memex <memex@localhost> ")


def test_the_group_can_read_the_commits_of_a_shared_repository(rig):
    rig.git("config", "core.sharedRepository", "group")
    was = os.umask(0o077)
    try:
        add(rig, *({f"Notes/N{number}.md": b"x%d\n" % number} for number in range(20)))
        add(rig, {A: b"alone\n"})
    finally:
        os.umask(was)
    files = [file for file in (rig.vault / ".git/objects").rglob("*") if file.is_file()]
    new = [file for file in files if file.stat().st_mode & 0o777 != 0o444]
    assert len(files) > 5
    assert [oct(file.stat().st_mode) for file in new if not file.stat().st_mode & 0o040] == []


@pytest.mark.parametrize("options", [("--depth=1",), ("--shared",), ("--filter=blob:none",), ("--filter=tree:0",)])
def test_a_clone_that_lacks_objects(tmp_path, options):
    rig = made(tmp_path)
    rig.person("Notes/deep/x.md", "x\n")
    rig.git("add", "-A")
    rig.git("commit", "-qm", "second")
    rig.git("config", "uploadpack.allowFilter", "true")
    rig.close()
    origin = tmp_path / "origin"
    rig.vault.rename(origin)
    source = str(origin) if "--shared" in options else f"file://{origin}"
    git(tmp_path, "clone", "-q", *options, source, str(rig.vault))
    (rig.vault / "Captures/default").mkdir(parents=True)
    rig = made(tmp_path)
    names = add(rig, {A: b"x\n"}, {"Notes/deep/x.md": None, "Notes/y.md": b"y\n"})
    assert rig.git("ls-tree", "-r", "--name-only", names[1]).split() == [A, "Note.md", "Notes/y.md"]
    rig.git("fsck")
    rig.close()


@pytest.mark.parametrize("setting", ["core.worktree", "extensions.worktreeConfig", "include.path"])
def test_settings_of_the_repository_that_lead_elsewhere(rig, setting):
    rig.git("config", setting, {"core.worktree": str(rig.vault), "include.path": "missing"}.get(setting, "true"))
    rig.git("config", "core.repositoryFormatVersion", "1")
    assert all(add(rig, {A: b"x\n"}, {"Notes/y.md": b"y\n"}))
    assert rig.held("Notes/y.md") == b"y\n"


def test_a_series_that_git_can_t_write_changes_nothing(rig):
    packs, head = rig.vault / ".git/objects/pack", rig.git("rev-parse", "HEAD")
    packs.rmdir()
    packs.write_text("not a folder")
    with pytest.raises(Unavailable, match="git fast-import failed"):
        add(rig, *({f"Notes/N{number}.md": b"x%d\n" % number} for number in range(20)))
    packs.unlink()
    assert rig.git("rev-parse", "HEAD") == head
    assert rig.status() == []
