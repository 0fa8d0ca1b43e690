"""Find damage in the state folder, which is anything that Memex did not create in this form, and set it aside.

Law, tested: a damaged file keeps its bytes under a new name beside it; nothing is removed."""

from __future__ import annotations

import os
import shlex
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from index.errors import Unavailable
from syncd.state.folder import KEY_FILE, LEDGER, sync_folder

ASIDE = ".damaged-"  # in the names of damaged files, before the time
STAGED = "staged"  # the files of queued jobs
LOGS = tuple(f"{LEDGER}-{log}" for log in ("wal", "shm", "journal"))  # SQLite's files beside the ledger
UNLINKED = ("lock", "audit.head", "audit.done", *LOGS)  # files that must not be links
# Files that Memex replaces, even those of another user.
REPLACED = ("vault", "head", "deep_check.json", "daemon.json", "control.token")
FILES = (*REPLACED, *UNLINKED)
FOLDERS = ("bells", "commit", "index", "models", "past", STAGED, "uploads")
READ_ONLY, REMOUNT = "is on a disk that is mounted read-only", "mount the disk so that you can write to it"
OF_LEDGER = (LEDGER, *LOGS, "audit.head", "audit.done")  # the files of a ledger, and the seals of its log


@dataclass(frozen=True, slots=True)
class Misfit:
    """Describes a file or folder that Memex can't use.

    `way`: what a person can do about it; "" = `mend` repairs it. `mode`: the mode that repairs it; None = it must be set
    aside."""

    path: Path
    says: str
    mode: int | None = None
    way: str = ""

    def mend(self) -> str:
        """Repair it, and return what was done."""
        if self.mode is not None:
            self.path.chmod(self.mode)
            return f"you can read and write {self.path.name} again"
        return f"renamed the damaged {self.path.name} to {set_aside(self.path).name}"


def find_misfits(state: Path) -> Iterator[Misfit]:
    """Yield the files and folders of the state folder that have a wrong kind or owner, or that can't be read and written.

    If the folder itself can't be used, only this is reported, because its files can't be judged."""
    if whole := find_obstacle(state):
        yield whole
        return
    for name in (*FILES, "control.sock", *FOLDERS, LEDGER, KEY_FILE) if state.is_dir() else ():
        path = state / name
        try:
            status, itself = path.stat(), path.lstat()
        except FileNotFoundError:
            if path.is_symlink() and name not in (LEDGER, KEY_FILE):
                yield Misfit(path, f"{path} is a broken link")
            continue
        except OSError as error:
            yield Misfit(path, f"{path} can't be checked: {error.strerror}")
            continue
        if name not in (LEDGER, KEY_FILE) and (wrong := _wrong_kind(name, status.st_mode, itself.st_mode)):
            yield Misfit(path, f"{path} is {wrong}")
        elif status.st_uid == os.geteuid() and not os.access(path, os.R_OK | os.W_OK):
            mode = 0o700 if stat.S_ISDIR(status.st_mode) else 0o600
            yield Misfit(path, f"you have no read and write access to {path}", mode)
        elif status.st_uid != os.geteuid() and (
            name == LEDGER or (name not in REPLACED and not os.access(path, os.R_OK | os.W_OK))
        ):
            yield Misfit(path, f"{path} belongs to another user", way=take_over(state))


def take_over(state: Path) -> str:
    """Return the command with which a person becomes the owner of the state folder."""
    return f"sudo chown -R $(id -u) {shlex.quote(str(state))}"


def find_obstacle(state: Path) -> Misfit | None:
    """Return why nothing in the state folder can be used; None = it can be used, or is missing."""
    try:
        status = state.stat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    if is_read_only(state):
        return Misfit(state, f"{state} {READ_ONLY}", way=REMOUNT)
    if status.st_uid != os.geteuid() and not os.access(state, os.R_OK | os.W_OK | os.X_OK):
        return Misfit(state, f"{state} belongs to another user", way=take_over(state))
    return None


def is_read_only(folder: Path) -> bool:
    """Return whether the disk of `folder` is mounted read-only, so that no permission helps."""
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def check_shapes(state: Path) -> None:
    """Raise Unavailable for the first misfit of the state folder, with the command that repairs it."""
    for misfit in find_misfits(state):
        how = "gives you access" if misfit.mode is not None else "renames it and continues without it"
        raise Unavailable(f"{misfit.says}: {misfit.way or f'`memex doctor --fix` {how}'}", retryable=False)


def set_aside(path: Path) -> Path:
    """Rename `path` to a free name beside it; return the new path."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    ends = (stamp, *(f"{stamp}-{number}" for number in range(2, 10_000)))
    free = (path.with_name(f"{path.name}{ASIDE}{end}") for end in ends)
    target = next(name for name in free if not os.path.lexists(name))
    path.rename(target)
    sync_folder(path.parent)
    return target


def set_ledger_aside(state: Path) -> list[Path]:
    """Set aside a ledger with all its files, including those of its queue; return the new paths."""
    paths = [state / name for name in OF_LEDGER if os.path.lexists(state / name)]
    return [set_aside(path) for path in paths] + set_staged_aside(state)


def set_staged_aside(state: Path) -> list[Path]:
    """Set aside the files of a lost queue: a new queue does not know them, and would remove them."""
    staged = state / STAGED
    return [set_aside(staged)] if staged.is_dir() and any(staged.iterdir()) else []


def _wrong_kind(name: str, mode: int, link_mode: int) -> str:
    """Return what is wrong with the kind of a file or folder; "" = nothing."""
    if name in FOLDERS:
        return "" if stat.S_ISDIR(mode) else "not a folder"
    if name in UNLINKED and stat.S_ISLNK(link_mode):
        return "a link instead of a file"
    if name in FILES and not stat.S_ISREG(mode):
        return "not a regular file"
    return "a folder instead of a socket" if stat.S_ISDIR(mode) else ""
