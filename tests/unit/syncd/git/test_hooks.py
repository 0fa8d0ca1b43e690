"""Hooks that ring for the daemon, with the real Git: what they do, what they cost, and what stood there before."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import pytest

from index.errors import Conflict
from syncd.git import hooks
from syncd.git.hooks import HOOKS, REMOTE_HOOKS, find, install, uninstall, update_exclude_file
from syncd.git.repository import Repository
from tests.support.daemon_process import ROOT
from tests.support.git_states import run

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

OWN = '#!/bin/sh\nprintf \'%s|\' "$0" "$@" >> "$PROOF"\ncat >> "$PROOF"\nexit ${CODE:-0}\n'


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / 'the state\'s ü "folder" $HOME'
    folder.mkdir()
    return folder


@pytest.fixture
def vault(tmp_path):
    root = tmp_path / "My 'vault' – ü"
    root.mkdir()
    run(root, "init", "-q", "-b", "main")
    (root / "n.md").write_text("one\n")
    run(root, "add", "-A")
    run(root, "commit", "-qm", "one")
    return root


@pytest.fixture
def folder(vault):
    return Repository(vault).hooks_folder()


def own(folder, name="post-commit", text=OWN, mode=0o755):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(mode)
    return folder / name


def commit(vault, text="more\n", **environ):
    (vault / "n.md").write_text((vault / "n.md").read_text() + text)
    return subprocess.run(
        ["git", "-C", str(vault), "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-qam", "x"],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def rings(state, name=hooks.MOVED):
    bell = state / hooks.BELLS / name
    return bell.stat().st_mtime_ns if bell.exists() else 0


def rung(state, before, name=hooks.MOVED):
    end = time.monotonic() + 10
    while rings(state, name) == before:
        assert time.monotonic() < end, "no bell was heard"
        time.sleep(0.01)
    return rings(state, name)


def states(folder, state, names=HOOKS):
    return {hook.name: hook.state for hook in find(folder, names, state)}


def everything(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mode, path.is_symlink()) for path in folder.iterdir()}


def test_each_hook_rings_when_git_does_what_it_is_for(vault, folder, state):
    install(folder, HOOKS, state)
    assert set(states(folder, state).values()) == {"installed"}
    heard = rings(state)
    for step in (
        ["commit", "-q", "--allow-empty", "-m", "x"],
        ["switch", "-qc", "other"],
        ["commit", "-q", "--allow-empty", "-m", "y"],
        ["switch", "-q", "main"],
        ["merge", "-q", "--ff-only", "other"],
        ["commit", "-q", "--amend", "--allow-empty", "-m", "z"],
    ):
        run(vault, *step)
        heard = rung(state, heard)


def test_a_hook_whose_first_line_an_earlier_version_wrote_in_other_words_is_still_memexs(folder, state):
    clean = everything(folder)
    install(folder, HOOKS, state)
    for name in HOOKS:
        path = folder / name
        first, second, *others = path.read_text().splitlines()
        assert second.startswith(hooks.MARK)
        path.write_text("\n".join([first, f"{hooks.MARK} rings for the daemon; `uninstall` puts back", *others, ""]))
    assert set(states(folder, state).values()) == {"installed"}
    install(folder, HOOKS, state)
    uninstall(folder, HOOKS, state)
    assert everything(folder) == clean


def test_a_hook_is_ten_lines_of_posix_shell_at_most(state):
    text = hooks.script("post-commit", [hooks.bell_path(state, "post-commit")])
    assert text.count("\n") <= 10
    subprocess.run(["sh", "-n"], input=text, text=True, check=True)
    if shutil.which("dash"):
        subprocess.run(["dash", "-n"], input=text, text=True, check=True)


def test_installing_twice_changes_nothing(vault, folder, state):
    own(folder)
    install(folder, HOOKS, state)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    install(folder, HOOKS, state)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.parametrize("code", ["0", "3"])
def test_a_hook_that_was_there_keeps_its_arguments_input_and_exit_status(vault, folder, state, tmp_path, code):
    for name in HOOKS:
        own(folder, name)
    install(folder, HOOKS, state)
    heard = rings(state)
    proof = tmp_path / "proof"
    path = folder / "post-rewrite"
    done = subprocess.run(
        [path, "amend", "two words", "ü'\""],
        input=b"old new\n\xff",
        env={**os.environ, "PROOF": str(proof), "CODE": code},
        check=False,
    )
    assert done.returncode == int(code)
    said = proof.read_bytes()
    assert said.endswith("|amend|two words|ü'\"|".encode() + b"old new\n\xff")
    rung(state, heard)
    assert commit(vault, PROOF=str(proof), CODE=code).returncode == 0
    assert b"post-commit" in proof.read_bytes()


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        pytest.param(OWN, 0o755, id="one that runs"),
        pytest.param(OWN, 0o700, id="one of its owner alone"),
        pytest.param(OWN, 0o644, id="one that is switched off"),
        pytest.param("exit 0", 0o755, id="one without a shebang"),
        pytest.param("\ufeff\r\n\x00", 0o644, id="bytes that are no script"),
    ],
)
def test_uninstall_puts_back_what_was_there_byte_for_byte(folder, state, text, mode):
    own(folder, text=text, mode=mode)
    before = everything(folder)
    install(folder, HOOKS, state)
    assert everything(folder) != before
    uninstall(folder, HOOKS, state)
    assert everything(folder) == before
    uninstall(folder, HOOKS, state)
    assert everything(folder) == before


def test_a_hook_that_is_a_link_to_a_program_is_one_again(folder, state, tmp_path):
    program = own(tmp_path / "tools", "dispatch")
    folder.mkdir(exist_ok=True)
    (folder / "post-merge").symlink_to(os.path.relpath(program, folder))
    install(folder, HOOKS, state)
    proof = tmp_path / "proof"
    subprocess.run([folder / "post-merge", "0"], env={**os.environ, "PROOF": str(proof)}, check=True, input=b"")
    assert b"|0|" in proof.read_bytes()
    uninstall(folder, HOOKS, state)
    assert (folder / "post-merge").readlink().name == "dispatch"


def test_a_hook_that_was_switched_off_stays_so(vault, folder, state, tmp_path):
    own(folder, mode=0o644)
    install(folder, HOOKS, state)
    heard = rings(state)
    assert commit(vault, PROOF=str(tmp_path / "proof")).returncode == 0
    rung(state, heard)
    assert not (tmp_path / "proof").exists()


def test_the_hooks_folder_is_where_git_says(vault, state, tmp_path):
    run(vault, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked")
    assert Repository(tmp_path / "linked").hooks_folder() == vault / ".git" / "hooks"
    run(vault, "config", "core.hooksPath", "tools/hooks $x")
    assert Repository(vault).hooks_folder() == vault / "tools" / "hooks $x"
    install(Repository(vault).hooks_folder(), HOOKS, state)
    heard = rings(state)
    assert commit(vault).returncode == 0
    rung(state, heard)
    run(tmp_path, "clone", "-q", "--separate-git-dir", str(tmp_path / "far"), str(vault), "near")
    assert Repository(tmp_path / "near").hooks_folder() == tmp_path / "far" / "hooks"


def test_a_folder_without_a_repository_is_refused_with_the_way_out(tmp_path):
    with pytest.raises(Conflict, match=r"run `git -C .* init`"):
        Repository(tmp_path).hooks_folder()


def test_two_vaults_that_share_their_hooks_are_both_told(vault, folder, state, tmp_path):
    other = tmp_path / "other state"
    other.mkdir()
    own(folder)
    before = everything(folder)
    install(folder, HOOKS, state)
    install(folder, HOOKS, other)
    assert set(states(folder, state).values()) == set(states(folder, other).values()) == {"installed"}
    heard = rings(state), rings(other)
    assert commit(vault, PROOF=str(tmp_path / "proof")).returncode == 0
    rung(state, heard[0])
    rung(other, heard[1])
    uninstall(folder, HOOKS, state)
    assert (states(folder, state)["post-commit"], states(folder, other)["post-commit"]) == ("other", "installed")
    uninstall(folder, HOOKS, other)
    assert everything(folder) == before


def test_another_program_s_change_of_our_hook_is_noticed_and_not_undone(folder, state):
    install(folder, HOOKS, state)
    path = folder / "post-commit"
    changed = path.read_text().replace("exec", "echo hi; exec")
    path.write_text(changed)
    assert states(folder, state)["post-commit"] == "changed"
    for work in (install, uninstall):
        with pytest.raises(Conflict, match="move it away"):
            work(folder, HOOKS, state)
    assert path.read_text() == changed
    path.unlink()
    install(folder, HOOKS, state)
    assert states(folder, state)["post-commit"] == "installed"


def test_the_facts_name_the_hooks_that_ring_and_those_that_are_amiss(folder, state):
    assert hooks.facts(folder, state) == {"hooks": [], "hooks_amiss": {}}
    install(folder, HOOKS, state)
    path = folder / "post-merge"
    path.write_text(path.read_text() + "echo hi\n")
    ringing = ["post-commit", "post-checkout", "post-rewrite"]
    assert hooks.facts(folder, state) == {"hooks": ringing, "hooks_amiss": {"post-merge": "changed"}}


def test_another_program_that_takes_our_place_and_runs_our_hook_is_left_alone(vault, folder, state, tmp_path):
    own(folder)
    install(folder, HOOKS, state)
    path = folder / "post-commit"
    path.rename(folder / "post-commit.legacy")  # as the pre-commit framework does
    own(folder, text='#!/bin/sh\n"$(dirname "$0")/post-commit.legacy" "$@"\n')
    assert states(folder, state)["post-commit"] == "wrapped"
    install(folder, HOOKS, state)
    heard = rings(state)
    assert commit(vault, PROOF=str(tmp_path / "proof")).returncode == 0
    rung(state, heard)
    assert (tmp_path / "proof").read_bytes().count(b"post-commit") == 1
    uninstall(folder, HOOKS, state)
    assert (folder / "post-commit.legacy").read_text() == OWN
    assert "legacy" in path.read_text()


def test_another_program_that_overwrote_our_hook_is_told_of(folder, state):
    own(folder)
    install(folder, HOOKS, state)
    (folder / "post-commit").unlink()
    own(folder, text="#!/bin/sh\ntrue\n")
    assert states(folder, state)["post-commit"] == "replaced"
    with pytest.raises(Conflict, match="move away the hook that you no longer need"):
        install(folder, HOOKS, state)
    uninstall(folder, HOOKS, state)
    assert (folder / "post-commit").read_text() == "#!/bin/sh\ntrue\n"


def test_an_install_that_was_cut_short_is_finished_by_the_next(folder, state):
    own(folder)
    before = everything(folder)
    (folder / "post-commit").rename(folder / "post-commit.before-memex")
    install(folder, HOOKS, state)
    assert states(folder, state)["post-commit"] == "installed"
    uninstall(folder, HOOKS, state)
    assert everything(folder) == before


def test_a_push_to_a_bare_repository_rings_and_its_own_hook_gets_what_git_sends(vault, state, tmp_path):
    remote = tmp_path / "remote ü.git"
    run(tmp_path, "clone", "-q", "--bare", str(vault), str(remote))
    folder = Repository(remote).hooks_folder()
    assert folder == remote / "hooks"
    own(folder, "post-receive", OWN + "git rev-parse --git-dir\n")
    install(folder, REMOTE_HOOKS, state)
    heard = rings(state, hooks.PUSHED)
    run(vault, "remote", "add", "origin", str(remote))
    proof = tmp_path / "proof"
    commit(vault)
    done = subprocess.run(
        ["git", "-C", str(vault), "push", "-q", "origin", "main"], env={**os.environ, "PROOF": str(proof)}, check=True
    )
    assert done.returncode == 0
    rung(state, heard, hooks.PUSHED)
    assert b"refs/heads/main" in proof.read_bytes()
    assert rings(state) == 0


def test_nothing_but_the_hooks_folder_and_one_line_is_written(vault, folder, state):
    def files():
        return {path: path.read_bytes() for path in vault.rglob("*") if path.is_file() and path.parent != folder}

    before = files()
    install(folder, HOOKS, state)
    assert files() == before
    update_exclude_file(vault / ".git" / "info", wanted=True)
    update_exclude_file(vault / ".git" / "info", wanted=True)
    changed = {path: data for path, data in files().items() if data != before.get(path)}
    file = vault / ".git" / "info" / "exclude"
    assert changed == {file: before.get(file, b"") + b".memex-*.tmp\n"}
    uninstall(folder, HOOKS, state)
    update_exclude_file(vault / ".git" / "info", wanted=False)
    assert files().get(file, b"") == before.get(file, b"")


def test_git_overlooks_a_note_that_is_being_written_once_the_hooks_are_there(vault):
    (vault / ".memex-0123456789abcdef.tmp").write_text("half")
    assert ".memex" in run(vault, "status", "--porcelain")
    update_exclude_file(vault / ".git" / "info", wanted=True)
    assert run(vault, "status", "--porcelain") == ""


def test_git_works_on_when_the_state_folder_is_gone_or_closed(vault, folder, state):
    install(folder, HOOKS, state)
    shutil.rmtree(state)
    done = commit(vault)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_hook_adds_next_to_nothing_to_a_commit(vault, folder, state, capsys):
    """Printed, and held far below the 100 ms: what a commit takes without and with the hooks, interleaved."""

    def seconds():
        begun = time.perf_counter()
        run(vault, "commit", "-q", "--allow-empty", "-m", "x")
        return time.perf_counter() - begun

    without, with_hooks = [], []
    seconds()
    for _ in range(15):
        uninstall(folder, HOOKS, state)
        without.append(seconds())
        install(folder, HOOKS, state)
        with_hooks.append(seconds())
    added = (statistics.median(with_hooks) - statistics.median(without)) * 1000
    with capsys.disabled():
        sys.stderr.write(f"a commit: {statistics.median(without) * 1000:.1f} ms, with hooks {added:+.1f} ms\n")
    assert added < 100


# The command


@pytest.fixture
def memex(vault, tmp_path):
    """`memex` on a vault that is set up; gives the parsed answer, or the error."""
    home = tmp_path / "home"
    home.mkdir()
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
    places = ["--vault", str(vault), "--state", str(tmp_path / "s")]

    def call(*words):
        command = [sys.executable, "-m", "syncd.cli", *words, *places, "--json"]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
        return json.loads(done.stdout if done.returncode == 0 else done.stderr)

    (tmp_path / "s").mkdir(mode=0o700)
    (tmp_path / "s" / "vault").write_bytes(os.fsencode(vault) + b"\n")
    return call


@pytest.mark.slow
def test_the_commands_install_tell_and_uninstall(memex, vault, folder):
    assert {one["state"] for one in memex("hook", "status")["hooks"]} == {"absent"}
    told = memex("hook", "install")
    assert told["folder"] == str(folder)
    assert {one["state"] for one in told["hooks"]} == {"installed"}
    assert (vault / ".git" / "info" / "exclude").read_text().endswith("\n.memex-*.tmp\n")
    assert {one["state"] for one in memex("hook", "uninstall")["hooks"]} == {"absent"}
    assert ".memex" not in (vault / ".git" / "info" / "exclude").read_text()


def hook_install(vault, state):
    """Run `memex hook install`; its stdout and stderr."""
    command = [sys.executable, "-m", "syncd.cli", "hook", "install", "--vault", str(vault), "--state", str(state)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout, done.stderr


def test_hooks_that_other_repositories_may_share_are_said_to_be_so(memex, vault, tmp_path):
    run(vault, "config", "core.hooksPath", str(tmp_path / "shared"))
    out, err = hook_install(vault, tmp_path / "s")
    assert "other repositories may use" in err
    assert out.startswith(str(tmp_path / "shared"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "hooks_folder"),
    [
        pytest.param(["worktree", "add", "-q", "PLACE"], "VAULT/.git/hooks", id="worktree"),
        pytest.param(
            ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./.", "PLACE"],
            "VAULT/.git/modules/PLACE/hooks",
            id="submodule",
        ),
        pytest.param(None, "VAULT/.git/hooks", id="symbolic link"),
    ],
)
def test_hooks_of_a_repository_whose_git_folder_is_elsewhere_are_its_own(vault, state, make, hooks_folder):
    place = vault / "inner"
    if make is None:
        place.symlink_to(".")
    else:
        run(vault, *(word.replace("PLACE", place.name) for word in make))
    (state / "vault").write_bytes(os.fsencode(place) + b"\n")
    out, err = hook_install(place, state)
    assert err == ""
    assert out.startswith(hooks_folder.replace("VAULT", str(vault)).replace("PLACE", place.name) + "\n")
    heard = rings(state)
    (place / "n.md").write_text("two\n")
    assert commit(place).returncode == 0
    rung(state, heard)


@pytest.mark.slow
def test_the_commands_take_a_bare_remote_and_nothing_else(memex, vault, tmp_path):
    run(tmp_path, "clone", "-q", "--bare", str(vault), "remote.git")
    told = memex("hook", "install", "--repo", str(tmp_path / "remote.git"))
    assert [(one["name"], one["state"]) for one in told["hooks"]] == [("post-receive", "installed")]
    assert (tmp_path / "remote.git" / "hooks" / "post-receive").exists()
    assert memex("hook", "install", "--repo", str(vault))["error"]["code"] == "CONFLICT"


@pytest.mark.slow
def test_a_secret_is_shown_once_private_and_replaced_only_on_request(memex, tmp_path):
    file = tmp_path / "s" / "hook-secret"
    secret = memex("hook", "secret")["secret"]
    assert len(secret) == 64
    assert file.read_text().strip() == secret
    assert file.stat().st_mode & 0o777 == 0o600
    assert memex("hook", "secret")["error"]["code"] == "CONFLICT"
    assert memex("hook", "secret", "--rotate")["secret"] != secret
    assert memex("hook", "secret", "--remove") == {"removed": True}
    assert memex("hook", "secret", "--remove")["error"]["code"] == "NOT_FOUND"
    assert not file.exists()


def test_a_vault_that_is_not_set_up_is_told_so(memex, tmp_path):
    (tmp_path / "s" / "vault").unlink()
    assert "memex init" in memex("hook", "install")["error"]["message"]
