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
from syncd.remote import branch_sync as remote
from syncd.remote.branch_sync import UNREACHED, Outcome, RemoteSync
from syncd.remote.fast_forward import JOURNAL
from syncd.remote.upstream_branch import fetch
from syncd.settings.automation import GitSettings
from tests.support.git_states import CASES, only_command, run, with_remote
from tests.support.remote_vault import SECRET, SyncedDevice
from tests.support.world import until

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


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


@pytest.fixture
def device(tmp_path):
    made = SyncedDevice(tmp_path)
    yield made
    made.close()


def test_what_the_remote_has_is_taken_by_moving_on(device):
    device.there("new ü.md", "from afar\n")
    device.there("n.md", "two\n")
    assert device.remote.sync() == Outcome(took=2, files=2)
    assert (device.text("new ü.md"), device.text("n.md")) == ("from afar\n", "two\n")
    assert device.head() == device.head(device.bare, "main")
    assert run(device.vault, "status", "--porcelain") == ""
    assert device.calls == ["moved"]
    assert device.remote.sync() == Outcome()


def test_what_the_remote_has_not_is_sent_and_nothing_else(device):
    run(device.vault, "branch", "private")
    run(device.vault, "tag", "-am", "x", "mine")
    run(device.vault, "config", "push.followTags", "true")
    run(device.vault, "config", "remote.origin.push", "+refs/heads/*:refs/heads/*")
    device.here("a.md", "a\n")
    assert device.remote.push() == Outcome(sent=1)
    assert device.head() == device.head(device.bare, "main")
    assert run(device.bare, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert run(device.vault, "rev-list", "--count", "@{upstream}..HEAD") == "0"


def test_both_sides_are_merged_in_memory_with_a_trailer_and_sent(device):
    device.there("theirs.md", "theirs\n")
    device.here("ours.md", "ours\n")
    assert device.remote.sync() == Outcome(took=1, files=1, merged=True, sent=2)
    assert (device.text("theirs.md"), device.text("ours.md")) == ("theirs\n", "ours\n")
    assert run(device.vault, "log", "-1", "--format=%(trailers:key=Memex-Tool,valueonly)") == "pull"
    assert run(device.vault, "rev-list", "--count", "--min-parents=2", "HEAD") == "1"
    assert device.head() == device.head(device.bare, "main")


def test_a_conflict_is_parked_touches_no_byte_and_goes_on_once_a_person_has_merged(device):
    device.there("n.md", "theirs\n")
    device.there("more.md", "more\n")
    device.here("n.md", "ours\n")
    theirs, before, head = device.head(device.bare, "main"), device.files(), device.head()
    for _ in range(2):
        with pytest.raises(Conflict, match=r"both changed n\.md.*`git .* pull --no-rebase`"):
            device.remote.sync()
    assert (device.files(), device.head(), device.parked()) == (before, head, [theirs])
    assert device.head(device.bare, "main") == theirs
    assert device.remote.unwell.startswith("git: the vault and its remote have both moved on")
    run(device.vault, "pull", "-q", "--no-rebase", check=False)
    with pytest.raises(Conflict, match="conflicts are left to mend"):
        device.remote.sync()
    device.here("n.md", "ours and theirs\n")
    assert device.remote.sync().sent == 2
    assert (device.parked(), device.remote.problem, device.remote.unwell) == ([], "", "")
    assert device.head() == device.head(device.bare, "main")


def test_a_note_goes_where_it_was_put_though_its_folder_is_called_otherwise_elsewhere(device):
    device.here("Notes/b.md", "b\n")
    device.remote.sync()
    run(device.clone, "pull", "-q")
    (device.clone / "Notes").rename(device.clone / "Articles")
    device.there("n.md", "two\n")
    device.here("Notes/new.md", "new\n")
    assert device.remote.sync().merged
    assert {"Articles/b.md", "Notes/new.md"} <= device.files().keys()
    assert (device.vault / "Notes/b.md").exists() is False


def test_a_conflict_on_which_git_dies_by_its_guess_at_folders_is_parked_and_its_command_works(device):
    """A capture was promoted here and deleted there, where all that was promoted went back: Git 2.39 aborts on that."""
    device.here("Captures/a.md", "a\n" * 9)
    device.here("Captures/c.md", "c\n" * 9)
    device.here("Notes/b.md", "b\n" * 9)
    device.remote.sync()
    run(device.clone, "pull", "-q")
    (device.vault / "Notes/a.md").write_bytes((device.vault / "Captures/a.md").read_bytes())
    device.here("Captures/a.md", None)
    (device.clone / "Notes/b.md").rename(device.clone / "Captures/b.md")
    device.there("Captures/a.md", None)
    with pytest.raises(Conflict, match=r"both changed Notes/a\.md") as told:
        device.remote.sync()
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=False, capture_output=True)
    assert device.repo.state() == "conflict"
    run(device.vault, "add", "-A")
    run(device.vault, "commit", "-qm", "mended")
    assert device.remote.sync().sent
    assert device.files().keys() >= {"Notes/a.md", "Captures/b.md"}


