"""The vault and its remote, with real repositories: every state, every way to fail, and what is never done."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import itertools
import os
import shlex
import shutil
import subprocess
import threading
import time
import types
from pathlib import Path

import pytest

from index.errors import Conflict, Unavailable
from syncd.git.repository import Repository
from syncd.git.repository_state import UNWELL
from syncd.history.audit_log import AuditLog
from syncd.history.audited_vault import AuditedVault
from syncd.remote import remote_sync as remote
from syncd.remote.fast_forward import JOURNAL
from syncd.remote.remote_sync import PARKED, UNREACHED, Outcome, RemoteSync
from syncd.remote.upstream_branch import fetch
from syncd.settings.automation import GitSettings
from syncd.state.ledger import Ledger
from tests.support.world import until
from tests.unit.syncd.git.test_repository import run
from tests.unit.syncd.git.test_repository_state import CASES, only_command, with_remote

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture(autouse=True)
def person(monkeypatch, tmp_path):
    """Somebody whom Git knows, with settings of their own."""
    (tmp_path / "home").mkdir()
    for name, value in {
        "HOME": tmp_path / "home",
        "XDG_CONFIG_HOME": tmp_path / "home",
        "GIT_CONFIG_NOSYSTEM": "1",
    }.items():
        monkeypatch.setenv(name, str(value))
    (tmp_path / "home" / ".gitconfig").write_text("[user]\nname = T\nemail = t@example.org\n")


class Desk:
    """A vault with a remote, a clone of it that is another device, and what brings them together."""

    def __init__(self, folder, *options, **settings):
        self.vault, self.state = with_remote(folder, "My $HOME vault – ü 'x'", *options), folder / "state"
        self.bare, self.clone = folder / "remote.git", folder / "clone"
        self.state.mkdir()
        run(folder, "clone", "-q", str(self.bare), str(self.clone))
        self.repo = Repository(self.vault)
        self.ledger = Ledger.open(self.state / "ledger.db")
        self.audit = AuditLog(self.ledger, self.state)
        self.notes = AuditedVault(self.vault, self.audit, inbox="Captures")
        self.calls, self.flushed = [], []
        self.remote = self.made(**settings)

    def made(self, **settings):
        return RemoteSync(
            self.repo,
            self.state,
            GitSettings(**{"timeout_s": 5.0, **settings}),
            inbox="Captures",
            flush=lambda: self.flushed.pop() if self.flushed else 0,
            reserved=self.notes.reservations.reserved,
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
def agent_access(tmp_path):
    made = Desk(tmp_path)
    yield made
    made.close()


def test_what_the_remote_has_is_taken_by_moving_on(agent_access):
    agent_access.there("new ü.md", "from afar\n")
    agent_access.there("n.md", "two\n")
    assert agent_access.remote.sync() == Outcome(took=2, files=2)
    assert (agent_access.text("new ü.md"), agent_access.text("n.md")) == ("from afar\n", "two\n")
    assert agent_access.head() == agent_access.head(agent_access.bare, "main")
    assert run(agent_access.vault, "status", "--porcelain") == ""
    assert agent_access.calls == ["moved"]
    assert agent_access.remote.sync() == Outcome()


def test_what_the_remote_has_not_is_sent_and_nothing_else(agent_access):
    run(agent_access.vault, "branch", "private")
    run(agent_access.vault, "tag", "-am", "x", "mine")
    run(agent_access.vault, "config", "push.followTags", "true")
    run(agent_access.vault, "config", "remote.origin.push", "+refs/heads/*:refs/heads/*")
    agent_access.here("a.md", "a\n")
    assert agent_access.remote.push() == Outcome(sent=1)
    assert agent_access.head() == agent_access.head(agent_access.bare, "main")
    assert run(agent_access.bare, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert run(agent_access.vault, "rev-list", "--count", "@{upstream}..HEAD") == "0"


def test_both_sides_are_merged_in_memory_with_a_trailer_and_sent(agent_access):
    agent_access.there("theirs.md", "theirs\n")
    agent_access.here("ours.md", "ours\n")
    assert agent_access.remote.sync() == Outcome(took=1, files=1, merged=True, sent=2)
    assert (agent_access.text("theirs.md"), agent_access.text("ours.md")) == ("theirs\n", "ours\n")
    assert run(agent_access.vault, "log", "-1", "--format=%(trailers:key=Memex-Tool,valueonly)") == "pull"
    assert run(agent_access.vault, "rev-list", "--count", "--min-parents=2", "HEAD") == "1"
    assert agent_access.head() == agent_access.head(agent_access.bare, "main")


def test_a_conflict_is_parked_touches_no_byte_and_goes_on_once_a_person_has_merged(agent_access):
    agent_access.there("n.md", "theirs\n")
    agent_access.there("more.md", "more\n")
    agent_access.here("n.md", "ours\n")
    theirs, before, head = agent_access.head(agent_access.bare, "main"), agent_access.files(), agent_access.head()
    for _ in range(2):
        with pytest.raises(Conflict, match=r"both changed n\.md.*`git .* pull --no-rebase`"):
            agent_access.remote.sync()
    assert (agent_access.files(), agent_access.head(), agent_access.parked()) == (before, head, [theirs])
    assert agent_access.head(agent_access.bare, "main") == theirs
    assert agent_access.remote.unwell.startswith("git: the vault and its remote have both moved on")
    run(agent_access.vault, "pull", "-q", "--no-rebase", check=False)
    with pytest.raises(Conflict, match="conflicts are left to mend"):
        agent_access.remote.sync()
    agent_access.here("n.md", "ours and theirs\n")
    assert agent_access.remote.sync().sent == 2
    assert (agent_access.parked(), agent_access.remote.problem, agent_access.remote.unwell) == ([], "", "")
    assert agent_access.head() == agent_access.head(agent_access.bare, "main")


def test_a_note_goes_where_it_was_put_though_its_folder_is_called_otherwise_elsewhere(agent_access):
    agent_access.here("Notes/b.md", "b\n")
    agent_access.remote.sync()
    run(agent_access.clone, "pull", "-q")
    (agent_access.clone / "Notes").rename(agent_access.clone / "Articles")
    agent_access.there("n.md", "two\n")
    agent_access.here("Notes/new.md", "new\n")
    assert agent_access.remote.sync().merged
    assert {"Articles/b.md", "Notes/new.md"} <= agent_access.files().keys()
    assert (agent_access.vault / "Notes/b.md").exists() is False


def test_a_conflict_on_which_git_dies_by_its_guess_at_folders_is_parked_and_its_command_works(agent_access):
    """A capture was promoted here and deleted there, where all that was promoted went back: Git 2.39 aborts on that."""
    agent_access.here("Captures/a.md", "a\n" * 9)
    agent_access.here("Captures/c.md", "c\n" * 9)
    agent_access.here("Notes/b.md", "b\n" * 9)
    agent_access.remote.sync()
    run(agent_access.clone, "pull", "-q")
    (agent_access.vault / "Notes/a.md").write_bytes((agent_access.vault / "Captures/a.md").read_bytes())
    agent_access.here("Captures/a.md", None)
    (agent_access.clone / "Notes/b.md").rename(agent_access.clone / "Captures/b.md")
    agent_access.there("Captures/a.md", None)
    with pytest.raises(Conflict, match=r"both changed Notes/a\.md") as told:
        agent_access.remote.sync()
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=False, capture_output=True)
    assert agent_access.repo.state() == "conflict"
    run(agent_access.vault, "add", "-A")
    run(agent_access.vault, "commit", "-qm", "mended")
    assert agent_access.remote.sync().sent
    assert agent_access.files().keys() >= {"Notes/a.md", "Captures/b.md"}


@pytest.mark.parametrize(("path", "text"), [("n.md", "edited\n"), ("new.md", "not committed\n")])
def test_what_is_not_committed_is_never_overwritten_and_is_named(agent_access, path, text):
    agent_access.here(".gitignore", "ignored.md\n")
    agent_access.remote.sync()
    run(agent_access.clone, "pull", "-q")
    (agent_access.clone / path).write_text("theirs\n")
    run(agent_access.clone, "add", "-Af")
    run(agent_access.clone, "commit", "-qm", "x")
    run(agent_access.clone, "push", "-q")
    agent_access.here(path, text, commit=False)
    before, head = agent_access.files(), agent_access.head()
    with pytest.raises(Conflict, match=rf"not committed: {path}; commit it") as told:
        agent_access.remote.sync()
    assert told.value.details == {"paths": [path]}
    assert (agent_access.files(), agent_access.head()) == (before, head)
    assert not (agent_access.vault / ".git/index.lock").exists()


@pytest.mark.parametrize("kind", ["assume-unchanged", "skip-worktree", "ignored", "ignored folder"])
def test_what_git_overlooks_is_never_overwritten_and_the_command_that_is_told_ends_it(agent_access, kind):
    path = "ignored it's.md" if "ignored" in kind else "n.md"
    if kind == "ignored folder":
        agent_access.here(f"{path}/deep.md", "a person's\n", commit=False)
    else:
        agent_access.here(path, "a person's\n", commit=False)
    if "ignored" in kind:
        (agent_access.vault / ".git/info/exclude").write_text("ignored*\n")
    else:
        run(agent_access.vault, "update-index", f"--{kind}", "n.md")
    agent_access.there(path, "theirs\n")
    before = agent_access.files()
    for _ in range(2 if "ignored" in kind else 3):  # Git sees it again, it is committed, and a person merges both
        with pytest.raises(Conflict) as told:
            agent_access.remote.sync()
        assert agent_access.files() == before
        if "refs/memex" in told.value.message:
            break
        subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
        if "ignored" in kind:
            assert agent_access.remote.sync().took == 1
            assert agent_access.text(path) == "theirs\n"
            break
    assert "a person's\n" in {raw.decode() for raw in agent_access.files().values()}


def test_edits_that_are_not_in_the_way_stay_uncommitted_and_staged_as_they_are(agent_access):
    agent_access.here("own.md", "own\n")
    agent_access.here("staged.md", "staged\n", commit=False)
    run(agent_access.vault, "add", "staged.md")
    agent_access.here("own.md", "own, edited\n", commit=False)
    agent_access.there("theirs.md", "theirs\n")
    before = run(agent_access.vault, "status", "--porcelain")
    agent_access.remote.sync()
    assert run(agent_access.vault, "status", "--porcelain") == before == "M own.md\nA  staged.md"
    assert (agent_access.text("own.md"), agent_access.text("theirs.md")) == ("own, edited\n", "theirs\n")


def test_what_an_agent_wrote_in_that_moment_is_committed_and_merged(agent_access):
    agent_access.there("theirs.md", "theirs\n")
    agent_access.here("theirs.md", "an agent's\n", commit=False)

    def flush():
        """What another part does: it commits what is Memex's."""
        if not run(agent_access.vault, "status", "--porcelain"):
            return 0
        agent_access.calls.append("flush")
        if len(agent_access.calls) > 1:  # the first time, before the fetch, nothing was there yet
            (agent_access.vault / "theirs.md").rename(agent_access.vault / "ours.md")
            run(agent_access.vault, "add", "-A")
            run(agent_access.vault, "commit", "-qm", "x")
        return 1

    agent_access.remote._flush = flush
    assert agent_access.remote.sync() == Outcome(took=1, files=1, merged=True, sent=2)
    assert (agent_access.text("theirs.md"), agent_access.text("ours.md")) == ("theirs\n", "an agent's\n")


