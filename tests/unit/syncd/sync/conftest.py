"""A vault and its workspace, and a vault in which nothing is ever quiet."""

from __future__ import annotations

import pytest

from syncd.settings.settings import SyncSettings
from tests.support.world import World

SLOW = SyncSettings(quiet_s=0.05, patience_s=0.2, adopt_s=3600.0, listing_s=3600.0)


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def space(world):
    return world.app.agent_access.workspace("default")


@pytest.fixture
def slow(tmp_path):
    """A world in which nothing is ever quiet for long enough."""
    opened = World(tmp_path, sync=SLOW)
    yield opened
    opened.close()
