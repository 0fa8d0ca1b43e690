"""Define the samples of metrics for a monitoring system: name, value, kind and labels, never text of a note.

Law: the numbers of notes outside the inbox are the owner's; the caller must be allowed to see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Sample:
    """One number, under a name that stays; `labels` are fixed words and names of our own."""

    name: str
    means: str
    value: float
    kind: Literal["gauge", "counter"] = "gauge"
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HistogramSample:
    """How long one kind of work took, so far."""

    name: str
    means: str
    buckets: Mapping[float, int]  # seconds -> how many took at most so long; infinity -> all
    seconds: float  # of all together
    labels: Mapping[str, str] = field(default_factory=dict)
