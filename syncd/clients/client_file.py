"""Read and replace one settings file of a client: durably, with backups beside it, and without following symbolic links.

Law, tested: only the file's owner can read a written file, because it contains a key; a failure keeps the old file."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from index.errors import Conflict, InvalidArgument, PermissionDenied, Unavailable
from index.model import Stat
from index.names import base_name
from syncd.vault import atomic_write
from syncd.vault.openat import FOLDER, Calls

LARGEST = 4 << 20  # bytes of a settings file
BACKUP = ".memex-backup"  # the file before the first write of Memex
LAST_BACKUP = ".memex-backup-last"  # the file before the last write of Memex, if BACKUP existed then
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class ClientFile:
    """Names a file by its path below an existing folder; links between the folder and the file are not followed."""

    root: Path
    path: str

    def __str__(self) -> str:
        return str(self.root / self.path)


@dataclass(frozen=True, slots=True)
class FileState:
    """Holds the text of a file, and the stat that identifies this state of it; `was` None = the file does not exist."""

    text: str
    was: Stat | None


def read_file(file: ClientFile) -> FileState:
    """Read the file. Raises InvalidArgument for a link, a folder, a file that is too large, or text that is not UTF-8."""
    with _explain_errors(file):
        try:
            with _open_folder(file, make=False) as folder:
                opened = _CALLS.open(folder, _name(file), _READ, 0)
        except FileNotFoundError:
            return FileState("", None)
        with os.fdopen(opened, "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                raise InvalidArgument(f"{file} is not a file, or is larger than {LARGEST >> 20} MiB")
            data = stream.read()
    try:
        return FileState(data.decode(), atomic_write.to_stat(status))
    except UnicodeDecodeError:
        raise InvalidArgument(f"{file} is not UTF-8, so Memex does not change it") from None


def write_file(file: ClientFile, state: FileState, text: str) -> Path | None:
    """Replace the file with `text`, and return the path of its backup, or None if the file is new.

    The first backup of a file is never overwritten. Raises Conflict if the file has changed since `state` was read."""
    with _explain_errors(file), _open_folder(file, make=True) as folder:
        name, data = _name(file), text.encode()
        if state.was is None:
            try:
                atomic_write.create(_CALLS, folder, name, (data,), mode=0o600)
            except FileExistsError:
                raise _changed(file) from None
            return None
        ending = LAST_BACKUP if _is_file(folder, name + BACKUP) else BACKUP
        _put_private(folder, name + ending, state.text.encode())
        _replace(file, folder, name, data, state.was)
        return Path(str(file) + ending)


_CALLS = Calls()


def _replace(file: ClientFile, folder: int, name: str, data: bytes, was: Stat) -> None:
    opened = _CALLS.open(folder, name, _READ, 0)
    try:
        status = os.fstat(opened)
        if atomic_write.to_stat(status) != was:
            raise _changed(file)
        if status.st_mode & 0o077:  # Memex is about to write a key into it
            os.fchmod(opened, stat.S_IMODE(status.st_mode) & 0o700)
        atomic_write.replace(_CALLS, folder, name, data, old=opened, was=was)
    except atomic_write.FileChanged:
        raise _changed(file) from None
    finally:
        os.close(opened)


def _is_file(folder: int, name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _put_private(folder: int, name: str, data: bytes) -> None:
    """Write a file that only its owner can read; it replaces a file or link of that name."""
    with suppress(FileNotFoundError):
        _CALLS.unlink(name, dir_fd=folder)
    atomic_write.create(_CALLS, folder, name, (data,), mode=0o600)


@contextmanager
def _open_folder(file: ClientFile, *, make: bool) -> Iterator[int]:
    """Open the folder of the file without following links below `root`.

    `make`: create missing folders, with access for the owner only."""
    root = os.open(file.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        below = Path(file.path).parent.as_posix()
        if make and below != ".":
            parts = below.split("/")
            for depth in range(len(parts)):
                _make_folder(root, "/".join(parts[: depth + 1]))
        folder = _CALLS.open(root, below, FOLDER, 0)
    finally:
        os.close(root)
    try:
        yield folder
    finally:
        os.close(folder)


def _make_folder(root: int, path: str) -> None:
    above, _, name = path.rpartition("/")
    folder = _CALLS.open(root, above or ".", FOLDER, 0)
    try:
        with suppress(FileExistsError):
            _CALLS.mkdir(name, 0o700, dir_fd=folder)
    finally:
        os.close(folder)


def _name(file: ClientFile) -> str:
    return base_name(file.path)


def _changed(file: ClientFile) -> Conflict:
    return Conflict(f"another program has just changed {file}, so Memex did not write it: try again")


@contextmanager
def _explain_errors(file: ClientFile) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        match error.errno:
            case errno.ELOOP | errno.EXDEV | errno.ENOTDIR | errno.EISDIR:
                raise InvalidArgument(
                    f"{file} is a folder or is reached through a link, and Memex writes keys only into files: name the file itself, or "
                    "paste the lines yourself"
                ) from error
            case errno.EACCES | errno.EPERM | errno.EROFS:
                raise PermissionDenied(f"{file} can't be read or written: {error.strerror}") from error
            case _:
                raise Unavailable(f"{file}: {error.strerror}", retryable=False) from error
