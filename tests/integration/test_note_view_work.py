"""The work of showing one note, counted in calls and steps of SQLite: it does not grow with the number of notes."""

from __future__ import annotations

import sys

import pytest

from index.errors import NotFound
from tests.support.world import World

FEW, MANY = 20, 220
PATH = "Projects/Heron.md"


def make_world(folder, notes):
    """A vault with a note, its neighbours, and this number of other notes that link to each other."""
    made = World(folder)
    made.write(PATH, "[[Pump]] and [[Nobody]]\n")
    made.write("Projects/Pump.md", "[[heron]]\n")
    made.write("Projects/Größe.md", "[[Projects/Heron]]\n")
    for number in range(notes):
        made.write(f"Notes/Note {number}.md", f"[[Note {number + 1}]] and [[Größe {number}]]\n")
    made.run()
    return made


def count_steps(world, operation, **arguments):
    """The calls of functions and the instructions of SQLite that an operation takes in this thread."""
    count = 0

    def note_call(frame, event, _):
        nonlocal count
        count += event in ("call", "c_call")

    def ask():
        try:
            world.app.operations[operation]({"id": PATH, **arguments}, lambda _: None)
        except NotFound as error:
            assert PATH in error.message

    ask()  # from now on, all connections are open
    connections = [
        connection for slot in world.app.opened.builds.scopes.values() for connection in slot.index._catalog._db._idle
    ]
    assert connections
    for connection in connections:
        connection.set_progress_handler(lambda: None, 1)  # a call for each instruction
    sys.setprofile(note_call)
    try:
        ask()
    finally:
        sys.setprofile(None)
        for connection in connections:
            connection.set_progress_handler(None, 0)
    return count


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    made = [make_world(tmp_path_factory.mktemp("work"), notes) for notes in (FEW, MANY)]
    yield made
    for world in made:
        world.close()


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        pytest.param("get", {"links": True, "passages": False}, id="text and links both ways"),
        pytest.param("log", {"limit": 50, "patch": True}, id="history"),
    ],
)
def test_a_further_note_adds_less_than_a_step(worlds, operation, arguments):
    few, many = (count_steps(world, operation, **arguments) for world in worlds)
    assert few > 100  # the counter counts
    assert many - few < MANY - FEW