def test_files_that_another_tool_has_brought_already_are_no_hindrance(agent_access):
    agent_access.there("synced.md", "by Syncthing too\n")
    agent_access.there("n.md", "two\n")
    agent_access.here("synced.md", "by Syncthing too\n", commit=False)
    assert agent_access.remote.sync().took == 2
    assert run(agent_access.vault, "status", "--porcelain") == ""
    assert agent_access.text("n.md") == "two\n"
    assert agent_access.head() == agent_access.head(agent_access.bare, "main")


def test_a_fetch_of_another_program_at_the_same_moment_is_no_failure(agent_access):
    agent_access.there("theirs.md", "theirs\n")
    once, script = agent_access.state / "once", agent_access.state / "pack"
    ref, first, git = "refs/remotes/origin/main", agent_access.head(), shlex.quote(str(agent_access.vault / ".git"))
    script.write_text(
        f'#!/bin/sh\n[ -e {once} ] || git --git-dir={git} update-ref {ref} "$(cat {once}.to)"\n: > {once}\nexec "$@"\n'
    )
    script.chmod(0o755)
    with Path("~/.gitconfig").expanduser().open("a") as config:
        config.write(f"[uploadpack]\npackObjectsHook = {script}\n")
    run(agent_access.vault, "commit", "-q", "--allow-empty", "-m", "elsewhere")
    Path(f"{once}.to").write_text(agent_access.head())
    run(agent_access.vault, "reset", "-q", "--hard", first)
    assert agent_access.remote.sync().took == 1
    assert once.exists()


