"""Every state of a repository, made with the real Git, and what ends it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest

from index.errors import Conflict, Unavailable
from syncd.git.repository import Repository
from syncd.git.repository_state import STATES, UNWELL, RepositoryState, advice
from tests.support.git_states import CASES, diverge, mended, only_command, ours, run, stale_lock, theirs, with_remote
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(autouse=True)
def person(monkeypatch, tmp_path):
    """Somebody whom Git knows, with settings of their own: what is advised is run, and may write into them."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    for name, value in {
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_HOME": str(tmp_path / "home"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SUDO_UID", raising=False)
    (tmp_path / "home" / ".gitconfig").write_text(
        "[user]\nname = T\nemail = t@example.org\n[init]\ndefaultBranch = main\n[core]\neditor = true\n"
    )


@pytest.fixture
def vault(tmp_path):
    return with_remote(tmp_path, "My $HOME vault – ü 'x'")


def conflict(vault):
    diverge(vault)


def rebase(vault):
    run(vault, "switch", "-qc", "other")
    ours(vault, text="theirs\n")
    run(vault, "switch", "-q", "main")
    ours(vault)
    run(vault, "rebase", "-q", "other", check=False)


def picked(command):
    def made(vault):
        ours(vault, text="two\n")
        picked = run(vault, "rev-parse", "HEAD")
        ours(vault, text="three\n")
        if command == "cherry-pick":
            run(vault, "reset", "-q", "--hard", "HEAD~2")
            ours(vault, text="other\n")
        run(vault, command, *(["--no-edit"] if command == "revert" else []), picked, check=False)

    return made


def popped(vault):
    (vault / "n.md").write_text("stashed\n")
    run(vault, "stash", "-q")
    ours(vault)
    run(vault, "stash", "pop", "-q", check=False)


def ended(repo, vault):
    """Run the one command that is advised; the state after it."""
    command = only_command(repo.advice(repo.read_state()))
    subprocess.run(["sh", "-c", command], check=True, capture_output=True, cwd=vault.parent, timeout=60)
    return repo.read_state().state


@pytest.mark.parametrize(("make", "state", "operation", "after"), CASES)
def test_a_state_is_known_and_the_command_that_it_advises_ends_it(vault, make, state, operation, after):
    make(vault)
    repo = Repository(vault)
    found = repo.read_state()
    assert (found.state, found.operation) == (state, operation)
    assert re.fullmatch(after, ended(repo, vault))


@pytest.mark.parametrize(
    ("make", "operation"),
    [
        pytest.param(conflict, "merge", id="merge"),
        pytest.param(rebase, "rebase", id="rebase"),
        pytest.param(picked("cherry-pick"), "cherry-pick", id="cherry-pick"),
        pytest.param(picked("revert"), "revert", id="revert"),
        pytest.param(popped, "", id="a stash that was popped"),
    ],
)
def test_a_conflict_of_any_operation_is_known_and_ends_once_the_files_are_mended(vault, make, operation):
    make(vault)
    repo = Repository(vault)
    found = repo.read_state()
    assert (found.state, found.operation) == ("conflict", operation)
    if operation:
        mended(vault)
        assert repo.read_state().state == "mid-operation"
    else:
        (vault / "n.md").write_text("both\n")
    assert ended(repo, vault) == "ahead"


def test_patches_that_do_not_apply_are_an_operation_that_is_not_finished(vault):
    ours(vault)
    patch = run(vault, "format-patch", "-1", "--stdout")
    run(vault, "reset", "-q", "--hard", "HEAD~1")
    ours(vault, text="other\n")
    (vault.parent / "x.patch").write_text(patch + "\n")
    run(vault, "am", "-q", str(vault.parent / "x.patch"), check=False)
    found = Repository(vault).read_state()
    assert (found.state, found.operation) == ("mid-operation", "am")


def test_the_facts_are_the_state_and_then_the_advice(vault):
    repo = Repository(vault)
    ours(vault)
    standing = repo.read_state()
    facts = repo.facts()
    assert facts == asdict(standing) | {"advice": repo.advice(standing)}
    assert (facts["state"], [*facts][-1]) == ("ahead", "advice")
    assert "push" in facts["advice"]


