"""The vault and its remote, with real repositories: what one side has and the other has not is exchanged, in every state."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from index.errors import Conflict
from syncd.context.generated_note import merge_notes
from syncd.git.repository import Repository
from syncd.git.repository_state import UNWELL
from syncd.remote.branch_sync import RemoteSync, SyncOutcome
from syncd.settings.automation import GitSettings
from tests.support.git_states import CASES, only_command, run, with_remote

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("person"),
]


def test_what_the_remote_has_is_taken_by_moving_on(device):
    device.there("new ü.md", "from afar\n")
    device.there("n.md", "two\n")
    assert device.remote.sync() == SyncOutcome(took=2, files=2)
    assert (device.text("new ü.md"), device.text("n.md")) == ("from afar\n", "two\n")
    assert device.head() == device.head(device.bare, "main")
    assert run(device.vault, "status", "--porcelain") == ""
    assert device.calls == ["moved"]
    assert device.remote.sync() == SyncOutcome()


def test_what_the_remote_has_not_is_sent_and_nothing_else(device):
    run(device.vault, "branch", "private")
    run(device.vault, "tag", "-am", "x", "mine")
    run(device.vault, "config", "push.followTags", "true")
    run(device.vault, "config", "remote.origin.push", "+refs/heads/*:refs/heads/*")
    device.here("a.md", "a\n")
    assert device.remote.sync(pull=False) == SyncOutcome(sent=1)
    assert device.head() == device.head(device.bare, "main")
    assert run(device.bare, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert run(device.vault, "rev-list", "--count", "@{upstream}..HEAD") == "0"


def test_both_sides_are_merged_in_memory_with_a_trailer_and_sent(device):
    device.there("theirs.md", "theirs\n")
    device.here("ours.md", "ours\n")
    assert device.remote.sync() == SyncOutcome(took=1, files=1, merged=True, sent=2)
    assert (device.text("theirs.md"), device.text("ours.md")) == ("theirs\n", "ours\n")
    assert run(device.vault, "log", "-1", "--format=%(trailers:key=Memex-Tool,valueonly)") == "pull"
    assert run(device.vault, "rev-list", "--count", "--min-parents=2", "HEAD") == "1"
    assert device.head() == device.head(device.bare, "main")


def test_what_an_agent_wrote_in_that_moment_is_committed_and_merged(device):
    device.there("theirs.md", "theirs\n")
    device.here("theirs.md", "an agent's\n", commit=False)

    def flush():
        """What another part does: it commits what is Memex's."""
        if not run(device.vault, "status", "--porcelain"):
            return 0
        device.calls.append("flush")
        if len(device.calls) > 1:  # the first time, before the fetch, nothing was there yet
            (device.vault / "theirs.md").rename(device.vault / "ours.md")
            run(device.vault, "add", "-A")
            run(device.vault, "commit", "-qm", "x")
        return 1

    device.remote._flush = flush
    assert device.remote.sync() == SyncOutcome(took=1, files=1, merged=True, sent=2)
    assert (device.text("theirs.md"), device.text("ours.md")) == ("theirs\n", "an agent's\n")


def test_a_fetch_of_another_program_at_the_same_moment_is_no_failure(device):
    device.there("theirs.md", "theirs\n")
    once, script = device.state / "once", device.state / "pack"
    ref, first, git = "refs/remotes/origin/main", device.head(), shlex.quote(str(device.vault / ".git"))
    script.write_text(
        f'#!/bin/sh\n[ -e {once} ] || git --git-dir={git} update-ref {ref} "$(cat {once}.to)"\n: > {once}\nexec "$@"\n'
    )
    script.chmod(0o755)
    with Path("~/.gitconfig").expanduser().open("a") as config:
        config.write(f"[uploadpack]\npackObjectsHook = {script}\n")
    run(device.vault, "commit", "-q", "--allow-empty", "-m", "elsewhere")
    Path(f"{once}.to").write_text(device.head())
    run(device.vault, "reset", "-q", "--hard", first)
    assert device.remote.sync().took == 1
    assert once.exists()


