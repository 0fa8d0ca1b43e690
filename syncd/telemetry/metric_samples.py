"""Define one sample of a metric for a monitoring system: its name, value, kind and labels, never text of a note.

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
