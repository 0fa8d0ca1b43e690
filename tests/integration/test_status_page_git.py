"""The page of the status for a vault that is tied to a remote, drawn from a real one: what waits, what is in the way, what to do."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from index.errors import Conflict
from index.timings import now_ms
from syncd.cli.terminal.status_page import render_page
from syncd.settings.automation import GitSettings
from tests.support.agent_writes import capture
from tests.support.git_states import stale_lock
from tests.support.world import World

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def world(tmp_path):
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(tmp_path / "bare")], check=True)
    made = World(tmp_path, git=GitSettings(commit=True, pull_s=60.0))
    made.init_git("Ann")
    made.write("Note.md", "one\n")
    made.git("add", "-A")
    made.git("commit", "-qm", "first")
    made.git("remote", "add", "origin", str(tmp_path / "bare"))
    made.git("push", "-qu", "origin", "main")
    made.run()
    yield made
    made.close()


def drawn(world):
    told = world.app.operations["status"]({}, lambda _: None)
    return render_page(told, at=now_ms(), width=100)


def line(drawn, label):
    """What stands behind a label, its further lines with it."""
    found = re.search(rf"^{label} +(.*(?:\n +.*)*)", drawn, re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def test_git_is_told_with_what_waits_and_a_conflict_with_its_way_out(world, tmp_path):
    world.app.opened.sync.ready.set()
    assert line(drawn(world), "git").startswith("ok on main at ")
    capture(world, "# One\n\ntext")
    capture(world, "# Two\n\nother")
    assert "2 files to commit" in line(drawn(world), "git")
    world.app.services.commits.flush()
    assert "to commit" not in drawn(world)

    other = tmp_path / "other"
    subprocess.run(["git", "clone", "-q", str(tmp_path / "bare"), str(other)], check=True)
    (other / "Note.md").write_text("theirs\n")
    who = ["-c", "user.name=B", "-c", "user.email=b@example.org"]
    subprocess.run(["git", "-C", str(other), *who, "commit", "-qam", "theirs"], check=True)
    subprocess.run(["git", "-C", str(other), "push", "-q"], check=True)
    world.write("Note.md", "mine\n")
    world.git("commit", "-qam", "mine")
    with pytest.raises(Conflict):
        world.app.operations["sync"]({}, lambda _: None)
    told = drawn(world)
    assert told.splitlines()[0].startswith("▲")
    assert "diverged" in line(told, "git")
    assert "git " in line(told, "git").partition("diverged")[2], "the command that resolves it"
    assert (world.vault / "Note.md").read_text() == "mine\n"


@pytest.mark.parametrize("fault", ["broken", "stale lock"])
def test_a_status_reports_the_repository_as_it_is_now(world, fault):
    world.app.opened.sync.ready.set()
    assert world.app.operations["status"]({}, lambda _: None)["degraded"] == []
    head, lock = world.vault / ".git/HEAD", world.vault / ".git/index.lock"
    before = head.read_bytes()
    if fault == "broken":
        head.write_bytes(b"garbage\n")
    else:
        stale_lock(world.vault)
    capture(world, "# One\n\ntext")
    world.app.services.commits.flush(0.0)
    assert any(line.startswith("git: ") for line in world.app.operations["status"]({}, lambda _: None)["degraded"])
    if fault == "broken":
        head.write_bytes(before)
    else:
        lock.unlink()
    assert world.app.health.degraded() == [], "also for a monitor, which shows no state of Git"
    assert world.app.operations["status"]({}, lambda _: None)["degraded"] == []
    assert world.app.services.commits.flush() == 1


def test_what_consolidation_proposes_is_told_with_where_it_lies(world):
    assert not line(drawn(world), "reports")
    world.app.opened.sync.ready.set()
    text = "The pump at station 4 has a flow of 20 litres a minute and runs day and night without a pause."
    capture(world, f"# Pump\n\n{text}")
    capture(world, f"# Pump again\n\n{text}")
    world.app.operations["consolidate"]({}, lambda _: None)
    said = line(drawn(world), "reports")
    assert re.search(r"consolidation ran \d+ s ago, 1 proposal waits in Captures/Reports/.* Consolidation\.md", said)
