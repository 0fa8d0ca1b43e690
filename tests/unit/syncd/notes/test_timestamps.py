"""Unit tests of `timestamps`: Memex can read every time that it writes."""

from __future__ import annotations

import pytest

from syncd.notes.property_reader import as_time
from syncd.notes.timestamps import iso


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_795_132_800_123, "2026-11-20T00:00:00.123Z"),
        (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_is_read_as_it_was_written(at, text):
    assert iso(at) == text
    assert as_time(text) == at
