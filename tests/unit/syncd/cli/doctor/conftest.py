"""A vault that is well, for the doctor."""

from __future__ import annotations

import pytest

from tests.support.clinic import Clinic


@pytest.fixture
def clinic(tmp_path, models):
    return Clinic(tmp_path, models)
