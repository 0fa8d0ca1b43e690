"""What Memex commits of a vault, with the real Git."""

from __future__ import annotations

import shutil

import pytest

from syncd.audit import Author, authored
from syncd.duties import GitSettings
from tests.world import World

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

CODE = Author("mcp", "capture_thought", "k1", "claude-code")


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    world = World(tmp_path, git=GitSettings(quiet_s=0.0))
    (world.vault / "Note.md").write_text("mine\n")
    world.git("init", "-q", "-b", "main")
    world.git("add", "-A")
    world.git("commit", "-qm", "begin")
    yield world
    world.close()


def commits(world):
    return world.app.steward.commits


def agent(world, path, text, author=CODE):
    """What an agent writes: made, changed, or None = removed."""
    from hashlib import sha256

    vault = world.app.vault
    with authored(author):
        there = vault.stat(path) is not None
        if text is None:
            vault.remove(path)
        elif there:
            vault.replace(path, text.encode(), digest=sha256(vault.read(path)[0]).hexdigest())
        else:
            vault.create(path, text.encode())


def log(world, form="%s"):
    return world.git("log", "--reverse", f"--format={form}").splitlines()


def test_what_an_agent_wrote_is_committed_and_the_person_s_edits_are_not(world):
    agent(world, "Captures/default/A.md", "one\n")
    (world.vault / "Note.md").write_text("edited\n")
    (world.vault / "New.md").write_text("staged\n")
    world.git("add", "New.md")
    before = world.git("diff"), world.git("diff", "--cached")
    assert commits(world).flush() == 1
    assert (world.git("diff"), world.git("diff", "--cached")) == before
    assert world.git("show", "--format=%an|%s|%(trailers:only,unfold)", "--name-status", "HEAD").split("\n") == [
        "claude-code|Capture 1 note (claude-code)|Memex-Tool: capture_thought",
        "Memex-Key: claude-code",
        *world.git("log", "-1", "--format=%(trailers:key=Capture-Id)").splitlines()[:1],
        "",
        "",
        "A\tCaptures/default/A.md",
        "",
    ]
    assert commits(world).flush() == 0
    agent(world, "Captures/default/A.md", "two\n")
    agent(world, "Captures/default/B.md", "b\n", Author("cli", "capture"))
    assert commits(world).flush() == 2
    agent(world, "Captures/default/A.md", None)
    assert commits(world).flush() == 1
    assert log(world)[1:] == [
        "Capture 1 note (claude-code)",
        "Capture 1 note (memex)",
        "Change 1 note (claude-code)",
        "Delete 1 note (claude-code)",
    ]
    assert world.git("status", "--porcelain").split("\n") == ["A  New.md", " M Note.md", ""]


def test_others_commit_what_they_wrote(world):
    agent(world, "Notes/A.md", "one\n")
    made = commits(world).commit({"Notes/A.md": b"one\n"}, "Promote A\n\nApproved-By: me\n")
    assert made == world.git("rev-parse", "HEAD").strip()
    assert commits(world).commit({"Notes/A.md": b"one\n"}, "again") == ""
    assert log(world, "%an %s")[-1] == "Memex Promote A"
    assert commits(world).flush() == 0
