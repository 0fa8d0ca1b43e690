"""Promotions that a crash broke off, and in which somebody came in between: what they wrote stays, and the note is there once."""

from __future__ import annotations

import json

import pytest

from syncd.history.change_journal import move_steps, sha256
from syncd.notes.front_matter import split
from tests.support.world import World, promote

NOTE = "---\nid: n1\ncreated_at: 2026-11-20\n---\nThe text.\n"
FILES = {
    "Captures/default/N.md": NOTE,
    "Links.md": "[[Captures/default/N]]\n",
    "More.md": "[x](Captures/default/N.md)\n",
}


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    for path, text in FILES.items():
        world.write(path, text)
    world.run()
    world.app.opened.sync.ready.set()
    yield world
    world.close()


def broken_off(world, after):
    """A promotion of which so many steps were done."""
    own, snapshot = world.app.services.promotions, world.app.services.snapshot
    plan = own.make_plan(snapshot.find_capture("n1"), to="Notes")
    way = own.make_move_plan(plan)
    journal = own._journal
    journal.begin(way, by="Ann", at=1)
    assert [step.path for step in way.steps] == ["Notes/N.md", "Links.md", "More.md", "Captures/default/N.md"]
    journal.roll_forward(way.steps[:after])


def ended(world):
    world.reopen()
    own = world.app.services.promotions
    own.finish_pending()
    world.run()
    (found,) = own._journal.entries_of("n1")
    return found.state


def text(world, path):
    file = world.vault / path
    return file.read_text() if file.exists() else None


@pytest.mark.parametrize("after", [0, 2, 4])
def test_what_was_broken_off_is_ended(world, after):
    broken_off(world, after)
    assert ended(world) == "done"
    assert text(world, "Captures/default/N.md") is None
    assert split(text(world, "Notes/N.md"))[1] == "The text.\n"
    assert (text(world, "Links.md"), text(world, "More.md")) == ("[[Notes/N]]\n", "[x](Notes/N.md)\n")


@pytest.mark.parametrize("after", [1, 3])
def test_a_capture_that_was_edited_meanwhile_stays_in_the_inbox(world, after):
    broken_off(world, after)
    world.write("Captures/default/N.md", NOTE + "More of mine.\n")
    assert ended(world) == "undone"
    assert split(text(world, "Captures/default/N.md"))[1] == "The text.\nMore of mine.\n"
    assert text(world, "Notes/N.md") is None
    assert {path: text(world, path) for path in ("Links.md", "More.md")} == {
        path: FILES[path] for path in ("Links.md", "More.md")
    }


@pytest.mark.parametrize("after", [1, 3])
def test_a_note_that_was_edited_at_its_destination_keeps_the_edit(world, after):
    broken_off(world, after)
    (world.vault / "Notes/N.md").write_text(text(world, "Notes/N.md") + "More of mine.\n")
    assert ended(world) == "done"
    assert text(world, "Captures/default/N.md") is None
    assert split(text(world, "Notes/N.md"))[1] == "The text.\nMore of mine.\n"
    assert text(world, "Links.md") == "[[Notes/N]]\n"


@pytest.mark.parametrize("after", [0, 4])
def test_a_note_with_links_that_was_edited_meanwhile_is_mended(world, after):
    broken_off(world, after)
    world.write("Links.md", "Another [[Captures/default/N]] of mine.\n")
    assert ended(world) == "done"
    assert text(world, "Links.md") == "Another [[Notes/N]] of mine.\n"
    assert text(world, "More.md") == "[x](Notes/N.md)\n"


def test_something_else_at_the_destination_is_left_alone(world):
    broken_off(world, 0)
    world.write("Notes/N.md", "mine\n")
    assert ended(world) == "undone"
    assert text(world, "Notes/N.md") == "mine\n"
    assert text(world, "Captures/default/N.md") == NOTE
    assert text(world, "Links.md") == FILES["Links.md"]
    assert world.app.services.promotions.facts()["torn"] == []


def test_a_note_that_somebody_took_away_is_not_brought_back(world):
    broken_off(world, 4)
    (world.vault / "Notes/N.md").unlink()
    assert ended(world) == "undone"
    assert text(world, "Notes/N.md") is None
    assert text(world, "Captures/default/N.md") is None


def test_the_journal_says_who_and_what(world):
    promote(world, "n1")
    own = world.app.services.promotions
    (entry,) = own._journal.entries_of("n1")
    assert (entry.kind, entry.state, entry.by) == ("promote", "done", own.owner())
    assert json.loads(entry.about)["relinked"] == ["Links.md", "More.md"]


def test_a_file_that_cannot_be_restored_is_reported(world):
    old, new, raw = "Captures/default/Files/f.pdf", "Files/f.pdf", b"%PDF-"
    (world.vault / old).parent.mkdir(parents=True)
    (world.vault / old).write_bytes(raw)
    journal = world.app.services.promotions._journal
    steps = move_steps(old, new, sha256(raw))
    journal.roll_forward(steps)
    assert not (world.vault / old).exists()
    (world.vault / new).unlink()
    assert journal.roll_back(steps) == [old]
