"""List the local files that a command line names, and stage copies of files in the state folder for the daemon to import.

Laws, tested: links inside folders are not followed, only regular files are read, and every file left out is reported
with its reason. However large a file is, only one piece of it is in memory; a file that changes while it is read is
refused. The copy is deleted unless the daemon took it."""

from __future__ import annotations

import glob
import hashlib
import os
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from index.errors import (
    Conflict,
    InvalidArgument,
    MemexError,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
)
from syncd.documents.file_types import HEAD, media_type_of
from syncd.state.folder import expand_home
from syncd.uploads.chunk_files import ALONE, BLOCK, has_space, hiding_disk_errors, lock_file, new_file, write_all
from syncd.uploads.upload_request import check_filename

_WILD: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class File:
    """Describes a file that can be added."""

    path: Path
    name: str  # the name that Memex stores
    size: int
    kind: str  # its media type


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """Describes a file or folder that is left out, and why; `error` is set if it should have been added but can't be."""

    path: Path
    why: str
    error: MemexError | None = None


def find_files(words: Sequence[str], *, largest: int) -> Iterator[File | SkippedFile]:
    """Yield the files that `words` name, each once, in order. Raises NotFound for a word that names no file or folder."""
    seen: set[tuple[int, int]] = set()
    for path in [path for word in words for path in _expand_word(word)]:
        for entry in _walk(path):
            file = entry if isinstance(entry, SkippedFile) else check_file(entry, seen, largest=largest)
            if file is not None:
                yield file


def check_file(path: Path, seen: set[tuple[int, int]], *, largest: int) -> File | SkippedFile | None:
    """Return the file at `path`, or why it is left out; None if it is in `seen`, to which it is added."""
    try:
        with open_file(path) as file:
            there = os.fstat(file.fileno())
            if (there.st_dev, there.st_ino) in seen:
                return None
            seen.add((there.st_dev, there.st_ino))
            head = file.read(HEAD)
    except MemexError as error:
        return SkippedFile(path, error.message, error)
    except OSError as error:
        denied = PermissionDenied(f"it can't be read: {error.strerror}")
        return SkippedFile(path, denied.message, denied)
    try:
        kind, name = media_type_of(path.name, head), check_filename(path.name)
    except InvalidArgument as error:
        return SkippedFile(path, error.message)
    if there.st_size > largest:
        many = ResourceExhausted(f"it has {there.st_size:,} bytes; the limit of a file is {largest:,}", limit=largest)
        return SkippedFile(path, many.message, many)
    return File(path, name, there.st_size, kind)


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file. Raises InvalidArgument for anything else, without waiting for a pipe; OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb", buffering=0) as file:  # noqa: PTH123 - by its descriptor
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise InvalidArgument("it is not a regular file; use - to read stdin")
        yield file


def _expand_word(word: str) -> list[Path]:
    if not word:  # such as an unset variable of a script, for which Path("") would be the current folder
        raise InvalidArgument("a PATH is empty; for the current folder: memex addfile .")
    path = expand_home(word)
    if path.exists() or path.is_symlink():
        return [path]
    matches = sorted(glob.glob(str(path), recursive=True)) if _WILD & set(word) else []  # noqa: PTH207 - a pattern may be absolute
    if not matches:
        raise NotFound(f"there is no file or folder {word!r}", path=word)
    return [Path(match) for match in matches]


def _walk(path: Path) -> Iterator[Path | SkippedFile]:
    """Yield all files of a folder and its subfolders; for a file, yield the file itself."""
    if not path.is_dir():
        yield path
        return
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError as error:
        denied = PermissionDenied(f"the folder can't be read: {error.strerror}")
        yield SkippedFile(path, denied.message, denied)
        return
    for entry in entries:
        below = path / entry.name
        if entry.name.startswith("."):
            yield SkippedFile(below, "hidden")
        elif entry.is_symlink():
            yield SkippedFile(below, "a link, which Memex does not follow")
        elif entry.is_dir(follow_symlinks=False):
            yield from _walk(below)
        elif entry.is_file(follow_symlinks=False):
            yield below
        else:
            yield SkippedFile(below, "not a regular file")


FOLDER: Final = "uploads"  # in the state folder


@dataclass(frozen=True, slots=True)
class StagedCopy:
    """Describes the copy in the state folder."""

    name: str
    size: int
    digest: str


class StagedFile:
    """Writes a copy into the state folder, piece by piece; `close` deletes it unless the daemon took it."""

    def __init__(self, state: Path, *, largest: int, free: int) -> None:
        """Create the file. Raises Unavailable."""
        self.size = 0
        self._largest, self._free, self._digest = largest, free, hashlib.sha256()
        self._path = state / FOLDER / f"{uuid.uuid4()}{ALONE}"
        self._open = ExitStack()
        with hiding_disk_errors():
            self._file = self._open.enter_context(new_file(self._path))
            lock_file(self._file)  # the input may pause for longer than the daemon keeps an unfinished upload

    def write(self, piece: bytes) -> None:
        """Append a piece. Raises ResourceExhausted if the file becomes too large, Unavailable if the disk lacks space."""
        self.size += len(piece)
        if self.size > self._largest:
            raise ResourceExhausted(
                f"it has more than {self._largest:,} bytes, the limit of a file", limit=self._largest
            )
        with hiding_disk_errors():
            if not has_space(self._path.parent, len(piece), free=self._free):
                raise Unavailable("the disk is almost full (kb.free stays free); make room, then add the rest")
            write_all(self._file, piece)
        self._digest.update(piece)

    def finish(self) -> StagedCopy:
        """Save the file to disk, and return what the daemon needs to take it. Raises InvalidArgument if it is empty."""
        with hiding_disk_errors():
            os.fsync(self._file)
        self._open.close()
        if not self.size:
            raise InvalidArgument("it is empty")
        return StagedCopy(self._path.name, self.size, self._digest.hexdigest())

    def close(self) -> None:
        """Close the file, and delete it if it is still here."""
        self._open.close()
        self._path.unlink(missing_ok=True)


@contextmanager
def staged_copy(
    source: BinaryIO, state: Path, *, largest: int, free: int, show: Callable[[int], None]
) -> Iterator[StagedCopy]:
    """Copy `source` into the state folder for the duration of the block; `show` receives the number of bytes so far.

    Raises the errors of StagedFile, Conflict if the file changes during the copy, and OSError if it can't be read."""
    before = os.fstat(source.fileno())
    with closing(StagedFile(state, largest=largest, free=free)) as staged:
        while piece := source.read(BLOCK):
            staged.write(piece)
            show(staged.size)
        after = os.fstat(source.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise Conflict("it changed while Memex read it; add it again")
        yield staged.finish()
