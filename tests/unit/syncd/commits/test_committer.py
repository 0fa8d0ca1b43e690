"""What Memex commits of a vault, in whose name and when, with the real Git."""

from __future__ import annotations

import hashlib
import shutil
import subprocess

import pytest

from index.document_ids import sha256
from syncd.commits import committer
from syncd.commits.commit_selection import IGNORED, MARKERS, SECRET, STAGED
from syncd.commits.committer import MadeCommit
from syncd.history.audit_log import Author, take_back
from syncd.owner.git import commit_operations
from tests.support.commit_crash import CHAT, DAEMON, A, B, made

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("home"),
]


TOKEN = "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789aBcDeFgHiJkLm"


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


def test_a_commit_says_which_agents_wrote_it(rig):
    note = "---\nid: 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11\n---\none\n"
    rig.agent(A, note)
    rig.agent(A, note + "more\n", DAEMON)
    rig.agent(B, "two\n", CHAT)
    rig.agent("Notes/C.md", "three\n", DAEMON)
    assert rig.commits.flush() == 1
    assert (
        rig.git("log", "--format=%an <%ae>|%cn|%s", "-1")
        == "Memex <memex@localhost>|Memex|chat, claude-code: 3 notes added\n"
    )
    told = rig.git("log", "--format=%(trailers:only)", "-1").split("\n")
    assert told[:2] == ["Memex-Agent: chat", "Memex-Agent: claude-code"]
    rig.agent(A, None)
    rig.agent(B, "changed\n")
    assert rig.commits.flush() == 1
    assert rig.subjects()[-1] == "claude-code: 1 note changed, 1 note deleted"
    assert rig.git("log", "--format=%an <%ae>", "-1") == "claude-code <memex@localhost>\n"
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
        "claude-code|Ada|- added Captures/default/Süß.md"
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
    assert rig.commits.commit_pending() == []
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


def test_a_nul_byte_hides_neither_a_secret_nor_an_unfinished_merge_of_a_note(rig):
    rig.agent(A, f"from a terminal\0 token: {TOKEN}\n")
    rig.agent(B, "\0\n<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n")
    assert rig.commits.flush() == 0
    assert rig.commits.kept == {A: f"{SECRET} (github-token)", B: MARKERS}


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
    assert rig.subjects()[-1] == "claude-code: 1 file added"


def test_a_stored_file_stays_local_with_a_note_of_another_round(rig, monkeypatch):
    monkeypatch.setattr(committer, "ROUND", 1)
    file, other = "Captures/default/Files/k.pdf", "Captures/default/Files/other.pdf"
    for path, text in ((file, TOKEN), (other, "text")):
        rig.agent(path, path.encode())
        rig.agent(f"{path}.md", f"---\nfile_sha256: {hashlib.sha256(path.encode()).hexdigest()}\n---\n{text}\n")
    assert rig.commits.flush() == 2
    assert rig.commits.kept == {file: SECRET, f"{file}.md": f"{SECRET} (github-token)"}


def test_others_commit_what_they_wrote(rig):
    rig.person("Linking.md", "uncommitted\n")
    rig.agent("Notes/A.md", "one\n")
    rig.agent("Note.md", "mine, relinked\n")
    rig.agent("Linking.md", "uncommitted, relinked\n")
    texts = {"Notes/A.md": b"one\n", "Note.md": b"mine, relinked\n", "Linking.md": b"uncommitted, relinked\n"}
    changes = {path: sha256(raw) for path, raw in texts.items()}
    made = rig.commits.commit(changes, "Promote A\n\nApproved-By: me\n")
    assert made == rig.git("rev-parse", "HEAD").strip()
    assert rig.git("log", "-1", "--format=%an|%B").strip() == "Memex|Promote A\n\nApproved-By: me"
    assert rig.git("show", "--format=", "--name-only", "HEAD").split() == ["Note.md", "Notes/A.md"]
    assert rig.commits.commit(changes, "again") == ""
    assert rig.commits.commit({"Note.md": sha256(b"never written\n")}, "no") == ""
    assert rig.status() == ["?? Linking.md"]
    assert rig.commits.flush() == 0


def test_commits_can_be_off_and_made_by_hand(tmp_path):
    rig = made(tmp_path, commit=False)
    rig.agent(A, "one\n")
    rig.commits.tick()
    assert (rig.commits.flush(), rig.commits.commit({A: sha256(b"one\n")}, "no")) == (0, None)
    assert [one.paths for one in rig.commits.preview()[0]] == [(A,)]
    assert len(rig.commits.commit_pending()) == 1
    rig.close()


def test_a_flush_reads_only_what_was_written_since(rig, monkeypatch):
    for number in range(20):
        rig.agent(f"Captures/default/{number}.md", f"{number}\n")
    rig.commits.flush()
    read = []
    measured = rig.files.digest_file
    monkeypatch.setattr(rig.files, "digest_file", lambda path, *more: (read.append(path), measured(path, *more))[1])
    rig.close()
    rig.open()
    monkeypatch.setattr(
        rig.files,
        "digest_file",
        lambda path, *more: (read.append(path), type(rig.files).digest_file(rig.files, path, *more))[1],
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
    assert rig.subjects() == ["begin", "claude-code: 1 note added"]
    rig.close()
    quick = made(tmp_path, quiet_s=0.0)
    quick.agent(A, "two\n")
    quick.commits.tick()
    assert len(quick.subjects()) == 3
    quick.commits.tick()
    quick.close()


def test_a_write_that_came_to_nothing_is_not_committed(rig):
    rig.agent(A, "one\n")
    take_back(lambda: rig.files.remove(A, digest=sha256(b"one\n")))
    assert rig.commits.flush() == 0
    assert rig.audit.last_entry(A).kind == "undone"


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
        assert rig.commits.flush() == 1
    shown = rig.git("log", "-5", "--format=%an|%ae|%(trailers:key=Memex-Agent,valueonly,separator=)").splitlines()
    assert sorted(shown) == sorted(f"{author}|memex@localhost|{name}" for name, author in names.items())


def test_what_is_left_to_a_person_is_told_though_a_promotion_is_committed_too(rig, monkeypatch):
    monkeypatch.setattr("syncd.commits.commit_selection.FRESH_MS", 0)
    rig.agent(A, "one\n")
    rig.person(A, "edited\n")
    commit = commit_operations(rig.commits, lambda: [MadeCommit("c", "Promote B", ("B.md",))], list)["commit"]
    assert commit({}, None)["edited"] == [A]
