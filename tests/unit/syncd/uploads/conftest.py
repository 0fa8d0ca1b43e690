"""A place for uploads."""

from __future__ import annotations

import pytest

from tests.support.upload_place import Place


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    made.ledger.close()
