"""The watcher reports changed paths, and reports when events may have been lost.

Law: silence proves nothing. Whenever events may have been lost or cannot come, the watcher asks the caller to list
the vault, and asks again every few seconds for as long as that lasts; `status` gives the reason, and the watcher
repairs what is broken."""

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
from syncd.watch.folder_events import FolderEvents
from syncd.watch.network_mounts import remote_kind

log = logging.getLogger(__name__)

CHECK_S = 5.0  # between two looks at the watcher itself
# The kernel's limits by the error that tells of them, and what is enough for a large vault beside editors and others.
LIMITS = {errno.ENOSPC: ("max_user_watches", 1_048_576), errno.EMFILE: ("max_user_instances", 1_024)}


@dataclass(frozen=True, slots=True)
class WatcherState:
    """How well the vault is watched. `problem` is one sentence and says what to do; "" when nothing is wrong."""

    state: Literal["ok", "degraded", "poll", "off"]
    problem: str = ""
    folders: int = 0  # that are watched
    overflows: int = 0  # times at which the kernel dropped events
    restarts: int = 0  # times at which the watcher had to be begun again


class Watcher:
    """The watcher of one vault. `on_paths` gets paths from the root, "/" between parts; "" is the root itself.

    A file's path means: look at it. A folder's path means: list it. Files that are not `wanted`, and whatever `ignored`
    says of (`folder=True` for a folder), are dropped, and such folders are not watched at all. `on_doubt` gets the reason
    to list everything. Both are called on the watcher's own threads and should only pass the word on. With mode "poll"
    no events are used and the vault is to be listed every `poll_s` seconds; "events" trusts them on any file system."""

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
        self._deaf = ""  # why there are no events
        self._remote = ""
        self._listed = self._compared = 0.0  # when a listing was last asked for, and the watches compared with the disk
        self._overflows = 0  # of events that were replaced
        self._restarts = 0

    def start(self) -> None:
        """Begin to watch. What can't be watched is no error: it is said by `status`, and polled."""
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
        """Whether somebody looks after the watcher and mends it."""
        return self._supervisor is not None and self._supervisor.is_alive()

    def status(self) -> WatcherState:
        """How well the vault is watched just now."""
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
            return f"{broken}; it is watched again as soon as that can be"
        if events.unwatched:
            return f"not every folder can be watched; {_advise(errno.ENOSPC)}"
        if self._remote and self._mode == "auto":
            return (
                f"the vault lies on {self._remote}, which may not tell of changes made elsewhere; "
                'settle it with watch.mode = "poll" or "events"'
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
            except Exception:  # top of the supervisor's loop: without it nobody would notice a deaf watcher
                log.exception("the watcher could not be looked after")

    def _check(self, reason: str) -> None:
        """Mend what is broken, and ask for a listing when there is a reason to, or nothing else can tell of changes."""
        reason = self._repair() or reason
        due = time.monotonic() - self._listed >= self._poll_s
        if reason or (due and self.status().state != "ok"):
            self._listed = time.monotonic()
            self._on_doubt(reason or "not everything is heard")

    def _repair(self) -> str:
        """What was broken, and is not any more."""
        if self._mode == "poll":
            return ""
        events = self._folder_events
        if events is not None and not events.problem():
            if (events.stirred or events.unwatched) and time.monotonic() - self._compared >= min(CHECK_S, self._poll_s):
                self._compared = time.monotonic()
                events.watch_missing()
            return ""
        if events is not None:
            log.warning("%s; watching again", events.problem())
        self._stop_listening()
        self._start_listening()
        if self._folder_events is None:
            return ""
        self._restarts += 1
        return "the watcher was begun again"

    def _start_listening(self) -> None:
        try:
            self._folder_events, self._deaf = (
                FolderEvents(self.root, self._on_paths, self._doubts.put, self._ignored, self._wanted),
                "",
            )
        except OSError as error:
            deaf = f"the vault can't be watched ({error.strerror}); {_advise(error.errno)}"
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
    """What to do about an error of the kernel."""
    name, enough = LIMITS.get(number or 0, ("", 0))
    if not name:
        return "it is tried again and again"
    with suppress(OSError, ValueError):
        enough = max(enough, 2 * int(Path("/proc/sys/fs/inotify", name).read_text()))
    return f"raise the limit: sudo sysctl fs.inotify.{name}={enough}"
