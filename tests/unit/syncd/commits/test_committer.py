"""What Memex commits of a vault, with the real Git."""

from __future__ import annotations

import hashlib
import os
import resource
import shlex
import shutil
import subprocess
import sys
import threading
import time

import pytest

from index.errors import Conflict
from syncd.commits import commit_builder, committer
from syncd.commits.commit_selection import IGNORED, MARKERS, NESTED, REFUSED, SECRET, STAGED
from syncd.commits.committer import MadeCommit
from syncd.history.audit_log import Author, taken_back
from syncd.owner.git import commit_operations
from tests.support.commit_crash import CHAT, DAEMON, Rig, git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

A, B = "Captures/default/A.md", "Captures/default/B.md"
TOKEN = "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789aBcDeFgHiJkLm"


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))


@pytest.fixture
def rig(tmp_path):
    rig = Rig(tmp_path)
    yield rig
    rig.close()


def made(tmp_path, *options, **more):
    return Rig(tmp_path, *options, **more)


def test_what_an_agent_wrote_is_committed_and_the_person_s_edits_are_not(rig):
    rig.agent(A, "one\n")
    rig.person("Note.md", "edited\n")
    rig.person("New.md", "staged\n")
    rig.git("add", "New.md")
    before = rig.pending()
    assert rig.commits.flush() == 1
    assert rig.pending() == before
    assert rig.git("show", "--format=", "--name-status", "HEAD").split() == ["A", A]
    assert rig.commits.flush() == 0
    assert rig.status() == ["A  New.md", " M Note.md"]
    assert not (rig.state / "commit").exists()


def test_a_commit_says_which_key_and_tool_wrote_it(rig):
    note = "---\nid: 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11\n---\none\n"
    rig.agent(A, note)
    rig.agent(A, note + "more\n", DAEMON)
    rig.agent(B, "two\n", CHAT)
    rig.agent("Notes/C.md", "three\n", DAEMON)
    assert rig.commits.flush() == 3
    shown = rig.git("log", "--format=%an <%ae>|%cn|%s|%b", "-3").replace("\n", "/")
    assert (
        shown.split("//Memex")[0] == "claude-code <memex@localhost>|Memex|Capture 1 note (claude-code)|- capture " + A
    )
    told = rig.git("log", "--format=%(trailers:only)", "-1").split("\n")
    assert told[:4] == [
        "Memex-Tool: enrichment",
        "Memex-Tool: capture_thought",
        "Memex-Key: claude-code",
        "Capture-Id: 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11",
    ]
    assert rig.git("log", "--format=%an", "-3").split() == ["claude-code", "chat", "Memex"]
    rig.agent(A, None)
    rig.agent(B, "changed\n")
    assert rig.commits.flush() == 1
    assert rig.subjects()[-1] == "Change 1 note, delete 1 note (claude-code)"
    assert rig.held(A) is None


def test_the_person_commits_under_their_own_name(rig):
    rig.git("config", "user.name", "Ada")
    rig.git("config", "user.email", "ada@example.org")
    rig.git("config", "commit.gpgsign", "true")
    rig.git("config", "gpg.program", "/bin/false")
    rig.git("config", "i18n.commitEncoding", "ISO-8859-1")
    rig.agent("Captures/default/Süß.md", "ä\n")
    assert rig.commits.flush() == 1
    assert rig.git("log", "-1", "--encoding=UTF-8", "--format=%an|%cn|%b").startswith(
        "claude-code|Ada|- capture Captures/default/Süß.md"
    )


def test_no_hook_of_the_repository_runs(rig, tmp_path):
    for name in ("pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"):
        hook = rig.vault / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran-{name}'\nexit 1\n")
        hook.chmod(0o755)
    rig.agent(A, "one\n")
    assert rig.commits.flush() == 1
    assert not list(tmp_path.glob("ran-*"))


def test_a_note_that_a_person_edited_before_it_was_committed_is_left_to_them(rig):
    rig.agent(A, "one\n")
    rig.person(A, "theirs\n")
    rig.agent(A, "theirs, stamped\n", DAEMON)
    assert rig.commits.flush() == 0
    assert rig.commits.flushed() == []
    rig.git("add", A)
    rig.git("commit", "-qm", "mine", A)
    rig.agent(A, "ours again\n")
    assert rig.commits.flush() == 1
    assert rig.held(A) == b"ours again\n"


