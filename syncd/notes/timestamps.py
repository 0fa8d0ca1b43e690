"""Format timestamps: for notes in UTC with milliseconds, which also sorts as text, and for people in a time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

DAY_MS: Final = 24 * 3600 * 1000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def iso(epoch_ms: int) -> str:
    """Format a time for a note: UTC with milliseconds, which also sorts as text."""
    moment = datetime.fromtimestamp(epoch_ms // 1000, UTC).replace(tzinfo=None)
    return f"{moment.isoformat()}.{epoch_ms % 1000:03d}Z"  # not %Y, which writes the year 1 with one digit


def iso_or_none(epoch_ms: int | None) -> str | None:
    """Format a time as `iso` does; None if there is none."""
    return None if epoch_ms is None else iso(epoch_ms)


def zoned_time(epoch_ms: int, zone: tzinfo | None = None) -> datetime:
    """Return a time in a zone, None = that of the machine; in UTC if the zone's calendar has no such day.

    Calendars have the years 1 to 9999; a time outside them becomes the first or the last one."""
    try:
        moment = _EPOCH + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        moment = _FIRST if epoch_ms < 0 else _LAST
    try:
        return moment.astimezone(zone)
    except (ValueError, OverflowError, OSError):
        return moment