@pytest.mark.parametrize("prune", ["true", "false"])
def test_a_branch_that_the_remote_has_no_more_is_told_and_not_made_again(device, prune):
    run(device.vault, "config", "fetch.prune", prune)
    run(device.bare, "branch", "-m", "main", "trunk")
    device.here("ours.md", "ours\n")
    with pytest.raises(Conflict, match="origin has no branch main") as told:
        device.remote.sync()
    assert run(device.bare, "for-each-ref", "--format=%(refname)") == "refs/heads/trunk"
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
    assert device.head(device.bare, "main") == device.head()
    assert device.remote.sync() == SyncOutcome()


def test_an_empty_remote_is_told_with_the_command_that_begins_it(device):
    run(device.bare, "update-ref", "-d", "refs/heads/main")
    run(device.vault, "update-ref", "-d", "refs/remotes/origin/main")
    with pytest.raises(Conflict) as told:
        device.remote.sync()
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
    assert device.remote.sync() == SyncOutcome()


def test_a_push_that_somebody_else_was_faster_with_is_merged_and_sent_again(device):
    device.here("ours.md", "ours\n")
    device.there("theirs.md", "theirs\n")
    assert device.remote.sync(pull=False) == SyncOutcome(took=1, files=1, merged=True, sent=2)
    assert device.head() == device.head(device.bare, "main")
    assert "theirs.md" in device.files()


@pytest.mark.slow
def test_two_pushes_at_the_same_moment_both_arrive(device):
    device.there("theirs.md", "theirs\n", push=False)
    run(device.clone, "push", "-q", "origin", "HEAD:refs/heads/faster")
    faster = device.bare / "hooks" / "pre-receive"
    faster.parent.mkdir(exist_ok=True)
    faster.write_text(
        '#!/bin/sh\nunset GIT_QUARANTINE_PATH\ngit update-ref refs/heads/main refs/heads/faster\nrm -- "$0"\n'
    )
    faster.chmod(0o755)
    device.here("ours.md", "ours\n")
    assert device.remote.sync(pull=False) == SyncOutcome(took=1, files=1, merged=True, sent=2)
    assert device.head() == device.head(device.bare, "main")


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", ["pushes elsewhere", "pre-push hook"])
def test_a_push_that_is_the_persons_own_business_is_left_to_them(device, elsewhere):
    device.here("a.md", "a\n")
    if elsewhere == "pre-push hook":
        (device.vault / ".git/hooks").mkdir(exist_ok=True)
        (device.vault / ".git/hooks/pre-push").write_text("#!/bin/sh\nexit 0\n")
    else:
        run(device.vault, "remote", "add", "fork", str(device.clone))
        run(device.vault, "config", "remote.pushDefault", "fork")
    with pytest.raises(Conflict, match=r"push manually: `git -C .* push`"):
        device.remote.sync()
    device.there("theirs.md", "x\n")
    assert device.remote.sync(push=False).took == 1


@pytest.mark.slow
def test_a_history_that_was_rewritten_is_not_merged_back(device):
    device.there("secret.md", "to be purged\n")
    device.remote.sync()
    device.here("ours.md", "ours\n")
    run(device.clone, "reset", "-q", "--hard", "HEAD~1")
    run(device.clone, "commit", "-q", "--allow-empty", "-m", "clean")
    run(device.clone, "push", "-q", "--force")
    run(
        device.vault,
        "update-index",
        "--cacheinfo",
        "100644",
        run(device.vault, "rev-parse", "HEAD:ours.md"),
        "ours.md",
    )
    device.here("n.md", "not committed\n", commit=False)
    before = device.files()
    for _ in range(3):
        with pytest.raises(Conflict, match="was rewritten") as told:
            device.remote.sync()
    assert device.files() == before
    assert run(device.bare, "rev-list", "--count", "main") == "2"
    assert device.repo.advice(device.repo.read_state()) == told.value.message
    assert device.remote.unwell == UNWELL["rewritten"]
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
    assert device.files() == {path: raw for path, raw in before.items() if path != "secret.md"}
    device.there("theirs.md", "theirs\n")
    assert device.remote.sync() == SyncOutcome(took=1, files=1, merged=True, sent=2)
    assert run(device.bare, "log", "--format=%s", "--", "secret.md") == ""
    assert run(device.vault, "for-each-ref", "refs/memex") == ""