@pytest.mark.parametrize(("path", "text"), [("n.md", "edited\n"), ("new.md", "not committed\n")])
def test_what_is_not_committed_is_never_overwritten_and_is_named(device, path, text):
    device.here(".gitignore", "ignored.md\n")
    device.remote.sync()
    run(device.clone, "pull", "-q")
    (device.clone / path).write_text("theirs\n")
    run(device.clone, "add", "-Af")
    run(device.clone, "commit", "-qm", "x")
    run(device.clone, "push", "-q")
    device.here(path, text, commit=False)
    before, head = device.files(), device.head()
    with pytest.raises(Conflict, match=rf"not committed: {path}; commit it") as told:
        device.remote.sync()
    assert told.value.details == {"paths": [path]}
    assert (device.files(), device.head()) == (before, head)
    assert not (device.vault / ".git/index.lock").exists()


@pytest.mark.parametrize("kind", ["assume-unchanged", "skip-worktree", "ignored", "ignored folder"])
def test_what_git_overlooks_is_never_overwritten_and_the_command_that_is_told_ends_it(device, kind):
    path = "ignored it's.md" if "ignored" in kind else "n.md"
    if kind == "ignored folder":
        device.here(f"{path}/deep.md", "a person's\n", commit=False)
    else:
        device.here(path, "a person's\n", commit=False)
    if "ignored" in kind:
        (device.vault / ".git/info/exclude").write_text("ignored*\n")
    else:
        run(device.vault, "update-index", f"--{kind}", "n.md")
    device.there(path, "theirs\n")
    before = device.files()
    for _ in range(2 if "ignored" in kind else 3):  # Git sees it again, it is committed, and a person merges both
        with pytest.raises(Conflict) as told:
            device.remote.sync()
        assert device.files() == before
        if "refs/memex" in told.value.message:
            break
        subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
        if "ignored" in kind:
            assert device.remote.sync().took == 1
            assert device.text(path) == "theirs\n"
            break
    assert "a person's\n" in {raw.decode() for raw in device.files().values()}


def test_edits_that_are_not_in_the_way_stay_uncommitted_and_staged_as_they_are(device):
    device.here("own.md", "own\n")
    device.here("staged.md", "staged\n", commit=False)
    run(device.vault, "add", "staged.md")
    device.here("own.md", "own, edited\n", commit=False)
    device.there("theirs.md", "theirs\n")
    before = run(device.vault, "status", "--porcelain")
    device.remote.sync()
    assert run(device.vault, "status", "--porcelain") == before == "M own.md\nA  staged.md"
    assert (device.text("own.md"), device.text("theirs.md")) == ("own, edited\n", "theirs\n")


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
    assert device.remote.sync() == Outcome(took=1, files=1, merged=True, sent=2)
    assert (device.text("theirs.md"), device.text("ours.md")) == ("theirs\n", "an agent's\n")


