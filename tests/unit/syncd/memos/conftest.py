"""A vault and its default workspace, with the memos in it."""

from __future__ import annotations

import pytest

from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def space(world):
    return world.app.agent_access.workspace("default")
