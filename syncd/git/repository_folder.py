"""Find the Git folder of a work tree, and detect changes in it without running Git.

Law: nothing is written there, and a file that cannot be read counts as missing."""

from __future__ import annotations

import os
from pathlib import Path


def find_git_folder(work_tree: Path) -> Path | None:
    """Return the work tree's own Git folder: `.git`, or the target of a `.git` file; None without one."""
    place = work_tree / ".git"
    if place.is_dir():
        return place
    try:
        words = place.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return work_tree / words.removeprefix("gitdir:").strip() if words.startswith("gitdir:") else None


def find_repository_around(folder: Path) -> Path | None:
    """Return the work tree of the innermost repository in a parent of this folder; None without one."""
    parents = Path(os.path.realpath(folder)).parents
    folders = ((top, find_git_folder(top)) for top in parents if os.path.lexists(top / ".git"))
    return next((top for top, git in folders if git is not None and os.path.lexists(git / "HEAD")), None)


def find_common_folder(folder: Path) -> Path:
    """Return the Git folder that all work trees of the repository share."""
    try:
        return folder / (folder / "commondir").read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return folder


def branch_fingerprint(folder: Path) -> tuple[str, object] | None:
    """Return the text of HEAD, and stats that change whenever another branch is checked out; None when HEAD can't be read."""
    try:
        words = (folder / "HEAD").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return words, tuple(file_fingerprint(folder / name) for name in ("HEAD", "reftable/tables.list"))


def find_lock(folder: Path) -> Path | None:
    """Return the lock that a program has on the index, on HEAD or on the branch that is checked out; None without one."""
    locks = [folder / "index.lock", folder / "HEAD.lock"]
    if branch := branch_fingerprint(folder):
        locks.append(find_common_folder(folder) / f"{branch[0].removeprefix('ref: ').strip()}.lock")
    return next((lock for lock in locks if os.path.lexists(lock)), None)


def head_fingerprint(folder: Path) -> object:
    """Return stats that change whenever HEAD or the stash moves; None when HEAD can't be read."""
    if (branch := branch_fingerprint(folder)) is None:
        return None
    there, words = find_common_folder(folder), branch[0]
    shared = ["packed-refs", "reftable/tables.list", "refs/stash", "logs/refs/stash"]
    if words.startswith("ref: "):
        shared.append(words.removeprefix("ref: ").strip())
    return branch, tuple(file_fingerprint(path) for path in (folder / "logs/HEAD", *(there / name for name in shared)))


def file_fingerprint(path: Path) -> tuple[int, int, int] | None:
    """Return values that change when the file is written; None when there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
