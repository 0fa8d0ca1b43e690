"""Define the samples of metrics for a monitoring system: name, value, kind and labels, never text of a note.

Law: counts of notes outside the inbox are for the owner only; the caller must be allowed to see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Sample:
    """Describes one number under a stable name; `labels` are fixed words and names chosen by Memex."""

    name: str
    means: str
    value: float
    kind: Literal["gauge", "counter"] = "gauge"
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HistogramSample:
    """Describes the durations of one kind of work so far."""

    name: str
    means: str
    buckets: Mapping[float, int]  # seconds -> number of durations up to this; infinity -> all
    seconds: float  # sum of all durations
    labels: Mapping[str, str] = field(default_factory=dict)
