"""The work of showing one note, counted in calls, steps of SQLite and processes: it does not grow with notes and commits."""

from __future__ import annotations

import sys

import pytest

from index.errors import NotFound
from syncd.git import child_process
from tests.support.git_history import commit, log
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
        connection for slot in world.app.opened.builds.scopes.values() for connection in slot.index.catalog._idle
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
    # The least of three: whoever waits for a process on a busy machine looks at it more often.
    few, many = (min(count_steps(world, operation, **arguments) for _ in range(3)) for world in worlds)
    assert few > 100  # the counter counts
    assert many - few < MANY - FEW


def count_processes(world):
    """The processes that the history of a note with its differences starts, and its commits."""
    count = 0

    def note_call(frame, event, _):
        nonlocal count
        count += event == "call" and frame.f_code is child_process.run.__code__

    world.app.opened.repo.head()  # its answer is kept until HEAD moves
    sys.setprofile(note_call)
    try:
        events = log(world, PATH, patch=True)["events"]
    finally:
        sys.setprofile(None)
    assert all(event["diff"] for event in events)
    return count, len(events)


def test_a_further_commit_of_a_note_starts_no_process(tmp_path):
    world = World(tmp_path)
    world.git("init", "-q", "-b", "main")

    def save(numbers):
        for number in numbers:
            world.write(PATH, "".join(f"line {line}\n" for line in range(number)))
            commit(world, f"Save {number}", 1_700_000_000_000 + number * 3_600_000)
        world.run()

    save(range(1, 4))
    few, three = count_processes(world)
    save(range(4, 13))
    many, twelve = count_processes(world)
    world.close()
    assert (three, twelve) == (3, 12)
    assert 0 < few == many
