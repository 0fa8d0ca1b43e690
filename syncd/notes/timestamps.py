"""Format timestamps for notes: UTC with milliseconds, which also sorts as text."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(epoch_ms: int) -> str:
    """Format a time for a note: UTC with milliseconds, which also sorts as text."""
    moment = datetime.fromtimestamp(epoch_ms // 1000, UTC).replace(tzinfo=None)
    return f"{moment.isoformat()}.{epoch_ms % 1000:03d}Z"  # not %Y, which writes the year 1 with one digit


def iso_or_none(epoch_ms: int | None) -> str | None:
    """Format a time as `iso` does; None if there is none."""
    return None if epoch_ms is None else iso(epoch_ms)
