"""Lock the state folder for one process: a kernel lock on `state/lock`, which holds the process id and epoch.

Law: the kernel frees the lock when its holder dies, however it dies, so there are no stale locks and none is ever
removed. The epoch grows with each holder; a process that still works under an older epoch is no longer the owner."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from index.errors import Conflict, Unavailable

_BUSY = (errno.EWOULDBLOCK, errno.EACCES)
_SIZE = 32  # "epoch pid\n" in a fixed width: one small write, never a mix of two


class ProcessLock:
    """A held lock. `epoch` is 1 for the first holder of this state folder ever, and grows by one each time."""

    def __init__(self, path: Path, fd: int, epoch: int) -> None:
        self.path = path
        self.epoch = epoch
        self._fd: int | None = fd

    @classmethod
    def acquire(cls, state: Path) -> ProcessLock:
        """Lock `state` (made if missing) for this process, or raise Conflict with the pid of the one that holds it."""
        path = state / "lock"
        while True:
            fd = _open_lock(path)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_same_file(fd, path):
                    epoch = _read_owner(fd)[0] + 1
                    _write_owner(fd, epoch, os.getpid())
                    return cls(path, fd, epoch)
                os.close(fd)  # someone deleted the file between our two looks: what we locked is nobody's any more
            except OSError as error:
                pid = _read_owner(fd)[1]
                os.close(fd)
                if error.errno in _BUSY:
                    raise _held_error(state, pid) from None
                raise Unavailable(f"cannot lock {path}: {error.strerror}") from error

    def is_current(self) -> bool:
        """Whether this process still is the owner: the file in place is the one it locked, with its epoch inside."""
        return self._fd is not None and _is_same_file(self._fd, self.path) and _read_owner(self._fd)[0] == self.epoch

    def successor(self) -> int | None:
        """The pid of the process that has taken the state folder over (0: it has not said yet); None while none has.

        A lock file that is gone is nobody's yet."""
        return None if self.is_current() else holder_pid(self.path.parent)

    def release(self) -> None:
        """Give the lock back; a second time does nothing."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            if _read_owner(fd)[0] == self.epoch:
                _write_owner(fd, self.epoch, 0)
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder_pid(state: Path) -> int | None:
    """The pid of the process that holds the lock of `state` (0: it has not said yet), or None when none does."""
    try:
        fd = os.open(state / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return _read_owner(fd)[1] if error.errno in _BUSY else None
    else:
        return None
    finally:
        os.close(fd)


def holds_lock(pid: int, state: Path) -> bool:
    """Whether the process `pid`, as this system numbers it, has the lock of `state` open; True where that can't be asked."""
    if sys.platform != "linux":
        return True
    try:
        lock = (state / "lock").stat()
        descriptors = [(status.st_dev, status.st_ino) for status in _open_files(pid)]
    except OSError:
        return False
    return (lock.st_dev, lock.st_ino) in descriptors


def _open_files(pid: int) -> Iterator[os.stat_result]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            yield link.stat()


def _held_error(state: Path, pid: int) -> Conflict:
    who = f"the process {pid}" if pid else "another process"
    return Conflict(f"{who} works with {state}; stop it first (`memex stop`), or choose another state folder", pid=pid)


def _open_lock(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(f"cannot open {path}: {error.strerror}", retryable=False) from error


def _is_same_file(fd: int, path: Path) -> bool:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    ours = os.fstat(fd)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _read_owner(fd: int) -> tuple[int, int]:
    """Epoch and pid; zeros when nothing readable is there yet."""
    words = os.pread(fd, _SIZE, 0).split()
    if len(words) == 2 and all(word.isdigit() for word in words):
        return int(words[0]), int(words[1])
    return 0, 0


def _write_owner(fd: int, epoch: int, pid: int) -> None:
    os.pwrite(fd, f"{epoch:<20} {pid:<10}\n".encode(), 0)
    os.ftruncate(fd, _SIZE)
    os.fsync(fd)
