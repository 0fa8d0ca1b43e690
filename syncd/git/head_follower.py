"""Follow Git's HEAD: when a hook notifies the daemon or HEAD moved, pass on the paths that the Git diff names.

Law: Git's answer is only a hint. A listing finds what Git cannot name; while a Git operation changes files the
follower waits, up to a limit; no caller waits for it."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from index.errors import MemexError
from syncd.git import head_moves
from syncd.git.hooks import BELLS, MOVED, PUSHED
from syncd.git.repository import GitPosition, Repository
from syncd.git.repository_state import UNWELL
from syncd.vault.path_rules import is_note, nearest_utf8_path

log = logging.getLogger(__name__)

BELL_S = 2.0  # seconds between two checks of the files that hooks touch
POLL_S = 10.0  # seconds between two checks of HEAD, for moves without a hook: reset --hard, stash
STATE_READS_S = 60.0, 3600.0  # shortest and longest time between two checks of the repository's state
PATIENCE_S = 30.0  # longest wait for a lock or an unfinished operation


class HeadFollower:
    """Calls `hint` with the paths that Git names, or `list_all` when it can't name them, on its own thread."""

    def __init__(
        self,
        repo: Repository,
        state: Path,
        hint: Callable[[Iterable[str]], None],
        list_all: Callable[[], None],
        wanted: Callable[[str], bool] = is_note,
        *,
        pushed: Callable[[], None] | None = None,
    ) -> None:
        """Set the callbacks; `pushed` is called after a push to the remote. Without it a push counts as a change."""
        self._repo, self._hint, self._list_all, self._wanted = repo, hint, list_all, wanted
        self._pushed = pushed or self.notify_change
        self._bells = [state / BELLS / name for name in (MOVED, PUSHED)]
        self._last_bell_times: list[int] = []
        self._position = GitPosition()
        self._notified = False  # somebody reported that Git has moved
        self._soon = False  # the next check is due
        self._busy_since: float | None = None
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._fingerprint: object = None
        self._upstream, self._state_read_at = "", -STATE_READS_S[1]
        self.unwell = ""  # the problem of the repository, as a sentence without paths

    def start(self) -> None:
        """Record the position of Git, and follow it from there."""
        self._bells[0].parent.mkdir(mode=0o700, exist_ok=True)
        self._last_bell_times = self._bell_times()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="git", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def notify_change(self) -> None:
        """React to a possible move of Git: check now."""
        self._notified = True
        self._wake.set()

    def notify_head_moved(self) -> None:
        """React to a move of HEAD: check now; the diff names the changed files."""
        self._soon = True
        self._wake.set()

    def use_state(self, state: str) -> None:
        """Report from now on a state of the repository that somebody else has just read."""
        self.unwell = UNWELL.get(state, "")

    def current_problem(self) -> str:
        """Return the problem of the repository; if the repository has changed since it was found, look again first."""
        if self.unwell and self._repo.state_fingerprint(self._upstream) != self._fingerprint:
            with suppress(MemexError, OSError):
                self._read_state(time.monotonic())
        return self.unwell

    def check(self) -> None:
        """Compare Git's position with the last one, unless an operation is under way."""
        if self._is_git_busy():
            return
        was_notified = self._notified
        self._notified = False  # before the check, so that later reports cause another one
        try:
            self._compare(was_notified)
        except BaseException:
            self._notified = self._notified or was_notified
            raise

    def _compare(self, notified: bool) -> None:
        """Pass on what Git changed since the last position; `notified`: somebody reported a change."""
        now = self._repo.position()
        if now == self._position:
            if notified:  # a checkout of single files, perhaps
                self._list_all()
            return
        paths = head_moves.changed_paths(self._repo, self._position, now)
        if self._position.head and not now.head:  # Git may not be able to read it
            self._state_read_at = -STATE_READS_S[1]
        self._position = now
        if paths is None:
            self._list_all()
        else:
            self._hint(sorted({nearest_utf8_path(path) for path in paths if self._wanted(path)}))

    def _is_git_busy(self) -> bool:
        """Return whether Git works on the files now, and not for too long already."""
        since, now = self._busy_since, time.monotonic()
        if self._repo.busy_reason():
            self._busy_since = since or now
            return now - self._busy_since < PATIENCE_S
        if since is not None and now - since >= PATIENCE_S:
            self._notified = True  # it was checked during the operation, so check again
        self._busy_since = None
        return False

    def _check_state(self, now: float) -> None:
        """Read the state of the repository if it may have changed; this starts several Git processes."""
        if now - self._state_read_at < STATE_READS_S[0]:
            return
        fingerprint = self._repo.state_fingerprint(self._upstream)
        quiet = fingerprint == self._fingerprint and not self.unwell and not self._repo.busy_reason()
        if quiet and now - self._state_read_at < STATE_READS_S[1]:
            return
        self._read_state(now)

    def _read_state(self, now: float) -> None:
        fingerprint = self._repo.state_fingerprint(self._upstream)  # first, so that a change meanwhile is seen
        state = self._repo.read_state()
        self._fingerprint, self._upstream, self._state_read_at = fingerprint, state.upstream, now
        self.use_state(state.state)

    def _run(self) -> None:
        polled, begun = -POLL_S, False
        while not self._stopping:
            try:
                if not begun:  # in the thread: loading and running Git takes as long as the rest of the start
                    self._position = self._repo.position()
                    begun = True
                bell_times = self._bell_times()
                if bell_times[:1] != self._last_bell_times[:1]:
                    self._notified = True
                if bell_times[1:] != self._last_bell_times[1:]:
                    self._pushed()
                self._last_bell_times = bell_times
                now = time.monotonic()
                if self._notified or self._soon or self._busy_since or now - polled >= POLL_S:
                    self._soon = False
                    polled = now
                    self.check()
                    self._check_state(now)
            except (MemexError, OSError) as error:
                log.warning("could not query Git: %s", error)
                self._notified = self._notified or not begun  # Git may move before its position is known
            except Exception:  # top of the thread's loop: only hints are lost, and the listing makes up for them
                log.exception("could not follow Git")
            if self._wake.wait(BELL_S):
                self._wake.clear()

    def _bell_times(self) -> list[int]:
        """Return when each hook file was last touched."""
        times = []
        for bell in self._bells:
            try:
                times.append(os.stat(bell).st_mtime_ns)  # noqa: PTH116 - runs every two seconds
            except OSError:
                times.append(0)
        return times
