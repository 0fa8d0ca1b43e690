"""Series of commits whose trees and objects Memex makes, in many kinds of repositories, with the real Git."""

from __future__ import annotations

import os
import shutil
from pathlib import PurePath

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from index.document_ids import sha256
from index.errors import Unavailable
from syncd.commits.commit_builder import CommitBuilder, NewCommit
from syncd.commits.committer import DueCommit
from tests.support.commit_crash import A, B, git, made
from tests.support.example_counts import examples

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("home"),
]

FOLDERS = ("", "a/", "a/b/", 'ü \\ "q"/', " lead/", "A/")
# "a.md" sorts before the folder "a" and "a0" behind it; "x.md" is a file and, in other paths, a folder.
PATHS = (
    *(f"{folder}{name}" for folder in FOLDERS for name in ("x.md", '"y" z.md', "\\n.md")),
    "a.md",
    "a0",
    "x.md/x.md",
)


def add(rig, *commits, author="chat"):
    """Add commits of these changes (path → bytes, None = removed), and move HEAD; return the name of each."""
    with CommitBuilder(rig.repo, rig.state / "commit", rig.repo.head()) as builder:
        names = builder.add_commits(
            [NewCommit(changes, f"Commit {number}\n") for number, changes in enumerate(commits)], author
        )
        builder.move_head()
    return names


def write(rig, path, raw):
    """Change a file of the work tree, whatever is at its path."""
    file = rig.vault / path
    if raw is None:
        if file.is_file() or file.is_symlink():
            file.unlink()
        return
    for above in reversed(file.relative_to(rig.vault).parents[:-1]):
        (rig.vault / above).is_file() and (rig.vault / above).unlink()
    if file.is_dir():
        shutil.rmtree(file)
    elif file.is_symlink():
        file.unlink()
    rig.person(path, raw)


def can_exist(files, series):
    """Return whether the work tree can have the files after each commit: none is the folder of another."""
    for changes in series:
        files = (files | changes.keys()) - {path for path, raw in changes.items() if raw is None}
        if any(other.startswith(f"{path}/") for path in files for other in files):
            return False
    return True


@pytest.mark.slow
@examples(80)
@given(
    before=st.dictionaries(
        st.sampled_from(PATHS), st.tuples(st.binary(max_size=3), st.sampled_from(["", "x", "link"]))
    ),
    changes=st.dictionaries(st.sampled_from(PATHS), st.none() | st.binary(max_size=3), min_size=1),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
)
def test_each_commit_has_the_files_that_git_itself_would_commit(tmp_path_factory, before, changes, sizes):
    left = list(changes.items())
    series = [dict(left[sum(sizes[:n]) : sum(sizes[: n + 1])]) for n in range(len(sizes))]
    assume(can_exist(set(before), [{}, *series]))
    number = {path: number for number, commit in enumerate(series) for path in commit}
    assume(all(number.get(str(above), at) == at for path, at in number.items() for above in PurePath(path).parents))
    rig = made(tmp_path_factory.mktemp("series"))
    for path, (raw, kind) in before.items():
        rig.person(path, raw)
        if kind == "x":
            (rig.vault / path).chmod(0o755)
        elif kind == "link" and path not in changes:
            (rig.vault / path).unlink()
            (rig.vault / path).symlink_to("target")
    rig.git("add", "-A")
    rig.git("commit", "-qm", "before", "--allow-empty")
    parent = rig.git("rev-parse", "HEAD").strip()
    names = add(rig, *series)
    rig.git("config", "core.fileMode", "false")
    for changed, name in zip(series, names, strict=True):
        rig.git("reset", "-q", "--hard", parent)
        rig.git("clean", "-qfd")
        for path, raw in changed.items():
            write(rig, path, raw)
        rig.git("add", "-A")
        assert bool(name) == bool(rig.git("diff", "--cached", "--name-only"))
        if name:
            rig.git("commit", "-qm", "expected")
            assert rig.git("rev-parse", f"{name}^{{tree}}") == rig.git("rev-parse", "HEAD^{tree}")
            assert rig.git("rev-parse", f"{name}^").strip() == parent
            parent = name
    rig.git("fsck", "--strict")
    rig.close()