def test_files_that_another_tool_has_brought_already_are_no_hindrance(device):
    device.there("synced.md", "by Syncthing too\n")
    device.there("n.md", "two\n")
    device.here("synced.md", "by Syncthing too\n", commit=False)
    assert device.remote.sync().took == 2
    assert run(device.vault, "status", "--porcelain") == ""
    assert device.text("n.md") == "two\n"
    assert device.head() == device.head(device.bare, "main")


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
    assert device.remote.sync() == Outcome()


def test_an_empty_remote_is_told_with_the_command_that_begins_it(device):
    run(device.bare, "update-ref", "-d", "refs/heads/main")
    run(device.vault, "update-ref", "-d", "refs/remotes/origin/main")
    with pytest.raises(Conflict) as told:
        device.remote.sync()
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
    assert device.remote.sync() == Outcome()


def beside(device):
    """A pull while another Git works in the vault: a merge that is about to fail."""
    device.here("gone.md", "to go\n")
    run(device.vault, "push", "-q")
    device.there("gone.md", None)
    device.there("n.md", "two\n")
    device.there("new.md", "new\n")
    before, working = device.head(), device.state.parent / "git-merge"
    shutil.copy(shutil.which("sleep"), working)
    with subprocess.Popen([working, "60"], cwd=device.vault) as process:
        assert device.remote.pull().files == 3
        process.kill()
    run(device.vault, "read-tree", "-u", "--reset", before)
    assert (device.text("n.md"), run(device.vault, "status", "--porcelain") != "") == ("one\n", True)


def test_what_another_git_puts_back_when_it_fails_is_brought_again(device):
    beside(device)
    device.remote.tick()
    assert run(device.vault, "status", "--porcelain") == ""
    assert device.files() == {"n.md": b"two\n", "new.md": b"new\n"}
    run(device.vault, "read-tree", "-u", "--reset", "HEAD~1")
    device.remote._beside = None  # as if it were a minute later: then it is what its owner wants
    before = device.files()
    device.remote.tick()
    assert device.files() == before != {"n.md": b"two\n", "new.md": b"new\n"}


def test_what_a_person_has_done_meanwhile_is_not_taken_for_another_git_s_failure(device):
    beside(device)
    (device.vault / "n.md").write_text("mine\n")
    before = device.files()
    device.remote.tick()
    assert device.files() == before


def test_a_push_that_somebody_else_was_faster_with_is_merged_and_sent_again(device):
    device.here("ours.md", "ours\n")
    device.there("theirs.md", "theirs\n")
    assert device.remote.push() == Outcome(took=1, files=1, merged=True, sent=2)
    assert device.head() == device.head(device.bare, "main")
    assert "theirs.md" in device.files()


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
    assert device.remote.push() == Outcome(took=1, files=1, merged=True, sent=2)
    assert device.head() == device.head(device.bare, "main")


@pytest.mark.parametrize("later", [True, False])
def test_a_secret_in_a_capture_keeps_all_commits_back_until_none_holds_it(device, later):
    device.here("ok.md", f"the vault proper is the person's own: {SECRET}\n")
    assert device.remote.sync().sent == 1
    device.here("Captures/default/a ü.md", f"token {SECRET}\n")
    if later:
        device.here("Captures/default/a ü.md", "it was taken out\n")
    sent = device.head(device.bare, "main")
    with pytest.raises(
        Conflict, match=r"Captures/default/a ü\.md looks as if it held a secret \(github-token\).*reset --soft"
    ) as told:
        device.remote.sync()
    assert SECRET not in str(told.value.as_dict())
    assert device.head(device.bare, "main") == sent
    run(device.vault, "reset", "--soft", "origin/main")
    device.here("Captures/default/a ü.md", "it was taken out\n")
    assert device.remote.sync().sent == 1
    assert SECRET not in run(device.bare, "log", "-p", "--", "Captures")


def test_a_secret_in_the_name_of_a_capture_is_not_sent(device):
    device.here(f"Captures/default/{SECRET}.md", "nothing secret\n")
    with pytest.raises(Conflict, match=r"looks as if it held a secret \(github-token\)"):
        device.remote.sync()


def test_a_secret_that_the_remote_has_already_does_not_keep_ours_back(device):
    device.there("Captures/default/theirs.md", f"token {SECRET}\n")
    device.here("Captures/default/ours.md", "nothing secret\n")
    assert device.remote.sync().sent == 2


