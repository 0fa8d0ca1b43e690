"""Open, rename and swap files below one open folder, through openat2 and other system calls that Python lacks.

Law, tested on both ways of opening: no path leads out of the folder that `root` is open on, and no link is followed.
Every call that changes the disk is a field of `Calls`, so that a test can make each one fail."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from syncd.vault.path_rules import join, temporary_name

Opener: TypeAlias = Callable[[int, str, int, int], int]

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPENAT2 = 437  # the same on every architecture whose numbers were unified in 2019; ENOSYS on the others
_BENEATH, _NO_SYMLINKS, _NO_MAGICLINKS = 0x08, 0x04, 0x02  # linux/openat2.h
_NOREPLACE, _EXCHANGE = 1, 2  # linux/fs.h
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_PATH_MAX = 4096
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_COPIES = 5  # how often a file that changes meanwhile is copied again
_PIECE = 1 << 20  # bytes copied at a time
# The call does not exist, or a sandbox blocks it.
_LACKING = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.ENOTSUP})

# No file of the vault can exist there.
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})

_libc = ctypes.CDLL(None, use_errno=True)


class _How(ctypes.Structure):
    """Represents `struct open_how` of openat2(2)."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def _call_libc(function: Any, *arguments: Any) -> int:
    while True:
        ctypes.set_errno(0)
        result: int = function(*arguments)
        if result >= 0:
            return result
        code = ctypes.get_errno()
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code))


def openat2(root: int, path: str, flags: int, mode: int = 0) -> int:
    """Open `path` below `root` in one step that renames and links can't redirect (Linux 5.6 and later)."""
    raw = os.fsencode(path)
    if len(raw) >= _PATH_MAX:
        return open_stepwise(root, path, flags, mode)  # the kernel accepts no longer path in one call
    if "\0" in path:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    how = _How(flags | os.O_CLOEXEC, mode if flags & os.O_CREAT else 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    return _call_libc(
        _libc.syscall, ctypes.c_long(_OPENAT2), ctypes.c_int(root), ctypes.c_char_p(raw), ctypes.byref(how), size
    )


def open_stepwise(root: int, path: str, flags: int, mode: int = 0) -> int:
    """Open `path` below `root` one name at a time, for systems without openat2: macOS, old kernels, strict sandboxes.

    Each folder is held open while its child is opened without following links, so a swap in between causes an error
    and never leads outside."""
    *folders, name = path.split("/") if path != "." else ["."]
    if any(part in ("", "..") for part in (*folders, name)) or "." in folders:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    here = root
    try:
        for part in folders:
            below = os.open(part, FOLDER, dir_fd=here)
            if here != root:
                os.close(here)
            here = below
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=here)
    finally:
        if here != root:
            os.close(here)


@functools.cache
def choose_opener() -> Opener:
    """Choose the best way to open files that this kernel and sandbox allow."""
    if sys.platform != "linux":
        return open_stepwise
    try:
        os.close(openat2(-1, ".", FOLDER))
    except OSError as error:
        return openat2 if error.errno == errno.EBADF else open_stepwise  # an existing call checks its arguments
    raise AssertionError


