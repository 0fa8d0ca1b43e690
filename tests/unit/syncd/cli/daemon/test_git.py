"""syncd/cli/daemon/git.py, the job and the end of a daemon: what Memex wrote is committed, on a whole App."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from syncd.cli.main import run_command
from syncd.settings.automation import GitSettings
from syncd.telemetry.metric_samples import Sample
from tests.support.world import World, answering, until

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

TOKEN = "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789aBcDeFgHiJkLm"


@pytest.fixture
def world(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("MEMEX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "state").mkdir(mode=0o700)
    opened = World(tmp_path, git=GitSettings(quiet_s=3600.0))
    opened.write("Note.md", "mine\n")
    opened.git("init", "-q", "-b", "main")
    opened.git("add", "-A")
    opened.git("commit", "-qm", "begin")
    monkeypatch.setenv("MEMEX_VAULT", str(opened.vault))
    monkeypatch.setenv("MEMEX_STATE", str(opened.state))
    return opened


def capture(world, text, title="T"):
    return world.app.agent_access.workspace("default").capture(text, metadata={"title": title}).record.path


def told(capsys, *words):
    assert run_command([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_owner_commits_by_command_and_is_told_what_stays_local(world, capsys):
    path = capture(world, "The filter is due in May.")
    secret = capture(world, f"the token is {TOKEN}", "S")
    world.write("Note.md", "edited\n")
    with answering(world):
        planned = told(capsys, "commit", "--dry-run")
        assert [one["paths"] for one in planned["commits"]] == [[path]]
        assert planned["commits"][0]["commit"] == ""
        assert world.git("log", "--format=%s").split() == ["begin"]
        assert run_command(["commit"]) == 0
        shown = capsys.readouterr().out
        assert "Memex: 1 note added" in shown
        assert f"kept local: {secret}: it seems to hold a secret (github-token)" in shown
        assert world.git("log", "-1", "--format=%an").strip() == "Memex"
        git = told(capsys, "status", "--all")["git"]["commits"]
        assert (git["waiting"], [one["path"] for one in git["kept"]]) == (0, [secret])
        assert run_command(["status", "--all"]) == 0
        assert "because it is flagged" in capsys.readouterr().out
        assert told(capsys, "commit")["commits"] == []
        world.git("switch", "-q", "--detach")
        capture(world, "Another thing entirely.")
        assert run_command(["commit"]) == 5
        assert "no branch is checked out" in capsys.readouterr().err
        problems = told(capsys, "status")["degraded"]
        assert any("no branch is checked out" in one for one in problems)
        samples = {one.name: one.value for one in world.app.agent_access.samples() if isinstance(one, Sample)}
        assert (samples["memex_commits"], samples["memex_commit_kept_files"]) == (1, 1)
        assert samples["memex_commit_waiting_files"] == 1
        assert world.git("diff", "--name-only").split() == ["Note.md"]


def test_a_daemon_commits_once_it_is_quiet_and_when_it_ends(world):
    with world.serving():
        capture(world, "The filter is due in May.")
        assert "commits" in world.app.jobs.states()
    assert world.git("log", "--format=%s").splitlines() == ["Memex: 1 note added", "begin"]
    world.close()
    world._sections["git"] = GitSettings(quiet_s=0.0, every_s=0.0)
    world.app = world._open()
    with world.serving():
        capture(world, "Another thing entirely.", "U")
        world.app.jobs.run("commits")
        until(lambda: world.git("status", "--porcelain") == "")
        assert len(world.git("log", "--format=%s").splitlines()) == 3
    world.close()


def test_a_vault_in_a_subfolder_of_a_repository_is_named_as_the_reason(world, capsys):
    shutil.rmtree(world.vault / ".git")
    world.git("init", "-q", str(world.vault.parent))
    reason = f"memex: git: the vault is a subfolder of the repository at {world.vault.parent}: Memex commits "
    with answering(world):
        for words in (["commit"], ["commit", "--dry-run"]):
            assert run_command(words) == 5
            assert capsys.readouterr().err.startswith(reason)
