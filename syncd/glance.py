"""What a few stats tell of a repository, without asking Git: whether HEAD or the stash may have moved."""

from __future__ import annotations

from pathlib import Path


def common(folder: Path) -> Path:
    """The folder that a work tree's own one shares with the others of its repository."""
    try:
        return folder / (folder / "commondir").read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return folder


def looks(folder: Path) -> object:
    """Stats that change whenever HEAD or the stash moves; None when HEAD can't be read."""
    shared_folder = common(folder)
    try:
        words = (folder / "HEAD").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    shared = ["packed-refs", "reftable/tables.list", "refs/stash", "logs/refs/stash"]
    if words.startswith("ref: "):
        shared.append(words.removeprefix("ref: ").strip())
    own = [folder / name for name in ("HEAD", "logs/HEAD", "reftable/tables.list")]
    return words, tuple(stat_of(path) for path in (*own, *(shared_folder / name for name in shared)))


def stat_of(path: Path) -> tuple[int, int, int] | None:
    """When it was changed, its size and its number; None when it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
