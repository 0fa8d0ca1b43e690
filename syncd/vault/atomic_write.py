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
from syncd.vault.openat import Calls, copy_attributes, new_temporary_name, set_mode

T = TypeVar("T")

SYNCS: Final = 8  # files synced at a time
LAST_NS: Final = 2**63 - 1  # the last time that SQLite can store, in the year 2262; a file may have a later one
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileChanged(Exception):
    """Reports that the file is no longer the one that was read."""


def to_stat(status: os.stat_result) -> Stat:
    """Return the values that distinguish states of a file. A time that SQLite can't store becomes the nearest one that it can."""
    return Stat(status.st_size, max(-LAST_NS, min(status.st_mtime_ns, LAST_NS)), status.st_ino)


def create(calls: Calls, folder: int, name: str, data: Iterable[bytes], *, mode: int) -> Stat:
    """Create the file `name` from these pieces. Raises FileExistsError when it exists."""
    with ExitStack() as undo:
        with ExitStack() as opened:
            temp, file = _fill_temporary(calls, undo, opened, folder, data)
            set_mode(calls.fchmod, file, mode)
            calls.fsync(file)
            made = to_stat(os.fstat(file))
        calls.rename(folder, temp, name)
        undo.callback(_remove_if_same, calls, folder, name, made.ino)
        calls.fsync(folder)
        undo.pop_all()
    return made


@dataclass(frozen=True, slots=True)
class OpenReplacement:
    """Describes the new data of the file `name` in an open folder. The file is open as `old`, and must be as it `was`.

    With `before`, it must also have these bytes: where times are coarse, as on FAT, two edits can have the same one."""

    folder: int
    name: str
    data: bytes
    old: int
    was: Stat
    before: bytes | None = None


def replace(calls: Calls, folder: int, name: str, data: bytes, *, old: int, was: Stat) -> Stat:
    """Replace the file that is open as `old` with `data`; raises `FileChanged` when `name` is no longer as it `was`."""
    return replace_all(calls, [OpenReplacement(folder, name, data, old, was)])[0]


def replace_all(calls: Calls, files: Sequence[OpenReplacement]) -> list[Stat]:
    """Replace all `files` or none; raises `FileChanged` when one is no longer as it `was`.

    The two files swap names, and only then the old one is checked, so an edit in between is restored instead of
    lost. Mode, owner and extended attributes stay, as far as the system allows."""
    with ExitStack() as undo:
        with ExitStack() as opened:
            temps = [_open_temporary(calls, undo, opened, file) for file in files]
            run_together(calls.fsync, [new for _, new in temps])
            made = [to_stat(os.fstat(new)) for _, new in temps]
        for file, (temp, _), new in zip(files, temps, made, strict=True):
            original = calls.exchange(file.folder, temp, file.name)
            undo.callback(_swap_back, calls, file, temp, new)
            if to_stat(original or _stat(file.folder, temp)) != file.was or not _has_bytes(file.old, file.before):
                raise FileChanged
        run_together(calls.fsync, {file.folder for file in files})
        undo.pop_all()
    for file, (temp, _) in zip(files, temps, strict=True):
        _remove_temporary(calls, file.folder, temp)
    return made


def _stat(folder: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _has_bytes(file: int, before: bytes | None) -> bool:
    """Return whether the open file has these bytes; True if they are not known."""
    at = 0
    while before is not None and (piece := os.pread(file, len(before) + 1 - at, at)):
        if piece != before[at : at + len(piece)]:
            return False
        at += len(piece)
    return before is None or at == len(before)


def run_together(call: Callable[[T], object], items: Collection[T]) -> None:
    """Run `call` on each item, several at a time: a disk syncs files together faster than one after another."""
    if len(items) < 2:
        for item in items:
            call(item)
        return
    with ThreadPoolExecutor(min(SYNCS, len(items)), thread_name_prefix="disk") as pool:
        for _ in pool.map(call, items):
            pass


def remove(calls: Calls, folder: int, name: str, *, was: Stat) -> None:
    """Remove the file `name`; raises `FileChanged` when it is no longer as it `was`."""
    with ExitStack() as undo:
        temp = _move_aside(calls, undo, folder, name, was=was)
        calls.unlink(temp, dir_fd=folder)
        undo.pop_all()


@contextmanager
def removing(calls: Calls, folder: int, name: str, *, was: Stat) -> Iterator[None]:
    """Remove the file `name`; if the block fails, restore it. Raises `FileChanged` when it is not as it `was`."""
    with ExitStack() as undo:
        temp = _move_aside(calls, undo, folder, name, was=was)
        yield
        undo.pop_all()
    _remove_if_same(calls, folder, temp, was.ino)  # if that fails, the cleanup removes it later


def _open_temporary(calls: Calls, undo: ExitStack, opened: ExitStack, file: OpenReplacement) -> tuple[str, int]:
    """Write a temporary file with the attributes of the old one, unsynced; return its name and descriptor."""
    temp, new = _fill_temporary(calls, undo, opened, file.folder, (file.data,))
    copy_attributes(file.old, new)
    set_mode(calls.fchmod, new, stat.S_IMODE(os.fstat(file.old).st_mode))
    return temp, new


def _fill_temporary(
    calls: Calls, undo: ExitStack, opened: ExitStack, folder: int, data: Iterable[bytes]
) -> tuple[str, int]:
    """Write `data` to a temporary file, which `undo` removes and `opened` closes; return its name and descriptor."""
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


def _move_aside(calls: Calls, undo: ExitStack, folder: int, name: str, *, was: Stat) -> str:
    """Rename `name` to a temporary name, on disk, and return it; `undo` renames it back. Raises `FileChanged`."""
    temp = new_temporary_name()
    calls.rename(folder, name, temp)
    undo.callback(_rename_back, calls, folder, temp, name)
    if to_stat(_stat(folder, temp)) != was:
        raise FileChanged
    calls.fsync(folder)
    return temp


def _remove_if_same(calls: Calls, folder: int, name: str, ino: int) -> None:
    """Remove `name` if it is still the file with inode `ino`; used where errors can't be handled any more."""
    with suppress(OSError):
        if _stat(folder, name).st_ino == ino:
            calls.unlink(name, dir_fd=folder)


def _remove_temporary(calls: Calls, folder: int, temp: str) -> None:
    """Remove the old file, or a copy of it; if that fails, the cleanup removes it later."""
    with suppress(OSError):
        calls.unlink(temp, dir_fd=folder)


def _swap_back(calls: Calls, file: OpenReplacement, temp: str, made: Stat) -> None:
    """Restore the old file, unless somebody has changed the new one since the swap: that edit stays."""
    with suppress(OSError):
        original = calls.exchange(file.folder, temp, file.name)
        if to_stat(original or _stat(file.folder, temp)) != made:
            calls.exchange(file.folder, temp, file.name)
        _remove_temporary(calls, file.folder, temp)


def _rename_back(calls: Calls, folder: int, temp: str, name: str) -> None:
    with suppress(OSError):
        calls.rename(folder, temp, name)
