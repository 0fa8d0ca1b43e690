"""Promotion from the command line, and by a tick, with a daemon that really runs."""

from __future__ import annotations

import json
import subprocess

import pytest

from syncd.cli.main import run_command
from tests.support.change_notes import change_note
from tests.support.fast_daemon import Daemon
from tests.support.world import World, answering, until

NOTES = ("--", ".", ":!Captures/Context")  # a context is committed a little later than its captures
NOTE = "---\nid: {id}\ncreated_at: 2026-11-20T14:32:05.120Z\n---\nThe text of {id}.\n"


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    for id in ("a1", "b1"):
        world.write(f"Captures/default/{id.upper()}.md", NOTE.format(id=id))
    world.write("Links.md", "[[Captures/default/A1]]\n")
    world.run()
    with answering(world):
        yield world


def ask(world, *words):
    return run_command([*words, "--vault", str(world.vault), "--state", str(world.state)])


def test_promote_and_unpromote(world, capsys):
    assert ask(world, "promote", "--dry-run", "a1", "--to", "Letters") == 0
    assert capsys.readouterr().out == "Captures/default/A1.md → Letters/A1.md\n"
    assert (world.vault / "Captures/default/A1.md").exists()
    assert ask(world, "promote", "a1", "Captures/default/B1.md", "--to", "Letters") == 0
    assert capsys.readouterr().out == (
        "Captures/default/A1.md → Letters/A1.md\n  links kept in 1 other file\nCaptures/default/B1.md → Letters/B1.md\n"
    )
    assert (world.vault / "Links.md").read_text() == "[[Letters/A1]]\n"
    assert world.app.operations["promoted"]({}, print)[0]["id"] == "b1"
    assert ask(world, "unpromote", "a1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["returned"][0]["target"] == "Captures/default/A1.md"
    assert [one["id"] for one in world.app.operations["promoted"]({}, print)] == ["b1"]
    assert (world.vault / "Links.md").read_text() == "[[Captures/default/A1]]\n"


def test_a_proposed_change_is_applied_taken_back_and_in_the_log(world, capsys):
    world.write("Plan.md", "open\n")
    world.write("Captures/default/Change of Plan.md", change_note("c1", "Plan.md", "open\n", "shut\n"))
    world.run()
    assert ask(world, "promote", "c1") == 0
    assert capsys.readouterr().out == "Captures/default/Change of Plan.md applied to Plan.md\n"
    assert ask(world, "undo", "Plan.md", "--yes") == 0
    capsys.readouterr()
    assert ask(world, "log", "c1") == 0
    log = capsys.readouterr().out
    assert "applied" in log
    assert "taken back" in log
    assert ask(world, "review", "approve", "c1") == 0
    assert capsys.readouterr().out == "Captures/default/Change of Plan.md applied to Plan.md\n"


def test_what_can_not_be_done_is_told(world, capsys):
    assert ask(world, "promote", "nothing") == 4
    assert "no capture 'nothing'" in capsys.readouterr().err
    assert ask(world, "promote", "a1", "--to", "../out") == 2
    assert ask(world, "unpromote", "a1") == 4
    assert ask(world, "promote", "a1", "nothing") == 5
    out = capsys.readouterr().out
    assert "Notes/A1.md" in out
    assert "nothing: no capture" in out


def test_problems_are_told_in_the_status(world, capsys):
    world.write(
        "Captures/default/A1.md", NOTE.format(id="a1").replace("---\nT", "promote: true\npromote_to: ../x\n---\nT")
    )
    world.run()
    world.app.opened.sync.ready.set()
    world.app.services.marked_captures.run()
    assert ask(world, "status") in (0, 1)
    assert "Captures/default/A1.md is marked for promotion, but can't be promoted" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.slow
def test_a_tick_in_a_file_is_promoted_within_seconds(tmp_path):
    vault = tmp_path / "vault"
    (vault / "Captures/default").mkdir(parents=True)
    capture = vault / "Captures/default/Heron.md"
    capture.write_text(NOTE.format(id="h1"))
    (vault / "Links.md").write_text("see [heron](Captures/default/Heron.md)\n")

    def git(*words):
        run = ["git", "-C", str(vault), "-c", "user.name=Ann", "-c", "user.email=a@example.org", *words]
        return subprocess.run(run, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "before")
    with Daemon(tmp_path) as daemon:
        daemon.settled()
        capture.write_text(capture.read_text().replace("---\nT", "promote: true\npromote_to: Birds\n---\nT"))
        until(lambda: not capture.exists() and "Capture-Id: h1" in git("log", "-1", "--format=%B"), 60)
        assert (vault / "Birds/Heron.md").read_text().endswith("The text of h1.\n")
        assert (vault / "Links.md").read_text() == "see [heron](Birds/Heron.md)\n"
        hits = daemon.ask("search", query="The text of h1", scope="all")["hits"]
        assert [(hit["id"], hit["path"]) for hit in hits][:1] == [("h1", "Birds/Heron.md")]
        assert git("status", "--porcelain", *NOTES) == ""
        assert daemon.ask("unpromote", ids=["h1"])["failed"] == []
        assert capture.read_text() == NOTE.format(id="h1").replace(
            "---\nT", "promote: false\npromote_to: Birds\n---\nT"
        )
        assert git("status", "--porcelain", *NOTES) == ""
        daemon.settled()
    world = World(tmp_path)
    world.run()
    assert world.dump() == world.rebuilt(tmp_path / "other")
    world.close()
