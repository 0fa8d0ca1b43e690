"""syncd/indexes/note_links.py: links lead in both directions to the notes that Obsidian opens."""

from __future__ import annotations

import pytest

from tests.support.world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("links"))
    made.write("Projects/Heron.md", "[[Pump]], [[Nobody]], [[Pump#Flow]]\n")
    made.write("Projects/Pump.md", "[[heron]]\n")
    made.write("Old/Heron.md", "a namesake\n")
    made.write("Old/Diary.md", "[[Heron]] is the namesake here, [[Projects/Heron]] the other\n")
    made.write("Captures/default/Idea.md", "---\nid: idea\n---\nFor [[Projects/Heron|it]].\n")
    made.run()
    yield made
    made.close()


def get(world, id):
    return world.app.operations["get"]({"id": id, "links": True}, lambda _: None)


def test_links_lead_to_paths_and_a_link_to_nothing_to_none(world):
    note = get(world, "Projects/Heron.md")
    assert [(link["target"], link["subpath"], link["path"]) for link in note["links"]] == [
        ("Pump", "", "Projects/Pump.md"),
        ("Nobody", "", None),
        ("Pump", "#Flow", "Projects/Pump.md"),
    ]


def test_backlinks_are_of_this_note_and_not_of_its_namesake(world):
    assert [note["path"] for note in get(world, "Projects/Heron.md")["backlinks"]] == [
        "Captures/default/Idea.md",
        "Old/Diary.md",
        "Projects/Pump.md",
    ]
    assert [note["path"] for note in get(world, "Old/Heron.md")["backlinks"]] == ["Old/Diary.md"]


def test_passages_are_left_out_on_request_and_nothing_else_changes(world):
    whole = world.app.operations["get"]({"id": "Projects/Heron.md"}, lambda _: None)
    without = world.app.operations["get"]({"id": "Projects/Heron.md", "passages": False}, lambda _: None)
    assert whole.pop("passages") == ["[[Pump]], [[Nobody]], [[Pump#Flow]]"]
    assert without == whole


def test_links_are_left_out_unless_they_are_asked_for(world):
    note = world.app.operations["get"]({"id": "Projects/Heron.md"}, lambda _: None)
    assert not {"links", "backlinks"} & note.keys()
