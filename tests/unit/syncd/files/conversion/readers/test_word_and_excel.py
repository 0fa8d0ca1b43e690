"""Values of a sheet as a person would read them, in a time that grows with the sheet and not faster."""

from __future__ import annotations

import datetime as dt
import time

import pytest

from syncd.files.conversion.readers.word_and_excel import _format_value, _split_into_blocks


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"), (0.1, "0.1"), (1e20, "1e+20"), (-2.5, "-2.5"), (float("nan"), "nan"), (float("inf"), "inf"), (True, "TRUE"), ("a\n b", "a b"), ("", ""),
        (dt.date(2026, 10, 3), "2026-10-03"), (dt.datetime.fromisoformat("2026-10-03"), "2026-10-03"), (dt.datetime.fromisoformat("2026-10-03T04:05"), "2026-10-03 04:05:00"),
        (dt.time(4, 5), "04:05:00"), (dt.timedelta(hours=30), "1 day, 6:00:00"),
    ],
)  # fmt: skip
def test_a_value_is_written_as_it_is_read(value, text):
    assert _format_value(value) == text


def test_blocks_are_parted_by_empty_rows_and_lose_empty_sides():
    rows = [["", "", ""], ["", "A", ""], ["", "", ""], ["", "B", "C"], ["", "", "D"]]
    assert list(_split_into_blocks(iter(rows))) == [[["A"]], [["B", "C"], ["", "D"]]]


def test_many_rows_take_no_longer_than_they_are_many():
    begun = time.process_time()
    list(_split_into_blocks(iter([["x", 1.0, "y"]] * 50_000)))
    assert time.process_time() - begun < 5
