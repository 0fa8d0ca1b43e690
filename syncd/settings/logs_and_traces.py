"""Define the settings for logs, for the audit log, and for the traces that Memex sends to a collector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from syncd.settings.values import setting


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What the daemon logs, on stderr."""

    level: Literal["debug", "info", "warning", "error"] = setting("info", "What is logged: this, and what is graver.")
    format: Literal["auto", "json", "text"] = setting(
        "auto", "How: JSON lines or plain text; JSON by itself where the journal takes them."
    )


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """What the audit log holds besides each write."""

    reads: bool = setting(
        False, "Whether it also holds which notes an agent was given text of; a read then waits for it."
    )


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """What others are told of how the daemon does; nothing is sent until it is said where to."""

    traces: str = setting(
        "", "Where requests' traces go, by OTLP over HTTP: `http://127.0.0.1:4318`. Also OTEL_EXPORTER_OTLP_ENDPOINT."
    )
    sample: float = setting(
        1.0, "Share of the requests that are traced, unless who asks has decided.", least=0.0, most=1.0
    )
