"""Detect stale Git locks: decide whether a process still holds a lock, or the process that made it has died.

Law: a lock is stale only when it is old, nobody has it open and no Git runs in the repository; an unknown state
counts as held. Nothing is removed here."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

OLD_S = 600.0  # seconds after which a lock may be stale
PROCESSES = Path("/proc")


def is_stale(lock: Path, work_tree: Path) -> bool:
    """Return whether the lock is older than ten minutes and no process of this machine holds it."""
    try:
        age = time.time() - lock.lstat().st_mtime
    except OSError:
        return False
    return age > OLD_S and not is_held(lock, work_tree)


def is_held(lock: Path, work_tree: Path) -> bool:
    """Return whether a process of this machine has the lock open, or Git runs in the tree; True when that is unknown."""
    if sys.platform != "linux":
        return True  # unknown on this platform
    wanted, top = os.path.realpath(lock), os.path.realpath(work_tree)
    for process in PROCESSES.iterdir():
        if not process.name.isdigit():
            continue
        with suppress(FileNotFoundError, ProcessLookupError):
            try:
                name = (process / "comm").read_text(errors="replace")
            except PermissionError:
                return True  # the system hides the processes of other users (hidepid): one of them may be a Git
            try:
                if any(os.path.realpath(link) == wanted for link in (process / "fd").iterdir()):
                    return True
                folder = os.path.realpath(process / "cwd", strict=True)
            except PermissionError:
                if name.startswith("git"):
                    return True  # another user's Git: its folder is unknown
                continue
            if name.startswith("git") and (folder == top or folder.startswith(top + os.sep)):
                return True
    return False
