"""A disk that ignores letter case, as those of macOS do, made of one that does not: names are looked up without case."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from index.names import fold


def ignore_case(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Let the system's calls of this process find each file below `root` under names of another letter case too."""
    opened, status = os.open, os.stat
    disk = status(root).st_dev

    def spell(path: str | bytes | os.PathLike[str] | int, dir_fd: int | None) -> str | bytes | os.PathLike[str] | int:
        if not isinstance(path, str) or dir_fd is None or status(dir_fd).st_dev != disk:
            return path
        names = os.listdir(dir_fd)  # noqa: PTH208 - of a descriptor
        return path if path in names else next((n for n in names if fold(n) == fold(path)), path)

    def open_(path, flags, mode=0o777, *, dir_fd=None):
        return opened(spell(path, dir_fd), flags, mode, dir_fd=dir_fd)

    def stat(path, *, dir_fd=None, follow_symlinks=True):
        return status(spell(path, dir_fd), dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "stat", stat)
