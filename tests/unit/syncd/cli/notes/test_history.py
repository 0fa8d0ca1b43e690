"""The commands `log` and `undo`: versions that can be restored, previews, and a note restored by its name."""

from __future__ import annotations

import json
import shutil
from datetime import UTC

import click
import pytest

from index.timings import now_ms
from syncd.cli.main import run_command
from syncd.cli.notes import history
from tests.support import agent_writes
from tests.support.world import World, answering

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def world(tmp_path):
    """A daemon on a vault under Git with a note that has two commits and an edit."""
    world = World(tmp_path)
    world.git("init", "-q", "-b", "main")
    for text in ("first\n", "second\n"):
        world.write("Mine.md", text)
        world.git("add", "-A")
        world.git("commit", "-qm", text)
    world.write("Mine.md", "third\n")
    world.run()
    with answering(world):
        yield world


def ask(world, *words):
    return run_command([*words, "--vault", str(world.vault), "--state", str(world.state)])


def test_a_note_is_restored_and_the_restore_undone(world, capsys):
    first = world.git("log", "--format=%H").split()[-1]
    assert ask(world, "undo", "Mine.md", "--to", first[:10], "--dry-run") == 0
    assert capsys.readouterr().out.splitlines()[-3:] == ["-third", "+first", "nothing was changed (--dry-run)"]
    assert ask(world, "undo", "Mine.md", "--to", first[:10], "--yes") == 0
    restored, kept, way_back = capsys.readouterr().out.splitlines()
    assert restored.startswith("restored  Mine.md  commit ")
    assert kept.startswith("the text before is in commit ")
    assert (world.vault / "Mine.md").read_text() == "first\n"
    assert ask(world, "undo", "Mine.md", "--to", first[:10], "--yes") == 0
    assert capsys.readouterr().out == "Mine.md has this text already\n"
    assert ask(world, "undo", way_back.split()[-1], "--yes") == 0
    assert (world.vault / "Mine.md").read_text() == "third\n"


def test_head_is_a_version_and_the_present_version_needs_no_confirmation(world, capsys):
    assert ask(world, "undo", "Mine.md", "--to", "HEAD", "--dry-run") == 0
    assert capsys.readouterr().out.splitlines()[-3:] == ["-third", "+second", "nothing was changed (--dry-run)"]
    assert ask(world, "undo", "Mine.md", "--to", "HEAD", "--yes") == 0
    assert (world.vault / "Mine.md").read_text() == "second\n"
    assert "as it was at HEAD" not in world.git("log", "-1", "--format=%s")
    for version in ("HEAD", world.git("rev-parse", "HEAD~2").strip()[:10]):
        capsys.readouterr()
        assert ask(world, "undo", "Mine.md", "--to", version) == 0
        assert capsys.readouterr().out == "Mine.md has this text already\n"


def test_the_log_names_the_versions_that_are_kept(world, capsys):
    world.app.operations["capture"]({"content": "one", "metadata": {"title": "Boat"}}, lambda _: None)
    world.app.operations["updatenote"]({"id": "Boat", "text": "two"}, lambda _: None)
    assert ask(world, "log", "Boat", "-p", "--json") == 0
    events = json.loads(capsys.readouterr().out)["events"]
    (version,) = {event["after"][:12] for event in events if event["restorable"] and event["what"] == "create"}
    assert ask(world, "log", "Boat", "-p") == 0
    assert f"    version {version}\n" in capsys.readouterr().out
    assert ask(world, "undo", "Boat", "--to", version, "--yes") == 0
    assert "one" in (world.vault / "Captures/default/Boat.md").read_text()


COMMON = {"at": 0, "source": None, "path": "a.md", "author": None, "commit": None, "undone": False, "request": ""}
EVENTS = [
    {"what": "create", "key": "claude-code@desk", "surface": "mcp", "tool": "kb_addnote", "request": "ab12"},
    {"what": "commit", "commit": "9690eb0031aa", "author": "Ada 要", "subject": "A subject of many words"},
    {"what": "edit", "key": None, "surface": "", "tool": ""},
    {"what": "update", "key": None, "surface": "cli", "tool": "updatenote", "request": "cd34", "undone": True},
    {"what": "promote", "author": "Memex", "tool": "promote", "source": "Captures/default/a.md"},
]


@pytest.mark.parametrize("color", [False, True])
def test_the_columns_of_the_log_are_aligned(color):
    result = {"more": 0, "events": [COMMON | event for event in EVENTS]}
    text = history.format_timeline(result, UTC, color=color)
    assert click.unstyle(text).splitlines() == [
        "1970-01-01 00:00:00  created            claude-code@desk  kb_addnote  call ab12",
        "1970-01-01 00:00:00  commit 9690eb0031  Ada 要            A subject of many words",
        "1970-01-01 00:00:00  changed outside Memex",
        "1970-01-01 00:00:00  changed (undone)   cli               updatenote  call cd34",
        "1970-01-01 00:00:00  promoted by Memex  Captures/default/a.md → a.md",
    ]


