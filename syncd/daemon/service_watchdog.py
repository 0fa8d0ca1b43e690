"""Report to the service manager's watchdog, over sd_notify(3), whether the daemon starts, serves, is stuck or stops.

Laws: the daemon sends a sign of life only while it works: its event loop answers, its watcher is supervised, and
index passes make progress. A stuck daemon falls silent, and the manager restarts it. Without a manager nothing is
sent; an unreachable manager delays nothing."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger(__name__)

OPENING_S = 1800.0  # longest start: an index may be repaired, a model prepared
OPENING_BEAT_S = 10.0
BUSY_BEAT_S, IDLE_BEAT_S = 5.0, 30.0  # seconds between two status reports
LAG_S = 5.0  # an event loop that does not answer within this time is stuck
MOVES_S = 900.0  # an index pass without progress for this time is stuck; one batch of a slow endpoint takes minutes


@dataclass(frozen=True, slots=True)
class VitalSigns:
    """Holds the checks of a serving daemon."""

    loop: asyncio.AbstractEventLoop
    readable: Callable[[], bool]  # whether the vault's root can be read
    watched: Callable[[], bool]  # whether the watcher is supervised or switched off
    still_s: Callable[[], float]  # seconds since the current pass made progress; 0 = no pass
    doing: Callable[[], str]  # the current activity in a few words
    busy: Callable[[], bool]


class ServiceWatchdog:
    """Reports to `manager` on its own thread from `start` to `stop`; does nothing without a manager."""

    def __init__(self, manager: Supervisor | None) -> None:
        self._manager = manager
        self._vitals: VitalSigns | None = None
        self._begun = time.monotonic()
        self._ready = False
        self._last_status = ""
        self._unwell = ""
        self._changed = threading.Event()
        self._ended = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start reporting; until `mark_serving` is called, it asks the manager for more time."""
        if self._manager is not None:
            self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
            self._thread.start()

    def mark_serving(self, vitals: VitalSigns) -> None:
        """Report from now on the `vitals` of a serving daemon."""
        self._vitals = vitals
        self._changed.set()

    def mark_stopping(self) -> None:
        """Report that the daemon is finishing its work."""
        self._ended = True
        self._changed.set()
        if self._manager is not None:
            self._manager.send(STOPPING=1, STATUS="stopping: finishing the current work")

    def stop(self) -> None:
        """Stop reporting."""
        self._ended = True
        self._changed.set()
        if self._thread is not None:
            self._thread.join(LAG_S + 1)
            self._thread = None

    def _run(self) -> None:
        assert self._manager is not None
        while not self._ended:
            self._changed.clear()
            try:
                self._beat(self._manager, self._vitals)
            except Exception:  # top of the thread: a failing report must not stop a working daemon
                log.exception("could not report to the service manager")
            self._changed.wait(self._beat_interval(self._manager, self._vitals))

    def _beat_interval(self, manager: Supervisor, vitals: VitalSigns | None) -> float:
        if vitals is None or not self._ready:
            return OPENING_BEAT_S if vitals is None else 1.0
        beat = BUSY_BEAT_S if vitals.busy() else IDLE_BEAT_S
        return min(beat, manager.watchdog_s / 2) if manager.watchdog_s else beat

    def _beat(self, manager: Supervisor, vitals: VitalSigns | None) -> None:
        if vitals is None or not (self._ready or vitals.readable()):
            if time.monotonic() - self._begun < OPENING_S:
                status = "opening the index" if vitals is None else "waiting for the vault: its folder can't be read"
                manager.send(EXTEND_TIMEOUT_USEC=int(3 * OPENING_BEAT_S * 1e6), STATUS=status)
            return
        unwell = find_stuck_part(vitals)
        if self._ended:
            return
        if unwell and unwell != self._unwell:
            log.error("%s; Memex sends no sign of life to the service manager", unwell)
        self._unwell = unwell
        if self._ready and not unwell and manager.watchdog_s:
            manager.send(WATCHDOG=1)  # before the parts that may fail
        doing = f"stuck: {unwell}" if unwell else vitals.doing()
        if not self._ready:
            self._ready = True
            manager.send(READY=1, STATUS=doing)
        elif doing != self._last_status:
            manager.send(STATUS=doing)
        self._last_status = doing


def find_stuck_part(vitals: VitalSigns, *, lag_s: float = LAG_S) -> str:
    """Return what is stuck and won't recover by itself, or ""."""
    answered = threading.Event()
    try:
        vitals.loop.call_soon_threadsafe(answered.set)
    except RuntimeError:
        return "the event loop has ended"
    if not answered.wait(lag_s):
        return f"the event loop has not answered for {lag_s:g} s"
    if not vitals.watched():
        return "the watcher's supervisor has died"
    if (still := vitals.still_s()) > MOVES_S:
        return f"an index pass has made no progress for {still:.0f} s"
    return ""


@dataclass(frozen=True, slots=True)
class Supervisor:
    """Holds the address of the service manager, and the interval of its watchdog in seconds (0 = no watchdog)."""

    address: str
    watchdog_s: float

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], pid: int) -> Supervisor | None:
        """Return the manager that started this process with a notification socket; None without one."""
        address = environ.get("NOTIFY_SOCKET", "")
        if not address.startswith(("/", "@")):
            return None
        wanted, whose = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(pid))
        return cls(address, int(wanted) / 1e6 if wanted.isdecimal() and whose == str(pid) else 0.0)

    def send(self, **fields: str | int) -> bool:
        """Send these fields; return whether they were sent."""
        text = "\n".join(f"{name}={' '.join(str(value).split())}" for name, value in fields.items())
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(1.0)
                sender.connect(os.fsencode(address))
                sender.sendall(os.fsencode(text))
        except OSError as error:
            log.debug("could not reach the service manager: %s", error.strerror)
            return False
        return True