def test_the_commits_of_a_series_have_one_time_and_author_and_leave_nothing_else(rig):
    references, config = rig.git("for-each-ref").split()[2::3], (rig.vault / ".git/config").read_bytes()
    rig.git("config", "user.name", "J\udcf6rg")
    rig.git("config", "user.email", "j@example.org")
    names = add(rig, *({f"Notes/N{number}.md": b"x%d\n" % number} for number in range(20)))
    assert len(set(names)) == 20
    told = rig.git("log", "-20", "--format=%an <%ae>|%cn|%at|%ct").splitlines()
    assert len(set(told)) == 1
    assert told[0].startswith("chat <memex@localhost>|Jörg|")
    assert rig.git("log", "-1", "--format=%B").strip() == "Commit 19"
    assert rig.git("for-each-ref").split()[2::3] == references
    rig.git("config", "--remove-section", "user")
    assert (rig.vault / ".git/config").read_bytes() == config
    assert [file.name for file in (rig.vault / ".git/objects/pack").iterdir()] == []
    rig.git("fsck", "--strict")


def test_an_author_s_name_can_add_nothing_to_a_commit(rig):
    names = add(rig, {A: b"x\n"}, {B: b"y\n"}, author="a> 1 +0000\ncommitter b <c@d> 1 +0000\n\nfake")
    for name in names:
        lines = rig.git("cat-file", "commit", name).split("\n\n")[0].splitlines()
        assert [line.split()[0] for line in lines] == ["tree", "parent", "author", "committer"]
        assert lines[2].count("<") == lines[2].count(">") == 1
        assert lines[3].startswith("committer Memex <memex@localhost> ")


def test_names_that_differ_only_in_case_stay_apart(rig):
    rig.git("config", "core.ignoreCase", "true")
    rig.person("Notes/A.md", "mine\n")
    rig.git("add", "-A")
    rig.git("commit", "-qm", "mine")
    add(rig, {"Notes/a.md": b"x\n"}, {"notes/b.md": b"y\n"})
    assert rig.git("ls-tree", "-r", "--name-only", "HEAD").split() == [
        "Note.md",
        "Notes/A.md",
        "Notes/a.md",
        "notes/b.md",
    ]
    add(rig, {"Notes/a.md": None}, {"notes/b.md": None})
    assert rig.git("ls-tree", "-r", "--name-only", "HEAD").split() == ["Note.md", "Notes/A.md"]
    assert rig.held("Notes/A.md") == b"mine\n"


def test_what_a_person_has_replaced_stays_replaced(rig):
    before = rig.git("rev-parse", "HEAD").strip()
    rig.person("Old.md", "large\n")
    rig.git("add", "-A")
    rig.git("commit", "-qm", "large")
    rig.git("replace", "HEAD", before)
    rig.git("reset", "-q", "--hard")
    add(rig, {A: b"x\n"}, {B: b"y\n"})
    assert rig.git("ls-tree", "-r", "--name-only", "HEAD").split() == [A, B, "Note.md"]


def test_the_group_can_read_the_commits_of_a_shared_repository(rig, tmp_path):
    shared = tmp_path / "shared"
    shared.write_text("[core]\n\tsharedRepository = group\n")
    rig.git("config", "includeIf.gitdir:**/.git.path", str(shared))
    was = os.umask(0o077)
    try:
        add(rig, *({f"Notes/N{number}.md": b"x%d\n" % number} for number in range(20)))
    finally:
        os.umask(was)
    objects = [
        path for path in (rig.vault / ".git/objects").glob("??/*") if path.stat().st_mtime > shared.stat().st_mtime
    ]
    assert len(objects) > 40
    assert {oct(path.stat().st_mode & 0o070) for path in objects} == {"0o40"}


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


@pytest.mark.parametrize("options", [("--object-format=sha256",), ()])
def test_the_first_commits_of_a_repository_may_be_a_series(tmp_path, options):
    rig = made(tmp_path, *options, begin=False)
    names = add(rig, {A: b"x\n"}, {"y.md": b"y\n"}, {"z/z.md": b"z\n"})
    assert rig.git("rev-list", "--reverse", "HEAD").split() == names
    assert rig.git("ls-tree", "-r", "--name-only", "HEAD").split() == [A, "y.md", "z/z.md"]
    rig.git("fsck", "--strict")
    rig.close()


