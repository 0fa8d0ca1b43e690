"""A vault under Git with captures, in which the test says what is found."""

from __future__ import annotations

import pytest

from syncd.consolidation import consolidation
from tests.support.sample_captures import DAY, Inbox


@pytest.fixture
def inbox(tmp_path, monkeypatch):
    monkeypatch.setattr(consolidation, "_today", lambda: DAY)  # a test may run over midnight
    made = Inbox(tmp_path)
    yield made
    made.world.close()
