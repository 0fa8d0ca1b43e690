"""The owner's operations on the index, on a real vault: the stamp that an open page follows, and what an update leaves behind."""

from __future__ import annotations

import pytest

from index.errors import Unavailable
from tests.support.world import World


def test_the_stamp_changes_as_the_vault_goes_away_and_is_the_same_again_when_it_is_back(tmp_path):
    world = World(tmp_path)
    away = tmp_path / "away"

    def stamp():
        return world.app.operations["stamp"]({}, lambda _: None)

    world.run()
    before = stamp()
    assert stamp() == before
    world.vault.rename(away)
    world.run()
    assert stamp() != before
    away.rename(world.vault)
    world.run()
    assert stamp() == before
    world.close()


@pytest.mark.parametrize("full", [False, True], ids=["update", "rebuild"])
def test_a_large_update_leaves_a_merged_index_and_a_small_one_does_not_take_the_time(tmp_path, monkeypatch, full):
    monkeypatch.setattr("syncd.owner.index.MANY", 10)
    world = World(tmp_path)
    stages: list[str] = []

    def update(**arguments):
        stages.clear()
        return world.app.operations["index"](arguments, lambda event: stages.append(event["stage"]))

    def unmerged():
        stores = [scope.index._stores[0] for scope in world.app.opened.builds.scopes.values()]
        for store in stores:
            store.flush()
        return sum(store._work.commits for store in stores)

    for number in range(9):
        (world.vault / f"Note {number}.md").write_text(f"Note {number} is about weirs.")
    assert update()["added"] == 9
    assert unmerged() > 0 and "merging" not in stages
    for number in range(20):
        (world.vault / f"Note {number}.md").write_text(f"Note {number} is about boats.")
    update(full=full)
    assert unmerged() == 0 and stages[-1] == "merging"
    world.close()


def test_an_update_is_done_even_if_the_index_can_not_be_merged(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("syncd.owner.index.MANY", 1)
    world = World(tmp_path)

    def refuse(*_, **__):
        raise Unavailable("the disk is full")

    for scope in world.app.opened.builds.scopes.values():
        monkeypatch.setattr(scope.index, "maintain", refuse)
    (world.vault / "Note.md").write_text("a note about weirs")
    assert world.app.operations["index"]({}, lambda _: None)["added"] == 1
    assert "was not merged: the disk is full" in caplog.text
    world.close()
