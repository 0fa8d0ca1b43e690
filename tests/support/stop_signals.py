"""Stop a daemon that a test serves in a process of its own, on the signals that stop `memex serve`."""

from __future__ import annotations

import signal
import threading


def stop_on_signals() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set; only the main thread may ask for it."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
