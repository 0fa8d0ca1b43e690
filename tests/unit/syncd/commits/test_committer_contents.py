"""Commits of files with modes, line ends, filters and names that Git treats in a way of its own, with the real Git."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import sys
import time
import tracemalloc

import pytest

from index.document_ids import sha256
from syncd.commits import commit_builder, committer
from syncd.commits.commit_builder import CommitBuilder
from syncd.commits.commit_selection import LINE_END, MARKERS, ODD, REFUSED, SECRET
from tests.support.commit_crash import A, B, git
from tests.support.sample_secrets import SECRETS

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("home"),
]


def test_large_files_are_committed_and_deleted(rig, tmp_path):
    rig.files.max_bytes = 1000
    source = tmp_path / "large"
    source.write_bytes(os.urandom(50_000))
    rig.files.create_from_file("Captures/default/Files/l.bin", source, hashlib.sha256(source.read_bytes()).hexdigest())
    assert rig.commits.flush() == 1
    assert rig.held("Captures/default/Files/l.bin") == source.read_bytes()
    with rig.files.removing("Captures/default/Files/l.bin", rig.files.digest_file("Captures/default/Files/l.bin")):
        pass
    assert rig.commits.flush() == 1
    assert rig.held("Captures/default/Files/l.bin") is None


@pytest.mark.slow
def test_many_files_are_committed_without_all_of_them_in_memory(rig):
    for number in range(12):
        rig.agent(f"Captures/default/Files/{number}.bin", b"\0" + os.urandom(1_000_000))
    tracemalloc.start()
    try:
        assert rig.commits.flush() == 1
        assert tracemalloc.get_traced_memory()[1] < 6_000_000
    finally:
        tracemalloc.stop()
    assert rig.status() == []


def test_a_secret_in_a_note_that_is_not_small_stays_local(rig):
    rig.agent(A, "text\n" * 20_000 + f"token {SECRETS['github-token']}\n")
    assert rig.commits.flush() == 0
    assert set(rig.commits.kept) == {A}


def test_a_secret_that_an_agent_adds_to_a_committed_capture_stays_local(rig):
    rig.agent(A, "one\n")
    assert rig.commits.flush() == 1
    rig.agent(A, f"token {SECRETS['github-token']}\n")
    assert (rig.commits.flush(), rig.commits.kept) == (0, {A: f"{SECRET} (github-token)"})
    assert rig.held(A) == b"one\n"


@pytest.mark.parametrize("name", ["Tokens.md", f"{SECRETS['github-token']}.md"])
def test_what_memex_changes_in_a_note_is_committed_with_the_secret_that_its_owner_committed(rig, name):
    rig.person(name, f"token {SECRETS['github-token']} of [[Old]]\n")
    rig.git("add", "-A")
    rig.git("commit", "-qm", "mine")
    changed = f"token {SECRETS['github-token']} of [[New]]\n"
    rig.agent(name, changed)
    assert (rig.commits.flush(), rig.commits.kept) == (1, {})
    assert rig.held(name) == changed.encode()


def test_an_unfinished_merge_of_a_note_of_the_vault_stays_local(rig):
    rig.agent("Note.md", "<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n")
    assert (rig.commits.flush(), rig.commits.kept) == (0, {"Note.md": MARKERS})


def test_a_capture_whose_removal_a_person_staged_too_is_removed(rig):
    rig.agent(A, "one\n")
    rig.commits.flush()
    rig.git("rm", "-q", "--cached", A)
    rig.agent(A, None)
    assert (rig.commits.flush(), rig.commits.kept) == (1, {})
    assert (rig.held(A), rig.status()) == (None, [])


def test_equal_large_files_are_all_committed_even_if_a_filter_refuses_another_file(rig, tmp_path):
    def store(path, raw):
        source = tmp_path / "large"
        source.write_bytes(raw)
        rig.files.create_from_file(path, source, hashlib.sha256(raw).hexdigest())

    rig.files.max_bytes = 1000
    changed, new = "Captures/default/Files/l.bin", "Captures/work/Files/l.bin"
    store(changed, os.urandom(50_000))
    assert rig.commits.flush() == 1
    with rig.files.removing(changed, rig.files.digest_file(changed)):
        pass
    raw = os.urandom(50_000)
    store(changed, raw)
    store(new, raw)
    rig.git("config", "filter.no.clean", "/bin/false")
    rig.git("config", "filter.no.required", "true")
    rig.person(".gitattributes", f"{A} filter=no\n")
    rig.agent(A, "a\n")
    assert rig.commits.flush() == 1
    assert (rig.held(changed), rig.held(new), rig.commits.kept) == (raw, raw, {A: REFUSED})


@pytest.mark.parametrize("most", [5, 1000])
def test_a_file_that_changes_before_it_is_read_stays_out_of_a_commit(rig, monkeypatch, most):
    rig.agent(A, "one two\n")
    rig.agent(B, "b\n")
    rig.files.max_bytes = most
    blobs = CommitBuilder.read_blobs

    def edited_first(builder, paths):
        rig.person(A, "half of an edit")
        return blobs(builder, paths)

    monkeypatch.setattr(CommitBuilder, "read_blobs", edited_first)
    assert rig.commits.commit({A: sha256(b"one two\n"), B: sha256(b"b\n")}, "Promote\n")
    assert (rig.held(A), rig.held(B)) == (None, b"b\n")


def test_a_file_that_changes_before_it_is_read_is_committed_once_it_is_as_memex_wrote_it(rig, monkeypatch):
    rig.agent(A, "one two\n")
    blobs = CommitBuilder.read_blobs

    def edited_first(builder, paths):
        rig.person(A, "half of an edit")
        return blobs(builder, paths)

    with monkeypatch.context() as patched:
        patched.setattr(CommitBuilder, "read_blobs", edited_first)
        assert rig.commits.flush() == 0
    rig.person(A, "one two\n")
    assert (rig.commits.flush(), rig.held(A)) == (1, b"one two\n")


def test_modes_are_kept_and_links_are_never_committed(rig):
    rig.agent(A, "one\n")
    rig.commits.flush()
    (rig.vault / A).chmod(0o755)
    rig.git("commit", "-qam", "mode")
    rig.agent(A, "two\n")
    rig.agent(B, "b\n")
    (rig.vault / B).unlink()
    (rig.vault / B).symlink_to(rig.vault / "Note.md")
    rig.commits.flush()
    assert rig.git("ls-tree", "HEAD", A).split()[0] == "100755"
    assert rig.held(A) == b"two\n"
    assert rig.held(B) is None


@pytest.mark.parametrize("value", ["true", "input"])
def test_line_ends_are_as_git_keeps_them(rig, value):
    rig.git("config", "core.autocrlf", value)
    rig.agent(A, "one\r\ntwo\r\n")
    rig.agent(B, "one\n")
    assert rig.commits.flush() == 1
    assert rig.held(A) == b"one\ntwo\n"
    assert rig.status() == []
    rig.agent(A, "one\r\ntwo\r\nthree\r\n")
    rig.agent(B, "two\n")
    assert rig.commits.flush() == 1
    # With "input" nothing tells any more that the file of HEAD had other line ends: it counts as edited.
    assert rig.held(A) == (b"one\ntwo\nthree\n" if value == "true" else b"one\ntwo\n")
    assert rig.held(B) == b"two\n"


def test_a_filter_that_hangs_is_ended_and_told_and_not_run_again_at_once(rig, tmp_path, monkeypatch):
    monkeypatch.setattr(commit_builder, "FILTER_S", 0.5)
    rig.git("config", "filter.slow.clean", f"echo >> {tmp_path / 'ran'}; sleep 60")
    rig.person(".gitattributes", "Captures/** filter=slow\n")
    rig.agent(A, "one\n")
    begun = time.monotonic()
    assert rig.commits.flush() == 0
    assert time.monotonic() - begun < 30, "it was not waited for"
    assert "filter" in rig.commits.problem
    assert (rig.vault / A).read_text() == "one\n"
    assert not list((rig.vault / ".git").glob("*.lock"))
    assert rig.commits.flush() == 0
    assert "filter" in rig.commits.problem
    assert (tmp_path / "ran").read_text().count("\n") == 1
    monkeypatch.setattr(committer, "AGAIN_S", 0.0)
    rig.commits.tick()
    assert "filter" in rig.commits.problem, "the problem stays until the filter is tried again"
    rig.git("config", "--unset", "filter.slow.clean")
    monkeypatch.setattr(committer, "HUNG_S", 0.0)
    assert rig.commits.flush() == 1
    assert rig.commits.problem == ""


def test_line_ends_that_git_is_told_to_refuse_are_committed_as_they_are_kept(rig):
    rig.git("config", "core.autocrlf", "true")
    rig.git("config", "core.safecrlf", "true")
    rig.agent(A, "one\ntwo\n")
    assert rig.commits.flush() == 1
    assert (rig.held(A), rig.status()) == (b"one\ntwo\n", [])


def test_filters_are_run_and_their_files_known_again(rig, tmp_path):
    rig.git("config", "filter.turn.clean", "tr a-z b-za")
    rig.git("config", "filter.turn.smudge", "tr b-za a-z")
    rig.person(
        ".gitattributes", "Captures/** filter=turn\n"
    )  # not committed, and obeyed all the same, as `git add` would
    rig.agent(A, "abc\n")
    assert rig.commits.flush() == 1
    assert rig.held(A) == b"bcd\n"
    rig.agent(A, "xyz\n")
    assert rig.commits.flush() == 1
    assert rig.held(A) == b"yza\n"
    assert rig.status() == ["?? .gitattributes"]
    rig.git("config", "filter.turn.clean", "/bin/false")
    rig.git("config", "filter.turn.required", "true")
    large = "Captures/x.bin"
    rig.person(".gitattributes", "Captures/default/** filter=turn\n")
    rig.agent(A, "no\n")
    rig.agent(B, "new\n")
    rig.agent(large, b"\0" * (rig.files.max_bytes + 1))
    assert rig.commits.flush() == 1
    assert (rig.held(A), rig.held(B), rig.held(large) is not None) == (b"yza\n", None, True)
    assert (rig.commits.kept, rig.commits.problem) == ({A: REFUSED, B: REFUSED}, "")
    rig.git("config", "filter.turn.clean", "tr a-z b-za")
    assert rig.commits.flush() == 1
    assert (rig.held(A), rig.commits.kept) == (b"op\n", {})


def test_pointers_to_large_files_are_known_again(rig):
    script = "import sys, hashlib; d = sys.stdin.buffer.read(); print('version https://git-lfs.github.com/spec/v1\\noid sha256:' + hashlib.sha256(d).hexdigest() + '\\nsize', len(d))"
    rig.git("config", "filter.lfs.clean", f'{shlex.quote(sys.executable)} -c "{script}"')
    rig.git("config", "filter.lfs.smudge", "/bin/false")
    rig.git("config", "filter.lfs.required", "true")
    rig.person(".gitattributes", "*.bin filter=lfs\n")
    rig.git("add", ".gitattributes")
    rig.git("commit", "-qm", "attributes")
    path = "Captures/default/Files/x.bin"
    rig.agent(path, b"\0large")
    assert rig.commits.flush() == 1
    assert hashlib.sha256(b"\0large").hexdigest().encode() in rig.held(path)
    rig.agent(path, None)
    assert rig.commits.flush() == 1
    assert rig.held(path) is None


def test_an_edited_file_whose_checkout_fails_holds_no_other_commit_up(rig):
    large = "Captures/default/x.bin"
    rig.agent(large, b"\0one")
    rig.agent(A, "one\n")
    assert rig.commits.flush() == 1
    rig.git("config", "filter.lfs.smudge", "/bin/false")
    rig.git("config", "filter.lfs.required", "true")
    rig.person(".gitattributes", "*.bin filter=lfs\n")
    rig.agent(large, b"\0two")
    rig.person(large, b"\0mine")
    rig.agent(A, "two\n")
    assert rig.commits.flush() == 1
    assert (rig.held(A), rig.held(large)) == (b"two\n", b"\0one")
    assert (rig.commits.kept, rig.commits.problem) == ({large: REFUSED}, "")


def _have_file_as_folder(rig):
    """Have a file in HEAD where an agent has a folder."""
    rig.person("Captures/default/alpha", "a file\n")
    rig.git("add", "-A")
    rig.git("commit", "-qm", "file")
    rig.person("Captures/default/alpha", None)


def _have_former_repository(rig):
    """Have a repository in HEAD, without .gitmodules, that is an ordinary folder again."""
    inner = rig.vault / "Captures/default/alpha"
    rig.person("Captures/default/alpha/y.md", "y\n")
    git(inner, "init", "-q")
    git(inner, "add", "-A")
    git(inner, "commit", "-qm", "inner")
    rig.git("add", "Captures/default/alpha")
    rig.git("commit", "-qm", "repository")
    shutil.rmtree(inner / ".git")


def _require_other_encoding(rig):
    """Have Git refuse the files of a folder, as their encoding is another one."""
    rig.person(".gitattributes", "Captures/default/alpha/*.md working-tree-encoding=UTF-16\n")


@pytest.mark.parametrize(
    ("prepare", "why"),
    [(_have_file_as_folder, REFUSED), (_have_former_repository, ODD), (_require_other_encoding, REFUSED)],
)
def test_a_path_that_git_refuses_holds_no_other_commit_up(rig, prepare, why):
    path = "Captures/default/alpha/x.md"
    prepare(rig)
    rig.agent(path, "x\n")
    assert (rig.commits.flush(), rig.commits.problem, rig.commits.kept) == (0, "", {path: why})
    rig.agent(B, "b\n")
    assert (rig.commits.flush(), rig.commits.problem, rig.commits.kept) == (1, "", {path: why})
    assert (rig.held(path), rig.held(B)) == (None, b"b\n")


def test_a_name_with_a_line_end_holds_no_other_commit_up(rig):
    odd = "Captures/default/1\n2.md"
    rig.person(odd, "one\n")
    rig.git("add", "-A")
    rig.git("commit", "-qm", "odd")
    rig.agent(odd, "two\n")
    rig.agent("Note.md", "two\n")
    assert rig.commits.flush() == 1
    assert (rig.held("Note.md"), rig.commits.kept) == (b"two\n", {odd: LINE_END})


def test_names_that_git_could_take_for_something_else(rig):
    names = [
        ":!A.md",
        "*.md",
        "a[b]?.md",
        '"quoted".md',
        "ü\u0308 é.md",
        "HEAD:x.md",
    ]
    for name in names:
        rig.agent(f"Captures/default/{name}", "x\n")
    rig.agent(":top.md", "x\n")
    assert rig.commits.flush() == 1
    assert rig.status() == []
    assert not (rig.vault / "x.md").exists()


def test_a_folder_that_becomes_a_file_and_back(rig):
    rig.agent("Captures/default/x.md/A.md", "a\n")
    rig.commits.flush()
    rig.agent("Captures/default/x.md/A.md", None)
    assert not (rig.vault / "Captures/default/x.md").exists(), "an empty folder goes with its last file"
    rig.agent("Captures/default/x.md", "file\n")
    assert (rig.commits.flush(), rig.commits.flush()) == (1, 1)
    assert rig.held("Captures/default/x.md") == b"file\n"
    assert rig.status() == []
