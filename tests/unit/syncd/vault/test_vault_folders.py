"""Folders that are empty go with the last file in them; workspaces and a person's folders stay."""

from __future__ import annotations

import threading

import pytest

from syncd.workspaces.agent_access import AgentAccess
from tests.support.world import World, promote


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    yield opened
    opened.close()


def capture(world, text, **given):
    return world.app.agent_access.workspace("default").capture(text, **given).record


def folders(world):
    return sorted(str(path.relative_to(world.vault)) for path in world.vault.rglob("*") if path.is_dir())


def call(world, name, **arguments):
    return world.app.operations[name](arguments, lambda _: None)


def test_a_deleted_capture_takes_its_namespace_along_and_no_workspace(world):
    record = capture(world, "A thought.", namespace="alpha/beta")
    kept = capture(world, "Another.", namespace="alpha")
    call(world, "delete", id=record.id)
    assert folders(world) == ["Captures", "Captures/default", "Captures/default/alpha"]
    call(world, "delete", id=kept.id)
    assert folders(world) == ["Captures", "Captures/default"]


def test_a_promotion_leaves_no_empty_folder_and_neither_does_taking_it_back(world):
    first, second = capture(world, "A thought.", namespace="alpha"), capture(world, "Another thought.")
    before = folders(world)
    promote(world, first.id, to="New/Deep")
    promote(world, second.id, to="New/Deep")
    assert folders(world) == ["Captures", "Captures/default", "New", "New/Deep"]
    world.app.services.promotions.unpromote(first.id)
    world.app.services.promotions.unpromote(second.id)
    assert folders(world) == before


def test_a_folder_that_a_person_made_stays_when_a_promotion_is_taken_back(world):
    (world.vault / "Mine").mkdir()
    record = capture(world, "A thought.")
    promote(world, record.id, to="Mine")
    world.app.services.promotions.unpromote(record.id)
    assert "Mine" in folders(world)


def test_a_capture_that_comes_back_from_the_archive_leaves_no_folder_there(world):
    record = capture(world, "A thought.")
    call(world, "review.dismiss", ids=[record.id])
    world.app.services.archive.run(threading.Event())
    assert "Captures/Archive/default" in folders(world)
    call(world, "unarchive", ids=[record.id])
    assert folders(world) == ["Captures", "Captures/default"]


def test_a_file_in_a_folder_keeps_it(world):
    record = capture(world, "A thought.", namespace="alpha")
    world.write("Captures/default/alpha/picture.png", b"x")
    call(world, "delete", id=record.id)
    assert "Captures/default/alpha" in folders(world)


@pytest.mark.slow
def test_captures_beside_deletions_of_the_last_one_in_a_folder_are_all_kept(world):
    agents: AgentAccess = world.app.agent_access
    failures = []

    def write(name):
        try:
            for n in range(15):
                record = agents.workspace("default").capture(f"{name} {n}", namespace="alpha").record
                if n % 3:
                    agents.workspace("default").delete(record.id)
        except Exception as error:  # whatever it is, it is told below
            failures.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(list((world.vault / "Captures/default/alpha").glob("*.md"))) == 10