def test_nothing_amiss_needs_no_advice_and_neither_does_a_vault_without_a_remote(vault):
    repo = Repository(vault)
    found = repo.read_state()
    assert (found.state, found.branch, found.upstream, found.remote) == ("ok", "main", "origin/main", "origin")
    assert found.head == run(vault, "rev-parse", "HEAD")
    run(vault, "remote", "remove", "origin")
    alone = repo.read_state()
    assert (alone.state, repo.advice(found), repo.advice(alone)) == ("no-remote", "", "")


def test_how_far_the_vault_and_its_upstream_are_apart_is_counted(vault):
    theirs(vault)
    ours(vault)
    ours(vault, text="more\n")
    found = Repository(vault).read_state()
    assert (found.state, found.ahead, found.behind) == ("diverged", 2, 1)


def test_a_bare_repository_is_known_and_cloned(tmp_path, vault):
    repo = Repository(tmp_path / "remote.git")
    assert repo.read_state().state == "bare"
    ended(repo, vault)
    assert Repository(tmp_path / "remote").read_state().state == "ok"


def test_a_lock_that_is_young_is_another_program_at_work(vault):
    (vault / ".git" / "index.lock").write_bytes(b"")
    found = Repository(vault).read_state()
    assert (found.state, found.lock) == ("locked", str(vault / ".git" / "index.lock"))


@pytest.mark.skipif(sys.platform != "linux", reason="who holds a file is asked of /proc")
def test_an_old_lock_that_somebody_holds_is_no_stale_one_and_none_is_ever_removed(vault):
    stale_lock(vault)
    lock = vault / ".git" / "index.lock"
    repo = Repository(vault)
    with lock.open("rb"):
        assert repo.read_state().state == "locked"
    working = vault.parent / "git-working"  # what /proc calls a Git that works in the vault
    shutil.copy(shutil.which("sleep"), working)
    with subprocess.Popen([working, "60"], cwd=vault) as process:
        assert repo.read_state().state == "locked"
        process.kill()
    assert repo.read_state().state == "stale-lock"
    assert lock.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_dubious_until_its_owner_trusts_it(vault):
    for path in (vault, vault / ".git"):
        os.chown(path, 12345, 12345)
    repo = Repository(vault)
    assert repo.read_state().state == "dubious"
    assert ended(repo, vault) == "ok"


def test_a_repository_that_can_t_be_read_is_broken(vault):
    (vault / ".git" / "config").write_text("[core\n")
    repo = Repository(vault)
    assert repo.read_state().state == "broken"
    assert only_command(repo.advice(repo.read_state())).endswith(" fsck")


def ref_of(vault):
    return vault / ".git/refs/heads/main"


def lose_object(vault):
    commit = run(vault, "rev-parse", "HEAD")
    (vault / ".git/objects" / commit[:2] / commit[2:]).unlink()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lose_object, id="the commit is missing"),
        pytest.param(lambda vault: ref_of(vault).write_text("zzz\n"), id="the branch names no commit"),
        pytest.param(lambda vault: ref_of(vault).write_text(""), id="the branch is empty"),
        pytest.param(lambda vault: (run(vault, "switch", "-qd"), lose_object(vault)), id="detached, and it is missing"),
    ],
)
def test_a_history_whose_last_commit_can_t_be_read_is_broken_and_not_new(vault, damage):
    assert Repository(vault).local_state() == "ok"
    damage(vault)
    repo = Repository(vault)
    state = repo.read_state()
    assert state.state == "broken"
    assert "fsck" in repo.advice(state)


def no_folder_of_objects(git):
    shutil.rmtree(git / "objects")
    (git / "objects").touch()


