"""Claim a vault for one daemon, whatever its state folder, and by whatever path it reaches the vault.

Law, tested: a claim belongs to the folder's inode, leaves no file in the vault and ends with its process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import random
import socket
import struct
import sys
import threading
import time
from pathlib import Path

from index.errors import Conflict
from syncd.state.process_lock import has_lost_lock

# On Linux a name in the kernel, which leads to the process, and a record lock, because each container has names of its own.
# Neither is the lock of `flock`: a person's script may lock the folder itself, and must neither wait for Memex nor stop it.
_BY_NAME = sys.platform == "linux"
_RECORD = struct.Struct("hhqqi4x")  # struct flock of Linux: type, whence, start, length, pid
_BYTE = os.SEEK_SET, 1 << 62, 1, 0  # where, as Memex alone locks it
TRIES, PAUSE_S = 4, (0.05, 0.2)  # how often the claim is tried at a start, and the shortest and longest pause
_BUSY = (errno.EADDRINUSE, errno.EWOULDBLOCK, errno.EACCES)


class VaultClaim:
    """Represents the claim of this process to a vault. It follows the path when another folder replaces the vault."""

    def __init__(self, vault: Path) -> None:
        self._vault = vault
        self._held: list[int] = []  # file descriptors
        self._inode: tuple[int, int] | None = None
        self._released = False
        self._lock = threading.Lock()  # health asks from several threads

    def take(self) -> int | None:
        """Take the claim if no other process has it; return the same as `other_holder`."""
        with self._lock:
            self._released = False
            for _ in range(TRIES):
                if (holder := self._other_holder()) != 0:
                    break
                time.sleep(random.uniform(*PAUSE_S))  # noqa: S311 - another process may only have asked, as this one does
            return holder

    def other_holder(self) -> int | None:
        """Return the pid of another process with the claim (0: unknown pid); None once this process has it.

        A missing vault belongs to nobody. After `release` the answer is None, and the claim stays free."""
        with self._lock:
            return None if self._released else self._other_holder()

    def _other_holder(self) -> int | None:
        try:
            status = self._vault.stat()
            inode = status.st_dev, status.st_ino
            if not self._held or inode != self._inode:
                fresh = _take(self._vault, inode)
                self._drop()
                self._held, self._inode = fresh, inode
        except OSError as error:
            return find_holder(self._vault) if error.errno in _BUSY else None
        return None

    def require(self, state: Path | None = None) -> None:
        """Take the claim. Raises Conflict when another daemon has it.

        A process that lost the folder `state` to this one ends by itself, so its claim is ignored."""
        pid = self.take()
        if pid is not None and not (pid and state and has_lost_lock(pid, state)):
            who = f"the process {pid}" if pid else "another process"
            raise Conflict(
                f"{who} serves the vault {self._vault} with another state folder; stop it first, or start with --force "
                "if two daemons must work on one vault",
                pid=pid,
                vault=str(self._vault),
            )

    def release(self) -> None:
        """Release the claim until the next `take`; a second call does nothing."""
        with self._lock:
            self._released = True
            self._drop()

    def _drop(self) -> None:
        held, self._held = self._held, []
        for descriptor in held:
            os.close(descriptor)


def find_holder(vault: Path) -> int:
    """Return the pid of the process that claims `vault`, as far as this user can know; else 0."""
    with contextlib.suppress(OSError):
        status = vault.stat()
        name = f"@{_name((status.st_dev, status.st_ino))}"
        rows = (line.split() for line in Path("/proc/net/unix").read_text("utf-8", "replace").splitlines())
        sockets = {f"socket:[{row[6]}]" for row in rows if row[-1] == name}
        for process in Path("/proc").glob("[0-9]*") if sockets else ():
            with contextlib.suppress(OSError):  # it has ended, or belongs to another user
                if any(str(file.readlink()) in sockets for file in (process / "fd").iterdir()):
                    return int(process.name)
    return 0


def _take(vault: Path, inode: tuple[int, int]) -> list[int]:
    """Return descriptors that hold the claim while they are open. Raises OSError when another process has it."""
    if _BY_NAME:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
            claim.bind(f"\0{_name(inode)}")
            return [*_lock_record(vault), claim.detach()]
    folder = os.open(vault, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(folder)
        raise
    return [folder]


def _lock_record(vault: Path) -> list[int]:
    """Lock a byte of the folder and return its descriptor; none if it can't be opened, or its disk has no such locks.

    A folder can be locked for reading only, which never conflicts, so this asks whether a lock for writing would. Raises
    BlockingIOError when another process has locked it."""
    folder = -1
    try:
        folder = os.open(vault, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.fcntl(folder, fcntl.F_OFD_SETLK, _RECORD.pack(fcntl.F_RDLCK, *_BYTE))
        other = fcntl.fcntl(folder, fcntl.F_OFD_GETLK, _RECORD.pack(fcntl.F_WRLCK, *_BYTE))
    except OSError:
        return [] if folder < 0 else [folder]
    if _RECORD.unpack(other)[0] != fcntl.F_UNLCK:
        os.close(folder)
        raise BlockingIOError(errno.EWOULDBLOCK, "another process has locked the folder")
    return [folder]


def _name(inode: tuple[int, int]) -> str:
    return f"memex:{inode[0]}:{inode[1]}"
