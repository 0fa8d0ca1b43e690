"""A world in which the job of the contexts writes at once."""

from __future__ import annotations

import pytest

from syncd.context import contexts
from tests.support.world import World


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(contexts, "QUIET_S", 0.0)
    made = World(tmp_path)
    made.run()
    yield made
    made.close()