@pytest.mark.parametrize("elsewhere", ["pushes elsewhere", "pre-push hook"])
def test_a_push_that_is_the_persons_own_business_is_left_to_them(device, elsewhere):
    device.here("a.md", "a\n")
    if elsewhere == "pre-push hook":
        (device.vault / ".git/hooks").mkdir(exist_ok=True)
        (device.vault / ".git/hooks/pre-push").write_text("#!/bin/sh\nexit 0\n")
    else:
        run(device.vault, "remote", "add", "fork", str(device.clone))
        run(device.vault, "config", "remote.pushDefault", "fork")
    with pytest.raises(Conflict, match=r"left to you: `git -C .* push`"):
        device.remote.sync()
    device.there("theirs.md", "x\n")
    assert device.remote.pull().took == 1


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
        with pytest.raises(Conflict, match="another history than before") as told:
            device.remote.sync()
    assert device.files() == before
    assert run(device.bare, "rev-list", "--count", "main") == "2"
    assert device.repo.advice(device.repo.standing()) == told.value.message
    assert device.remote.unwell == UNWELL["rewritten"]
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
    assert device.files() == {path: raw for path, raw in before.items() if path != "secret.md"}
    device.there("theirs.md", "theirs\n")
    assert device.remote.sync() == Outcome(took=1, files=1, merged=True, sent=2)
    assert run(device.bare, "log", "--format=%s", "--", "secret.md") == ""
    assert run(device.vault, "for-each-ref", "refs/memex") == ""


def test_a_remote_that_was_made_anew_is_taken_by_the_command_that_is_told(device):
    shutil.rmtree(device.clone / ".git")
    for words in (["init", "-qb", "main"], ["add", "-A"], ["commit", "-qm", "anew"]):
        run(device.clone, *words)
    run(device.clone, "push", "-qf", str(device.bare), "main")
    device.here("ours.md", "ours\n")
    with pytest.raises(Conflict, match="another history than before") as told:
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


def transport(device, script):
    """Let the remote be reached by ssh, and ssh be this script."""
    program = device.state.parent / "ssh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    run(device.vault, "config", "core.sshCommand", str(program))
    run(device.vault, "remote", "set-url", "origin", f"host:{device.bare}")


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
    device = SyncedDevice(tmp_path, timeout_s=1.0)
    script, says = FAILURES[how]
    device.here("ours.md", "ours\n")
    device.there("theirs.md", "theirs\n")
    transport(device, script)
    before, began = device.files(), time.monotonic()
    with pytest.raises(Unavailable, match=says) as told:
        device.remote.sync()
    assert time.monotonic() - began < 20
    assert (SECRET not in told.value.message, len(told.value.message) < 1_000) == (True, True)
    until(lambda: not alive(b"86399"))
    assert device.files() == before
    assert device.remote.unwell == UNREACHED
    transport(device, SERVES)
    assert device.made(timeout_s=60.0).sync() == Outcome(took=1, files=1, merged=True, sent=2)
    device.close()


@pytest.mark.parametrize("asks", ["a password", "a helper that opens a window"])
def test_nobody_is_asked_for_a_password(device, asks):
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
    window = device.state.parent / "window"
    window.write_text(f"#!/bin/sh\ntouch {window}.opened\nsleep 86399\n")
    window.chmod(0o755)
    if asks != "a password":
        run(device.vault, "config", "core.askPass", str(window))
    run(device.vault, "remote", "set-url", "origin", f"http://127.0.0.1:{server.server_port}/vault.git")
    try:
        with pytest.raises(Unavailable, match="terminal prompts disabled"):
            device.remote.sync()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert not window.with_suffix(".opened").exists()


def test_a_credential_helper_of_git_is_asked(device):
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
    run(device.vault, "config", "credential.helper", "!f() { echo username=me; echo password=it; }; f")
    run(device.vault, "remote", "set-url", "origin", f"http://127.0.0.1:{server.server_port}/vault.git")
    with pytest.raises(Unavailable, match="not found"):
        device.remote.sync()
    server.shutdown()
    thread.join()
    server.server_close()
    assert seen[-1] == "Basic bWU6aXQ="