@pytest.mark.parametrize("prune", ["true", "false"])
def test_a_branch_that_the_remote_has_no_more_is_told_and_not_made_again(agent_access, prune):
    run(agent_access.vault, "config", "fetch.prune", prune)
    run(agent_access.bare, "branch", "-m", "main", "trunk")
    agent_access.here("ours.md", "ours\n")
    with pytest.raises(Conflict, match="origin has no branch main") as told:
        agent_access.remote.sync()
    assert run(agent_access.bare, "for-each-ref", "--format=%(refname)") == "refs/heads/trunk"
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
    assert agent_access.head(agent_access.bare, "main") == agent_access.head()
    assert agent_access.remote.sync() == Outcome()


def test_an_empty_remote_is_told_with_the_command_that_begins_it(agent_access):
    run(agent_access.bare, "update-ref", "-d", "refs/heads/main")
    run(agent_access.vault, "update-ref", "-d", "refs/remotes/origin/main")
    with pytest.raises(Conflict) as told:
        agent_access.remote.sync()
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
    assert agent_access.remote.sync() == Outcome()


def beside(agent_access):
    """A pull while another Git works in the vault: a merge that is about to fail."""
    agent_access.here("gone.md", "to go\n")
    run(agent_access.vault, "push", "-q")
    agent_access.there("gone.md", None)
    agent_access.there("n.md", "two\n")
    agent_access.there("new.md", "new\n")
    before, working = agent_access.head(), agent_access.state.parent / "git-merge"
    shutil.copy(shutil.which("sleep"), working)
    with subprocess.Popen([working, "60"], cwd=agent_access.vault) as process:
        assert agent_access.remote.pull().files == 3
        process.kill()
    run(agent_access.vault, "read-tree", "-u", "--reset", before)
    assert (agent_access.text("n.md"), run(agent_access.vault, "status", "--porcelain") != "") == ("one\n", True)


