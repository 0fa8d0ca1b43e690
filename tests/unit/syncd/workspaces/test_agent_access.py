"""Workspaces are removed only when they are empty, and a failure names its reason."""

from __future__ import annotations

import pytest

from index.errors import InvalidArgument, Unavailable
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


def test_a_workspace_with_notes_is_not_removed(world):
    world.app.agent_access.workspace("default").capture("kept")
    with pytest.raises(InvalidArgument, match="is not empty"):
        world.app.agent_access.delete_workspace("default")


def test_a_vault_that_is_away_is_named_as_the_reason(world):
    access = world.app.agent_access
    access.create_workspace("work")
    away = world.vault.with_name("away")
    workspace, access.workspace = access.workspace("work"), lambda _: workspace
    world.vault.rename(away)
    try:
        with pytest.raises(Unavailable):
            access.delete_workspace("work")
    finally:
        away.rename(world.vault)
