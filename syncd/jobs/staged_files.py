"""Hold staged files, which wait to become notes, in one folder of the state folder, each named by the id of its job.

Law: a staged file is complete, and its name is on disk; a file that no job needs is removed once it is old."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from syncd.state.folder import sync_folder


class StagedFiles:
    """Manages the folder of staged files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, id: str) -> Path | None:
        """Return the path of a job's file, if there is one."""
        path = self.folder / id
        return path if path.is_file() and not path.is_symlink() else None

    def take(self, file: Path, id: str) -> None:
        """Move a file that is on disk into the folder, unless it is already there."""
        if file != self.folder / id:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            file.replace(self.folder / id)
        sync_folder(self.folder)

    def put_back(self, id: str, file: Path) -> None:
        """Move a file back to its original path; if that fails, `sweep` removes it later."""
        with suppress(OSError):
            (self.folder / id).replace(file)

    def drop(self, id: str) -> None:
        """Remove the file of a job, if there is one; if that fails, `sweep` removes it later."""
        with suppress(OSError):
            (self.folder / id).unlink()

    def sweep(self, needed: Collection[str], *, older_s: float) -> list[str]:
        """Remove files of this age that no job needs; return their names."""
        names = find_unneeded(self.folder, needed, older_s=older_s)
        for name in names:
            self.drop(name)
        return names


def find_unneeded(folder: Path, needed: Collection[str], *, older_s: float) -> list[str]:
    """Return the names of files of this age in the folder that no job needs."""
    try:
        names = {entry.name for entry in folder.iterdir()} - set(needed)
    except FileNotFoundError:
        return []
    return sorted(name for name in names if _is_older(folder / name, older_s))


def _is_older(path: Path, older_s: float) -> bool:
    try:
        return time.time() - path.lstat().st_ctime > older_s
    except OSError:
        return False
