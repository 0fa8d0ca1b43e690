"""Keep overwritten and deleted bytes for a while, by their digest, so that they can be restored.

Laws, tested: stored bytes match their digest, or count as not stored; only the owner can read them; the store never
grows beyond its limit, and the oldest bytes are removed first. Bytes that cannot be kept delay no write: Memex
reports them missing when they are needed."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import secrets
import threading
import zlib
from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, Final

from index.document_ids import sha256
from index.errors import Unavailable
from syncd.vault.atomic_write import run_together

FOLDER: Final = "past"  # in the state folder
ROOM: Final = 0.9  # share of the limit that remains after pruning a full store
SHARE: Final = 4  # one file may use at most this fraction (1/4) of the limit
_NAME: Final = re.compile(r"[0-9a-f]{64}\Z")
# Small versions that were overwritten together: a line of JSON, digest → offset after that line, and then the versions.
_BUNDLE: Final = re.compile(r"[0-9a-f]{16}\.bundle\Z")
BUNDLED: Final = 16_384  # most bytes of a version in a bundle
_HEAD: Final = 1 << 20  # most bytes that are read of the first line of a bundle
_NUMBER_BITS: Final = 24  # of 64; they count more bundles than a folder has
_PIECE: Final = 1 << 20
LARGEST: Final = 1 << 28  # bytes of a version that is read into memory, more than any note has

log = logging.getLogger(__name__)


class OverwrittenBytes:
    """Manages the folder of overwritten versions. Safe from any thread. `most`: size limit in bytes on disk."""

    def __init__(self, state: Path, *, days: float, most: int) -> None:
        self._folder, self._days, self._most = state / FOLDER, days, most
        self._lock = threading.Lock()
        self._size: int | None = None  # total size; counted when it is first needed
        self._bundles: _BundleList | None = None  # read when it is needed

    def keep_all(self, versions: Sequence[bytes]) -> None:
        """Store these bytes as `keep` does; small ones in one file, because each file costs a sync of the disk."""
        small = {sha256(raw): raw for raw in versions if len(raw) <= BUNDLED} if len(versions) > 1 else {}
        run_together(self.keep, [raw for raw in versions if sha256(raw) not in small])
        if self._days > 0 and self._most > 0 and (new := {at: raw for at, raw in small.items() if not self._renew(at)}):
            self._keep_bundle(new)

    def keep(self, raw: bytes) -> None:
        """Store these bytes; the retention time starts now."""
        with self.keeping(sha256(raw)) as write:
            for start in range(0, len(raw) or 1, _PIECE):
                write(raw[start : start + _PIECE])

    @contextmanager
    def keeping(self, digest: str) -> Iterator[Callable[[bytes], object]]:
        """Store what the block writes, piece by piece, if its SHA-256 is `digest`."""
        if self._days <= 0 or self._most <= 0 or self._renew(digest):
            yield lambda _: None
            return
        draft = _Draft(self._folder, self._most // SHARE)
        try:
            yield draft.write
            self._add_size(draft.finish(digest))
        finally:
            draft.close()

    def holds(self, digest: str) -> bool:
        """Return whether a version is stored."""
        return next(self._find(digest), None) is not None

    def read(self, digest: str) -> bytes | None:
        """Return the version with this SHA-256, without writing to the disk; None when it is not stored or is damaged.

        Raises Unavailable if it is larger than `LARGEST`."""
        for file, offset in self._find(digest):
            try:
                raw = _read(file, offset)
            except OSError as error:
                log.warning("could not read a stored version: %s", error.strerror)
                continue
            if sha256(raw) == digest:
                return raw
        return None

    @contextmanager
    def open(self, digest: str) -> Iterator[Path | None]:
        """Yield a private file with this SHA-256 during the block; None when it is not stored.

        Raises Unavailable if the file can't be written, for example because the disk is full."""
        copy = self._folder / f".out.{secrets.token_hex(4)}"
        try:
            yield copy if self._unpack(digest, copy) else None
        finally:
            with suppress(OSError):
                copy.unlink()

    def _unpack(self, digest: str, copy: Path) -> bool:
        """Write the version to `copy`; return False if it is not stored."""
        failure = None
        for file, offset in self._find(digest):
            try:
                if _unpack(file, offset, copy) == digest:
                    return True
            except OSError as error:
                failure = error
        if failure is not None:
            raise Unavailable(f"a stored version can't be unpacked: {failure.strerror}") from failure
        return False

    def prune(self, before: float = 0.0) -> int:
        """Remove versions that were kept before then (epoch seconds), and the oldest ones beyond the size limit; return how many."""
        gone = 0
        with self._lock:
            files = sorted(self._list_kept())
            size = sum(bytes for _, bytes, _ in files)
            room = int(self._most * ROOM) if size > self._most else self._most
            for at, bytes, file in files:
                if at >= before and size <= room:
                    break
                with suppress(OSError):
                    file.unlink()
                    size -= bytes
                    gone += 1
            self._size = size
            if gone:
                self._bundles = None  # so that it does not grow with bundles that are gone
        return gone

    def _renew(self, digest: str) -> bool:
        """Return whether the version is stored already and intact, and restart its retention time."""
        file = self._folder / digest
        with suppress(OSError):
            with self._lock:  # not between the listing and the removal of old versions
                os.utime(file)
            return _digest(file) == digest  # a damaged file is replaced
        return False

    def _find(self, digest: str) -> Iterator[tuple[Path, int]]:
        """Yield each file with this version, and the offset at which it begins; any of them can be damaged."""
        if not _NAME.match(digest):
            return
        with suppress(PermissionError):  # the folder is closed to this user
            if (self._folder / digest).is_file():
                yield self._folder / digest, 0
            with self._lock:
                if self._bundles is None:
                    files = [file for _, _, file in sorted(self._list_kept()) if _BUNDLE.match(file.name)]
                    self._bundles = _BundleList((file.name, _read_bundle(file)) for file in files)
                names = self._bundles.names(digest)
            for file in (self._folder / name for name in names):
                if (offset := _read_bundle(file).get(digest)) is not None:
                    yield file, offset

    def _keep_bundle(self, versions: Mapping[str, bytes]) -> None:
        packed = [zlib.compress(raw, 1) for raw in versions.values()]
        offsets = dict(zip(versions, accumulate(map(len, packed), initial=0), strict=False))
        head = json.dumps(offsets).encode() + b"\n"
        data = b"".join([head, *packed])
        if len(data) > self._most // SHARE:
            run_together(self.keep, versions.values())
            return
        file = self._folder / f"{secrets.token_hex(8)}.bundle"
        draft = _Draft(self._folder, self._most // SHARE)
        try:
            draft.write_packed(data)
            size = draft.rename(file.name)
        finally:
            draft.close()
        with self._lock:
            if self._bundles is not None and size:
                self._bundles.add(file.name, offsets)
        self._add_size(size)

    def _add_size(self, size: int) -> None:
        with self._lock:
            self._size = sum(bytes for _, bytes, _ in self._list_kept()) if self._size is None else self._size + size
            full = self._size > self._most
        if full:
            self.prune()

    def _list_kept(self) -> Iterator[tuple[float, int, Path]]:
        """Yield everything stored: time, size, path."""
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if _NAME.match(entry.name) or _BUNDLE.match(entry.name):
                    with suppress(OSError):
                        stat = entry.stat(follow_symlinks=False)
                        yield stat.st_mtime, stat.st_size, self._folder / entry.name


class _BundleList:
    """Finds the bundles with a version, in 8 bytes for each version: the first bits of its digest, and a bundle's number.

    Other digests can begin alike, so the caller looks into the bundle."""

    def __init__(self, bundles: Iterable[tuple[str, Iterable[str]]]) -> None:
        self._names = array("Q")  # of 16 hexadecimal digits, the oldest bundle first
        rows = array("Q", (row for name, digests in bundles for row in self._rows(name, digests)))
        self._versions = array("Q", sorted(rows))

    def add(self, name: str, digests: Iterable[str]) -> None:
        """Add the newest bundle."""
        for row in self._rows(name, digests):
            insort(self._versions, row)

    def names(self, digest: str) -> list[str]:
        """Return the names of the bundles that may have this version, the newest first."""
        first = bisect_left(self._versions, _row(digest, 0))
        end = bisect_left(self._versions, _row(digest, 0) + (1 << _NUMBER_BITS), first)
        numbers = (row & ((1 << _NUMBER_BITS) - 1) for row in reversed(self._versions[first:end]))
        return [f"{self._names[number]:016x}.bundle" for number in numbers]

    def _rows(self, name: str, digests: Iterable[str]) -> Iterator[int]:
        self._names.append(int(name.partition(".")[0], 16))
        yield from (_row(digest, len(self._names) - 1) for digest in digests)


def _row(digest: str, number: int) -> int:
    return int(digest[: (64 - _NUMBER_BITS) // 4], 16) << _NUMBER_BITS | number


class _Draft:
    """Writes one file into the folder. A failure is logged, and leaves nothing behind."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most, self._size = folder, most, 0
        self._path = folder / f".in.{secrets.token_hex(4)}"
        self._packing, self._digest = zlib.compressobj(1), hashlib.sha256()
        self._file: IO[bytes] | None = None
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            self._file = os.fdopen(fd, "wb")
        except OSError as error:
            self._give_up(error)

    def write(self, piece: bytes) -> None:
        if self._file is None:
            return
        self._digest.update(piece)
        self.write_packed(self._packing.compress(piece))

    def finish(self, digest: str) -> int:
        """Rename the file to its digest, if the bytes have it; return its size, 0 when it is not kept."""
        if self._file is not None:
            self.write_packed(self._packing.flush())
        return self.rename(digest) if self._digest.hexdigest() == digest else 0

    def rename(self, name: str) -> int:
        """Give the file its name, which the next sync of the disk persists; return its size, 0 when it is not kept."""
        if self._file is None:
            return 0
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._path.replace(self._folder / name)
        except OSError as error:
            self._give_up(error)
            return 0
        return self._size

    def close(self) -> None:
        """Remove an unfinished file."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def write_packed(self, packed: bytes) -> None:
        """Write bytes that are packed already; does nothing once the file could not be made or was given up."""
        if self._file is None:
            return
        self._size += len(packed)
        if self._size > self._most:
            log.warning("an overwritten version is larger than git.past_mb allows, so it can't be restored")
            self.close()
            return
        try:
            self._file.write(packed)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        log.warning("could not keep an overwritten version, so it can't be restored: %s", error.strerror)
        self.close()


def _read_bundle(file: Path) -> dict[str, int]:
    """Return the digests of the versions in a bundle, and where in the file each begins; none if it can't be read."""
    try:
        with file.open("rb") as opened:
            offsets: dict[str, Any] = json.loads(head := opened.readline(_HEAD))
            size = os.fstat(opened.fileno()).st_size - len(head)
            return {
                digest: len(head) + offset
                for digest, offset in offsets.items()
                if _NAME.match(digest) and isinstance(offset, int) and 0 <= offset < size
            }
    except FileNotFoundError:  # removed meanwhile
        return {}
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        log.warning("could not read stored versions: %s", error)
        return {}


def _read(file: Path, offset: int) -> bytes:
    pieces, size = [], 0
    for piece in _decompress(file, offset):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise Unavailable("a stored version is too large to be shown", retryable=False)
    return b"".join(pieces)


def _unpack(source: Path, offset: int, target: Path) -> str:
    """Decompress `source` from `offset` on into `target`, and return the SHA-256 of what could be read."""
    digest = hashlib.sha256()
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as out:
        for piece in _decompress(source, offset):
            digest.update(piece)
            out.write(piece)
    return digest.hexdigest()


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    for piece in _decompress(file, 0):
        digest.update(piece)
    return digest.hexdigest()


def _decompress(source: Path, offset: int) -> Iterator[bytes]:
    """Yield a version in pieces; it ends early where the file is damaged."""
    unpacking = zlib.decompressobj()
    with source.open("rb") as file, suppress(zlib.error):
        file.seek(offset)
        while not unpacking.eof and (packed := unpacking.unconsumed_tail or file.read(_PIECE)):
            yield unpacking.decompress(packed, _PIECE)