def test_a_remote_that_refuses_a_push_is_told_in_its_words_and_the_next_success_sends_all(device):
    hook = device.bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'branch is frozen' >&2\nexit 1\n")
    hook.chmod(0o755)
    for name in ("a.md", "b.md"):
        device.here(name, name)
        with pytest.raises(Unavailable, match=r"does not take the commits: .*declined.*branch is frozen"):
            device.remote.sync()
    hook.unlink()
    assert device.remote.sync().sent == 2


def test_what_waits_for_the_network_ends_with_the_daemon(tmp_path):
    device = SyncedDevice(tmp_path, timeout_s=60.0)
    transport(device, FAILURES["it hangs"][0])
    failed = []

    def work():
        with pytest.raises(Unavailable, match="is stopping"):
            device.remote.sync()
        failed.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: alive(b"86399"))
    device.remote.interrupt()
    thread.join(60)
    assert failed
    until(lambda: not alive(b"86399"))
    device.close()


def test_the_persons_own_ssh_is_asked_with_its_options_and_never_for_a_password(device, monkeypatch):
    folder = device.state.parent / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(f'#!/bin/sh\necho "$@" > {folder}/said\n{SERVES}\n')
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_SSH_COMMAND", "/bin/false")  # of whoever started the daemon
    run(device.vault, "config", "core.sshCommand", "ssh -i key")
    run(device.vault, "remote", "set-url", "origin", f"host:{device.bare}")
    device.remote.sync()
    assert (folder / "said").read_text().startswith("-i key -oBatchMode=yes -oConnectTimeout=10")


# When


def test_failures_are_tried_again_ever_less_often_and_a_push_elsewhere_at_once(device, monkeypatch):
    now = [1_000.0]
    monkeypatch.setattr(remote, "time", clock(now))
    device.remote = device.made(pull_s=10.0)
    away = device.bare.with_name("away")
    device.bare.rename(away)
    tries = []
    monkeypatch.setattr(remote, "fetch", lambda *given, **how: (tries.append(now[0]), fetch(*given, **how)))
    for _ in range(3_000):
        device.remote.tick()
        now[0] += 10.0
    gaps = [b - a for a, b in itertools.pairwise(tries)]
    assert gaps[:8] == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    away.rename(device.bare)
    device.there("theirs.md", "theirs\n")
    device.remote.rung()
    device.remote.tick()
    assert "theirs.md" in device.files()
    assert device.remote.problem == ""


def clock(now):
    """The module `time`, whose clock stands still."""
    return types.SimpleNamespace(monotonic=lambda: now[0], time_ns=time.time_ns)


def test_by_default_nothing_is_exchanged_until_somebody_asks(device, monkeypatch):
    device.here("ours.md", "ours\n")
    device.there("theirs.md", "theirs\n")
    before = device.files()
    device.remote.tick()
    assert device.files() == before
    device.remote.rung()
    device.remote.tick()
    assert "theirs.md" in device.files()
    assert device.head(device.bare, "main") != device.head()  # what was announced is pulled; nothing is pushed


def test_with_the_setting_what_is_committed_is_pushed(device):
    device.remote = device.made(push=True)
    device.here("ours.md", "ours\n")
    device.remote.tick()
    assert device.head(device.bare, "main") == device.head()
    sent = device.remote.facts()["pushed_at"]
    device.remote.tick()
    assert device.remote.facts()["pushed_at"] == sent


def test_what_was_asked_for_once_and_failed_is_done_by_itself_later(device, monkeypatch, caplog):
    now = [1_000.0]
    monkeypatch.setattr(remote, "time", clock(now))
    away = device.bare.with_name("away")
    device.here("ours.md", "ours\n")
    device.there("theirs.md", "theirs\n")
    device.bare.rename(away)
    with pytest.raises(Unavailable):
        device.remote.sync()
    assert caplog.text == "", "who asked is told; the log is for what nobody asked for"
    away.rename(device.bare)
    device.remote.tick()
    assert device.remote.problem
    now[0] += 60
    device.remote.tick()
    assert (device.remote.problem, device.head(device.bare, "main")) == ("", device.head())
    assert "theirs.md" in device.files()


