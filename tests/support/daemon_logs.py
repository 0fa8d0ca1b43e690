"""Collect the logs of the daemons that tests started, for the report of a failed test."""

from __future__ import annotations

import subprocess
from pathlib import Path

LONGEST = 6000  # characters of a log that a report shows
_started: dict[Path, subprocess.Popen[bytes]] = {}


def watch(log: Path, process: subprocess.Popen[bytes]) -> None:
    """Show `log` if a test fails while `process` runs, or just after `process` has written to the log."""
    _started[log] = process


def sections(since: float) -> list[tuple[str, str]]:
    """Return a title and the end of the log, for each daemon that runs or that has written after `since` (seconds of the clock)."""
    shown = []
    for log, process in _started.items():
        code = process.poll()
        if log.is_file() and (code is None or log.stat().st_mtime >= since):
            state = "runs" if code is None else f"ended with {code}"
            text = log.read_text("utf-8", "replace")
            shown.append((f"log of daemon {process.pid}, which {state}: {log}", text[-LONGEST:] or "(nothing)"))
    return shown
