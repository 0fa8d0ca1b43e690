"""Store the files of one unfinished upload: its description, its chunks, and the file assembled from the chunks.

Law, tested: what a call wrote is on disk when it returns, and a crash leaves the old state or the new one; the
message of a disk failure names no path of this machine."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from index.errors import InvalidArgument, Unavailable
from syncd.state.folder import sync_folder, write_private

_KEPT: Final = "Memex keeps the earlier chunks; try again"
BLOCK: Final = 1_048_576  # most bytes in memory at once
ABOUT, WHOLE, ALONE, GONE = "about.json", "whole", ".file", ".gone-"
OURS: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.file)?")
_PART: Final = re.compile(r"[0-9]{6}")
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class UploadFacts:
    """Holds the facts about an upload that are known from its start."""

    key: str  # public id of the key that started it
    workspace: str
    size: int
    sha256: str | None
    given: Mapping[str, Any]  # arguments of the queue's job


@dataclass(slots=True)
class ChunkFiles:
    """Stores the files of an unfinished upload. Hold `lock` while its files change."""

    id: str
    about: UploadFacts
    folder: Path
    touched_at: int  # epoch milliseconds
    sizes: dict[int, int] = field(default_factory=dict)  # index → bytes
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: bool = False  # finished, or removed as abandoned

    @property
    def received(self) -> int:
        """Return the number of bytes in all chunks."""
        return sum(self.sizes.values())

    def begin(self) -> None:
        """Create the upload's folder and save its description."""
        with hiding_disk_errors():
            self.folder.parent.mkdir(mode=0o700, exist_ok=True)  # a person may have removed it meanwhile
            self.folder.mkdir(mode=0o700)
            write_private(self.folder / ABOUT, json.dumps(asdict(self.about)))
            sync_folder(self.folder.parent)

    def write_chunk(self, index: int, data: bytes) -> None:
        """Write a chunk, replacing an earlier one."""
        part = self._chunk_path(index)
        temp = part.with_name(f".{part.name}.{secrets.token_hex(4)}")
        with hiding_disk_errors(_KEPT):
            with new_file(temp) as file:
                write_all(file, data)
                os.fsync(file)
                temp.replace(part)
            sync_folder(self.folder)
        self.sizes[index] = len(data)

    def assemble(self) -> Path:
        """Join all chunks into one file, and return its path.

        Raises InvalidArgument if its digest is not the announced one, Unavailable if its size is wrong."""
        made, digest, size = self.folder / WHOLE, hashlib.sha256(), 0
        with hiding_disk_errors(_KEPT):
            made.unlink(missing_ok=True)
            with new_file(made) as file:
                for index in range(len(self.sizes)):
                    with self._chunk_path(index).open("rb", buffering=0) as part:
                        while piece := part.read(BLOCK):
                            write_all(file, piece)
                            size += len(piece)
                            if self.about.sha256:
                                digest.update(piece)
                os.fsync(file)
        if size != self.about.size:
            raise Unavailable("the uploaded chunks are damaged on the daemon's disk; start again", retryable=False)
        if self.about.sha256 not in (None, digest.hexdigest()):
            raise InvalidArgument(
                "the sha256 of the file differs from the announced one; send the file again", field="sha256"
            )
        return made

    def remove(self) -> None:
        """Remove the upload's folder; `remove_leftovers` deletes what could not be removed here.

        The folder is renamed first, because a half-removed upload would seem to lack chunks."""
        away = self.folder.with_name(f"{GONE}{self.id}")
        with suppress(OSError):
            self.folder.rename(away)
            shutil.rmtree(away)

    def _chunk_path(self, index: int) -> Path:
        return self.folder / f"{index:06}"


def find_uploads(root: Path) -> Iterator[ChunkFiles]:
    """Yield the uploads that an earlier process left below `root`."""
    with hiding_disk_errors():
        root.mkdir(mode=0o700, exist_ok=True)
        folders = list(root.iterdir())
    for folder in folders:
        try:
            facts = UploadFacts(**json.loads((folder / ABOUT).read_text()))
            touched = folder.stat().st_mtime_ns // 1_000_000
            sizes = {int(part.name): part.stat().st_size for part in folder.iterdir() if _PART.fullmatch(part.name)}
        except (OSError, ValueError, TypeError):
            continue  # not an upload, or one whose id no caller received yet
        if OURS.fullmatch(folder.name):
            yield ChunkFiles(folder.name, facts, folder, touched, sizes)


def remove_leftovers(root: Path, kept: frozenset[str], *, before: int) -> list[str]:
    """Remove leftovers below `root` whose names are not in `kept`, and return the names of what was removed.

    An upload that was changed after `before` (epoch milliseconds) stays, and so does a file that a command is writing."""
    with hiding_disk_errors():
        root.mkdir(mode=0o700, exist_ok=True)
        there = [path for path in root.iterdir() if path.name not in kept]
    gone = []
    for path in there:
        with suppress(OSError):  # another thread or process has removed it, or is writing it
            old = path.lstat().st_mtime_ns // 1_000_000 <= before
            if path.name.startswith(GONE) or (old and OURS.fullmatch(path.name)):
                if path.is_symlink():
                    path.unlink()
                elif path.is_dir():
                    shutil.rmtree(path)
                else:
                    _remove_unlocked(path)
                gone.append(path.name)
    return gone


def lock_file(file: int) -> None:
    """Lock an open file until it is closed, so that `remove_leftovers` does not remove it. Raises OSError if it is locked."""
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_unlocked(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        lock_file(file)
        path.unlink()
    finally:
        os.close(file)


@contextmanager
def hiding_disk_errors(advice: str = "try again") -> Iterator[None]:
    """Turn a disk error inside the block into Unavailable, with a message that names no path and ends in `advice`."""
    try:
        yield
    except OSError as error:
        problem = "the disk is full" if error.errno in _FULL else f"the disk failed ({error.strerror})"
        raise Unavailable(f"{problem}; {advice}") from error


def has_space(folder: Path, size: int, *, free: int) -> bool:
    """Return whether the disk of a folder can hold `size` more bytes and keep `free` bytes free. Raises OSError."""
    there = os.statvfs(folder)
    return there.f_bavail * there.f_frsize - size >= free


@contextmanager
def new_file(path: Path) -> Iterator[int]:
    """Create a file and yield it open for writing; remove it if the block raises."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)


def write_all(file: int, data: bytes) -> None:
    """Write all of `data`."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
