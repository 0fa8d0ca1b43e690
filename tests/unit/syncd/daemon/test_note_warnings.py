"""Warnings about notes and their names that the owner gets."""

from __future__ import annotations

import unicodedata

import pytest

from syncd.daemon.note_warnings import SimilarNames
from tests.support.world import World, until

NFC, NFD = (unicodedata.normalize(form, "Café.md") for form in ("NFC", "NFD"))


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


def names(world):
    return world.app.health.facts()["names"]


def defects(world):
    return {one["path"]: one["defect"] for one in world.app.health.status(None)["defects"]}


def test_twins_are_two_notes_and_both_are_named(world):
    for path in (NFC, NFD, "Plan/Note.md", "Plan/note.md", "plan/Other.md", "Alone.md"):
        world.write(path, f"a twite in {path}\n")
    world.run()
    assert len(world.found("twite", limit=50)) == 6
    assert names(world)["twins"] == [[NFD, NFC], ["Plan", "plan"], ["Plan/Note.md", "Plan/note.md"]]
    told = defects(world)
    assert told.keys() == {NFC, NFD, "Plan/Note.md", "Plan/note.md"}
    assert told["Plan/note.md"] == (
        "twin: its name differs from Plan/Note.md only in letter case or Unicode form; many systems keep only one of them"
    )
    (world.vault / NFD).unlink()
    world.run()
    assert names(world)["twins"] == [["Plan", "plan"], ["Plan/Note.md", "Plan/note.md"]]


def test_twins_are_looked_for_only_when_the_index_has_changed():
    looks, generation = [], 1
    twins = SimilarNames(lambda: looks.append(1) or ["a.md", "A.md"], lambda: generation)
    assert twins.groups() == twins.groups() == [("A.md", "a.md")]
    assert len(looks) == 1
    generation = 2
    twins.groups()
    assert len(looks) == 2


COPIES = [
    "Plan.sync-conflict-20261120-143205-ABCDEF7.md",
    "Plan (Ada's conflicted copy 2026-11-20).md",
    "Plan (Conflicted copy laptop 202611201432).md",
    "Plan (conflicted copy 2026-11-20 143205).md",
    "Plan_conflict-20261120-143205.md",
    "Plan (SFConflict ada@example.org 2026-11-20-14-32-05).md",
    "Plan [conflicted].md",
]


def test_a_conflict_copy_is_found_named_and_never_taken_for_the_note(world):
    world.write("Captures/default/Plan.md", "---\nid: plan\n---\nthe plan as it is\n")
    for name in COPIES:
        world.write(f"Captures/default/{name}", f"---\nid: plan\n---\nthe plan as it was, {name}\n")
    world.run()
    assert names(world)["conflict_copies"] == sorted(f"Captures/default/{name}" for name in COPIES)
    told = defects(world)
    assert all(told[f"Captures/default/{name}"].startswith("conflict-copy: ") for name in COPIES)
    assert len(told) == len(world.app.health.status(None)["defects"])  # not called a second note with one id
    index = world.app.opened.builds.scopes["captures"].index
    assert index.record("plan").path == "Captures/default/Plan.md"
    assert len(world.found("plan", mode="text", limit=50)) == len(COPIES) + 1


def test_two_captures_with_one_id_are_named_until_one_of_them_has_another(world):
    (world.vault / "Captures/work").mkdir()
    for path in ("Captures/default/Plan.md", "Captures/default/Plan copy.md", "Captures/work/Plan.md", "Plan.md"):
        world.write(path, f"---\nid: plan\n---\nthe plan in {path}\n")
    world.run()
    told = defects(world)
    assert told.keys() == {"Captures/default/Plan copy.md"}
    assert told["Captures/default/Plan copy.md"].startswith("same-id: Captures/default/Plan.md has this id too")
    world.write("Captures/default/Plan copy.md", "the plan without the line\n")
    until(lambda: world.run() is None or defects(world) == {})
    index = world.app.opened.builds.scopes["captures"].index
    assert index.record("plan", "default").path == "Captures/default/Plan.md"


@pytest.mark.parametrize(
    "name", ["Conflict.md", "On conflicted copies.md", "My (conflict) notes.md", "conflict-2026.md", "Plan (1).md"]
)
def test_a_persons_own_title_is_no_conflict_copy(world, name):
    world.write(name, "text\n")
    world.run()
    assert names(world)["conflict_copies"] == []


def test_a_note_that_is_moved_off_this_machine_stays_findable_and_is_named(world):
    file = world.write("Far/Note.md", "a distant whinchat\n")
    with world.serving():
        world.settled()
        file.rename(world.vault / "Far/.Note.md.icloud")
        until(lambda: names(world)["placeholders"] == ["Far/Note.md"])
        world.settled()
        world.app.opened.sync.run()
        assert world.found("whinchat", mode="text") == ["Far/Note.md"]
        assert defects(world)["Far/Note.md"] == "not-indexed: is not downloaded to this machine"
        (world.vault / "Far/.Note.md.icloud").unlink()
        file.write_text("a nearer stonechat\n")
        until(lambda: world.found("stonechat", mode="text") == ["Far/Note.md"])
        world.settled()
        assert names(world)["placeholders"] == []
        assert world.found("whinchat", mode="text") == []


def test_the_graph_is_told_in_numbers_and_with_its_loose_ends(world):
    node = "---\ntype: entity\nname: {}\n---\n## Observations\n- one\n- two\n\n## Relations\n- knows:: [[{}]]\n"
    world.write("Captures/default/Entities/Ada.md", node.format("Ada", "Charles"))
    world.write("Captures/default/Entities/Charles.md", node.format("Charles", "Nobody"))
    world.write("Captures/default/alpha/Entities/Other.md", node.format("ADA", "Charles"))
    world.write("Captures/work/Entities/Bernoulli.md", node.format("Bernoulli", "Charles"))
    world.run()
    assert world.app.health.facts()["graph"] == {
        "nodes": 3,
        "observations": 6,
        "relations": 1,
        "twins": [["Captures/default/Entities/Ada.md", "Captures/default/alpha/Entities/Other.md"]],
        "dangling": [
            {"path": "Captures/default/Entities/Charles.md", "relation_type": "knows", "target": "Nobody"},
            {"path": "Captures/work/Entities/Bernoulli.md", "relation_type": "knows", "target": "Charles"},
        ],
    }
