"""Unit tests of `timestamps`: Memex can read every time that it writes."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from syncd.notes.property_reader import as_time
from syncd.notes.timestamps import iso, zoned_time


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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (202005011011, "2020-05-01T10:11:00.000Z"),
        (20200501101159, "2020-05-01T10:11:59.000Z"),
        (20200501, "2020-05-01T00:00:00.000Z"),
        ("202005011011", "2020-05-01T10:11:00.000Z"),
        (" 20200501 ", "2020-05-01T00:00:00.000Z"),
        (1_588_327_860_000, "2020-05-01T10:11:00.000Z"),
        (202_013_011_011, "1976-05-27T02:43:31.011Z"),  # no month 13, so it is a number of milliseconds
    ],
)
def test_a_stamp_is_read_as_its_time(value, text):
    at = as_time(value)
    assert at is not None
    assert iso(at) == text


@pytest.mark.parametrize("value", [True, 2020, "2020", 20201301, "202013011011", "2020050110", float("nan"), [], None])
def test_what_is_no_time_is_none(value):
    assert as_time(value) is None


def test_a_number_of_any_length_is_no_time():
    assert as_time(10**5000) is None
    assert as_time(-(10**5000)) is None


NEW_YORK, TOKYO = ZoneInfo("America/New_York"), ZoneInfo("Asia/Tokyo")
FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)


@pytest.mark.parametrize("zone", [UTC, NEW_YORK, TOKYO, None])
@pytest.mark.parametrize(
    ("at", "moment"), [(-62_135_596_800_000, FIRST), (0, datetime.fromtimestamp(0, UTC)), (253_402_300_799_999, LAST)]
)
def test_every_time_of_a_note_has_a_time_in_every_zone(at, moment, zone):
    assert zoned_time(at, zone) == moment
    assert zoned_time(at, UTC).tzinfo is UTC


def test_a_time_without_a_day_in_its_zone_is_in_utc():
    assert zoned_time(-62_135_596_800_000, NEW_YORK).isoformat() == "0001-01-01T00:00:00+00:00"
    assert zoned_time(253_402_300_799_999, TOKYO).isoformat(timespec="seconds") == "9999-12-31T23:59:59+00:00"
    assert zoned_time(0, TOKYO).isoformat() == "1970-01-01T09:00:00+09:00"


@pytest.mark.parametrize(("at", "year"), [(-(10**18), 1), (10**18, 9999), (10**24, 9999)])
def test_a_time_outside_the_calendar_is_its_first_or_last_one(at, year):
    assert zoned_time(at, NEW_YORK).year == year
