"""What a monitoring system may know of a daemon: numbers, never text of a note.

Law: the numbers of the vault proper are its owner's; whoever asks for these must be allowed to see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from syncd.typed import setting


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """What others are told of how the daemon does; nothing is sent until it is said where to."""

    traces: str = setting(
        "", "Where requests' traces go, by OTLP over HTTP: `http://127.0.0.1:4318`. Also OTEL_EXPORTER_OTLP_ENDPOINT."
    )
    sample: float = setting(
        1.0, "Share of the requests that are traced, unless who asks has decided.", least=0.0, most=1.0
    )


@dataclass(frozen=True, slots=True)
class Sample:
    """One number, under a name that stays; `labels` are fixed words and names of our own."""

    name: str
    means: str
    value: float
    kind: Literal["gauge", "counter"] = "gauge"
    labels: Mapping[str, str] = field(default_factory=dict)