def test_an_earlier_version_is_written_byte_for_byte(world, capfdbinary):
    raw = b"third\r\n\xff\x1b[2J"
    world.write("Mine.md", raw)
    world.run()
    assert ask(world, "undo", "Mine.md", "--to", world.git("log", "--format=%H").split()[-1], "--yes") == 0
    capfdbinary.readouterr()
    assert ask(world, "log", "Mine.md", "--json") == 0
    entry = next(event["entry"] for event in json.loads(capfdbinary.readouterr().out)["events"] if event["entry"])
    assert ask(world, "log", "Mine.md", "--before", str(entry)) == 0
    assert capfdbinary.readouterr().out == raw


def test_a_version_without_a_note_and_a_restore_that_nobody_confirms_are_refused(world, capsys):
    assert ask(world, "undo", "--since", "1h", "--to", "abcdef", "--yes") == 2
    assert "--to needs the note" in capsys.readouterr().err
    first = world.git("log", "--format=%H").split()[-1]
    assert ask(world, "undo", "Mine.md", "--to", first) == 2
    assert "add --yes" in capsys.readouterr().err


UNKNOWN = {
    "a note": (["Nope"], "no note 'Nope'"),
    "a version": (["Mine.md", "--to", "zzzz"], "Mine.md has no version 'zzzz'"),
    "a key": (["--since", "2h", "--key", "nope"], "no key named 'nope' has written anything"),
    "a workspace": (["--since", "2h", "--workspace", "nope"], "no workspace 'nope'"),
    "a workspace, confirmed": (["--since", "2h", "--workspace", "nope", "--yes"], "no workspace 'nope'"),
    "a workspace, as a trial": (["--since", "2h", "--workspace", "nope", "--dry-run"], "no workspace 'nope'"),
}


def test_an_unknown_name_is_reported_before_a_confirmation(world, capsys):
    for what, (words, reason) in UNKNOWN.items():
        assert ask(world, "undo", *words) == 4, what
        assert reason in capsys.readouterr().err, what


@pytest.fixture
def answers_after(monkeypatch):
    """Return a function that sets what happens while a person reads the question, which is then confirmed."""

    def set_event(event):
        monkeypatch.setattr(history, "require_terminal", lambda *_, **__: None)
        monkeypatch.setattr(history, "confirm", lambda *_, **__: event())

    return set_event


def test_an_undo_by_time_leaves_writes_after_its_preview_alone(world, capsys, answers_after):
    agent_writes.capture(world, "# One\n\none")
    agent_writes.capture(world, "# Two\n\ntwo")
    answers_after(lambda: agent_writes.capture(world, "# Three\n\nthree"))
    assert ask(world, "undo", "--since", "1h") == 0
    assert sorted(file.name for file in (world.vault / "Captures/default").glob("*.md")) == ["Three.md"]


@pytest.mark.parametrize(("flag", "left"), [("--yes", []), ("--dry-run", ["One.md"])])
def test_an_undo_without_a_preview_takes_writes_whose_time_is_to_come(world, capsys, monkeypatch, flag, left):
    agent_writes.capture(world, "# One\n\none")
    monkeypatch.setattr(history, "now_ms", lambda: now_ms() - 1_800_000)  # the clock was set back
    assert ask(world, "undo", "--since", "1h", flag) == 0
    assert "One.md" in capsys.readouterr().out
    assert [file.name for file in (world.vault / "Captures/default").glob("*.md")] == left


def test_an_undo_of_a_note_takes_back_only_the_call_that_was_shown(world, capsys, answers_after):
    with agent_writes.by():
        one, two = (agent_writes.space(world).capture(f"# {name}\n\nwords").record for name in ("One", "Two"))
        for note in (one, two):
            agent_writes.space(world).update_note(note.id, f"{note.title} again")
    answers_after(lambda: agent_writes.update(world, one.id, "later"))
    assert ask(world, "undo", one.id) != 0
    assert "was written to after you were asked, so nothing was undone" in capsys.readouterr().err
    texts = [(world.vault / f"Captures/default/{name}.md").read_text() for name in ("One", "Two")]
    assert ["later" in texts[0], "Two again" in texts[1]] == [True, True]


@pytest.mark.parametrize("command", ["log", "undo"])
def test_an_unknown_name_may_be_that_of_a_deleted_note(world, capsys, command):
    assert ask(world, command, "Gone") == 4
    assert "name a deleted note by its path or id" in capsys.readouterr().err