def test_an_edit_on_top_of_a_commit_stays_with_the_person(rig):
    rig.agent(A, "one\n")
    rig.commits.flush()
    rig.person(A, "edited\n")
    rig.person(A, None)
    rig.agent(B, "b\n")
    assert rig.commits.flush() == 1
    assert rig.held(A) == b"one\n"
    assert rig.status() == [f" D {A}"]


def test_half_of_a_capture_that_a_person_staged_stays_staged(rig):
    rig.agent(A, "one\n")
    rig.commits.flush()
    rig.agent(A, "one\ntwo\nthree\n")
    half = subprocess.run(
        ["git", "-C", str(rig.vault), "hash-object", "-w", "--stdin"],
        input=b"one\ntwo\n",
        capture_output=True,
        check=True,
    ).stdout.decode()
    rig.git("update-index", "--cacheinfo", f"100644,{half.strip()},{A}")
    before = rig.pending()
    assert rig.commits.flush() == 0
    assert rig.commits.kept == {A: STAGED}
    assert rig.pending() == before
    rig.git("commit", "-qm", "half")
    assert rig.commits.flush() == 0  # HEAD holds what the log has never seen
    rig.agent(B, "b\n")
    rig.git("add", B)  # the very bytes
    rig.git("add", "-N", A)
    assert rig.commits.flush() == 1
    assert rig.held(B) == b"b\n"


def test_a_secret_an_unfinished_merge_and_what_is_ignored_stay_local(rig):
    rig.person(".gitignore", "Captures/private/\n")
    rig.git("add", "-A")
    rig.git("commit", "-qm", "ignore")
    rig.agent(A, f"token: {TOKEN}\n")
    rig.agent(B, "<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n")
    rig.agent("Captures/private/C.md", "c\n")
    rig.agent("Captures/default/D.md", "d\n")
    assert rig.commits.flush() == 1
    assert rig.commits.kept == {A: f"{SECRET} (github-token)", B: MARKERS, "Captures/private/C.md": IGNORED}
    facts = rig.commits.facts()
    assert (facts["waiting"], len(facts["kept"]), facts["problem"]) == (0, 3, "")
    rig.close()
    rig.open()
    assert rig.commits.flush() == 0
    assert len(rig.commits.kept) == 3
    rig.agent(A, "no secret any more\n")
    assert rig.commits.flush() == 1
    assert TOKEN not in rig.git("log", "-p", "--all")
    rig.person(".gitignore", "")
    assert rig.commits.flush() == 1
    assert rig.held("Captures/private/C.md") == b"c\n"


def test_a_secret_in_a_name_stays_local_too(rig):
    path = f"Captures/default/the token {TOKEN}.md"
    rig.agent(path, "it was taken out of the text\n")
    rig.agent(f"{path[:-3]}.bin", b"\0")
    assert rig.commits.flush() == 0
    assert rig.commits.kept[path] == f"{SECRET} (github-token, in its name)"
    rig.person(path, "the person's own\n")
    rig.git("add", "-A")
    rig.git("commit", "-qm", "by hand")
    rig.agent(path, None)
    assert rig.commits.flush() == 1
    assert rig.held(path) is None


def test_a_stored_file_stays_local_with_a_note_that_holds_its_secret(rig):
    digest = hashlib.sha256(b"\0binary").hexdigest()
    rig.agent("Captures/default/Files/k.pdf", b"\0binary")
    rig.agent(A, f"---\nfile_sha256: {digest}\n---\n{TOKEN}\n")
    rig.agent("Captures/default/Files/other.pdf", b"\0other")
    assert rig.commits.flush() == 1
    assert set(rig.commits.kept) == {A, "Captures/default/Files/k.pdf"}
    assert rig.subjects()[-1] == "Capture 1 file (claude-code)"