def _renameat2(folder: int, old: str, new: str, flags: int) -> None:
    if not hasattr(_libc, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    _call_libc(_libc.renameat2, folder, os.fsencode(old), folder, os.fsencode(new), ctypes.c_uint(flags))


def rename(folder: int, old: str, new: str) -> None:
    """Rename the file `old` to `new` in the same folder; raises FileExistsError when the name is taken."""
    try:
        _renameat2(folder, old, new, _NOREPLACE)
    except OSError as error:
        if error.errno not in _LACKING:
            raise
        rename_by_link(folder, old, new)


def rename_by_link(folder: int, old: str, new: str) -> None:
    """Rename by a second hard link, for disks and systems without RENAME_NOREPLACE."""
    try:
        os.link(old, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _LACKING:
            raise
        rename_by_claim(folder, old, new)
        return
    try:
        os.unlink(old, dir_fd=folder)
    except OSError:
        os.unlink(new, dir_fd=folder)
        raise


def rename_by_claim(folder: int, old: str, new: str) -> None:
    """Rename onto an empty file that takes the new name first, for disks that have no hard links either.

    A crash between the two steps leaves the empty file."""
    os.close(os.open(new, _NEW, 0o600, dir_fd=folder))
    try:
        os.replace(old, new, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(new, dir_fd=folder)
        raise


def exchange(folder: int, name: str, other: str) -> os.stat_result | None:
    """Swap the names of two files in a folder; `other` always exists.

    If `name` can only become a copy of the file that was at `other`, the last stat of that file is returned."""
    try:
        _renameat2(folder, name, other, _EXCHANGE)
    except OSError as error:
        if error.errno not in _LACKING:
            raise
        return exchange_stepwise(folder, name, other)
    return None


def exchange_stepwise(folder: int, name: str, other: str) -> os.stat_result | None:
    """Swap names in three steps, for disks and systems without RENAME_EXCHANGE; returns what `exchange` returns."""
    spare = new_temporary_name()
    try:
        os.link(other, spare, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _LACKING:
            raise
        return exchange_by_copy(folder, name, other)
    try:
        os.replace(name, other, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(spare, dir_fd=folder)
        raise
    _rename_spare(folder, spare, name, other)
    return None


def exchange_by_copy(folder: int, name: str, other: str) -> os.stat_result:
    """Swap names by a copy, for disks that have no hard links either; returns the last stat of the file that was at `other`.

    That file stays open, so what an editor writes into it meanwhile is copied too. Only a file that an editor renames to
    `other` between the last look at that name and the next system call is lost."""
    for _ in range(_COPIES):
        old = os.open(other, _OLD, dir_fd=folder)
        try:
            status = _exchange_open(folder, name, other, old)
        finally:
            os.close(old)
        if status is not None:
            return status
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def _exchange_open(folder: int, name: str, other: str, old: int) -> os.stat_result | None:
    """Exchange by a copy of `other`, open as `old`; None if another file or other bytes took its place during the copy."""
    spare, was = _copy_to_spare(folder, old)
    try:
        if not _is_unchanged(os.stat(other, dir_fd=folder, follow_symlinks=False), was):
            os.unlink(spare, dir_fd=folder)
            return None
        os.replace(name, other, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(spare, dir_fd=folder)
        raise
    with contextlib.suppress(OSError):  # a disk that forgets an open file once its name is gone
        if not _is_unchanged(os.fstat(old), was):
            newer, was = _copy_to_spare(folder, old)
            os.replace(newer, spare, src_dir_fd=folder, dst_dir_fd=folder)
    _rename_spare(folder, spare, name, other)
    return was


def _rename_spare(folder: int, spare: str, name: str, other: str) -> None:
    """Give the spare the free name; if that fails, it gets its old name `other` back."""
    try:
        os.replace(spare, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.replace(spare, other, src_dir_fd=folder, dst_dir_fd=folder)
        raise


def _is_unchanged(now: os.stat_result, was: os.stat_result) -> bool:
    return (now.st_ino, now.st_size, now.st_mtime_ns) == (was.st_ino, was.st_size, was.st_mtime_ns)


def _copy_to_spare(folder: int, old: int) -> tuple[str, os.stat_result]:
    """Copy an open file to a spare, on disk, with its attributes; return the name, and the file's stat before the first byte."""
    was = os.fstat(old)
    if not stat.S_ISREG(was.st_mode):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
    spare = new_temporary_name()
    new = os.open(spare, _NEW, 0o600, dir_fd=folder)
    try:
        place = 0
        while piece := os.pread(old, _PIECE, place):
            place += os.write(new, piece)
        copy_attributes(old, new)
        set_mode(os.fchmod, new, stat.S_IMODE(was.st_mode))
        with contextlib.suppress(PermissionError):  # a disk without owners, whose files belong to another user
            os.utime(new, ns=(was.st_atime_ns, was.st_mtime_ns))
        sync_file(new)
    except OSError:
        os.unlink(spare, dir_fd=folder)
        raise
    finally:
        os.close(new)
    return spare, was


def set_mode(fchmod: Callable[[int, int], None], file: int, mode: int) -> None:
    """Set the mode of an open file with `fchmod`; on a disk without modes it stays private, or as the disk's mount says."""
    if stat.S_IMODE(os.fstat(file).st_mode) == mode:
        return
    try:
        fchmod(file, mode)
    except OSError as error:
        if error.errno not in _LACKING | {errno.EACCES}:
            raise


def copy_attributes(old: int, new: int) -> None:
    """Copy the owner and the extended attributes of an open file to another, as far as the system allows."""
    before, after = os.fstat(old), os.fstat(new)
    if (before.st_uid, before.st_gid) != (after.st_uid, after.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(new, before.st_uid, before.st_gid)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(old):
                with contextlib.suppress(OSError):
                    os.setxattr(new, name, os.getxattr(old, name))


def lstat(opened: Opener, root: int, path: str) -> os.stat_result | None:
    """Return the stat of `path` below `root` without following links; None if it is missing, or a link or file blocks it."""
    folder, _, name = path.rpartition("/")
    try:
        here = opened(root, folder or ".", FOLDER, 0)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise
    try:
        return os.stat(name, dir_fd=here, follow_symlinks=False)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise
    finally:
        os.close(here)


def scan_folder(opened: Opener, root: int, folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the entries of a folder below `root` ("" = the root), each with its path; use an entry before taking the next."""
    here = opened(root, folder or ".", FOLDER, 0)
    try:
        with os.scandir(here) as scan:
            for entry in scan:
                yield join(folder, entry.name), entry
    finally:
        os.close(here)


def sync_file(file: int) -> None:
    """Sync an open file or folder to the disk itself: on macOS, fsync leaves the bytes in the drive's cache."""
    if _FULL_SYNC is not None:
        with contextlib.suppress(OSError):  # the disk does not support the call
            fcntl.fcntl(file, _FULL_SYNC)
            return
    os.fsync(file)


def new_temporary_name() -> str:
    """Return a new temporary name."""
    return temporary_name(secrets.token_hex(8))


@dataclass(frozen=True, slots=True)
class Calls:
    """Holds the calls through which the vault is changed."""

    open: Opener = field(default_factory=choose_opener)
    write: Callable[[int, memoryview], int] = os.write
    fsync: Callable[[int], None] = sync_file
    fchmod: Callable[[int, int], None] = os.fchmod
    rename: Callable[[int, str, str], None] = rename
    exchange: Callable[[int, str, str], os.stat_result | None] = exchange
    unlink: Callable[..., None] = os.unlink
    mkdir: Callable[..., None] = os.mkdir
    rmdir: Callable[..., None] = os.rmdir
