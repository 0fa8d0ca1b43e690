"""Many agents, and a person, who save and relate memos at once lose nothing."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from index.errors import Conflict
from tests.support.memo_notes import relations_in, save


@pytest.mark.slow
def test_twenty_relations_at_once_on_one_memo_are_all_kept(world, space):
    hub, *others = [save(space, f"memo {n}", title=f"M{n}") for n in range(21)]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda other: space.memo_graph.save(hub.id, other.id, "t"), others))
    assert sorted(entry["id"] for entry in relations_in(world, hub)) == sorted(other.id for other in others)
    assert len(space.memo_graph.list(limit=500).ties) == 20
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda n: space.memo_graph.save(hub.id, others[0].id, "same", weight=n / 20), range(20)))
    same = [entry for entry in relations_in(world, hub) if entry["tag"] == "same"]
    assert len(same) == 1
    assert same[0]["version"] == 20
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda other: space.memo_graph.delete(hub.id, other.id, "t"), others))
    assert [entry["tag"] for entry in relations_in(world, hub)] == ["same"]


@pytest.mark.slow
def test_eight_clients_that_upsert_the_same_ids_double_nothing(world, space):
    ids = [f"memo-{n}" for n in range(5)]
    world.app.opened.sync.run()  # before it, a save may be told that the notes are still being read

    def client(number):
        return [space.memos.save(f"by {number}", memo_id=id, metadata={f"c{number}": True}).created for id in ids]

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(client, range(8)))
    assert [sum(made) for made in zip(*told, strict=True)] == [1] * 5
    found = space.memos.search().items
    assert sorted(item.record.id for item in found) == ids
    for item in found:
        assert item.record.version == 8
        assert item.record.metadata == {f"c{number}": True for number in range(8)}
    assert len(list((world.vault / "Captures/default").glob("*.md"))) == 5


def test_of_many_that_compare_the_version_one_wins_each_time(space):
    record = save(space, "0")
    won = []

    def client(number):
        for _ in range(50):
            version = space.get(record.id).record.version
            if version > 8:
                return
            try:
                won.append(save(space, f"by {number} at {version}", memo_id=record.id, version=version).version)
            except Conflict:
                continue

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(client, range(8)))
    assert sorted(won) == list(range(2, max(won) + 1))


def test_a_person_who_edits_while_agents_relate_loses_nothing(world, space):
    hub, *others = [save(space, f"memo {n}", title=f"M{n}") for n in range(5)]
    file, replace_all = world.vault / hub.path, world.app.opened.vault.replace_all
    numbers = iter(range(6))

    def meddling(changes):
        mine = any(change.path == hub.path for change in changes)
        if mine and (n := next(numbers, None)) is not None and n % 2 == 0:  # just before it is written
            file.write_text(file.read_text().replace("---\nmemo 0", f"by_hand_{n}: yes\n---\nmemo 0"))
        return replace_all(changes)

    world.app.opened.vault.replace_all = meddling
    try:
        for other in others:
            space.memo_graph.save(hub.id, other.id, "t")
    finally:
        world.app.opened.vault.replace_all = replace_all
    assert [entry["id"] for entry in relations_in(world, hub)] == [other.id for other in others]
    assert space.get(hub.id).record.metadata == {"by_hand_0": "yes", "by_hand_2": "yes", "by_hand_4": "yes"}
