"""Choose the place of temporary folders: in memory, where a sync costs nothing, or on the disk."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

MEMORY: Final = Path("/dev/shm")
ROOM: Final = 4 << 30  # bytes that must be free; a run of `make test` needs 0.6 GB


def memory_folder(folder: Path = MEMORY, room: int = ROOM) -> Path | None:
    """Return a folder in memory with room for a whole test run and permission to start programs; None if there is none."""
    try:
        system = os.statvfs(folder)
    except OSError:  # as on macOS
        return None
    free = min(system.f_bavail * system.f_frsize, psutil.virtual_memory().available)
    usable = os.access(folder, os.W_OK | os.X_OK) and not system.f_flag & os.ST_NOEXEC
    return folder if usable and free >= room else None


@pytest.fixture
def tmp_path_on_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a temporary folder that is always on the disk, for tests of file durability."""
    folder = Path(tempfile.mkdtemp(prefix=f"{tmp_path.name}-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