def test_what_another_git_puts_back_when_it_fails_is_brought_again(agent_access):
    beside(agent_access)
    agent_access.remote.tick()
    assert run(agent_access.vault, "status", "--porcelain") == ""
    assert agent_access.files() == {"n.md": b"two\n", "new.md": b"new\n"}
    run(agent_access.vault, "read-tree", "-u", "--reset", "HEAD~1")
    agent_access.remote._beside = None  # as if it were a minute later: then it is what its owner wants
    before = agent_access.files()
    agent_access.remote.tick()
    assert agent_access.files() == before != {"n.md": b"two\n", "new.md": b"new\n"}


def test_what_a_person_has_done_meanwhile_is_not_taken_for_another_git_s_failure(agent_access):
    beside(agent_access)
    (agent_access.vault / "n.md").write_text("mine\n")
    before = agent_access.files()
    agent_access.remote.tick()
    assert agent_access.files() == before


def test_a_push_that_somebody_else_was_faster_with_is_merged_and_sent_again(agent_access):
    agent_access.here("ours.md", "ours\n")
    agent_access.there("theirs.md", "theirs\n")
    assert agent_access.remote.push() == Outcome(took=1, files=1, merged=True, sent=2)
    assert agent_access.head() == agent_access.head(agent_access.bare, "main")
    assert "theirs.md" in agent_access.files()


def test_two_pushes_at_the_same_moment_both_arrive(agent_access):
    agent_access.there("theirs.md", "theirs\n", push=False)
    run(agent_access.clone, "push", "-q", "origin", "HEAD:refs/heads/faster")
    faster = agent_access.bare / "hooks" / "pre-receive"
    faster.parent.mkdir(exist_ok=True)
    faster.write_text(
        '#!/bin/sh\nunset GIT_QUARANTINE_PATH\ngit update-ref refs/heads/main refs/heads/faster\nrm -- "$0"\n'
    )
    faster.chmod(0o755)
    agent_access.here("ours.md", "ours\n")
    assert agent_access.remote.push() == Outcome(took=1, files=1, merged=True, sent=2)
    assert agent_access.head() == agent_access.head(agent_access.bare, "main")


@pytest.mark.parametrize("later", [True, False])
def test_a_secret_in_a_capture_keeps_all_commits_back_until_none_holds_it(agent_access, later):
    agent_access.here("ok.md", f"the vault proper is the person's own: {SECRET}\n")
    assert agent_access.remote.sync().sent == 1
    agent_access.here("Captures/default/a ü.md", f"token {SECRET}\n")
    if later:
        agent_access.here("Captures/default/a ü.md", "it was taken out\n")
    sent = agent_access.head(agent_access.bare, "main")
    with pytest.raises(
        Conflict, match=r"Captures/default/a ü\.md looks as if it held a secret \(github-token\).*reset --soft"
    ) as told:
        agent_access.remote.sync()
    assert SECRET not in str(told.value.as_dict())
    assert agent_access.head(agent_access.bare, "main") == sent
    run(agent_access.vault, "reset", "--soft", "origin/main")
    agent_access.here("Captures/default/a ü.md", "it was taken out\n")
    assert agent_access.remote.sync().sent == 1
    assert SECRET not in run(agent_access.bare, "log", "-p", "--", "Captures")


