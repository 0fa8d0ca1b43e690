"""Find damage in the state folder, which is whatever is not what Memex made there, and set it aside.

Law, tested: what is set aside keeps its bytes and lies beside, under a name that says so; nothing is removed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from index.errors import Unavailable
from syncd.state.folder import KEY_FILE, LEDGER, sync_folder

ASIDE = ".damaged-"  # in the name of what was set aside, before the time
STAGED = "staged"  # the files of queued jobs
LOGS = tuple(f"{LEDGER}-{log}" for log in ("wal", "shm", "journal"))  # SQLite's, beside the ledger
UNLINKED = ("lock", "audit.head", "audit.done", *LOGS)  # files that are never reached through a link
FILES = ("vault", "head", "deep_check.json", "daemon.json", "control.token", *UNLINKED)
FOLDERS = ("bells", "commit", "index", "models", "past", STAGED, "uploads")
OF_LEDGER = (LEDGER, *LOGS, "audit.head", "audit.done")  # what one ledger is made of; and the seals of its log


@dataclass(frozen=True, slots=True)
class Misfit:
    """Something of the state folder that Memex can't work with. `mode`: the one that mends it; else it is set aside."""

    path: Path
    says: str
    mode: int | None = None

    def mend(self) -> str:
        """Do what helps, and say what was done."""
        if self.mode is not None:
            self.path.chmod(self.mode)
            return f"you may read and write {self.path.name} again"
        return f"{self.path.name} was set aside as {set_aside(self.path).name}"


def find_misfits(state: Path) -> Iterator[Misfit]:
    """What in the state folder has another kind than Memex gave it, or may not be read and written by its owner."""
    for name in (*FILES, "control.sock", *FOLDERS, LEDGER, KEY_FILE) if state.is_dir() else ():
        path = state / name
        try:
            status, itself = path.stat(), path.lstat()
        except FileNotFoundError:
            if path.is_symlink() and name not in (LEDGER, KEY_FILE):
                yield Misfit(path, f"{path} is a link that leads nowhere")
            continue
        except OSError as error:
            yield Misfit(path, f"{path} can't be looked at: {error.strerror}")
            continue
        if name not in (LEDGER, KEY_FILE) and (wrong := _wrong_kind(name, status.st_mode, itself.st_mode)):
            yield Misfit(path, f"{path} is {wrong}")
        elif status.st_uid == os.geteuid() and not os.access(path, os.R_OK | os.W_OK):
            mode = 0o700 if stat.S_ISDIR(status.st_mode) else 0o600
            yield Misfit(path, f"you may not read and write {path}", mode)


def check_shapes(state: Path) -> None:
    """Raise Unavailable for the first misfit of the state folder, with the command that mends it."""
    for misfit in find_misfits(state):
        how = "gives you the right" if misfit.mode is not None else "sets it aside"
        raise Unavailable(f"{misfit.says}: `memex doctor --fix` {how}", retryable=False)


def set_aside(path: Path) -> Path:
    """Give what is at `path` another name beside it; the new path."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    ends = (stamp, *(f"{stamp}-{number}" for number in range(2, 10_000)))
    free = (path.with_name(f"{path.name}{ASIDE}{end}") for end in ends)
    target = next(name for name in free if not os.path.lexists(name))
    path.rename(target)
    sync_folder(path.parent)
    return target


def set_ledger_aside(state: Path) -> list[Path]:
    """Set aside a ledger with all that belongs to it, the files of its queue included; where these lie now."""
    paths = [state / name for name in OF_LEDGER if os.path.lexists(state / name)]
    return [set_aside(path) for path in paths] + set_staged_aside(state)


def set_staged_aside(state: Path) -> list[Path]:
    """Set aside the files of a queue that is lost: a new queue knows none of them, and would remove them."""
    staged = state / STAGED
    return [set_aside(staged)] if staged.is_dir() and any(staged.iterdir()) else []


def _wrong_kind(name: str, mode: int, link_mode: int) -> str:
    """What is wrong with the kind of a file or folder; "" = nothing."""
    if name in FOLDERS:
        return "" if stat.S_ISDIR(mode) else "no folder, as it should be"
    if name in UNLINKED and stat.S_ISLNK(link_mode):
        return "a link, where Memex keeps a file"
    if name in FILES and not stat.S_ISREG(mode):
        return "no regular file, as it should be"
    return "a folder, where Memex keeps a socket" if stat.S_ISDIR(mode) else ""
