"""What agents are told to be pending: what they can't find yet, and nothing of what is their owner's alone."""

from __future__ import annotations

import pytest

from tests.support.world import World

NOTE = "---\nid: {id}\ncreated_at: 2026-11-20T14:32:05.120Z\n{more}---\nThe text.\n"


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.write("Captures/default/A.md", NOTE.format(id="a1", more=""))
    made.run()
    yield made
    made.close()


def pending(world, *paths):
    """What an agent and the owner are told when something has happened to these."""
    world.app.opened.sync.hint(paths)
    told = [world.app.health.status(whose)["pending"] for whose in (frozenset({"default"}), None)]
    assert "pending" not in world.app.health.status(frozenset()), "without a key"
    return told


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("", id="nothing new"),
        pytest.param("promote: true\n", id="a tick"),
        pytest.param("review: later\npromote_to: Birds\n", id="a word of its owner"),
        pytest.param("suggested_folder: Birds\nsuggested_tags: [a, b]\n", id="suggestions"),
        pytest.param("promote_problem: the name is taken\n", id="what keeps it from being promoted"),
    ],
)
def test_what_is_a_person_s_alone_is_pending_for_its_owner_only(world, more):
    world.write("Captures/default/A.md", NOTE.format(id="a1", more=more))
    assert pending(world, "Captures/default/A.md") == [0, 1]


def test_what_agents_can_read_is_pending_for_them(world):
    world.write("Captures/default/A.md", NOTE.format(id="a1", more="tags: [x]\n"))
    world.write("Captures/default/B.md", NOTE.format(id="b1", more=""))
    world.write("Projects/P.md", "of the vault\n")
    assert pending(world, "Captures/default/A.md", "Captures/default/B.md", "Projects/P.md") == [2, 3]
    (world.vault / "Captures/default/A.md").unlink()
    assert pending(world) == [2, 3]
    world.run()
    assert world.app.health.status(None)["vault"]["documents"] == 1


def test_a_note_that_can_not_be_read_is_pending(world):
    (world.vault / "Captures/default/A.md").unlink()
    (world.vault / "Captures/default/A.md").mkdir()
    assert pending(world, "Captures/default/A.md") == [1, 1]