def test_large_files_are_committed_and_deleted(rig, tmp_path):
    rig.files.max_bytes = 1000
    source = tmp_path / "large"
    source.write_bytes(os.urandom(50_000))
    rig.files.put_file("Captures/default/Files/l.bin", source, hashlib.sha256(source.read_bytes()).hexdigest())
    assert rig.commits.flush() == 1
    assert rig.held("Captures/default/Files/l.bin") == source.read_bytes()
    with rig.files.without("Captures/default/Files/l.bin", rig.files.measured("Captures/default/Files/l.bin")):
        pass
    assert rig.commits.flush() == 1
    assert rig.held("Captures/default/Files/l.bin") is None


def test_others_commit_what_they_wrote(rig):
    rig.person("Linking.md", "uncommitted\n")
    rig.agent("Notes/A.md", "one\n")
    rig.agent("Note.md", "mine, relinked\n")
    rig.agent("Linking.md", "uncommitted, relinked\n")
    changes = {"Notes/A.md": b"one\n", "Note.md": b"mine, relinked\n", "Linking.md": b"uncommitted, relinked\n"}
    made = rig.commits.commit(changes, "Promote A\n\nApproved-By: me\n")
    assert made == rig.git("rev-parse", "HEAD").strip()
    assert rig.git("log", "-1", "--format=%an|%B").strip() == "Memex|Promote A\n\nApproved-By: me"
    assert rig.git("show", "--format=", "--name-only", "HEAD").split() == ["Note.md", "Notes/A.md"]
    assert rig.commits.commit(changes, "again") == ""
    assert rig.commits.commit({"Note.md": b"never written\n"}, "no") == ""
    assert rig.status() == ["?? Linking.md"]
    assert rig.commits.flush() == 0


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
    assert "conflicts are left" in rig.commits.problem
    rig.person("Note.md", "both\n")
    rig.git("add", "Note.md")
    assert rig.commits.commit({A: b"one\n"}, "no") is None
    assert "not finished" in rig.commits.problem
    rig.git("commit", "-qm", "merged")
    assert rig.commits.flush() == 1
    assert rig.commits.problem == ""
    assert rig.subjects()[-1] == "Capture 1 note (claude-code)"


def test_nothing_is_committed_without_a_branch(rig):
    rig.git("switch", "-q", "--detach")
    rig.agent(A, "one\n")
    assert rig.commits.flush() == 0
    assert "no branch is checked out" in rig.commits.problem
    with pytest.raises(Conflict, match="no branch"):
        rig.commits.look()
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


def test_commits_can_be_off_and_made_by_hand(tmp_path):
    rig = made(tmp_path, commit=False)
    rig.agent(A, "one\n")
    rig.commits.tick()
    assert (rig.commits.flush(), rig.commits.commit({A: b"one\n"}, "no")) == (0, None)
    assert [one.paths for one in rig.commits.look()[0]] == [(A,)]
    assert len(rig.commits.flushed()) == 1
    rig.close()


def test_a_lock_that_somebody_holds_is_waited_for(rig):
    rig.agent(A, "one\n")
    lock = rig.vault / ".git/index.lock"
    lock.write_bytes(b"")
    threading.Timer(1.0, lock.unlink).start()
    assert rig.commits.flush() == 1
    rig.agent(A, "two\n")
    lock.write_bytes(b"")
    assert rig.commits.flush(0.2) == 0
    assert "holds the repository" in rig.commits.problem
    assert lock.exists()
    old = time.time() - 3600
    os.utime(lock, (old, old))
    assert rig.commits.flush(0.0) == 0
    assert "memex status has the way out" in rig.commits.problem
    assert lock.exists()
    lock.unlink()
    assert rig.commits.flush() == 1


