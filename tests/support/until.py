"""Wait until a condition holds; a timeout reports the condition and the machine's load."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LONGEST = (
    0.1  # seconds between two looks, unless a test wants more: some ask a daemon, which takes milliseconds of both
)
PATIENCE = 60.0  # seconds; a net that a busy machine does not fall into, for what takes a moment on a quiet one


def until(holds: Callable[[], T], within: float = PATIENCE, *, pause: float = 0.02) -> T:
    """Wait until `holds` returns a true value, and return the value; the longer it takes, the less often it is asked."""
    began = time.monotonic()
    while not (value := holds()):
        waited = time.monotonic() - began
        assert waited < within, missed(holds, within, value)
        time.sleep(max(pause, min(waited / 10, LONGEST)))
    return value


def missed(holds: Callable[[], object], within: float, value: object) -> str:
    """Return the message for a condition that did not hold: its source, and its last value."""
    try:
        source = inspect.getsource(holds).strip()
    except (OSError, TypeError):  # it has none: a builtin, or a bound method of one
        source = repr(holds)
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    return f"within {within:g} s this condition did not hold (last value {value!r}; {os.cpu_count()} cores, load {load}):\n{source}"
