"""The watcher reports changed paths, and reports when events may have been lost.

Law: silence proves nothing. Whenever events may have been lost or cannot arrive, the watcher asks the caller to list
the vault, and repeats that every few seconds as long as it lasts; `status` gives the reason, and the watcher repairs
what is broken."""

from __future__ import annotations

import errno
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from syncd.vault.path_rules import is_note
from syncd.watch.folder_events import GONE, FolderEvents
from syncd.watch.network_mounts import read_mounts_below, remote_kind

log = logging.getLogger(__name__)

CHECK_S = 5.0  # seconds between two checks of the watcher itself
# The kernel's limits by the error that reports them, and values that suffice for a large vault beside other programs.
LIMITS = {errno.ENOSPC: ("max_user_watches", 1_048_576), errno.EMFILE: ("max_user_instances", 1_024)}


@dataclass(frozen=True, slots=True)
class WatcherState:
    """Describes how well the vault is watched. `problem` is a sentence with the solution; "" when nothing is wrong."""

    state: Literal["ok", "degraded", "poll", "off"]
    problem: str = ""
    folders: int = 0  # number of watched folders
    overflows: int = 0  # how often the kernel dropped events
    restarts: int = 0  # how often the watcher was restarted


class Watcher:
    """Watches one vault. `on_paths` gets paths relative to the root, "/" between parts; "" is the root itself.

    A file's path means: check it. A folder's path means: list it. Files that are not `wanted`, and paths that are
    `ignored` (`folder=True` for a folder), are dropped, and such folders are not watched. `on_doubt` gets the reason
    to list everything. Both run on the watcher's own threads and should only pass the hint on. With mode "poll" no
    events are used and the vault is listed every `poll_s` seconds; "events" trusts events on any file system."""

    def __init__(
        self,
        root: Path,
        on_paths: Callable[[Iterable[str]], None],
        on_doubt: Callable[[str], None],
        *,
        ignored: Callable[..., bool],
        mode: Literal["auto", "events", "poll"] = "auto",
        poll_s: float = 15.0,
        wanted: Callable[[str], bool] = is_note,
    ) -> None:
        self.root = str(root)
        self._on_paths, self._on_doubt = on_paths, on_doubt
        self._ignored, self._mode, self._poll_s, self._wanted = ignored, mode, poll_s, wanted
        self._doubts: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._supervisor: threading.Thread | None = None
        self._folder_events: FolderEvents | None = None
        self._deaf = ""  # why no events arrive
        self._remote = ""
        # What is mounted inside the vault: no watch covers what is mounted later.
        self._mounts: list[tuple[str, ...]] | None = None
        # Times of the last request for a listing, and of the last comparison of watches with the disk.
        self._listed = self._compared = 0.0
        self._overflows = 0  # overflows counted by replaced `FolderEvents`
        self._restarts = 0

    def start(self) -> None:
        """Start watching. If watching fails, `status` reports it and the vault is polled; no error is raised."""
        self._doubts = queue.SimpleQueue()
        if self._mode != "poll":
            self._start_listening()
        self._supervisor = threading.Thread(target=self._supervise, args=(self._doubts,), name="watch", daemon=True)
        self._supervisor.start()

    def stop(self) -> None:
        """Stop all threads; `start` may be called again."""
        if self._supervisor is not None:
            self._doubts.put(None)
            self._supervisor.join()
            self._supervisor = None
        self._stop_listening()

    @property
    def is_supervised(self) -> bool:
        """Return whether a thread supervises and repairs the watcher."""
        return self._supervisor is not None and self._supervisor.is_alive()

    def status(self) -> WatcherState:
        """Return how well the vault is watched now."""
        events = self._folder_events
        counts = (
            events.folder_count if events else 0,
            self._overflows + (events.overflows if events else 0),
            self._restarts,
        )
        if self._mode == "poll":
            return WatcherState("poll", "", *counts)
        if problem := self._find_problem(events):
            return WatcherState(
                "degraded", f"{problem}; meanwhile the vault is listed every {self._poll_s:g} s", *counts
            )
        return WatcherState("ok", "", *counts)

    def _find_problem(self, events: FolderEvents | None) -> str:
        if not self.is_supervised:
            return "the watcher is not running; restart the daemon"
        if events is None:
            return self._deaf
        if broken := events.problem():
            return f"{broken}; Memex watches it again as soon as possible"
        if events.unwatched:
            return f"not every folder can be watched; {_advise(errno.ENOSPC)}"
        if self._remote and self._mode == "auto":
            return (
                f"the vault is on {self._remote}, which may not report changes made elsewhere; "
                'set watch.mode to "poll" or "events"'
            )
        return ""

    # The supervisor

    def _supervise(self, doubts: queue.SimpleQueue[str | None]) -> None:
        while True:
            try:
                reason = doubts.get(timeout=min(CHECK_S, self._poll_s))
            except queue.Empty:
                reason = ""
            if reason is None:
                return
            try:
                self._check(reason)
            except Exception:  # top of the supervisor's loop: without it, a broken watcher would go unnoticed
                log.exception("could not check the watcher")

    def _check(self, reason: str) -> None:
        """Repair what is broken, and request a listing if there is a reason, or if events can't report all changes."""
        reason = self._repair() or reason
        due = time.monotonic() - self._listed >= self._poll_s
        if reason or (due and self.status().state != "ok"):
            self._listed = time.monotonic()
            self._on_doubt(reason or "some events may be missing")

    def _repair(self) -> str:
        """Repair the watcher; return what was repaired, or ""."""
        if self._mode == "poll":
            return ""
        events = self._folder_events
        problem = "" if events is None else events.problem() or self._find_new_mount()
        if events is not None and not problem:
            if (events.stirred or events.unwatched) and time.monotonic() - self._compared >= min(CHECK_S, self._poll_s):
                self._compared = time.monotonic()
                events.watch_missing()
            return ""
        if events is not None:
            log.warning("%s; watching again", problem)
        self._stop_listening()
        self._start_listening()
        if self._folder_events is None:
            return ""
        self._restarts += 1
        return "the watcher was restarted"

    def _find_new_mount(self) -> str:
        before, now = self._mounts, read_mounts_below(self.root)
        self._mounts = before if now is None else now
        changed = None not in (before, now) and before != now
        return "a disk was mounted or unmounted inside the vault" if changed else ""

    def _start_listening(self) -> None:
        self._mounts = read_mounts_below(self.root)
        try:
            events = FolderEvents(self.root, self._on_paths, self._doubts.put, self._ignored, self._wanted)
            self._folder_events, self._deaf = events, ""
        except OSError as error:
            is_gone = isinstance(error, FileNotFoundError | NotADirectoryError)
            what = GONE if is_gone else f"the vault can't be watched ({error.strerror})"
            deaf = f"{what}; {_advise(error.errno)}"
            if deaf != self._deaf:
                log.warning("%s", deaf)
            self._folder_events, self._deaf = None, deaf
        self._remote = remote_kind(self.root)

    def _stop_listening(self) -> None:
        if self._folder_events is not None:
            self._overflows += self._folder_events.overflows
            self._folder_events.close()
            self._folder_events = None


def _advise(number: int | None) -> str:
    """Return what to do about an error of the kernel."""
    name, enough = LIMITS.get(number or 0, ("", 0))
    if not name:
        return "Memex keeps trying"
    with suppress(OSError, ValueError):
        enough = max(enough, 2 * int(Path("/proc/sys/fs/inotify", name).read_text()))
    return f"raise the limit: sudo sysctl fs.inotify.{name}={enough}"
