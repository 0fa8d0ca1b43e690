"""The vault and its remote, with real repositories: every state, every way to fail, and what is never done."""

from __future__ import annotations

import os
import shutil
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from index.errors import Conflict, MemexError, Unavailable
from syncd.audit import Audit
from syncd.audited import Audited
from syncd.duties import GitSettings
from syncd.ledger import Ledger
from syncd.remote import PARKED, Outcome, Remote
from syncd.repo import Repo
from tests.test_repo import run
from tests.test_standing import CASES, with_remote
from tests.world import until

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture(autouse=True)
def person(monkeypatch, tmp_path):
    """Somebody whom Git knows, with settings of their own."""
    (tmp_path / "home").mkdir()
    for name, value in {"HOME": tmp_path / "home", "XDG_CONFIG_HOME": tmp_path / "home", "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(name, str(value))
    (tmp_path / "home" / ".gitconfig").write_text("[user]\nname = T\nemail = t@example.org\n")


class Desk:
    """A vault with a remote, a clone of it that is another device, and what brings them together."""

    def __init__(self, folder, **settings):
        self.vault, self.state = with_remote(folder, "My $HOME vault – ü 'x'"), folder / "state"
        self.bare, self.clone = folder / "remote.git", folder / "clone"
        self.state.mkdir()
        run(folder, "clone", "-q", str(self.bare), str(self.clone))
        self.repo = Repo(self.vault)
        self.ledger = Ledger.open(self.state / "ledger.db")
        self.audit = Audit(self.ledger, self.state)
        self.notes = Audited(self.vault, self.audit, inbox="Captures")
        self.calls, self.flushed = [], []
        self.remote = self.made(**settings)

    def made(self, **settings):
        return Remote(
            self.repo,
            self.state,
            GitSettings(**{"timeout_s": 5.0, **settings}),
            inbox="Captures",
            flush=lambda: self.flushed.pop() if self.flushed else 0,
            reserved=self.notes.reserved,
            moved=lambda: self.calls.append("moved"),
            untied=lambda: self.calls.append("untied"),
        )

    def close(self):
        self.repo.close()
        self.notes.close()
        self.audit.close()
        self.ledger.close()

    def here(self, path, text, *, commit=True):
        self._write(self.vault, path, text, commit)

    def there(self, path, text, *, push=True):
        """The other device: what the remote has then."""
        run(self.clone, "pull", "-q", "--no-rebase")
        self._write(self.clone, path, text, True)
        if push:
            run(self.clone, "push", "-q")

    def _write(self, root, path, text, commit):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            file.unlink()
        else:
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        if commit:
            run(root, "add", "-A")
            run(root, "commit", "-qm", f"{path} of {root.name}")

    def head(self, root=None, ref="HEAD"):
        return run(root or self.vault, "rev-parse", ref)

    def text(self, path):
        return (self.vault / path).read_text()

    def files(self):
        """Every byte below the vault, Git's own folder left out."""
        return {
            str(path.relative_to(self.vault)): path.read_bytes()
            for path in sorted(self.vault.rglob("*"))
            if path.is_file() and ".git" not in path.parts
        }

    def parked(self):
        return run(self.vault, "for-each-ref", "--format=%(objectname)", PARKED).split()


@pytest.fixture
def desk(tmp_path):
    made = Desk(tmp_path)
    yield made
    made.close()


def test_what_the_remote_has_is_taken_by_moving_on(desk):
    desk.there("new ü.md", "from afar\n")
    desk.there("n.md", "two\n")
    assert desk.remote.sync() == Outcome(took=2, files=2)
    assert (desk.text("new ü.md"), desk.text("n.md")) == ("from afar\n", "two\n")
    assert desk.head() == desk.head(desk.bare, "main")
    assert run(desk.vault, "status", "--porcelain") == ""
    assert desk.calls == ["moved"]
    assert desk.remote.sync() == Outcome()


def test_what_the_remote_has_not_is_sent_and_nothing_else(desk):
    run(desk.vault, "branch", "private")
    run(desk.vault, "tag", "-am", "x", "mine")
    run(desk.vault, "config", "push.followTags", "true")
    run(desk.vault, "config", "remote.origin.push", "+refs/heads/*:refs/heads/*")
    desk.here("a.md", "a\n")
    assert desk.remote.push() == Outcome(sent=1)
    assert desk.head() == desk.head(desk.bare, "main")
    assert run(desk.bare, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert run(desk.vault, "rev-list", "--count", "@{upstream}..HEAD") == "0"


def test_both_sides_are_merged_in_memory_with_a_trailer_and_sent(desk):
    desk.there("theirs.md", "theirs\n")
    desk.here("ours.md", "ours\n")
    assert desk.remote.sync() == Outcome(took=1, files=1, merged=True, sent=2)
    assert (desk.text("theirs.md"), desk.text("ours.md")) == ("theirs\n", "ours\n")
    assert run(desk.vault, "log", "-1", "--format=%(trailers:key=Memex-Tool,valueonly)") == "pull"
    assert run(desk.vault, "rev-list", "--count", "--min-parents=2", "HEAD") == "1"
    assert desk.head() == desk.head(desk.bare, "main")


def test_a_conflict_is_parked_touches_no_byte_and_goes_on_once_a_person_has_merged(desk):
    desk.there("n.md", "theirs\n")
    desk.there("more.md", "more\n")
    desk.here("n.md", "ours\n")
    theirs, before, head = desk.head(desk.bare, "main"), desk.files(), desk.head()
    for _ in range(2):
        with pytest.raises(Conflict, match=r"both changed n\.md.*`git .* pull --no-rebase`"):
            desk.remote.sync()
    assert (desk.files(), desk.head(), desk.parked()) == (before, head, [theirs])
    assert desk.head(desk.bare, "main") == theirs
    assert desk.remote.unwell.startswith("git: the vault and its remote have both moved on")
    run(desk.vault, "pull", "-q", "--no-rebase", check=False)
    with pytest.raises(Conflict, match="conflicts are left to mend"):
        desk.remote.sync()
    desk.here("n.md", "ours and theirs\n")
    assert desk.remote.sync().sent == 2
    assert (desk.parked(), desk.remote.problem, desk.remote.unwell) == ([], "", "")
    assert desk.head() == desk.head(desk.bare, "main")


@pytest.mark.parametrize(
    ("path", "text"), [("n.md", "edited\n"), ("new.md", "not committed\n"), ("ignored.md", "a person's\n")]
)
def test_what_is_not_committed_is_never_overwritten_and_is_named(desk, path, text):
    desk.here(".gitignore", "ignored.md\n")
    desk.remote.sync()
    run(desk.clone, "pull", "-q")
    (desk.clone / path).write_text("theirs\n")
    run(desk.clone, "add", "-Af")
    run(desk.clone, "commit", "-qm", "x")
    run(desk.clone, "push", "-q")
    desk.here(path, text, commit=False)
    before, head = desk.files(), desk.head()
    with pytest.raises(Conflict, match=rf"not committed: {path}; commit it") as told:
        desk.remote.sync()
    assert told.value.details == {"paths": [path]}
    assert (desk.files(), desk.head()) == (before, head)
    assert not (desk.vault / ".git/index.lock").exists()


def test_edits_that_are_not_in_the_way_stay_uncommitted_and_staged_as_they_are(desk):
    desk.here("own.md", "own\n")
    desk.here("staged.md", "staged\n", commit=False)
    run(desk.vault, "add", "staged.md")
    desk.here("own.md", "own, edited\n", commit=False)
    desk.there("theirs.md", "theirs\n")
    before = run(desk.vault, "status", "--porcelain")
    desk.remote.sync()
    assert run(desk.vault, "status", "--porcelain") == before == "M own.md\nA  staged.md"
    assert (desk.text("own.md"), desk.text("theirs.md")) == ("own, edited\n", "theirs\n")


def test_what_an_agent_wrote_in_that_moment_is_committed_and_merged(desk):
    desk.there("theirs.md", "theirs\n")
    desk.here("theirs.md", "an agent's\n", commit=False)

    def flush():
        """What another part does: it commits what is Memex's."""
        if not run(desk.vault, "status", "--porcelain"):
            return 0
        desk.calls.append("flush")
        if len(desk.calls) > 1:  # the first time, before the fetch, nothing was there yet
            (desk.vault / "theirs.md").rename(desk.vault / "ours.md")
            run(desk.vault, "add", "-A")
            run(desk.vault, "commit", "-qm", "x")
        return 1

    desk.remote._flush = flush
    assert desk.remote.sync() == Outcome(took=1, files=1, merged=True, sent=2)
    assert (desk.text("theirs.md"), desk.text("ours.md")) == ("theirs\n", "an agent's\n")


def test_files_that_another_tool_has_brought_already_are_no_hindrance(desk):
    desk.there("synced.md", "by Syncthing too\n")
    desk.there("n.md", "two\n")
    desk.here("synced.md", "by Syncthing too\n", commit=False)
    assert desk.remote.sync().took == 2
    assert run(desk.vault, "status", "--porcelain") == ""
    assert desk.text("n.md") == "two\n"
    assert desk.head() == desk.head(desk.bare, "main")


def test_a_push_that_somebody_else_was_faster_with_is_merged_and_sent_again(desk, monkeypatch):
    desk.here("ours.md", "ours\n")
    desk.there("theirs.md", "theirs\n")
    assert desk.remote.push() == Outcome(took=1, files=1, merged=True, sent=2)
    assert desk.head() == desk.head(desk.bare, "main")
    assert "theirs.md" in desk.files()


@pytest.mark.parametrize("later", [True, False])
def test_a_secret_in_a_capture_keeps_all_commits_back_until_none_holds_it(desk, later):
    desk.here("ok.md", f"the vault proper is the person's own: {SECRET}\n")
    assert desk.remote.sync().sent == 1
    desk.here("Captures/default/a ü.md", f"token {SECRET}\n")
    if later:
        desk.here("Captures/default/a ü.md", "it was taken out\n")
    sent = desk.head(desk.bare, "main")
    with pytest.raises(Conflict, match=r"Captures/default/a ü\.md looks as if it held a secret \(github-token\).*reset --soft") as told:
        desk.remote.sync()
    assert SECRET not in str(told.value.as_dict())
    assert desk.head(desk.bare, "main") == sent
    run(desk.vault, "reset", "--soft", "origin/main")
    desk.here("Captures/default/a ü.md", "it was taken out\n")
    assert desk.remote.sync().sent == 1
    assert SECRET not in run(desk.bare, "log", "-p", "--", "Captures")


def test_a_secret_that_the_remote_has_already_does_not_keep_ours_back(desk):
    desk.there("Captures/default/theirs.md", f"token {SECRET}\n")
    desk.here("Captures/default/ours.md", "nothing secret\n")
    assert desk.remote.sync().sent == 2


@pytest.mark.parametrize("elsewhere", ["pushes elsewhere", "pre-push hook"])
def test_a_push_that_is_the_persons_own_business_is_left_to_them(desk, elsewhere):
    desk.here("a.md", "a\n")
    if elsewhere == "pre-push hook":
        (desk.vault / ".git/hooks").mkdir(exist_ok=True)
        (desk.vault / ".git/hooks/pre-push").write_text("#!/bin/sh\nexit 0\n")
    else:
        run(desk.vault, "remote", "add", "fork", str(desk.clone))
        run(desk.vault, "config", "remote.pushDefault", "fork")
    with pytest.raises(Conflict, match="left to you: `git -C .* push`"):
        desk.remote.sync()
    desk.there("theirs.md", "x\n")
    assert desk.remote.pull().took == 1


def test_a_history_that_was_rewritten_is_not_merged_back(desk):
    desk.there("secret.md", "to be purged\n")
    desk.remote.sync()
    desk.here("ours.md", "ours\n")
    run(desk.clone, "reset", "-q", "--hard", "HEAD~1")
    run(desk.clone, "commit", "-q", "--allow-empty", "-m", "clean")
    run(desk.clone, "push", "-q", "--force")
    before = desk.files()
    for _ in range(3):
        with pytest.raises(Conflict, match="another history than before"):
            desk.remote.sync()
    assert desk.files() == before
    assert run(desk.bare, "rev-list", "--count", "main") == "2"
    run(desk.vault, "reset", "-q", "--keep", "origin/main")
    desk.there("theirs.md", "theirs\n")
    assert desk.remote.sync().took == 1
    assert run(desk.vault, "for-each-ref", "refs/memex") == ""


NOTHING = {"no-remote": "remote add", "no-upstream": "push --set-upstream", "ok": ""}


@pytest.mark.parametrize(("make", "state", "operation", "mended"), CASES)
def test_in_every_state_nothing_is_broken_and_the_way_out_is_said(tmp_path, make, state, operation, mended):
    (tmp_path / "remote.git").exists() or None
    root = with_remote(tmp_path, "vault")
    make(root)
    repo = Repo(root)
    (tmp_path / "state").mkdir()
    remote = Remote(
        *(repo, tmp_path / "state", GitSettings(timeout_s=5.0)),
        inbox="Captures",
        flush=lambda: 0,
        reserved=lambda _: _nothing(),
        moved=lambda: None,
        untied=lambda: None,
    )
    remote._ended.set()  # nobody waits for a lock
    try:
        remote.sync()
    except MemexError as error:
        assert "`" in error.message or "not answer" in error.message, error.message
    repo.close()


@contextmanager
def _nothing():
    yield