def test_a_push_is_announced_and_there_is_no_remote_so_the_vault_is_looked_at(device):
    run(device.vault, "remote", "remove", "origin")
    device.remote.rung()
    device.remote.tick()
    assert device.calls == ["untied"]
    assert device.remote.problem == ""


# What comes in


@pytest.mark.parametrize(
    "name", [".git", "..", *(pytest.param(name, marks=pytest.mark.slow) for name in (".GIT", ".g\u200cit", "git~1"))]
)
def test_a_tree_that_leads_out_of_the_vault_is_refused(device, name):
    evil = device.clone
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
    before = device.files()
    with pytest.raises(Conflict, match=r"Git refuses what the remote has: .*invalid path"):
        device.remote.sync()
    assert device.files() == before
    assert not list(device.vault.parent.glob("hooks-x"))
    assert not (device.vault / ".git/hooks-x").exists()


def mktree(root, line):
    """A tree of one entry, whatever its name."""
    done = subprocess.run(
        ["git", "-C", str(root), "mktree"], input=line.encode() + b"\n", check=True, capture_output=True
    )
    return done.stdout.decode().strip()


def test_a_name_that_this_disk_can_t_hold_is_told_and_nothing_counts_as_taken(device):
    device.there("fine.md", "fine\n", push=False)
    blob = run(device.clone, "rev-parse", "HEAD:fine.md")
    run(device.clone, "update-index", "--add", "--cacheinfo", f"100644,{blob},{'x' * 300}.md")
    run(device.clone, "commit", "-qm", "long")
    run(device.clone, "push", "-q")
    before, head = device.files(), device.head()
    for _ in range(2):
        with pytest.raises(Conflict, match=r"Git refuses what the remote has: .*File name too long"):
            device.remote.sync()
    assert (device.files(), device.head(), device.calls) == (before, head, [])
    assert not (device.state / JOURNAL).exists()


def test_a_link_that_comes_in_stays_a_link_and_nothing_is_written_through_it(device):
    outside = device.vault.parent / "outside"
    outside.mkdir()
    (device.clone / "Folder").symlink_to(outside)
    run(device.clone, "add", "-A")
    run(device.clone, "commit", "-qm", "x")
    run(device.clone, "push", "-q")
    device.remote.sync()
    assert (device.vault / "Folder").is_symlink()
    (device.clone / "Folder").unlink()
    device.there("Folder/note.md", "inside\n")
    device.remote.sync()
    assert (list(outside.iterdir()), device.text("Folder/note.md")) == ([], "inside\n")
    assert not (device.vault / "Folder").is_symlink()


def test_no_hook_and_no_monitor_of_the_repository_runs(device):
    for name in ("post-merge", "post-checkout", "reference-transaction", "pre-merge-commit"):
        hook = device.vault / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{device.state}/ran'\n")
        hook.chmod(0o755)
    run(device.vault, "config", "core.fsmonitor", str(hook))
    device.there("theirs.md", "theirs\n")
    device.here("ours.md", "ours\n", commit=False)
    (device.state / "ran").unlink(missing_ok=True)
    assert device.remote.sync().took == 1
    assert not (device.state / "ran").exists()


def test_a_writer_waits_while_its_file_is_moved_and_others_do_not(device):
    device.here("Captures/default/a.md", "a\n")
    digest = hashlib.sha256(b"a\n").hexdigest()
    done = []

    def write():
        device.notes.replace("Captures/default/a.md", b"b\n", digest=digest)
        done.append("a")

    with device.notes.reservations.reserved(["Captures/default/a.md"]):
        thread = threading.Thread(target=write)
        thread.start()
        device.notes.create("Captures/default/other.md", b"o\n")
        assert done == []
    thread.join(60)
    assert (done, device.text("Captures/default/a.md")) == (["a"], "b\n")
