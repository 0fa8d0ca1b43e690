"""Collect what a crash or a kill left in the state folder: half-written files, dead sockets, models half built.

Law: only names that Memex itself gives are touched, and only once they are older than any write takes."""

from __future__ import annotations

import re
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path

# What `adopt.private`, `control.ControlServer`, `shelf`, `backup` and `encoders.export` call what is not finished yet.
UNFINISHED = re.compile(r"\.(?:control\.sock\.\d+|[\w.-]+\.[0-9a-f]{8}|[\w.-]+\.tmp|building-\w+|backup-\w+)")
PLACES = ("", "index", "models", "past")


def collect(state: Path, *, older_s: float) -> list[str]:
    """Remove them from `state`; their names, from it."""
    gone = []
    for folder in (state / place for place in PLACES):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            with suppress(OSError):  # somebody else was quicker, or it is not ours to remove
                found = path.lstat()
                if not UNFINISHED.fullmatch(path.name) or time.time() - found.st_ctime <= older_s:
                    continue
                if stat.S_ISDIR(found.st_mode):
                    shutil.rmtree(path)
                else:
                    path.unlink()
                gone.append(path.relative_to(state).as_posix())
    return gone
