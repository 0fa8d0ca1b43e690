"""No agent overwrites unread what a person wrote into a note while it was away from its workspace."""

import os
import time

import pytest

from index.errors import Conflict
from syncd.sync import hand_edits
from tests.support.world import World, promote

EDIT = "The owner's line.\n"


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    opened.write("Home.md", "hi\n")
    (opened.vault / "Captures/work").mkdir()
    opened.run()
    yield opened
    opened.close()


def captured(world, version):
    """A note that an agent has read with this version."""
    space = world.app.agent_access.workspace("default")
    record = space.capture("Herons\n\nThey wade.\n").record
    for number in range(1, version):
        record, _ = space.update_note(record.id, f"Herons\n\nThey wade, {number}.\n")
    world.run()
    assert record.version == version
    return record


def promoted(world, record):
    file = world.vault / promote(world, record.id)["target"]

    def return_it():
        world.app.services.promotions.unpromote(record.id)

    return file, return_it


def archived(world, record):
    world.app.services.archive.dismiss(record.id)
    world.run()
    file = world.vault / f"Captures/Archive/{record.path.removeprefix('Captures/')}"
    return file, lambda: world.app.services.archive.bring_back(record.id)


def dragged(world, record, target="Herons.md"):
    source, file = world.vault / record.path, world.vault / target
    source.rename(file)
    world.run()
    world.app.services.manual_moves.run()
    world.run()
    return file, lambda: file.rename(source)


def moved_to_another_workspace(world, record):
    return dragged(world, record, "Captures/work/Herons.md")


def removed(world, record):
    file = world.vault / record.path
    text = file.read_bytes()
    file.unlink()
    world.run()
    file.write_bytes(text)
    return file, lambda: None


WAYS = [promoted, archived, dragged, moved_to_another_workspace, removed]


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("leave", WAYS)
def test_a_note_that_returns_with_an_edit_has_a_newer_version(world, leave, version):
    record = captured(world, version)
    file, return_it = leave(world, record)
    file.write_text(file.read_text() + EDIT)
    if leave is not removed:
        world.run()
    return_it()
    for _ in range(2):
        world.run()
        world.app.services.manual_moves.run()
    space = world.app.agent_access.workspace("default")
    assert space.get(record.id).record.version == version + 1
    with pytest.raises(Conflict):
        space.update_note(record.id, "The agent's text.\n", version=version)
    assert EDIT in space.get(record.id).content
    world.reopen()
    world.run()
    assert world.app.agent_access.workspace("default").get(record.id).record.version == version + 1


@pytest.mark.parametrize("leave", WAYS)
def test_a_note_that_returns_without_an_edit_has_no_earlier_version(world, leave):
    record = captured(world, 2)
    _, return_it = leave(world, record)
    return_it()
    for _ in range(2):
        world.run()
        world.app.services.manual_moves.run()
    after = world.app.agent_access.workspace("default").get(record.id).record
    assert (after.content_hash, after.version) == (record.content_hash, 3 if leave is dragged else 2)


def test_an_edit_counts_also_after_a_restart_and_for_a_limited_time(world, monkeypatch):
    record = captured(world, 2)
    file = world.vault / record.path
    text = file.read_text()
    file.unlink()
    world.run()
    world.reopen()
    file.write_text(text + EDIT)
    world.run()
    assert world.app.agent_access.workspace("default").get(record.id).record.version == 3
    file.unlink()
    world.run()
    monkeypatch.setattr(hand_edits, "AWAY_MS", -60_000)
    world.run()
    file.write_text(text)
    os.utime(file, (time.time() - 60, time.time() - 60))
    world.run()
    assert world.app.agent_access.workspace("default").get(record.id).record.version == 2
