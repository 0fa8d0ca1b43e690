"""Store the files of one upload under way: its description, its chunks, and the whole file that the chunks make.

Law, tested: what a call wrote is on disk when it returns, and a crash leaves the old state or the new one; the
message of a disk failure names no path of this machine."""

from __future__ import annotations

import errno
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

BLOCK: Final = 1_048_576  # bytes that are held at once
ABOUT, WHOLE, ALONE, GONE = "about.json", "whole", ".file", ".gone-"
OURS: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.file)?")
_PART: Final = re.compile(r"[0-9]{6}")
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class UploadFacts:
    """What is known of an upload from its start on."""

    key: str  # the public id of the key that began it
    workspace: str
    size: int
    sha256: str | None
    given: Mapping[str, Any]  # what the queue is told


@dataclass(slots=True)
class ChunkFiles:
    """An upload under way; `lock` is held while its files change."""

    id: str
    about: UploadFacts
    folder: Path
    touched_at: int  # epoch milliseconds
    sizes: dict[int, int] = field(default_factory=dict)  # index → bytes
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: bool = False  # finished or collected

    @property
    def received(self) -> int:
        """The bytes of all chunks."""
        return sum(self.sizes.values())

    def begin(self) -> None:
        """Make its folder."""
        with hiding_disk_errors():
            self.folder.mkdir(mode=0o700)
            write_private(self.folder / ABOUT, json.dumps(asdict(self.about)))
            sync_folder(self.folder.parent)

    def has_chunk(self, index: int, data: bytes) -> bool:
        """Whether a chunk is this very one; if so, that is a sign of life."""
        with hiding_disk_errors():
            if self.sizes.get(index) != len(data) or self._chunk_path(index).read_bytes() != data:
                return False
            os.utime(self.folder)
            return True

    def write_chunk(self, index: int, data: bytes) -> None:
        """Write a chunk, in place of the one that was there."""
        part = self._chunk_path(index)
        temp = part.with_name(f".{part.name}.{secrets.token_hex(4)}")
        with hiding_disk_errors():
            with new_file(temp) as file:
                write_all(file, data)
                os.fsync(file)
                temp.replace(part)
            sync_folder(self.folder)
        self.sizes[index] = len(data)

    def assemble(self) -> Path:
        """One file of all chunks. Raises InvalidArgument when it is not the one that was announced."""
        made, digest, size = self.folder / WHOLE, hashlib.sha256(), 0
        with hiding_disk_errors():
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
            raise Unavailable("what was uploaded is damaged on this disk; start again", retryable=False)
        if self.about.sha256 not in (None, digest.hexdigest()):
            raise InvalidArgument("the file has another sha256 than was announced; send it again", field="sha256")
        return made

    def remove(self) -> None:
        """Take its folder away, at once and whole: half an upload would seem to lack chunks. What fails is collected."""
        away = self.folder.with_name(f"{GONE}{self.id}")
        with suppress(OSError):
            self.folder.rename(away)
            shutil.rmtree(away)

    def _chunk_path(self, index: int) -> Path:
        return self.folder / f"{index:06}"


def find_uploads(root: Path) -> Iterator[ChunkFiles]:
    """The uploads that an earlier process left below `root`."""
    with hiding_disk_errors():
        root.mkdir(mode=0o700, exist_ok=True)
        folders = list(root.iterdir())
    for folder in folders:
        try:
            facts = UploadFacts(**json.loads((folder / ABOUT).read_text()))
            touched = folder.stat().st_mtime_ns // 1_000_000
            sizes = {int(part.name): part.stat().st_size for part in folder.iterdir() if _PART.fullmatch(part.name)}
        except (OSError, ValueError, TypeError):
            continue  # not one, or one that was just begun: nobody was told its id
        if OURS.fullmatch(folder.name):
            yield ChunkFiles(folder.name, facts, folder, touched, sizes)


def remove_leftovers(root: Path, kept: frozenset[str], *, before: int) -> list[str]:
    """Remove what else lies below `root` and was not changed since `before` (epoch milliseconds); the names of what went."""
    with hiding_disk_errors():
        there = [path for path in root.iterdir() if path.name not in kept]
    gone = []
    for path in there:
        with suppress(OSError):  # somebody else was quicker
            old = path.lstat().st_mtime_ns // 1_000_000 <= before
            if path.name.startswith(GONE) or (old and OURS.fullmatch(path.name)):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                gone.append(path.name)
    return gone


@contextmanager
def hiding_disk_errors() -> Iterator[None]:
    """A failure of the disk in words that name no path."""
    try:
        yield
    except OSError as error:
        problem = "the disk is full" if error.errno in _FULL else f"the disk failed ({error.strerror})"
        raise Unavailable(f"{problem}; what was uploaded before is kept, try again") from error


def has_space(folder: Path, size: int, *, free: int) -> bool:
    """Whether the disk of a folder has room for `size` bytes beside those that are to stay free. Raises OSError."""
    there = os.statvfs(folder)
    return there.f_bavail * there.f_frsize - size >= free


@contextmanager
def new_file(path: Path) -> Iterator[int]:
    """A new file, open for writing; removed unless all goes well."""
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
