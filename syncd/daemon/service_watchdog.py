"""Report to the service manager's watchdog, over sd_notify(3), whether the daemon starts, serves, is stuck or stops.

Laws: the daemon gives a sign of life only while it works: its event loop answers, its watcher is supervised, and a
pass of the sync pipeline moves on. A stuck daemon falls silent, and the manager restarts it. Where no manager
listens nothing is sent, and an unreachable manager delays nothing."""

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

OPENING_S = 1800.0  # a start may take this long: an index that is mended, a model that is built
OPENING_BEAT_S = 10.0
BUSY_BEAT_S, IDLE_BEAT_S = 5.0, 30.0  # between two looks at what is told as the state
LAG_S = 5.0  # an event loop that does not answer within it is stuck
MOVES_S = 900.0  # a pass of the pipe that has not moved for so long is stuck; a window of a slow endpoint takes minutes


@dataclass(frozen=True, slots=True)
class VitalSigns:
    """Where to feel the pulse of a daemon that serves."""

    loop: asyncio.AbstractEventLoop
    readable: Callable[[], bool]  # the vault's root
    watched: Callable[[], bool]  # the watcher is supervised, or switched off
    still_s: Callable[[], float]  # since the pass under way moved; 0 when none is
    doing: Callable[[], str]  # in a few words
    busy: Callable[[], bool]


class ServiceWatchdog:
    """Tells `manager`, on a thread of its own from `start` to `stop`; without one it does nothing at all."""

    def __init__(self, manager: Supervisor | None) -> None:
        self._manager = manager
        self._vitals: VitalSigns | None = None
        self._begun = time.monotonic()
        self._ready = False
        self._told = ""
        self._unwell = ""
        self._changed = threading.Event()
        self._ended = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin: until `mark_serving` is called, the manager is asked for patience."""
        if self._manager is not None:
            self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
            self._thread.start()

    def mark_serving(self, vitals: VitalSigns) -> None:
        """Requests are answered; from here on `vitals` are felt."""
        self._vitals = vitals
        self._changed.set()

    def mark_stopping(self) -> None:
        """The daemon finishes what it has in hand."""
        self._ended = True
        self._changed.set()
        if self._manager is not None:
            self._manager.send(STOPPING=1, STATUS="stopping: finishing what is under way")

    def stop(self) -> None:
        """Tell nothing more."""
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
            except Exception:  # top of the thread: a state that can't be told must not end a daemon that works
                log.exception("the service manager could not be told how the daemon is")
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
            log.error("%s; the service manager gets no sign of life", unwell)
        self._unwell = unwell
        if self._ready and not unwell and manager.watchdog_s:
            manager.send(WATCHDOG=1)  # before anything that may fail
        doing = f"stuck: {unwell}" if unwell else vitals.doing()
        if not self._ready:
            self._ready = True
            manager.send(READY=1, STATUS=doing)
        elif doing != self._told:
            manager.send(STATUS=doing)
        self._told = doing


def find_stuck_part(vitals: VitalSigns, *, lag_s: float = LAG_S, moves_s: float = MOVES_S) -> str:
    """What does not work any more and won't by itself, or ""."""
    answered = threading.Event()
    try:
        vitals.loop.call_soon_threadsafe(answered.set)
    except RuntimeError:
        return "the event loop has ended"
    if not answered.wait(lag_s):
        return f"the event loop has not answered for {lag_s:g} s"
    if not vitals.watched():
        return "the watcher's supervisor has died"
    if (still := vitals.still_s()) > moves_s:
        return f"a pass over the vault has not moved for {still:.0f} s"
    return ""


@dataclass(frozen=True, slots=True)
class Supervisor:
    """Where the service manager listens, and within how many seconds it wants a sign of life (0 = it wants none)."""

    address: str
    watchdog_s: float

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], pid: int) -> Supervisor | None:
        """The manager that started this process with a socket to answer to; None when none did."""
        address = environ.get("NOTIFY_SOCKET", "")
        if not address.startswith(("/", "@")):
            return None
        wanted, whose = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(pid))
        return cls(address, int(wanted) / 1e6 if wanted.isdecimal() and whose == str(pid) else 0.0)

    def send(self, **fields: str | int) -> bool:
        """Send these fields; whether they were taken."""
        text = "\n".join(f"{name}={' '.join(str(value).split())}" for name, value in fields.items())
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(1.0)
                sender.connect(os.fsencode(address))
                sender.sendall(os.fsencode(text))
        except OSError as error:
            log.debug("the service manager could not be told: %s", error.strerror)
            return False
        return True
