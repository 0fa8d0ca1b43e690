"""Open a file in the program that the desktop uses for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

WAIT_S: Final = 3.0  # some openers end at once, others with the program that they start


def can_open_files() -> bool:
    """Return whether there is a desktop, and its program that opens files."""
    return _find_opener() is not None


def _find_opener() -> str | None:
    if sys.platform == "darwin":
        return shutil.which("open")
    has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return shutil.which("xdg-open") if has_display else None


def open_file(path: Path) -> bool:
    """Open a file, and return whether the desktop accepted it; `path` is absolute, so it is no option of the opener."""
    opener = _find_opener()
    if opener is None or not path.is_absolute():
        return False
    null = subprocess.DEVNULL
    process = subprocess.Popen([opener, str(path)], stdin=null, stdout=null, stderr=null, start_new_session=True)
    try:
        return process.wait(WAIT_S) == 0
    except subprocess.TimeoutExpired:
        return True