def test_a_secret_in_the_name_of_a_capture_is_not_sent(agent_access):
    agent_access.here(f"Captures/default/{SECRET}.md", "nothing secret\n")
    with pytest.raises(Conflict, match=r"looks as if it held a secret \(github-token\)"):
        agent_access.remote.sync()


def test_a_secret_that_the_remote_has_already_does_not_keep_ours_back(agent_access):
    agent_access.there("Captures/default/theirs.md", f"token {SECRET}\n")
    agent_access.here("Captures/default/ours.md", "nothing secret\n")
    assert agent_access.remote.sync().sent == 2


@pytest.mark.parametrize("elsewhere", ["pushes elsewhere", "pre-push hook"])
def test_a_push_that_is_the_persons_own_business_is_left_to_them(agent_access, elsewhere):
    agent_access.here("a.md", "a\n")
    if elsewhere == "pre-push hook":
        (agent_access.vault / ".git/hooks").mkdir(exist_ok=True)
        (agent_access.vault / ".git/hooks/pre-push").write_text("#!/bin/sh\nexit 0\n")
    else:
        run(agent_access.vault, "remote", "add", "fork", str(agent_access.clone))
        run(agent_access.vault, "config", "remote.pushDefault", "fork")
    with pytest.raises(Conflict, match=r"left to you: `git -C .* push`"):
        agent_access.remote.sync()
    agent_access.there("theirs.md", "x\n")
    assert agent_access.remote.pull().took == 1


def test_a_history_that_was_rewritten_is_not_merged_back(agent_access):
    agent_access.there("secret.md", "to be purged\n")
    agent_access.remote.sync()
    agent_access.here("ours.md", "ours\n")
    run(agent_access.clone, "reset", "-q", "--hard", "HEAD~1")
    run(agent_access.clone, "commit", "-q", "--allow-empty", "-m", "clean")
    run(agent_access.clone, "push", "-q", "--force")
    run(
        agent_access.vault,
        "update-index",
        "--cacheinfo",
        "100644",
        run(agent_access.vault, "rev-parse", "HEAD:ours.md"),
        "ours.md",
    )
    agent_access.here("n.md", "not committed\n", commit=False)
    before = agent_access.files()
    for _ in range(3):
        with pytest.raises(Conflict, match="another history than before") as told:
            agent_access.remote.sync()
    assert agent_access.files() == before
    assert run(agent_access.bare, "rev-list", "--count", "main") == "2"
    assert agent_access.repo.advice(agent_access.repo.standing()) == told.value.message
    assert agent_access.remote.unwell == UNWELL["rewritten"]
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
    assert agent_access.files() == {path: raw for path, raw in before.items() if path != "secret.md"}
    agent_access.there("theirs.md", "theirs\n")
    assert agent_access.remote.sync() == Outcome(took=1, files=1, merged=True, sent=2)
    assert run(agent_access.bare, "log", "--format=%s", "--", "secret.md") == ""
    assert run(agent_access.vault, "for-each-ref", "refs/memex") == ""


def test_a_remote_that_was_made_anew_is_taken_by_the_command_that_is_told(agent_access):
    shutil.rmtree(agent_access.clone / ".git")
    for words in (["init", "-qb", "main"], ["add", "-A"], ["commit", "-qm", "anew"]):
        run(agent_access.clone, *words)
    run(agent_access.clone, "push", "-qf", str(agent_access.bare), "main")
    agent_access.here("ours.md", "ours\n")
    with pytest.raises(Conflict, match="another history than before") as told:
        agent_access.remote.sync()
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
    assert (agent_access.text("ours.md"), agent_access.remote.sync().sent) == ("ours\n", 1)


WORKS = ("ok", "ahead", "behind", "diverged", "shallow")


@pytest.mark.parametrize(("make", "state", "operation", "mended"), CASES)
def test_in_every_state_it_works_or_says_what_to_do_and_touches_nothing(tmp_path, make, state, operation, mended):
    root = with_remote(tmp_path, "vault")
    make(root)
    repo = Repository(root)
    (tmp_path / "state").mkdir()
    remote = RemoteSync(
        *(repo, tmp_path / "state", GitSettings(timeout_s=5.0)),
        inbox="Captures",
        flush=lambda: 0,
        reserved=lambda _: contextlib.nullcontext(),
        moved=lambda: None,
        untied=lambda: None,
    )
    before, head = contents(root), repo.head()
    if state in WORKS:
        with contextlib.suppress(Conflict):  # diverged, in the very same note
            remote.sync()
        assert state == "diverged" or repo.standing().state in ("ok", "shallow")
    else:
        with pytest.raises(Conflict, match=r"`[^`]+`") as told:
            remote.sync()
        assert told.value.details["state"] == state
        assert (contents(root), repo.head()) == (before, head)
    repo.close()


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and ".git" not in path.parts}


