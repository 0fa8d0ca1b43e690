"""A file copied into the state folder, where the daemon takes it from: piece by piece, and gone again unless it was taken.

Law, tested: however large the file is, one piece of it is in memory; one that changes while it is read is not handed over."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from index.errors import Conflict, InvalidArgument, ResourceExhausted, Unavailable
from syncd.uploads.chunk_files import ALONE, BLOCK, disk, fresh, write

FOLDER: Final = "uploads"  # in the state folder


@dataclass(frozen=True, slots=True)
class Copy:
    """What lies in the state folder."""

    name: str
    size: int
    digest: str


@contextmanager
def copied(source: BinaryIO, state: Path, *, largest: int, free: int, show: Callable[[int], None]) -> Iterator[Copy]:
    """A copy of what `source` gives, for as long as the block lasts; `show` is told the bytes so far.

    Raises ResourceExhausted for too much of it, Unavailable without room, Conflict when it changes meanwhile."""
    target = state / FOLDER / f"{uuid.uuid4()}{ALONE}"
    before, digest, size = os.fstat(source.fileno()), hashlib.sha256(), 0
    try:
        with disk(), fresh(target) as file:
            while piece := source.read(BLOCK):
                size += len(piece)
                if size > largest:
                    raise ResourceExhausted(f"it has more than {largest:,} bytes, which a file may have", limit=largest)
                there = os.statvfs(target.parent)
                if there.f_bavail * there.f_frsize - len(piece) < free:
                    raise Unavailable("the disk is almost full (kb.free stays free); make room, then add the rest")
                write(file, piece)
                digest.update(piece)
                show(size)
            os.fsync(file)
        after = os.fstat(source.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise Conflict("it was changed while it was read; add it again")
        if not size:
            raise InvalidArgument("it is empty")
        yield Copy(target.name, size, digest.hexdigest())
    finally:
        target.unlink(missing_ok=True)
