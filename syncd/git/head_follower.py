"""Follow Git's HEAD: when a hook notifies the daemon or HEAD moved, pass on the paths that the Git diff names.

Law: Git's answer is a hint like any other. A listing finds what Git cannot name; while Git works on the files the
follower waits, up to a limit; and no caller waits for it."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from index.errors import MemexError
from syncd.git import head_moves
from syncd.git.hooks import BELLS, MOVED, PUSHED
from syncd.git.repository import GitPosition, Repository
from syncd.git.repository_state import UNWELL
from syncd.vault.path_rules import is_note

log = logging.getLogger(__name__)

BELL_S = 1.0  # seconds between two looks at the bells
POLL_S = 10.0  # seconds between two looks at HEAD, for what no hook tells: reset --hard, stash
STANDING_S = 60.0, 3600.0  # least and most seconds between two looks at the state of the repository
PATIENCE_S = 30.0  # seconds for which a lock or an unfinished operation is waited for


class HeadFollower:
    """Calls `hint` with the paths that Git names, or `list_all` when it can't name them, on a thread of its own."""

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
        """`pushed` is told of a push to the remote; without it Git is looked at for that too."""
        self._repo, self._hint, self._list_all, self._wanted = repo, hint, list_all, wanted
        self._pushed = pushed or self.notify_change
        self._bells = [state / BELLS / name for name in (MOVED, PUSHED)]
        self._rung: list[int] = []
        self._marks = GitPosition()
        self._told = False  # somebody said that Git has moved
        self._soon = False  # the next look is due
        self._busy_since: float | None = None
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._glance: object = None
        self._upstream, self._stood = "", -STANDING_S[1]
        self.unwell = ""  # what is wrong with the repository, in a sentence without paths

    def start(self) -> None:
        """Remember where Git stands, and follow it from there."""
        self._bells[0].parent.mkdir(mode=0o700, exist_ok=True)
        self._rung = self._bell_times()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="git", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def notify_change(self) -> None:
        """Git has moved, or may have: look now."""
        self._told = True
        self._wake.set()

    def notify_head_moved(self) -> None:
        """HEAD has just moved: look now; what has changed is what the diff names."""
        self._soon = True
        self._wake.set()

    def check(self) -> None:
        """Compare where Git stands with where it stood, unless it is in the midst of something."""
        if self._is_git_busy():
            return
        notified = self._told
        if notified:
            self._told = False  # before the look: who tells from now on wants another
        now = self._repo.position()
        if now == self._marks:
            if notified:  # a checkout of single files, perhaps
                self._list_all()
            return
        paths = head_moves.changed_paths(self._repo, self._marks, now)
        self._marks = now
        if paths is None:
            self._list_all()
        else:
            self._hint(sorted({_nearest_unicode_path(path) for path in paths if self._wanted(path)}))

    def _is_git_busy(self) -> bool:
        """Whether Git works on the files just now, and not for too long already."""
        since, now = self._busy_since, time.monotonic()
        if self._repo.busy_reason():
            self._busy_since = since or now
            return now - self._busy_since < PATIENCE_S
        if since is not None and now - since >= PATIENCE_S:
            self._told = True  # it was looked at half-way, so it is looked at once more
        self._busy_since = None
        return False

    def _check_state(self, now: float) -> None:
        """Look at the state of the repository, if it may have changed: it takes Git some processes."""
        if now - self._stood < STANDING_S[0]:
            return
        glance = self._repo.state_fingerprint(self._upstream)
        quiet = glance == self._glance and not self.unwell and not self._repo.busy_reason()
        if quiet and now - self._stood < STANDING_S[1]:
            return
        state = self._repo.read_state()
        self._glance, self._upstream, self._stood = glance, state.upstream, now
        self.unwell = UNWELL.get(state.state, "")

    def _run(self) -> None:
        polled = -POLL_S
        self._marks = (
            self._repo.position()
        )  # not at the start: to load and ask Git takes as long as all else that starts
        while not self._stopping:
            try:
                heard = self._bell_times()
                if heard[:1] != self._rung[:1]:
                    self._told = True
                if heard[1:] != self._rung[1:]:
                    self._pushed()
                self._rung = heard
                now = time.monotonic()
                if self._told or self._soon or self._busy_since or now - polled >= POLL_S:
                    self._soon = False
                    polled = now
                    self.check()
                    self._check_state(now)
            except (MemexError, OSError) as error:
                log.warning("Git could not be asked: %s", error)
            except Exception:  # top of the thread's loop: hints only, and the listing makes up for them
                log.exception("Git could not be followed")
            if self._wake.wait(BELL_S):
                self._wake.clear()

    def _bell_times(self) -> list[int]:
        """When each bell was last rung."""
        times = []
        for bell in self._bells:
            try:
                times.append(os.stat(bell).st_mtime_ns)  # noqa: PTH116 - each second of a daemon's life
            except OSError:
                times.append(0)
        return times


def _nearest_unicode_path(path: str) -> str:
    """What to look at for a path of Git: the file, or the folder of one whose name is no Unicode."""
    while path:
        try:
            path.encode()
        except UnicodeEncodeError:
            path = path.rpartition("/")[0]
        else:
            return path
    return path