@pytest.mark.slow
def test_a_lock_of_twenty_seconds_is_waited_for(rig):
    rig.agent(A, "one\n")
    lock = rig.vault / ".git/index.lock"
    holding = "import sys, time, os; f = open(sys.argv[1], 'x'); print('held', flush=True); time.sleep(20); os.unlink(sys.argv[1])"
    with subprocess.Popen([sys.executable, "-c", holding, str(lock)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        began = time.monotonic()
        assert rig.commits.flush() == 1
        assert 10 < time.monotonic() - began < 40
    assert rig.held(A) == b"one\n"


@pytest.mark.parametrize("name", ["refs/heads/main.lock", "HEAD.lock"])
def test_a_lock_of_a_branch_is_waited_for_too(rig, name):
    rig.agent(A, "one\n")
    lock = rig.vault / ".git" / name
    lock.write_bytes(b"")
    assert rig.commits.flush(0.1) == 0
    assert "holds the repository" in rig.commits.problem
    lock.unlink()
    assert rig.commits.flush() == 1
    assert rig.status() == []


def test_another_program_that_commits_everything_at_once_loses_nothing(rig):
    stop = threading.Event()

    def person():
        while not stop.is_set():
            rig.git("add", "-A", check=False)
            rig.git("commit", "-qm", "vault backup", check=False)

    other = threading.Thread(target=person)
    other.start()
    try:
        for number in range(6):
            rig.agent(f"Captures/default/{number}.md", f"{number}\n")
            rig.person(f"{number}.md", "mine\n")
            rig.commits.flush()
    finally:
        stop.set()
        other.join()
    rig.commits.flush()
    for number in range(6):
        assert rig.held(f"Captures/default/{number}.md") == f"{number}\n".encode()
    ours = rig.git("log", "--author=claude-code", "--format=", "--name-only").split()
    assert all(path.startswith("Captures/") for path in ours)
    rig.git("fsck", "--strict")


def test_a_race_that_is_lost_is_run_again(rig, monkeypatch):
    rig.agent(A, "one\n")
    head = rig.repo.head
    raced = []

    class Racing(type(rig.repo)):
        def head(self):
            if len(raced) < 2 and sys._getframe(1).f_code.co_name == "land":
                raced.append(1)
                rig.git("commit", "-qm", "theirs", "--allow-empty")
            return head()

    rig.repo.__class__ = Racing
    assert rig.commits.flush() == 1
    assert rig.subjects() == ["begin", "theirs", "theirs", "Capture 1 note (claude-code)"]


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


def test_a_repository_in_the_vault_is_left_alone(rig):
    git(rig.vault, "init", "-q", "Captures/nested")
    rig.agent("Captures/nested/A.md", "a\n")
    rig.person("Captures/sub/x", "x\n")
    rig.agent(B, "b\n")
    assert rig.commits.flush() == 1
    assert rig.commits.kept == {"Captures/nested/A.md": NESTED}


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
    assert rig.subjects() == ["begin", "Capture 1 note (claude-code)"]
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


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_an_object_store_that_can_t_be_written_changes_nothing(rig):
    rig.agent(A, "one\n")
    objects = rig.vault / ".git/objects"
    folders = [objects, *(path for path in objects.iterdir() if path.is_dir())]
    head = rig.git("rev-parse", "HEAD")
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert rig.commits.flush() == 0
        assert "Git failed" in rig.commits.problem
        assert rig.git("rev-parse", "HEAD") == head
        assert rig.status() == [f"?? {A}"]
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert rig.commits.flush() == 1


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
    (rig.vault / "Captures/default/x.md").rmdir()
    rig.agent("Captures/default/x.md", "file\n")
    assert (rig.commits.flush(), rig.commits.flush()) == (1, 1)
    assert rig.held("Captures/default/x.md") == b"file\n"
    assert rig.status() == []


def test_a_flush_reads_only_what_was_written_since(rig, monkeypatch):
    for number in range(20):
        rig.agent(f"Captures/default/{number}.md", f"{number}\n")
    rig.commits.flush()
    read = []
    measured = rig.files.measured
    monkeypatch.setattr(rig.files, "measured", lambda path, *more: (read.append(path), measured(path, *more))[1])
    rig.close()
    rig.open()
    monkeypatch.setattr(
        rig.files,
        "measured",
        lambda path, *more: (read.append(path), type(rig.files).measured(rig.files, path, *more))[1],
    )
    rig.agent(A, "one\n")
    assert rig.commits.flush() == 1
    assert set(read) == {A}


def test_what_is_being_written_waits_until_it_is_quiet(tmp_path):
    rig = made(tmp_path, quiet_s=3600.0)
    rig.agent(A, "one\n")
    rig.commits.tick()
    assert rig.subjects() == ["begin"]
    assert rig.commits.facts()["waiting"] == 1
    rig.commits.stop()
    assert rig.subjects() == ["begin", "Capture 1 note (claude-code)"]
    rig.close()
    quick = made(tmp_path, quiet_s=0.0)
    quick.agent(A, "two\n")
    quick.commits.tick()
    assert len(quick.subjects()) == 3
    quick.commits.tick()
    quick.close()


def test_the_end_of_the_daemon_waits_for_nobody(rig):
    rig.agent(A, "one\n")
    (rig.vault / ".git/index.lock").write_bytes(b"")
    began = time.monotonic()
    rig.commits.stop(5.0)
    assert time.monotonic() - began < 5.0
    assert rig.subjects() == ["begin"]
    (rig.vault / ".git/index.lock").unlink()
    rig.close()
    rig.open()
    assert rig.commits.flush() == 1


def test_a_write_that_came_to_nothing_is_not_committed(rig):
    rig.agent(A, "one\n")
    taken_back(lambda: rig.files.remove(A))
    assert rig.commits.flush() == 0
    assert rig.audit.last(A).kind == "undone"


def test_a_disk_that_is_full_changes_nothing(rig):
    path, head = "Captures/default/Files/x.bin", rig.git("rev-parse", "HEAD")
    rig.agent(path, os.urandom(65_500))
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    for most, why in ((65_536, "Git failed"), (30_000, "File too large")):  # of Git's objects; of the private tree
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, was[1]))
        try:
            assert rig.commits.flush() == 0
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, was)
        assert why in rig.commits.problem
        assert rig.git("rev-parse", "HEAD") == head
        assert rig.status() == [f"?? {path}"]
    assert rig.commits.flush() == 1
    rig.git("fsck", "--strict")


