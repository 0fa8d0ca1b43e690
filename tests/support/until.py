"""Waits until something holds; a wait that ends without it says what was waited for, and on how busy a machine."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 60.0  # seconds; a net that a busy machine does not fall into, for what takes a moment on a quiet one


def until(holds: Callable[[], T], within: float = PATIENCE, *, pause: float = 0.02) -> T:
    """Return what `holds` returns once that is true."""
    end = time.monotonic() + within
    while not (value := holds()):
        assert time.monotonic() < end, missed(holds, within, value)
        time.sleep(pause)
    return value


def missed(holds: Callable[[], object], within: float, value: object) -> str:
    """Return what did not come about: its source, and its last value."""
    try:
        source = inspect.getsource(holds).strip()
    except (OSError, TypeError):  # it has none: a builtin, or a bound method of one
        source = repr(holds)
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    return f"within {within:g} s this did not come about (last value {value!r}; {os.cpu_count()} cores, load {load}):\n{source}"
