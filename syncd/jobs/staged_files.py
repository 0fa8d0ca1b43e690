"""Hold staged files, which wait to become documents, in one folder of the state folder, each under the id of its job.

Law: a staged file is whole, and its name is on disk; a file that no job needs is removed once it is old."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from syncd.state.folder import sync_folder


class StagedFiles:
    """The folder of staged files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, id: str) -> Path | None:
        """Where the file of a job lies, if it does."""
        path = self.folder / id
        return path if path.is_file() and not path.is_symlink() else None

    def take(self, file: Path, id: str) -> None:
        """Move a file that is on disk into the folder, unless it lies there already."""
        if file != self.folder / id:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            file.replace(self.folder / id)
        sync_folder(self.folder)

    def put_back(self, id: str, file: Path) -> None:
        """Move it to where it came from."""
        (self.folder / id).replace(file)

    def drop(self, id: str) -> None:
        """Remove the file of a job, if there is one; what can't be removed is swept."""
        with suppress(OSError):
            (self.folder / id).unlink()

    def sweep(self, needed: Collection[str], *, older_s: float) -> list[str]:
        """Remove what no job needs, once it is so old; the names."""
        names = find_unneeded(self.folder, needed, older_s=older_s)
        for name in names:
            self.drop(name)
        return names


def find_unneeded(folder: Path, needed: Collection[str], *, older_s: float) -> list[str]:
    """The names in the folder that no job needs and that are so old."""
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