def test_a_vault_inside_another_work_tree_is_committed_by_nobody(tmp_path):
    rig = made(tmp_path)
    shutil.rmtree(rig.vault / ".git")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-qm", "begin", "--allow-empty")
    rig.agent(A, "one\n")
    assert (rig.commits.flush(), rig.commits.flushed(), rig.commits.problem) == (0, [], "")
    assert (rig.commits.commit({A: b"one\n"}, "no"), rig.commits.problem) == (None, "")
    assert "no history" in rig.commits.hindrance()
    assert git(tmp_path, "log", "--format=%s").split() == ["begin"]
    rig.close()


def test_a_key_may_have_any_name(rig):
    names = {
        "...": "Memex",
        "<>": "Memex",
        "Ada <ada@example.org>": "Ada ada@example.org",
        "-x": "-x",
        "\u05d0": "\u05d0",
    }
    for number, name in enumerate(names):
        rig.agent(f"Captures/default/{number}.md", "one\n", Author("mcp", "capture_thought", "k9", name))
    assert rig.commits.flush() == len(names)
    shown = rig.git("log", "-5", "--format=%an|%ae|%(trailers:key=Memex-Key,valueonly,separator=)").splitlines()
    assert sorted(shown) == sorted(f"{author}|memex@localhost|{name}" for name, author in names.items())


def test_what_a_stash_takes_and_gives_back_is_committed_then(rig):
    rig.agent(A, "one\n")
    rig.person("mine.md", "a person's\n")
    rig.git("stash", "-q", "--include-untracked")
    rig.commits.tick()
    assert rig.commits.facts()["waiting"] == 0
    rig.close()
    rig.open()
    rig.commits.tick()
    rig.git("stash", "pop", "-q")
    rig.commits.tick()
    assert (rig.subjects()[1:], rig.status()) == (["Capture 1 note (claude-code)"], ["?? mine.md"])
    assert rig.commits.edited == set()
    assert rig.commits.facts()["kept"] == []


def test_what_is_left_to_a_person_is_told_though_a_promotion_is_committed_too(rig, monkeypatch):
    monkeypatch.setattr("syncd.commits.commit_selection.FRESH_MS", 0)
    rig.agent(A, "one\n")
    rig.person(A, "edited\n")
    commit = commit_operations(rig.commits, lambda: [MadeCommit("c", "Promote B", ("B.md",))], list)["commit"]
    assert commit({}, None)["edited"] == [A]
