"""Times as they are written in notes."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(epoch_ms: int) -> str:
    """A time as it is written in a note: UTC with milliseconds, which also sorts as text."""
    moment = datetime.fromtimestamp(epoch_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{epoch_ms % 1000:03d}Z"
