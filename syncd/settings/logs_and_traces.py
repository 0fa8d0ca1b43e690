"""Define the settings for logs, for the audit log, and for the traces that Memex sends to a collector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from syncd.settings.values import setting


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Holds the section `log`: the log of the daemon on stderr."""

    level: Literal["debug", "info", "warning", "error"] = setting("info", "The least severe level to log.")
    format: Literal["auto", "json", "text"] = setting(
        "auto", "The format: JSON lines or plain text; `auto` uses JSON under the systemd journal."
    )


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Holds the section `audit`: the entries of the audit log in addition to writes."""

    reads: bool = setting(
        False, "Whether the audit log also records which notes agents read; each read then waits for the log."
    )


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Holds the section `telemetry`: traces of requests. Memex sends nothing until `traces` names a collector."""

    traces: str = setting(
        "",
        "The OTLP/HTTP collector for traces of requests, such as `http://127.0.0.1:4318`. Also OTEL_EXPORTER_OTLP_ENDPOINT.",
    )
    sample: float = setting(1.0, "The share of requests to trace, unless the caller has decided.", least=0.0, most=1.0)
