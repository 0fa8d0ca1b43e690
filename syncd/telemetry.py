"""What a monitoring system may know of a daemon: numbers, never text of a note.

Law: the numbers of the vault proper are its owner's; whoever asks for these must be allowed to see them."""

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