# Ways to fail


def transport(agent_access, script):
    """Let the remote be reached by ssh, and ssh be this script."""
    program = agent_access.state.parent / "ssh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    run(agent_access.vault, "config", "core.sshCommand", str(program))
    run(agent_access.vault, "remote", "set-url", "origin", f"host:{agent_access.bare}")


def alive(word):
    """The processes of whose command line this is a part."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if word in (folder / "cmdline").read_bytes():
                found.append(folder.name)
    return found


SERVES = 'shift $(($# - 1)); eval "$1"'  # what the other end of ssh would do
FAILURES = {
    "it is down": ("echo 'ssh: connect to host host port 22: Connection refused' >&2; exit 255", "Connection refused"),
    "it hangs": ("sleep 86399 & echo $$ > $0.pid; wait", "did not answer within 1 s"),
    "it hangs and hears no signal": ("trap '' TERM INT HUP; sleep 86399; sleep 86399", "did not answer within 1 s"),
    "it hangs half-way": ('shift $(($# - 1)); eval "$1" | (head -c 20; sleep 86399)', "did not answer within 1 s"),
    "it asks at the terminal": ("printf 'Password: ' > /dev/tty && read secret < /dev/tty || { echo 'no terminal' >&2; exit 1; }", "no terminal"),
    "it asks on its input": ("read answer; exit 1", "did not answer within 1 s"),
    "it says a lot": ("yes 'remote: busy' | head -c 3000000 >&2; exit 1", "remote: busy"),
    "it tells a secret": (f"echo 'fatal: https://me:{SECRET}@host/ is gone' >&2; exit 1", r"https://me:\[github-token\]@host"),
}  # fmt: skip


OFTEN = ("it is down", "it hangs", "it tells a secret")


@pytest.mark.parametrize("how", [pytest.param(how, marks=() if how in OFTEN else pytest.mark.slow) for how in FAILURES])
def test_a_remote_that_fails_costs_its_time_and_no_more(tmp_path, how):
    agent_access = Desk(tmp_path, timeout_s=1.0)
    script, says = FAILURES[how]
    agent_access.here("ours.md", "ours\n")
    agent_access.there("theirs.md", "theirs\n")
    transport(agent_access, script)
    before, began = agent_access.files(), time.monotonic()
    with pytest.raises(Unavailable, match=says) as told:
        agent_access.remote.sync()
    assert time.monotonic() - began < 20
    assert (SECRET not in told.value.message, len(told.value.message) < 1_000) == (True, True)
    until(lambda: not alive(b"86399"))
    assert agent_access.files() == before
    assert agent_access.remote.unwell == UNREACHED
    transport(agent_access, SERVES)
    assert agent_access.made(timeout_s=60.0).sync() == Outcome(took=1, files=1, merged=True, sent=2)
    agent_access.close()


@pytest.mark.parametrize("asks", ["a password", "a helper that opens a window"])
def test_nobody_is_asked_for_a_password(agent_access, asks):
    class Closed(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="vault"')
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Closed)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    window = agent_access.state.parent / "window"
    window.write_text(f"#!/bin/sh\ntouch {window}.opened\nsleep 86399\n")
    window.chmod(0o755)
    if asks != "a password":
        run(agent_access.vault, "config", "core.askPass", str(window))
    run(agent_access.vault, "remote", "set-url", "origin", f"http://127.0.0.1:{server.server_port}/vault.git")
    try:
        with pytest.raises(Unavailable, match="terminal prompts disabled"):
            agent_access.remote.sync()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert not window.with_suffix(".opened").exists()


def test_a_credential_helper_of_git_is_asked(agent_access):
    seen = []

    class Closed(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.headers.get("Authorization"))
            self.send_response(404 if seen[-1] else 401)
            self.send_header("WWW-Authenticate", 'Basic realm="vault"')
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Closed)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    run(agent_access.vault, "config", "credential.helper", "!f() { echo username=me; echo password=it; }; f")
    run(agent_access.vault, "remote", "set-url", "origin", f"http://127.0.0.1:{server.server_port}/vault.git")
    with pytest.raises(Unavailable, match="not found"):
        agent_access.remote.sync()
    server.shutdown()
    thread.join()
    server.server_close()
    assert seen[-1] == "Basic bWU6aXQ="


def test_a_remote_that_refuses_a_push_is_told_in_its_words_and_the_next_success_sends_all(agent_access):
    hook = agent_access.bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'branch is frozen' >&2\nexit 1\n")
    hook.chmod(0o755)
    for name in ("a.md", "b.md"):
        agent_access.here(name, name)
        with pytest.raises(Unavailable, match=r"does not take the commits: .*declined.*branch is frozen"):
            agent_access.remote.sync()
    hook.unlink()
    assert agent_access.remote.sync().sent == 2


def test_what_waits_for_the_network_ends_with_the_daemon(tmp_path):
    agent_access = Desk(tmp_path, timeout_s=60.0)
    transport(agent_access, FAILURES["it hangs"][0])
    failed = []

    def work():
        with pytest.raises(Unavailable, match="is stopping"):
            agent_access.remote.sync()
        failed.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: alive(b"86399"))
    agent_access.remote.interrupt()
    thread.join(60)
    assert failed
    until(lambda: not alive(b"86399"))
    agent_access.close()


def test_the_persons_own_ssh_is_asked_with_its_options_and_never_for_a_password(agent_access, monkeypatch):
    folder = agent_access.state.parent / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(f'#!/bin/sh\necho "$@" > {folder}/said\n{SERVES}\n')
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_SSH_COMMAND", "/bin/false")  # of whoever started the daemon
    run(agent_access.vault, "config", "core.sshCommand", "ssh -i key")
    run(agent_access.vault, "remote", "set-url", "origin", f"host:{agent_access.bare}")
    agent_access.remote.sync()
    assert (folder / "said").read_text().startswith("-i key -oBatchMode=yes -oConnectTimeout=10")


# When


def test_failures_are_tried_again_ever_less_often_and_a_push_elsewhere_at_once(agent_access, monkeypatch):
    now = [1_000.0]
    monkeypatch.setattr(remote, "time", clock(now))
    agent_access.remote = agent_access.made(pull_s=10.0)
    away = agent_access.bare.with_name("away")
    agent_access.bare.rename(away)
    tries = []
    monkeypatch.setattr(remote, "fetch", lambda *given, **how: (tries.append(now[0]), fetch(*given, **how)))
    for _ in range(3_000):
        agent_access.remote.tick()
        now[0] += 10.0
    gaps = [b - a for a, b in itertools.pairwise(tries)]
    assert gaps[:8] == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    away.rename(agent_access.bare)
    agent_access.there("theirs.md", "theirs\n")
    agent_access.remote.rung()
    agent_access.remote.tick()
    assert "theirs.md" in agent_access.files()
    assert agent_access.remote.problem == ""


def clock(now):
    """The module `time`, whose clock stands still."""
    return types.SimpleNamespace(monotonic=lambda: now[0], time_ns=time.time_ns)


def test_by_default_nothing_is_exchanged_until_somebody_asks(agent_access, monkeypatch):
    agent_access.here("ours.md", "ours\n")
    agent_access.there("theirs.md", "theirs\n")
    before = agent_access.files()
    agent_access.remote.tick()
    assert agent_access.files() == before
    agent_access.remote.rung()
    agent_access.remote.tick()
    assert "theirs.md" in agent_access.files()
    assert (
        agent_access.head(agent_access.bare, "main") != agent_access.head()
    )  # what was announced is pulled; nothing is pushed


def test_with_the_setting_what_is_committed_is_pushed(agent_access):
    agent_access.remote = agent_access.made(push=True)
    agent_access.here("ours.md", "ours\n")
    agent_access.remote.tick()
    assert agent_access.head(agent_access.bare, "main") == agent_access.head()
    sent = agent_access.remote.facts()["pushed_at"]
    agent_access.remote.tick()
    assert agent_access.remote.facts()["pushed_at"] == sent


def test_what_was_asked_for_once_and_failed_is_done_by_itself_later(agent_access, monkeypatch, caplog):
    now = [1_000.0]
    monkeypatch.setattr(remote, "time", clock(now))
    away = agent_access.bare.with_name("away")
    agent_access.here("ours.md", "ours\n")
    agent_access.there("theirs.md", "theirs\n")
    agent_access.bare.rename(away)
    with pytest.raises(Unavailable):
        agent_access.remote.sync()
    assert caplog.text == "", "who asked is told; the log is for what nobody asked for"
    away.rename(agent_access.bare)
    agent_access.remote.tick()
    assert agent_access.remote.problem
    now[0] += 60
    agent_access.remote.tick()
    assert (agent_access.remote.problem, agent_access.head(agent_access.bare, "main")) == ("", agent_access.head())
    assert "theirs.md" in agent_access.files()


def test_a_push_is_announced_and_there_is_no_remote_so_the_vault_is_looked_at(agent_access):
    run(agent_access.vault, "remote", "remove", "origin")
    agent_access.remote.rung()
    agent_access.remote.tick()
    assert agent_access.calls == ["untied"]
    assert agent_access.remote.problem == ""


# What comes in


@pytest.mark.parametrize(
    "name", [".git", "..", *(pytest.param(name, marks=pytest.mark.slow) for name in (".GIT", ".g\u200cit", "git~1"))]
)
def test_a_tree_that_leads_out_of_the_vault_is_refused(agent_access, name):
    evil = agent_access.clone
    blob = (
        subprocess.run(
            ["git", "-C", str(evil), "hash-object", "-w", "--stdin"], input=b"evil", check=True, capture_output=True
        )
        .stdout.decode()
        .strip()
    )
    inner = mktree(evil, f"100644 blob {blob}\thooks-x")
    root = mktree(evil, f"040000 tree {inner}\t{name}")
    commit = run(evil, "commit-tree", "-p", "HEAD", "-m", "x", root)
    run(evil, "-c", "core.protectNTFS=false", "push", "-q", "origin", f"{commit}:main")
    before = agent_access.files()
    with pytest.raises(Conflict, match=r"Git refuses what the remote has: .*invalid path"):
        agent_access.remote.sync()
    assert agent_access.files() == before
    assert not list(agent_access.vault.parent.glob("hooks-x"))
    assert not (agent_access.vault / ".git/hooks-x").exists()


def mktree(root, line):
    """A tree of one entry, whatever its name."""
    done = subprocess.run(
        ["git", "-C", str(root), "mktree"], input=line.encode() + b"\n", check=True, capture_output=True
    )
    return done.stdout.decode().strip()


def test_a_name_that_this_disk_can_t_hold_is_told_and_nothing_counts_as_taken(agent_access):
    agent_access.there("fine.md", "fine\n", push=False)
    blob = run(agent_access.clone, "rev-parse", "HEAD:fine.md")
    run(agent_access.clone, "update-index", "--add", "--cacheinfo", f"100644,{blob},{'x' * 300}.md")
    run(agent_access.clone, "commit", "-qm", "long")
    run(agent_access.clone, "push", "-q")
    before, head = agent_access.files(), agent_access.head()
    for _ in range(2):
        with pytest.raises(Conflict, match=r"Git refuses what the remote has: .*File name too long"):
            agent_access.remote.sync()
    assert (agent_access.files(), agent_access.head(), agent_access.calls) == (before, head, [])
    assert not (agent_access.state / JOURNAL).exists()


def test_a_link_that_comes_in_stays_a_link_and_nothing_is_written_through_it(agent_access):
    outside = agent_access.vault.parent / "outside"
    outside.mkdir()
    (agent_access.clone / "Folder").symlink_to(outside)
    run(agent_access.clone, "add", "-A")
    run(agent_access.clone, "commit", "-qm", "x")
    run(agent_access.clone, "push", "-q")
    agent_access.remote.sync()
    assert (agent_access.vault / "Folder").is_symlink()
    (agent_access.clone / "Folder").unlink()
    agent_access.there("Folder/note.md", "inside\n")
    agent_access.remote.sync()
    assert (list(outside.iterdir()), agent_access.text("Folder/note.md")) == ([], "inside\n")
    assert not (agent_access.vault / "Folder").is_symlink()


def test_no_hook_and_no_monitor_of_the_repository_runs(agent_access):
    for name in ("post-merge", "post-checkout", "reference-transaction", "pre-merge-commit"):
        hook = agent_access.vault / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{agent_access.state}/ran'\n")
        hook.chmod(0o755)
    run(agent_access.vault, "config", "core.fsmonitor", str(hook))
    agent_access.there("theirs.md", "theirs\n")
    agent_access.here("ours.md", "ours\n", commit=False)
    (agent_access.state / "ran").unlink(missing_ok=True)
    assert agent_access.remote.sync().took == 1
    assert not (agent_access.state / "ran").exists()


def test_a_writer_waits_while_its_file_is_moved_and_others_do_not(agent_access):
    agent_access.here("Captures/default/a.md", "a\n")
    digest = hashlib.sha256(b"a\n").hexdigest()
    done = []

    def write():
        agent_access.notes.replace("Captures/default/a.md", b"b\n", digest=digest)
        done.append("a")

    with agent_access.notes.reservations.reserved(["Captures/default/a.md"]):
        thread = threading.Thread(target=write)
        thread.start()
        agent_access.notes.create("Captures/default/other.md", b"o\n")
        assert done == []
    thread.join(60)
    assert (done, agent_access.text("Captures/default/a.md")) == (["a"], "b\n")
