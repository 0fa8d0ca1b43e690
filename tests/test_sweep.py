"""Passes over a real vault, with real stores: what one look leaves for the next."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from tests.world import PROMPT, World, until


@pytest.fixture
def slow_to_adopt(tmp_path):
    world = World(tmp_path, sync=replace(PROMPT, adopt_s=0.6))
    yield world
    world.close()


def test_a_note_dropped_into_the_inbox_gets_its_id_once_it_is_quiet(slow_to_adopt):
    with slow_to_adopt.serving():
        file = slow_to_adopt.write("Captures/default/Dropped.md", "dropped by hand\n")
        until(lambda: slow_to_adopt.found("dropped by hand") == ["Captures/default/Dropped.md"], 10)
        assert b"id: " not in file.read_bytes()
        until(lambda: file.read_bytes().startswith(b"---\nid: "), 10)
        slow_to_adopt.settled()
    assert file.read_bytes().endswith(b"\n---\ndropped by hand\n")


def test_a_note_that_was_dropped_before_a_restart_gets_its_id_after_it(slow_to_adopt):
    file = slow_to_adopt.write("Captures/default/Dropped.md", "dropped by hand\n")
    slow_to_adopt.run()
    slow_to_adopt.reopen()
    time.sleep(0.7)
    assert slow_to_adopt.run().unchanged == 0
    assert file.read_bytes().startswith(b"---\nid: ")
    assert slow_to_adopt.run().unchanged == 1


def test_a_note_that_can_get_no_id_is_read_again_and_no_more(slow_to_adopt):
    file = slow_to_adopt.write("Captures/default/Bad.md", before := "---\nid: bad id!\n---\nbody\n")
    os.utime(file, (1, 1))
    assert slow_to_adopt.run().added == 1
    again = slow_to_adopt.run()
    assert (again.unchanged, again.changes) == (1, 0)
    assert file.read_text() == before


def test_a_command_alone_knows_that_all_was_listed_once(slow_to_adopt):
    slow_to_adopt.write("Note.md", "text")
    assert not slow_to_adopt.app.health.status(None)["ready"]
    slow_to_adopt.run()
    slow_to_adopt.reopen()
    assert slow_to_adopt.app.health.status(None)["ready"]
