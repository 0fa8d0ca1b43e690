"""A repository whose objects have names of 64 digits (`git init --object-format=sha256`): all that Memex does with Git."""

from __future__ import annotations

import shutil

import pytest

from index.errors import Conflict, Unavailable
from syncd.git import head_moves
from syncd.git.repository import Repository
from syncd.remote.branch_sync import SyncOutcome
from tests.support.agent_writes import capture, undo, update
from tests.support.git_history import commit, log
from tests.support.git_states import run
from tests.support.remote_vault import SECRET, SyncedDevice
from tests.support.world import World, promote

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
LONG = "--object-format=sha256"


@pytest.fixture(autouse=True)
def person(monkeypatch, tmp_path):
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".gitconfig").write_text("[user]\nname = Ann\nemail = ann@example.org\n")


@pytest.fixture
def device(tmp_path):
    made = SyncedDevice(tmp_path, LONG)
    yield made
    made.close()


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.git("init", "-q", "-b", "main", LONG)
    made.run()
    yield made
    made.close()


def test_both_sides_are_taken_merged_and_sent(device):
    device.there("new ü.md", "from afar\n")
    assert device.remote.sync(push=False) == SyncOutcome(took=1, files=1)
    device.here("ours.md", "ours\n")
    device.there("theirs.md", "theirs\n")
    assert device.remote.sync() == SyncOutcome(took=1, files=1, merged=True, sent=2)
    assert (device.text("theirs.md"), device.head()) == (
        "theirs\n",
        device.head(device.bare, "main"),
    )
    assert len(device.head()) == 64


def test_a_conflict_is_parked_and_goes_on_once_a_person_has_merged(device):
    device.here("n.md", "ours\n")
    device.there("n.md", "theirs\n")
    with pytest.raises(Conflict, match=r"both changed n\.md"):
        device.remote.sync()
    assert (device.text("n.md"), device.parked()) == (
        "ours\n",
        [device.head(device.bare, "main")],
    )
    run(device.vault, "merge", "-q", "-s", "ours", "--no-edit", "origin/main")
    assert device.remote.sync().sent == 2
    assert device.parked() == []


@pytest.mark.parametrize("later", ["Captures/default/x.md", None])
def test_a_secret_in_a_capture_keeps_all_commits_back(device, later):
    device.here("Captures/default/x.md", f"the key is {SECRET}\n")
    if later:
        device.here(later, "taken out\n")
    with pytest.raises(Conflict, match="looks as if it contains a secret"):
        device.remote.sync(pull=False)
    assert device.head(device.bare, "main") != device.head()


def test_a_remote_with_names_of_the_other_kind_is_told_in_git_s_words(device, tmp_path):
    run(tmp_path, "init", "-q", "--bare", "-b", "main", str(tmp_path / "other.git"))
    run(device.clone, "init", "-q", "-b", "main", str(tmp_path / "short"))
    (tmp_path / "short" / "n.md").write_text("x\n")
    run(tmp_path / "short", "add", "-A")
    run(tmp_path / "short", "commit", "-qm", "x")
    run(tmp_path / "short", "push", "-q", str(tmp_path / "other.git"), "main")
    run(device.vault, "remote", "set-url", "origin", str(tmp_path / "other.git"))
    before = device.files()
    with pytest.raises(Unavailable, match="mismatched algorithms"):
        device.remote.sync()
    assert device.files() == before


def test_what_git_brought_is_known_by_its_bytes(device):
    device.there("new.md", "from\nafar\n")
    device.remote.sync(push=False)
    repo = Repository(device.vault)
    written = int((device.vault / "new.md").stat().st_mtime)
    assert head_moves.is_from_git(repo, "new.md", b"from\nafar\n", written)
    assert head_moves.is_from_git(repo, "new.md", b"from\r\nafar\r\n", written)
    assert not head_moves.is_from_git(repo, "new.md", b"from here\n", written)


def test_the_history_of_a_note_has_its_differences_and_what_git_holds_comes_back(world):
    kept = capture(world, "one")
    commit(world, "Capture", kept.created_at)
    first, second = log(world, kept.id, patch=True)["events"]
    assert (first["what"], second["what"], len(second["commit"])) == ("create", "commit", 64)
    assert "+one" in second["diff"]
    update(world, kept.id, "two")
    shutil.rmtree(world.state / "past")
    commit(world, "Update", kept.created_at + 10_000)
    assert {"-one", "+two"} <= set(log(world, kept.id, patch=True)["events"][-1]["diff"])
    assert undo(world, kept.id)["done"][0]["did"] == "restored"
    assert (world.vault / kept.path).read_text().endswith("---\none")
    (world.vault / kept.path).unlink()
    commit(world, "Gone", kept.created_at + 20_000)
    assert "-two" in log(world, kept.path, patch=True)["events"][-1]["diff"]


def test_captures_and_promotions_are_committed_and_the_index_follows(world):
    one = capture(world, "The heron stands in the reeds.")
    assert [made.paths for made in world.app.services.commits.commit_pending()] == [(one.path,)]
    done = promote(world, one.id, to="Birds")
    assert len(done["commit"]) == 64
    assert world.git("show", "--format=", "--name-status", "-M1%", "HEAD").split("\t")[1:] == [
        one.path,
        f"{done['target']}\n",
    ]
    before = world.app.opened.repo.position()
    world.write("Mine.md", "mine\n")
    world.git("add", "-A")
    world.git("commit", "-qm", "mine")
    assert head_moves.changed_paths(world.app.opened.repo, before, world.app.opened.repo.position()) == {"Mine.md"}
    assert world.app.services.promotions.unpromote(one.id)["target"] == one.path
    assert world.git("status", "--porcelain") == ""
