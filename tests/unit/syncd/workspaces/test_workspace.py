"""syncd/workspaces/workspace.py: addresses of notes with almost the same name, on a real index."""

import pytest

from index.document_ids import path_id
from index.scope.reader import KNOWN_IDS, Reader
from tests.support.world import World

NOTE = "---\nid: {}\ncreated_at: 2026-01-0{}\n---\ntext\n"
ANNA = "Meeting (Anna).md"


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def paths_read(monkeypatch):
    """Record the paths of the rows that are read together."""
    paths, read = [], Reader.records_at

    def record(reader, wanted):
        wanted = list(wanted)
        paths.extend(path.rpartition("/")[2] for path in wanted)
        return read(reader, wanted)

    monkeypatch.setattr(Reader, "records_at", record)
    return paths


def test_notes_that_differ_only_in_brackets_are_not_read_for_each_other(world, paths_read):
    for name in ("Anna", "Ben", "Cleo", "Dora"):
        world.write(f"Captures/default/Meeting ({name}).md", NOTE.format(f"{name.lower()}-0001", 1))
    world.run()
    space = world.app.agent_access.workspace("default")
    record = space.get("anna-0001").record
    paths_read.clear()
    assert space.document_at(ANNA) == record
    assert space.addresses([record]) == {record.id: ANNA}
    assert space.matching_addresses("meeting (anna", 1) == [ANNA]
    assert set(paths_read) == {ANNA, "Meeting (Ben).md"}  # one more than the limit


def test_an_address_with_a_part_of_an_id_leads_to_its_note(world):
    world.write("Captures/default/Meeting (old-0001).md", NOTE.format("r1", 1))
    world.write("Captures/default/Meeting.md", NOTE.format("r2", 2))
    world.write("Captures/default/Meeting 2.md", NOTE.format("old-0001-x\ntitle: Meeting", 3))
    others = ["A meeting (Yan).md", "A meeting (Zoe).md"]
    for name in others:
        world.write(f"Captures/default/{name}", "text\n")
    world.run()
    space = world.app.agent_access.workspace("default")
    records = [space.get(id).record for id in ("r1", "r2", "old-0001-x")]
    addresses = space.addresses(records)
    names = {"r1": "Meeting (old-0001).md", "r2": "Meeting.md", "old-0001-x": "Meeting (old-0001-x).md"}
    assert addresses == names
    assert [space.document_at(address).id for address in addresses.values()] == list(names)
    assert space.matching_addresses("Meeting", 9) == sorted(names.values()) + others
    assert space.matching_addresses("meeting (old-0001-x", 1) == ["Meeting (old-0001-x).md"]


def test_known_ids_are_whole_ids_or_their_first_eight_characters(world):
    world.write(path := "Captures/default/A.md", NOTE.format("A1b2C3d4-more", 1))
    world.write("Captures/other/B.md", NOTE.format("other-id", 1))
    world.run()
    index, key = world.app.opened.captures.index, path_id(path)
    known = {"A1b2C3d4-more", "A1b2C3d4", key, key[:8]}
    assert index.known_ids("default", [*known, "A1b2C3d", "a1b2c3d4", "other-id", "Anna"]) == known
    plan = [step[3] for step in index.catalog.rows(f"explain query plan {KNOWN_IDS}", "[]", "default")]
    assert not any("SCAN documents" in step for step in plan), plan