@pytest.mark.slow
@pytest.mark.parametrize("logs", [True, False], ids=["with logs", "without"])
@pytest.mark.parametrize("fetches", ["Memex", "another program"])
def test_purged_commits_are_not_pushed_again_whoever_fetches_first(device, fetches, logs):
    if not logs:
        run(device.vault, "config", "core.logAllRefUpdates", "false")
        shutil.rmtree(device.vault / ".git/logs")
    device.there("secret.md", "to be purged\n")
    device.remote.sync()
    run(device.clone, "reset", "-q", "--hard", "HEAD~1")
    run(device.clone, "commit", "-q", "--allow-empty", "-m", "clean")
    run(device.clone, "push", "-q", "--force")
    purged = device.head(device.bare, "main")
    device.here("ours.md", "ours\n")
    if fetches == "another program":
        run(device.vault, "fetch", "-q")
    for _ in range(2):
        with pytest.raises(Conflict, match="was rewritten") as told:
            device.remote.sync()
    assert device.head(device.bare, "main") == purged
    assert device.remote.unwell == UNWELL["rewritten"]
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
    assert device.remote.sync().sent == 1
    assert device.files().keys() == {"n.md", "ours.md"}
    assert run(device.bare, "log", "--format=%s", "main", "--", "secret.md") == ""


@pytest.mark.parametrize(("setting", "logged"), [("Always", True), ("false", False), (None, False)])
def test_tags_that_a_fetch_brings_have_a_log_where_a_persons_fetch_gives_them_one(device, setting, logged):
    run(device.vault, "config", "remote.origin.tagOpt", "--tags")
    if setting:
        run(device.vault, "config", "core.logAllRefUpdates", setting)
    device.there("theirs.md", "theirs\n")
    run(device.clone, "tag", "v1")
    run(device.clone, "push", "-q", "--tags")
    assert device.remote.sync().took == 1
    assert run(device.vault, "tag") == "v1"
    assert (device.vault / ".git/logs/refs/tags/v1").exists() == logged
    assert "fetch" in (device.vault / ".git/logs/refs/remotes/origin/main").read_text()


def test_a_remote_that_was_made_anew_is_taken_by_the_command_that_is_told(device):
    shutil.rmtree(device.clone / ".git")
    for words in (["init", "-qb", "main"], ["add", "-A"], ["commit", "-qm", "anew"]):
        run(device.clone, *words)
    run(device.clone, "push", "-qf", str(device.bare), "main")
    device.here("ours.md", "ours\n")
    with pytest.raises(Conflict, match="was rewritten") as told:
        device.remote.sync()
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
    assert (device.text("ours.md"), device.remote.sync().sent) == ("ours\n", 1)


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
        merge_note=merge_notes,
        flush=lambda: 0,
        reserved=lambda _: contextlib.nullcontext(),
        moved=lambda: None,
        untied=lambda: None,
    )
    before, head = contents(root), repo.head()
    if state in WORKS:
        with contextlib.suppress(Conflict):  # diverged, in the very same note
            remote.sync()
        assert state == "diverged" or repo.read_state().state in ("ok", "shallow")
    else:
        with pytest.raises(Conflict, match=r"`[^`]+`") as told:
            remote.sync()
        assert told.value.details["state"] == state
        assert (contents(root), repo.head()) == (before, head)


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and ".git" not in path.parts}
