"""A vault under Git with captures, in which the test says what is found."""

from __future__ import annotations

import pytest

from tests.support.sample_captures import Inbox


@pytest.fixture
def inbox(tmp_path):
    made = Inbox(tmp_path)
    yield made
    made.world.close()
