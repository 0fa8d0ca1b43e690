"""A vault under Git with a capture and links to it."""

from __future__ import annotations

import pytest

from tests.support.promotion_vault import capture
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.init_git("Ann")
    world.write("Areas/Pond.md", "---\nid: pond\n---\n# Depth\n\nshallow, [heron](../Captures/default/Heron.md#x)\n")
    world.write("Daily/Today.md", "Saw [[Captures/default/Heron|one]] and [[Heron]].\n")
    world.write("Captures/default/Heron.md", capture())
    world.git("add", "-A")
    world.git("commit", "-qm", "before")
    world.run()
    world.app.opened.sync.ready.set()
    yield world
    world.close()
