"""Lock the state folder for one process: a kernel lock on `state/lock`, which contains the process id and epoch.

Law: the kernel frees the lock when its holder dies in any way, so there are no stale locks and none is ever removed.
The epoch increases with each holder; a process with an older epoch is no longer the owner."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from index.errors import Conflict, Unavailable

ASKED_S = 1.0  # how long `acquire` waits for processes that only ask
LOOK_S = 0.005  # pause between two tries

log = logging.getLogger(__name__)

_BUSY = (errno.EWOULDBLOCK, errno.EACCES)
_SIZE = 32  # "epoch pid\n" in a fixed width: one small write, never a mix of two writes


class ProcessLock:
    """Represents a held lock.

    `epoch` is 1 for the first holder of this state folder, and increases by one each time."""

    def __init__(self, path: Path, fd: int, epoch: int) -> None:
        self.path = path
        self.epoch = epoch
        self._fd: int | None = fd
        self._problem = ""  # why the lock could not be checked, if it could not

    @classmethod
    def acquire(cls, state: Path) -> ProcessLock:
        """Lock `state` (created if missing) for this process, or raise Conflict with the pid of the holder.

        A process that only asks who holds the lock is waited for, as it locks the file for a moment."""
        path, end = state / "lock", time.monotonic() + ASKED_S
        while True:
            fd = _open_lock(path)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_same_file(fd, path):
                    epoch = _read_owner(fd)[0] + 1
                    _write_owner(fd, epoch, os.getpid())
                    return cls(path, fd, epoch)
                os.close(fd)  # somebody deleted the file in between: the locked file is no longer in place
            except OSError as error:
                pid = _read_pid(fd)
                os.close(fd)
                if error.errno not in _BUSY:
                    raise Unavailable(f"cannot lock {path}: {error.strerror}") from error
                if time.monotonic() >= end or (pid and holds_lock(pid, state)):
                    raise _held_error(state, pid) from None
                time.sleep(LOOK_S)

    def is_current(self) -> bool:
        """Return whether this process is still the owner: the file in place is the locked one, with its epoch inside.

        Raises OSError when the disk does not say."""
        return self._fd is not None and _is_same_file(self._fd, self.path) and _read_owner(self._fd)[0] == self.epoch

    def successor(self) -> int | None:
        """Return the pid of the process that took over the state folder (0: unknown yet); None while there is none.

        A deleted lock file belongs to nobody yet, and one that can't be read now to this process."""
        try:
            current, self._problem = self.is_current(), ""
        except OSError as error:
            if not self._problem:
                self._problem = error.strerror or type(error).__name__
                log.warning("could not check the lock of the state folder: %s", self._problem)
            return None
        return None if current else holder_pid(self.path.parent)

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            try:
                if _read_owner(fd)[0] == self.epoch:
                    _write_owner(fd, self.epoch, 0)
            finally:
                os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder_pid(state: Path) -> int | None:
    """Return the pid of the process that holds the lock of `state` (0: unknown yet), or None if it is free."""
    try:
        fd = os.open(state / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return _read_pid(fd) if error.errno in _BUSY else None
    else:
        return None
    finally:
        os.close(fd)


def holds_lock(pid: int, state: Path) -> bool:
    """Return whether the process `pid` of this system has the lock of `state` open; where that is unknown, whether it runs."""
    if sys.platform != "linux":
        return _is_running(pid)
    try:
        lock = (state / "lock").stat()
        descriptors = [(status.st_dev, status.st_ino) for status in _open_files(pid)]
    except OSError:
        return False
    return (lock.st_dev, lock.st_ino) in descriptors


def has_lost_lock(pid: int, state: Path) -> bool:
    """Return whether the process `pid` of this system holds a lock of `state` that was deleted or replaced; False where that is unknown.

    Such a process was the daemon of this state folder, and ends by itself."""
    gone = f"{os.path.realpath(state)}/lock (deleted)"  # as Linux names a file that is open and has no name any more
    try:
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    for link in links:
        with contextlib.suppress(OSError):  # closed meanwhile
            if str(link.readlink()) == gone:
                return True
    return False


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        return True
    return True


def _open_files(pid: int) -> Iterator[os.stat_result]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            yield link.stat()


def _held_error(state: Path, pid: int) -> Conflict:
    who = f"the process {pid}" if pid else "another process"
    return Conflict(f"{who} uses {state}; stop it first (`memex stop`), or choose another state folder", pid=pid)


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
    """Return epoch and pid; zeros when the file has no valid content yet."""
    words = os.pread(fd, _SIZE, 0).split()
    if len(words) == 2 and all(word.isdigit() for word in words):
        return int(words[0]), int(words[1])
    return 0, 0


def _read_pid(fd: int) -> int:
    with contextlib.suppress(OSError):
        return _read_owner(fd)[1]
    return 0


def _write_owner(fd: int, epoch: int, pid: int) -> None:
    os.pwrite(fd, f"{epoch:<20} {pid:<10}\n".encode(), 0)
    os.ftruncate(fd, _SIZE)
    os.fsync(fd)