def test_a_tree_in_an_old_form_can_be_changed(rig):
    blob = rig.git("hash-object", "-w", "Note.md").strip()
    raw = b"100664 Note.md\0" + bytes.fromhex(blob) + b"100664 Old.md\0" + bytes.fromhex(blob)
    (rig.state / "tree").write_bytes(raw)
    tree = rig.git("hash-object", "-t", "tree", "-w", "--literally", str(rig.state / "tree")).strip()
    rig.git("reset", "-q", "--hard", rig.git("commit-tree", tree, "-p", "HEAD", "-m", "old").strip())
    add(rig, {"Old.md": None}, {"y.md": b"y\n"})
    assert rig.git("ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD").splitlines() == [
        "100644 Note.md",
        "100644 y.md",
    ]
    rig.git("fsck", "--strict")


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Put a program before Git that notes each command with its settings, and fails at the commands in the file `fail`."""
    folder, git_program = tmp_path / "bin", shutil.which("git")
    folder.mkdir()
    (folder / "git").write_text(
        "#!/bin/sh\n"
        f'echo "$* $(env | grep -c =committed)" >> {folder}/calls\n'
        f'if [ -f {folder}/fail ] && echo "$*" | grep -qf {folder}/fail; then echo no >&2; exit 1; fi\n'
        f'exec {git_program} "$@"\n'
    )
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_everything_that_a_series_writes_is_synced_before_head_names_it(rig, watched):
    add(rig, {A: b"x\n"}, {B: b"y\n"}, {"Notes/z.md": b"z\n"})
    calls = (watched / "calls").read_text("utf-8").splitlines()
    for command in (
        "update-index --add",
        "write-tree",
        "commit-tree",
        "hash-object -t tree",
        "hash-object -t commit",
        "update-ref",
    ):
        writing = [call for call in calls if f" {command} " in f"{call} "]
        assert writing, command
        assert all(call.endswith(" 1") for call in writing), writing


@pytest.mark.slow
@pytest.mark.parametrize("command", ["hash-object -t tree", "commit-tree", "hash-object -t commit"])
def test_a_series_that_git_can_t_write_changes_nothing(rig, watched, command):
    head = rig.git("rev-parse", "HEAD")
    (watched / "fail").write_text(f"{command}\n")
    with CommitBuilder(rig.repo, rig.state / "commit", rig.repo.head()) as builder:
        file = rig.state / "commit/large"
        file.write_bytes(b"y\n")
        commits = [NewCommit({A: b"x\n"}, "x"), NewCommit({B: file}, "y")]
        for _ in range(2):
            with pytest.raises(Unavailable, match=command.split()[0]):
                builder.add_commits(commits, "chat")
            builder.drop_changes()
        (watched / "fail").unlink()
        assert all(builder.add_commits(commits, "chat"))
        assert rig.git("rev-parse", "HEAD") == head
        builder.move_head()
    assert (rig.held(A), rig.held(B)) == (b"x\n", b"y\n")


def test_a_lock_that_a_killed_git_leaves_in_the_private_index_holds_nothing_up(rig):
    with CommitBuilder(rig.repo, rig.state / "commit", rig.repo.head()) as builder:
        (rig.state / "commit/index.lock").touch()
        assert all(builder.add_commits([NewCommit({A: b"x\n"}, "x"), NewCommit({B: b"y\n"}, "y")], "chat"))


def test_an_index_that_has_more_than_the_series_is_not_committed(rig):
    with CommitBuilder(rig.repo, rig.state / "commit", rig.repo.head()) as builder:
        builder.add_commits([NewCommit({"Other.md": b"other\n"}, "other")], "chat")
        _, index = builder.private_index()
    with (
        CommitBuilder(rig.repo, rig.state / "commit", rig.repo.head(), index) as builder,
        pytest.raises(Unavailable, match="differ from the private index"),
    ):
        builder.add_commits([NewCommit({A: b"x\n"}, "x"), NewCommit({B: b"y\n"}, "y")], "chat")
    assert rig.held("Other.md") is None


@pytest.mark.parametrize(
    "series",
    [({"x.md": b"x"}, {"x.md": None}), ({"x.md": None}, {"x.md/x.md": b"y"}), ({"a/b.md": None}, {"a": b"x"})],
)
def test_commits_whose_order_matters_are_no_series(rig, series):
    rig.person("a/b.md", "b\n")
    rig.git("add", "-A")
    rig.git("commit", "-qm", "before")
    head = rig.git("rev-parse", "HEAD")
    with pytest.raises(Unavailable, match="of a series"):
        add(rig, *series)
    assert rig.git("rev-parse", "HEAD") == head


@pytest.mark.slow
def test_a_filter_has_its_time_for_each_commit_of_a_series(rig, monkeypatch):
    rig.git("config", "filter.slow.clean", "sleep 0.4; cat")
    rig.person(".gitattributes", "Captures/** filter=slow\n")
    monkeypatch.setattr("syncd.commits.commit_builder.FILTER_S", 1.5)
    paths = [f"Captures/default/N{number}.md" for number in range(5)]
    for path in paths:
        rig.agent(path, f"{path}\n")
    names = rig.commits.commit_series([DueCommit({path: sha256(f"{path}\n".encode())}, path, ()) for path in paths])
    assert len(set(names) - {None, ""}) == 5
    assert rig.commits.problem == ""
    assert rig.subjects()[-5:] == paths
