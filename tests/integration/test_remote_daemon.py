"""Pulls and pushes of a whole daemon: what rings for them, what they cost the index, and what its owner is told."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from click.testing import CliRunner

from index.errors import Conflict
from syncd.cli.main import memex, run_command
from syncd.git import hooks
from syncd.git.repository_state import UNWELL
from syncd.settings.automation import GitSettings
from tests.support.git_states import run
from tests.support.world import World, answering, until

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(autouse=True)
def person(monkeypatch, tmp_path):
    """Somebody whom Git knows."""
    (tmp_path / "home").mkdir()
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "home" / ".gitconfig").write_text("[user]\nname = T\nemail = t@example.org\n")


class Shared:
    """A vault under Git with a bare remote, and another clone of that."""

    def __init__(self, folder, notes=3, **settings):
        self.bare, self.clone = folder / "remote.git", folder / "clone"
        self.world = World(folder, git=GitSettings(**settings))
        for number in range(notes):
            self.world.write(f"Folder {number % 97}/Note {number}.md", f"# Note {number}\n\nzq{number}x is here\n")
        root = self.world.vault
        run(root, "init", "-q", "-b", "main")
        run(root, "add", "-A")
        run(root, "commit", "-qm", "begin")
        run(root, "clone", "-q", "--bare", ".", str(self.bare))
        run(root, "remote", "add", "origin", str(self.bare))
        run(root, "push", "-q", "-u", "origin", "main")
        run(folder, "clone", "-q", str(self.bare), str(self.clone))

    def there(self, path, text):
        """The other device pushes."""
        run(self.clone, "pull", "-q", "--no-rebase")
        (self.clone / path).write_text(text)
        run(self.clone, "add", "-A")
        run(self.clone, "commit", "-qm", path)
        # As another person's Git does, with a post-receive hook in which Git's own variables are set.
        subprocess.run(["git", "-C", str(self.clone), "push", "-q"], check=True, capture_output=True)


def costs(folder, monkeypatch, notes):
    """What a pull of one changed note makes the daemon read, and how often it lists the vault."""
    shared = Shared(folder, notes)
    world = shared.world
    world.run()
    with world.serving():
        world.settled(120)
        read, listed = [], []
        monkeypatch.setattr(world.app.opened.vault, "read", _noted(world.app.opened.vault.read, read))
        monkeypatch.setattr(world.app.opened.sync, "request_listing", lambda: listed.append(1))
        monkeypatch.setattr(world.app.head_follower, "_list_all", lambda: listed.append(1))
        shared.there("Folder 1/Note 1.md", "zqnewx came from afar\n")
        assert world.app.services.remote.sync(push=False).files == 1
        until(lambda: world.found("zqnewx", scope="vault", mode="text") == ["Folder 1/Note 1.md"])
        until(lambda: world.app.head_follower._position == world.app.opened.repo.position())
        world.settled()
    world.close()
    return {path for path in read if path.endswith(".md")}, listed


def _noted(work, calls):
    def noted(path, *given, **how):
        calls.append(path)
        return work(path, *given, **how)

    return noted


def test_a_pull_reads_what_the_diff_names_and_lists_nothing(tmp_path, monkeypatch):
    assert costs(tmp_path, monkeypatch, 60) == ({"Folder 1/Note 1.md"}, [])


@pytest.mark.slow
def test_a_pull_reads_what_the_diff_names_of_ten_thousand_notes(tmp_path, monkeypatch):
    assert costs(tmp_path, monkeypatch, 10_000) == ({"Folder 1/Note 1.md"}, [])


def test_a_push_to_the_bare_remote_and_a_signed_webhook_are_pulled_at_once(tmp_path):
    shared = Shared(tmp_path)
    world = shared.world
    hooks.install(shared.bare / "hooks", hooks.REMOTE_HOOKS, world.state)
    with world.serving():
        world.settled()
        shared.there("rung.md", "zqrungx\n")
        until(lambda: world.found("zqrungx", scope="vault", mode="text") == ["rung.md"])
        (shared.bare / "hooks/post-receive").unlink()
        shared.there("signed.md", "zqsignedx\n")
        assert world.app.push_webhook.accept_delivery("delivery-1", b"{}", now=1_000_000_000_000)
        until(lambda: world.found("zqsignedx", scope="vault", mode="text") == ["signed.md"])
        assert world.app.health.degraded() == []
    world.close()


def test_what_agents_write_is_committed_first_and_sent_with_the_setting(tmp_path):
    shared = Shared(tmp_path, push=True, quiet_s=0.0)
    world = shared.world
    with world.serving():
        captured = world.app.agent_access.workspace("default").capture("zqcapturedx was thought of")
        world.app.services.commits.tick()
        world.app.services.remote.tick()  # unless the daemon is at it
        until(
            lambda: captured.record.path in run(shared.bare, "ls-tree", "-r", "-z", "--name-only", "main").split("\0")
        )
        assert "zqcapturedx" in run(shared.bare, "show", f"main:{captured.record.path}")
        until(lambda: world.app.health.facts()["git"]["exchange"]["pushed_at"] is not None)
        assert world.app.health.facts()["git"]["exchange"]["problem"] == ""
    world.close()


def test_a_conflict_is_told_wherever_health_is_told_without_a_name(tmp_path):
    shared = Shared(tmp_path)
    world = shared.world
    world.run()
    shared.there("Folder 1/Note 1.md", "theirs\n")
    world.write("Folder 1/Note 1.md", "ours\n")
    run(world.vault, "commit", "-qam", "ours")
    with pytest.raises(Conflict, match=r"both changed Folder 1/Note 1\.md"):
        world.app.services.remote.sync()
    assert world.app.health.degraded() == [UNWELL["diverged"]]
    git = world.app.health.facts()["git"]
    assert (git["state"], "refs/memex/conflict/" in git["exchange"]["problem"]) == ("diverged", True)
    world.close()


def test_the_command_tells_what_came_of_it(tmp_path, monkeypatch):
    shared = Shared(tmp_path)
    world = shared.world
    shared.there("theirs.md", "theirs\n")
    world.write("ours.md", "ours\n")
    run(world.vault, "add", "-A")
    run(world.vault, "commit", "-qm", "ours")
    own = ["--vault", str(world.vault), "--state", str(world.state)]

    def said(*words):
        done = CliRunner().invoke(memex, ["sync", *words, *own], catch_exceptions=True)
        if done.exception:
            raise done.exception
        return done.stdout

    with answering(world):
        assert said("--pull").strip() == "pulled 1 commit, which changed 1 file, merged with your commits"
        assert said("--push").strip() == "pushed 2 commits"
        assert json.loads(said("--json")) == {"took": 0, "files": 0, "merged": False, "sent": 0}
        assert said().strip() == "already up to date"
        run(world.vault, "checkout", "-q", "--detach")
        with pytest.raises(Conflict, match="no branch is checked out: run `git"):
            said()


def test_what_hinders_a_sync_is_told_and_steers_no_terminal(tmp_path, capsys):
    shared = Shared(tmp_path)
    world, path = shared.world, "evil \x1b[2J\x9b\u202edm.md"
    shared.there(path, "theirs\n")
    world.write(path, "ours\n")
    run(world.vault, "add", "-A")
    run(world.vault, "commit", "-qm", "ours")
    with answering(world):
        assert run_command(["sync", "--vault", str(world.vault), "--state", str(world.state)]) == 5
    told = capsys.readouterr().err
    assert "have both changed evil \\u{1b}[2J\\u{9b}\\u{202e}dm.md" in told
    assert not set(told) & {"\x1b", "\x9b", "\u202e"}


def test_two_devices_that_adopt_the_same_note_write_the_same_bytes(tmp_path):
    one = Shared(tmp_path / "one")
    note = "Captures/default/by hand.md"
    (one.clone / note).parent.mkdir(parents=True)
    one.there(note, "typed on a phone\n")
    texts = set()
    for name in ("one", "two"):
        if name == "two":
            (tmp_path / "two").mkdir()
            run(tmp_path, "clone", "-q", str(one.bare), "two/vault")
        world = one.world if name == "one" else World(tmp_path / "two")
        world.app.services.remote.sync(push=False)
        world.run()
        world.run()
        texts.add((world.vault / note).read_text())
        world.close()
    assert len(texts) == 1
    assert "id: " in texts.pop()


def test_a_new_note_under_the_name_of_another_has_an_id_of_its_own(tmp_path):
    shared = Shared(tmp_path)
    world, note = shared.world, "Captures/default/Untitled.md"
    ids = set()
    for number in range(3):
        world.write(note, "")
        world.write(note, f"one of several{'' if number else ' '}\n")
        run(world.vault, "add", "-A")
        run(world.vault, "commit", "-qm", f"{number}")
        world.run()
        world.run()
        ids.add((world.vault / note).read_text().partition("id: ")[2].partition("\n")[0])
        (world.vault / note).rename(world.vault / f"Captures/default/Kept {number}.md")
        run(world.vault, "add", "-A")
        run(world.vault, "commit", "-qm", f"{number} renamed")
    assert (len(ids), "" in ids) == (3, False)
    world.close()
