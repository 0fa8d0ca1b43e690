"""Write, replace or remove one file in an atomic step: durable when the call returns, and undone when it fails.

Law, tested at every call: a crash or a failure leaves the old state or the new one. A failure leaves no temporary
file; a file left by a crash has a name that the cleanup recognises."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from index.model import Stat
from syncd.vault.openat import Calls, new_temporary_name

T = TypeVar("T")

SYNCS: Final = 8  # at a time: what a disk is given together it writes together
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileChanged(Exception):
    """The file is no longer the one that was looked at."""


def to_stat(status: os.stat_result) -> Stat:
    """What tells one state of a file from another."""
    return Stat(status.st_size, status.st_mtime_ns, status.st_ino)


def create(calls: Calls, folder: int, name: str, data: Iterable[bytes], *, mode: int) -> Stat:
    """Make the file `name` of these pieces; FileExistsError when there is one already."""
    with ExitStack() as undo:
        temp, made = _write_temporary(calls, undo, folder, data, mode=mode)
        calls.rename(folder, temp, name)
        undo.callback(_remove_if_same, calls, folder, name, made.ino)
        calls.fsync(folder)
        undo.pop_all()
    return made


@dataclass(frozen=True, slots=True)
class Replacement:
    """What is to be in place of the file `name` of an open folder, which is open as `old` and is to be as it `was`."""

    folder: int
    name: str
    data: bytes
    old: int
    was: Stat


def replace(calls: Calls, folder: int, name: str, data: bytes, *, old: int, was: Stat) -> Stat:
    """Put `data` in place of the file that is open as `old`; `FileChanged` when `name` is no longer as it `was`."""
    return replace_all(calls, [Replacement(folder, name, data, old, was)])[0]


def replace_all(calls: Calls, files: Sequence[Replacement]) -> list[Stat]:
    """Put the data of all `files` in their place, or of none; `FileChanged` when one is no longer as it `was`.

    The two trade names and only then is the old one looked at again, so an edit that came in between is put back
    rather than lost. Mode, owner and extended attributes stay, as far as the system lets us."""
    with ExitStack() as undo:
        with ExitStack() as opened:
            temps = [_open_temporary(calls, undo, opened, file) for file in files]
            run_together(calls.fsync, [new for _, new in temps])
            made = [to_stat(os.fstat(new)) for _, new in temps]
        for file, (temp, _), new in zip(files, temps, made, strict=True):
            calls.exchange(file.folder, temp, file.name)
            undo.callback(_swap_back, calls, file, temp, new)
            if to_stat(os.stat(temp, dir_fd=file.folder, follow_symlinks=False)) != file.was:
                raise FileChanged
        run_together(calls.fsync, {file.folder for file in files})
        undo.pop_all()
    for file, (temp, _) in zip(files, temps, strict=True):
        _remove_if_same(calls, file.folder, temp, file.was.ino)
    return made


def run_together(call: Callable[[T], object], each: Collection[T]) -> None:
    """Call `call` of each, several at a time, as disks do that with less waiting."""
    if len(each) < 2:
        for one in each:
            call(one)
        return
    with ThreadPoolExecutor(min(SYNCS, len(each)), thread_name_prefix="disk") as pool:
        for _ in pool.map(call, each):
            pass


def remove(calls: Calls, folder: int, name: str, *, was: Stat) -> None:
    """Remove the file `name`; `FileChanged` when it is no longer as it `was`."""
    with ExitStack() as undo:
        temp = _move_aside(calls, undo, folder, name, was=was)
        calls.unlink(temp, dir_fd=folder)
        undo.pop_all()


@contextmanager
def removing(calls: Calls, folder: int, name: str, *, was: Stat) -> Iterator[None]:
    """Take the file `name` away for good, unless the block fails: then it is back. `FileChanged` when it is not as it `was`."""
    with ExitStack() as undo:
        temp = _move_aside(calls, undo, folder, name, was=was)
        yield
        undo.pop_all()
    _remove_if_same(calls, folder, temp, was.ino)  # what can't be removed any more is swept later


def _write_temporary(
    calls: Calls, undo: ExitStack, folder: int, data: Iterable[bytes], *, mode: int
) -> tuple[str, Stat]:
    """A temporary file that holds `data` on disk; `undo` removes it."""
    with ExitStack() as opened:
        temp, file = _fill_temporary(calls, undo, opened, folder, data)
        calls.fchmod(file, mode)
        calls.fsync(file)
        return temp, to_stat(os.fstat(file))


def _open_temporary(calls: Calls, undo: ExitStack, opened: ExitStack, file: Replacement) -> tuple[str, int]:
    """The name and descriptor of a temporary file that is like the old one but for its data; it is not synced."""
    temp, new = _fill_temporary(calls, undo, opened, file.folder, (file.data,))
    _copy_attributes(file.old, new)
    calls.fchmod(new, stat.S_IMODE(os.fstat(file.old).st_mode))
    return temp, new


def _fill_temporary(
    calls: Calls, undo: ExitStack, opened: ExitStack, folder: int, data: Iterable[bytes]
) -> tuple[str, int]:
    """The name and descriptor of a temporary file that holds `data`; `undo` removes it, `opened` closes it."""
    temp = new_temporary_name()
    file = calls.open(folder, temp, _NEW, 0o600)
    opened.callback(os.close, file)
    undo.callback(_remove_if_same, calls, folder, temp, os.fstat(file).st_ino)
    for piece in data:
        rest = memoryview(piece)
        while rest:
            done = calls.write(file, rest)
            if not done:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            rest = rest[done:]
    return temp, file


def _copy_attributes(old: int, new: int) -> None:
    """Give the new file the owner and the attributes of the old one, as far as the system lets us."""
    before, after = os.fstat(old), os.fstat(new)
    if (before.st_uid, before.st_gid) != (after.st_uid, after.st_gid):
        with suppress(PermissionError):
            os.fchown(new, before.st_uid, before.st_gid)
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for name in os.listxattr(old):
                with suppress(OSError):
                    os.setxattr(new, name, os.getxattr(old, name))


def _move_aside(calls: Calls, undo: ExitStack, folder: int, name: str, *, was: Stat) -> str:
    """The temporary name that the file `name` has now, on disk; `undo` gives its own back. `FileChanged` as above."""
    temp = new_temporary_name()
    calls.rename(folder, name, temp)
    undo.callback(_rename_back, calls, folder, temp, name)
    if to_stat(os.stat(temp, dir_fd=folder, follow_symlinks=False)) != was:
        raise FileChanged
    calls.fsync(folder)
    return temp


def _remove_if_same(calls: Calls, folder: int, name: str, ino: int) -> None:
    """Remove `name` if it still is the file with inode `ino`; used where a failure can't be helped any more."""
    with suppress(OSError):
        if os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino == ino:
            calls.unlink(name, dir_fd=folder)


def _swap_back(calls: Calls, file: Replacement, temp: str, made: Stat) -> None:
    """Put the old file back; what somebody has changed since the two traded names is theirs, and stays."""
    with suppress(OSError):
        calls.exchange(file.folder, temp, file.name)
        if to_stat(os.stat(temp, dir_fd=file.folder, follow_symlinks=False)) != made:
            calls.exchange(file.folder, temp, file.name)
            _remove_if_same(calls, file.folder, temp, file.was.ino)


def _rename_back(calls: Calls, folder: int, temp: str, name: str) -> None:
    with suppress(OSError):
        calls.rename(folder, temp, name)
