"""What Git says of a vault, with the real Git."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import pytest

from index.errors import Conflict, Unavailable
from syncd.git import child_process, command, head_moves, repository
from syncd.git.repository import GitPosition, Repository, parse_index_changes
from tests.support.git_states import diverge, run
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def vault(tmp_path):
    root = tmp_path / "My $HOME vault – ü"
    root.mkdir()
    (root / "n.md").write_text("one\n")
    return root


@pytest.fixture
def repo(vault):
    return Repository(vault)


@pytest.fixture
def history(vault):
    run(vault, "init", "-q", "-b", "main")
    run(vault, "add", "-A")
    run(vault, "commit", "-qm", "one")
    return vault


def test_a_folder_without_a_history_has_no_head_and_needs_no_gitpython(vault, repo):
    assert repo.local_state() == "no-repo"
    assert repo.head() is None
    assert repo.busy_reason() == ""
    code = "import sys; from pathlib import Path; from syncd.git.repository import Repository; r = Repository(Path(sys.argv[1]))"
    code += "; r.local_state(); r.head(); r.busy_reason(); sys.exit('git' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": "."}
    assert subprocess.run([sys.executable, "-c", code, str(vault)], cwd=ROOT, env=environment, check=True)


def test_a_vault_inside_another_work_tree_has_no_history_of_its_own(history):
    inner = history / "inner"
    (inner / ".git").mkdir(parents=True)  # an empty one: git itself would look further up
    repo = Repository(inner)
    assert repo.local_state() == "unmade"
    assert repo.head() is None


def test_init_makes_a_work_tree_and_commit_all_its_first_commit(vault, repo, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    repo.init()
    assert (repo.local_state(), repo.head()) == ("unborn", None)
    commit = repo.commit_all("--author=evil\n\n# kept\n")
    assert repo.head() == commit == run(vault, "rev-parse", "HEAD")
    assert run(vault, "log", "-1", "--format=%B") == "--author=evil\n\n# kept"
    assert repo.local_state() == "ok"
    assert repo.commit_all("again") is None
    repo.init()
    assert repo.head() == commit


def test_head_moves_with_commit_checkout_reset_and_packed_refs(history, repo):
    seen = [repo.head()]
    for number in range(3):
        (history / "n.md").write_text(f"{number}\n")
        run(history, "commit", "-qam", "next")
        seen.append(repo.head())
        assert seen[-1] == run(history, "rev-parse", "HEAD")
    assert len(set(seen)) == 4
    run(history, "reset", "-q", "--hard", "HEAD~1")
    assert repo.head() == seen[2]
    run(history, "pack-refs", "--all")
    assert repo.head() == seen[2]
    run(history, "checkout", "-q", seen[0])
    assert repo.head() == seen[0]
    assert repo.local_state() == "detached"
    run(history, "switch", "-q", "main")
    assert (repo.head(), repo.local_state()) == (seen[2], "ok")


def test_head_costs_no_process_while_nothing_moves(history, repo, monkeypatch, tmp_path):
    head = repo.head()
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "git"
    fake.write_text("#!/bin/sh\nexit 9\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert repo.head() == head


@pytest.fixture
def asked(monkeypatch):
    """The Git commands that were run."""
    commands = []
    monkeypatch.setattr(
        command, "run", lambda words, *given, **more: commands.append(words) or run_git(words, *given, **more)
    )
    run_git = child_process.run
    return commands


def staged(repo):
    time.sleep(0.05)  # what is known of a file that was written this moment does not hold
    return {path: to.unmerged for path, to in parse_index_changes(repo.read_staged(repo.head()).out).items()}


def test_what_is_staged_is_asked_again_once_the_index_changes(history, repo, asked):
    assert (staged(repo), staged(repo)) == ({}, {})
    assert sum("diff-index" in words for words in asked) == 1
    (history / "m.md").write_text("staged\n")
    run(history, "add", "m.md")
    assert (staged(repo), staged(repo)) == ({"m.md": False}, {"m.md": False})
    assert sum("diff-index" in words for words in asked) == 2
    diverge(history)
    assert staged(repo)["n.md"]
    assert repo.local_state() == "conflict"


def test_what_is_staged_in_an_index_that_was_just_written_is_asked_each_time(history, repo, asked, monkeypatch):
    monkeypatch.setattr(repository, "_TICK_NS", 10**15)
    assert (staged(repo), staged(repo)) == ({}, {})
    assert sum("diff-index" in words for words in asked) == 2


def test_what_is_staged_is_asked_each_time_where_files_have_whole_seconds_until_they_are_old(history, repo, asked):
    now = int(time.time())
    for written, times in ((now - 1, 2), (now - 60, 3)):
        os.utime(history / ".git/index", (written, written))
        assert (staged(repo), staged(repo)) == ({}, {})
        assert sum("diff-index" in words for words in asked) == times


def test_a_work_tree_is_asked_for_again_once_the_configuration_changes(history, repo):
    assert repo.local_state() == "ok"
    run(history, "config", "core.bare", "true")
    assert repo.local_state() == "no-files"
    run(history, "config", "core.bare", "false")
    assert repo.local_state() == "ok"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_head_is_known_once_git_may_read_it(history, repo, monkeypatch):
    monkeypatch.delenv("SUDO_UID", raising=False)
    for path in (history, history / ".git"):
        os.chown(path, 12345, 12345)
    assert repo.head() is None
    for path in (history, history / ".git"):
        os.chown(path, os.geteuid(), os.getegid())
    assert repo.head() == run(history, "rev-parse", "HEAD")


def test_blobs_are_read_together_whatever_they_contain_and_others_are_left_out(vault, repo):
    texts = {"a.md": b"", "b.md": b"one\n\n0123 missing\n", "c.bin": bytes(range(256))}
    for name, raw in texts.items():
        (vault / name).write_bytes(raw)
    run(vault, "init", "-q", "-b", "main")
    run(vault, "add", "-A")
    run(vault, "commit", "-qm", "one")
    names = {name: repo.query("rev-parse", f"HEAD:{name}") for name in texts}
    blobs = repo.read_blobs([*names.values(), "0" * 40, repo.head()])
    assert blobs == {names[name]: raw for name, raw in texts.items()}
    assert repo.read_blobs([]) == {}
    assert repo.read_blob("0" * 40) is None


def test_a_linked_work_tree_is_a_vault_too(history, tmp_path):
    run(history, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    repo = Repository(tmp_path / "linked")
    first = repo.head()
    (tmp_path / "linked" / "m.md").write_text("two")
    run(tmp_path / "linked", "add", "-A")
    run(tmp_path / "linked", "commit", "-qm", "two")
    assert repo.head() == run(tmp_path / "linked", "rev-parse", "HEAD") != first
    assert repo.local_state() == "ok"


def test_a_conflicted_merge_is_named_and_refuses_a_commit(history, repo):
    diverge(history)
    assert repo.local_state() == "conflict"
    assert repo.busy_reason() == "MERGE_HEAD"
    with pytest.raises(Conflict, match="there are unresolved conflicts"):
        repo.commit_all("no")
    (history / "n.md").write_text("both\n")
    run(history, "add", "n.md")
    assert repo.local_state() == "mid-operation"
    run(history, "commit", "-qm", "merged")
    assert (repo.local_state(), repo.busy_reason()) == ("ok", "")


def test_a_lock_is_reported_and_left_alone(history, repo):
    lock = history / ".git" / "index.lock"
    lock.write_bytes(b"")
    assert (repo.local_state(), repo.busy_reason()) == ("locked", "index.lock")
    with pytest.raises(Conflict):
        repo.commit_all("no")
    assert lock.exists()


def test_a_bare_repository_is_said_to_be_one(tmp_path):
    run(tmp_path, "init", "-q", "--bare", "bare.git")
    assert Repository(tmp_path / "bare.git").local_state() == "bare"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_dubious_and_nothing_is_configured(history, repo, monkeypatch):
    monkeypatch.delenv("SUDO_UID", raising=False)
    for path in (history, history / ".git"):
        os.chown(path, 12345, 12345)
    assert repo.local_state() == "dubious"
    assert repo.head() is None


def test_without_git_it_says_so(history, repo, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (repo.local_state(), repo.head(), repo.busy_reason()) == ("no-git", None, "")
    with pytest.raises(Conflict, match="not installed"):
        repo.commit_all("no")


def test_a_hook_s_variables_lead_nowhere_else(history, repo, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    run(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_COMMON_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other / ".git" / "objects"))
    assert repo.local_state() == "ok"
    assert repo.head() == run(history, "rev-parse", "HEAD")
    (history / "m.md").write_text("two")
    assert repo.commit_all("two") == run(history, "rev-parse", "HEAD")


def test_a_variable_of_a_call_counts_where_our_environment_has_one_of_its_name(history, repo, monkeypatch):
    names = ("GIT_INDEX_FILE", "GIT_TERMINAL_PROMPT")
    for name in names:
        monkeypatch.setenv(name, "ours")
    run(history, "config", "alias.leak", "!env")
    lines = repo.run("leak", env={"GIT_INDEX_FILE": "theirs"}).out.decode().splitlines()
    assert [line for line in lines if line.startswith(names)] == ["GIT_INDEX_FILE=theirs", "GIT_TERMINAL_PROMPT=0"]


def test_a_git_that_is_gone_is_told(history, repo, tmp_path, monkeypatch):
    assert repo.local_state() == "ok"
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "env").symlink_to(shutil.which("env"))
    monkeypatch.setenv("PATH", str(folder))
    assert (repo.local_state(), repo.query("rev-parse", "HEAD"), repo.head()) == ("no-git", None, None)
    result = repo.run("status")
    assert (result.code, result.out) == (127, b"")
    assert "git" in result.said
    assert "not found" in result.said
    assert "env" not in result.said
    assert repo.run_in_session("status").code == 127


PRIVATE = (
    "KB_API_KEY",
    "KB_MCP_API_KEY",
    "MEMEX_KEY",
    "MEMEX_INDEX__STORAGE_OPTIONS",
    "MY_MODEL_KEY",
    "AWS_SECRET_ACCESS_KEY",
)
PRIVATE += ("GIT_DIR", "GIT_CONFIG_PARAMETERS", "BASH_ENV", "LD_PRELOAD_OF_NOBODY", "LANGUAGE")
KEPT = {"LC_TIME": "C", "XDG_RUNTIME_DIR": "/run/me", "SSH_AUTH_SOCK": "/run/agent", "https_proxy": "http://proxy:3128"}


@pytest.fixture
def leaks(history, tmp_path, monkeypatch):
    """What each program that Git starts for us printed of its environment, by its name."""
    for name in PRIVATE:
        monkeypatch.setenv(name, "unseen-value")
    for name, value in KEPT.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "printed"
    folder.mkdir()
    run(history, "config", "alias.leak", f"!env > '{folder}/alias'; env")
    run(history, "config", "filter.leak.clean", f"env > '{folder}/filter'; cat")
    run(history, "config", "credential.helper", f"!f() {{ env > '{folder}/helper'; }}; f")
    run(history, "clone", "-q", "--bare", ".", str(tmp_path / "remote.git"))
    hook = tmp_path / "remote.git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nenv > '{folder}/hook'\n")
    hook.chmod(0o755)
    (history / ".gitattributes").write_text("*.md filter=leak\n")
    return lambda: {file.name: file.read_text() for file in folder.iterdir()}


def check_environment(printed):
    assert "unseen-value" not in printed
    assert all(f"{name}={value}\n" in printed for name, value in KEPT.items())
    assert "GIT_TERMINAL_PROMPT=0\n" in printed
    assert "PATH=" in printed
    assert "HOME=" in printed


def test_an_alias_sees_no_variable_of_ours_whichever_way_it_is_run(history, repo, leaks):
    outputs = (repo.query("leak"), repo.run("leak").out.decode(), repo.run_in_session("leak").out.decode())
    for output in (*outputs, leaks()["alias"]):
        check_environment(f"{output}\n")


def test_filters_helpers_and_the_hooks_of_a_remote_see_no_variable_of_ours(history, repo, leaks, tmp_path):
    (history / "m.md").write_text("two\n")
    commit = repo.commit_all("two")
    asked = b"protocol=https\nhost=forge.example\n\n"
    repo.run_in_session("-c", "credential.interactive=false", "credential", "fill", stdin=asked, limit_s=10)
    pushed = repo.run_in_session("push", str(tmp_path / "remote.git"), f"{commit}:refs/heads/main", limit_s=10)
    assert pushed.code == 0, pushed.said
    printed = leaks()
    assert printed.keys() == {"filter", "helper", "hook"}
    for text in printed.values():
        check_environment(text)


@pytest.mark.slow
def test_a_question_that_hangs_is_ended_with_all_that_it_started(history, repo, tmp_path, monkeypatch):
    monkeypatch.setattr(repository, "_PATIENCE_S", 1.5)  # enough for Git to start, even on a busy machine
    monkeypatch.setenv("KB_API_KEY", "unseen-value")
    run(history, "config", "alias.hang", f"!(while sleep 0.05; do echo >> '{tmp_path}/beats'; done) & wait")
    started = time.monotonic()
    result = repo._ask("hang")
    assert (result.code != 0, result.said) == (True, "no answer within 1.5 s")
    assert repo.query("hang") is None
    assert time.monotonic() - started < 10
    beats = (tmp_path / "beats").read_bytes()
    time.sleep(0.5)
    assert (tmp_path / "beats").read_bytes() == beats != b""


def test_a_large_answer_and_a_large_question_do_not_wait_for_each_other(history, repo, tmp_path):
    run(history, "config", "alias.echo", "!cat")
    text = b"x" * 3_000_000 + b"\n"
    assert repo.run("echo", stdin=text).out == text
    assert repo.query("echo", stdin=text.decode()) == text.decode().removesuffix("\n")
    with (tmp_path / "out").open("w+b") as out:
        assert repo.run("echo", stdin=text, out=out).out == b""
        out.seek(0)
        assert out.read() == text


def test_a_program_that_git_starts_has_no_terminal_to_ask_at(history, repo):
    run(history, "config", "alias.session", "!ps -o sid= -p $$")
    sessions = {int(repo.query("session")), int(repo.run("session").out), int(repo.run_in_session("session").out)}
    assert len(sessions) == 3
    assert os.getsid(0) not in sessions


def test_no_code_of_the_repository_runs(history, repo, tmp_path):
    proof = tmp_path / "ran"
    hook = history / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{proof}'\n")
    hook.chmod(0o755)
    run(history, "config", "core.fsmonitor", str(hook))
    (history / "m.md").write_text("two")
    assert repo.commit_all("two")
    assert not proof.exists()


def test_a_commit_that_git_refuses_says_why_in_git_s_words(history, repo):
    (history / "m.md").write_text("two")
    (history / ".git" / "objects").rename(history / ".git" / "away")
    with pytest.raises((Unavailable, Conflict)):
        repo.commit_all("two")


def test_the_diff_names_what_a_move_of_head_changed(history, repo):
    before = repo.position()
    (history / "ü$ '\".md").write_text("two\n")
    (history / "n.md").unlink()
    run(history, "add", "-A")
    run(history, "commit", "-qm", "two")
    after = repo.position()
    assert head_moves.changed_paths(repo, before, after) == {"ü$ '\".md", "n.md"}
    assert head_moves.changed_paths(repo, after, after) == set()


def test_what_was_there_only_in_between_is_named_too(history, repo):
    before = repo.position()
    run(history, "switch", "-qc", "side", "HEAD")
    started = repo.position()
    (history / "between.md").write_text("x\n")
    run(history, "add", "-A")
    run(history, "commit", "-qm", "two")
    run(history, "switch", "-q", "main")
    after = repo.position()
    assert (before.head, head_moves.changed_paths(repo, started, after)) == (after.head, {"between.md"})


@pytest.mark.parametrize("step", [["reset", "-q", "--hard"], ["checkout", "-qf", "main"], ["switch", "-qc", "x"]])
def test_a_move_to_the_same_place_may_have_undone_edits_so_nothing_is_named(history, repo, step):
    before = repo.position()
    (history / "n.md").write_text("edited\n")
    run(history, *step)
    assert head_moves.changed_paths(repo, before, repo.position()) is None


def test_a_repository_that_keeps_no_log_can_t_tell_what_was_there_in_between(history, repo):
    run(history, "config", "core.logAllRefUpdates", "false")
    shutil.rmtree(history / ".git" / "logs")
    before = repo.position()
    run(history, "commit", "-q", "--allow-empty", "-m", "two")
    assert before.head != repo.position().head
    assert head_moves.changed_paths(repo, before, repo.position()) is None


def test_the_diff_names_what_a_stash_took_and_gave_back(history, repo):
    before = repo.position()
    (history / "n.md").write_text("changed\n")
    (history / "new.md").write_text("not tracked\n")
    run(history, "stash", "push", "-q", "--include-untracked")
    taken = repo.position()
    assert taken.head == before.head
    assert head_moves.changed_paths(repo, before, taken) is None  # a stash also resets, and a reset may undo any edit
    run(history, "stash", "pop", "-q")
    assert head_moves.changed_paths(repo, taken, repo.position()) == {"n.md", "new.md"}


@pytest.mark.parametrize(
    "since", [GitPosition(), GitPosition("0" * 40), GitPosition("1" * 40, log=150), GitPosition("--output=proof")]
)
def test_what_git_can_t_diff_is_not_taken_for_nothing(history, repo, since):
    assert head_moves.changed_paths(repo, since, repo.position()) is None
    assert not (history / "proof").exists()


def test_a_glance_changes_with_what_a_state_may_hang_on_and_costs_no_process(history, repo, tmp_path, monkeypatch):
    run(history, "clone", "-q", "--bare", ".", str(tmp_path / "remote.git"))
    run(history, "remote", "add", "origin", str(tmp_path / "remote.git"))
    run(history, "push", "-q", "-u", "origin", "main")
    glances = [repo.state_fingerprint("origin/main")]
    for step in (["commit", "-q", "--allow-empty", "-m", "x"], ["push", "-q"], ["switch", "-q", "--detach"]):
        run(history, *step)
        glances.append(repo.state_fingerprint("origin/main"))
    (history / ".git" / "index.lock").write_bytes(b"")
    glances.append(repo.state_fingerprint("origin/main"))
    assert len(set(glances)) == len(glances) == 5
    monkeypatch.setenv("PATH", str(tmp_path))
    assert repo.state_fingerprint("origin/main") == glances[-1]
