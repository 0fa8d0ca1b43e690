"""A vault that is indexed, and the nodes of its default workspace."""

from __future__ import annotations

import pytest

from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.run()
    yield made
    made.close()


@pytest.fixture
def nodes(world):
    return world.app.agent_access.workspace("default").nodes