@pytest.mark.parametrize("place", ["a linked folder", "below a colon:"])
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda git: (git / "HEAD").write_text(""), id="HEAD is empty"),
        pytest.param(lambda git: (git / "HEAD").write_text("weather\n"), id="HEAD is no reference"),
        pytest.param(lambda git: (git / "HEAD").unlink(), id="there is no HEAD"),
        pytest.param(no_folder_of_objects, id="objects is a file"),
    ],
)
def test_no_repository_around_a_damaged_one_answers_or_gets_a_commit(vault, tmp_path, damage, place):
    folder = vault / place
    (inner := folder / "notes").mkdir(parents=True)
    run(inner, "init", "-q")
    (inner / "note.md").write_text("One.\n")
    damage(inner / ".git")
    (tmp_path / "link").symlink_to(inner)
    repo, before = (
        Repository(tmp_path / "link" if place == "a linked folder" else inner),
        run(vault, "rev-parse", "HEAD"),
    )
    assert repo.read_state().state in ("broken", "unmade")
    assert (repo.head(), repo.query("rev-parse", "--show-toplevel"), repo.run("log").code) == (None, None, 127)
    with pytest.raises((Conflict, Unavailable)):
        repo.commit_all("memex")
    assert run(vault, "rev-parse", "HEAD") == before


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_a_folder_of_git_that_only_another_user_may_read_gives_no_answers():
    code = (
        "import os, sys, syncd.git.command; from syncd.git.repository import Repository; os.setuid(12345); repo = Repository(sys.argv[1]);"
        "print(repo.head(), repo.query('rev-parse', 'HEAD'), repo.read_blob('0' * 40), repo.identity()['GIT_COMMITTER_NAME'])"
    )
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to other users
        run(folder, "init", "-q")
        run(folder, "commit", "-q", "--allow-empty", "-m", "begin")
        Path(folder).chmod(0o755)
        Path(folder, ".git").chmod(0o700)
        command = [sys.executable, "-c", code, folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["None", "None", "None", "Memex"]


def test_a_branch_to_which_a_link_leads_is_known(vault):
    run(vault, "switch", "-q", "--orphan", "new")
    (vault / ".git/HEAD").unlink()
    (vault / ".git/HEAD").symlink_to("refs/heads/new")
    assert Repository(vault).local_state() == "unborn"


def test_a_new_branch_without_a_commit_is_not_broken(vault):
    run(vault, "switch", "-q", "--orphan", "new")
    assert Repository(vault).local_state() == "unborn"


def test_without_git_there_is_a_command_that_installs_it(vault, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    repo = Repository(vault)
    assert repo.read_state() == RepositoryState("no-git")
    assert only_command(repo.advice(repo.read_state()))


def test_a_subfolder_of_a_repository_is_not_advised_to_become_a_repository(vault, tmp_path):
    (vault / "notes/deep").mkdir(parents=True)
    (vault / "notes/.git").mkdir()  # not a repository
    (tmp_path / "link").symlink_to(vault / "notes/deep")
    run(vault, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    (tmp_path / "linked/notes").mkdir()
    for folder, top in (("link", vault), ("linked/notes", tmp_path / "linked")):
        repo = Repository(tmp_path / folder)
        found = repo.read_state()
        assert (found.state, found.top, repo.head()) == ("no-repo", str(top), None)
        assert repo.advice(found).startswith(f"the vault is a subfolder of the repository at {top}: ")
        assert "`" not in repo.advice(found)
    assert Repository(tmp_path).read_state() == RepositoryState("no-repo")


def test_a_linked_work_tree_and_a_moved_folder_of_git_stand_like_any_other(vault, tmp_path):
    run(vault, "worktree", "add", "-q", str(tmp_path / "linked ü"), "-b", "other")
    assert Repository(tmp_path / "linked ü").read_state().state == "no-upstream"
    run(tmp_path, "clone", "-q", "--separate-git-dir", str(tmp_path / "far.git"), "remote.git", "near")
    assert Repository(tmp_path / "near").read_state().state == "ok"


@pytest.mark.parametrize("state", STATES)
def test_every_state_advises_one_command_at_most(state):
    found = RepositoryState(state, branch="main", operation="merge", lock="/l", remote="origin", upstream="origin/main")
    told = advice(found, "/My vault")
    assert len(re.findall(r"`[^`]+`", told)) == (state not in ("ok", "no-remote"))
    assert "{" not in told


def test_what_everybody_is_told_names_no_path():
    assert UNWELL.keys() <= STATES.keys()
    assert not any("/" in text or "{" in text for text in UNWELL.values())


def test_the_state_folder_of_git_is_not_written_to(vault):
    before = {path: path.lstat().st_mtime_ns for path in Path(vault).rglob("*")}
    Repository(vault).read_state()
    assert {path: path.lstat().st_mtime_ns for path in Path(vault).rglob("*")} == before
