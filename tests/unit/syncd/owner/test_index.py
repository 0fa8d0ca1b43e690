"""The owner's questions about the index, on a real vault: the stamp that an open page follows."""

from __future__ import annotations

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
