"""Make a backup archive of everything outside the vault that cannot be rebuilt, and restore it.

A backup can be made while a daemon runs. A restore needs a state folder that no daemon holds. The backup includes
every file of the state folder that is not known to be derived, so new kinds of files need no change in this module.
It excludes the notes, which Git or any file backup keeps, and the index, which Memex rebuilds from the notes.

Law, tested: an archive is unpacked completely or not at all. Each unpacked file is a regular file below the target
folder, is listed in the manifest, and has the listed digest. Any other content of an archive changes nothing."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import tarfile
import tempfile
import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Self, TypeAlias

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from index.names import replace_surrogates
from syncd.history.audit_log import CAME, HEAD
from syncd.history.change_journal import FORGET_ALL
from syncd.history.overwritten_bytes import FOLDER
from syncd.installation.vault_setup import toml_string
from syncd.state import ledger
from syncd.state.damage import ASIDE
from syncd.state.folder import LEDGER, sync_folder

Progress: TypeAlias = Callable[[dict[str, Any]], None]
FORMAT = 1
MANIFEST, SETTINGS = "manifest.json", "settings.toml"
STATE = "state/"
# Derived files, and files of a running process.
REPLACED = "replaced.tar.gz"  # the state that a restore replaced; later ones are `replaced-2.tar.gz` and so on
_REPLACED_NAME = re.compile(r"replaced(?:-\d+)?\.tar\.gz")
DERIVED = frozenset(
    [
        "index",
        "models",
        "bells",
        "lock",
        "vault",
        "head",
        "deep_check.json",
        "daemon.json",
        "control.sock",
        "control.token",
        "page",  # the lock, the socket and the log of the page's process
        HEAD,
        CAME,
        "commit",  # a commit in progress
        "uploads",  # partial uploads; their senders start again
        FOLDER,  # overwritten and deleted text must disappear in the end, and people keep backups for a long time
    ]
)
OWN = frozenset({LEDGER, *(f"{LEDGER}-{log}" for log in ("wal", "shm", "journal"))})  # copied by SQLite itself
LARGEST_MANIFEST, LARGEST = 1 << 22, 1 << 36  # most bytes of the manifest, and of all files together
PIECE = 1 << 20  # bytes that are read at once
LARGEST_EXTENSION = 2_048  # most bytes of an extension header, which holds a name that is too long for the next header
LATEST = 253_402_300_799_000  # epoch milliseconds of the end of the year 9999, the last year of `datetime`
# The check of tarfile, in addition to the checks below. Python 3.11.0 to 3.11.3 lack it.
SAFE: Callable[[tarfile.TarInfo, str], tarfile.TarInfo] = getattr(tarfile, "data_filter", lambda member, _: member)
DAMAGED = (
    *(tarfile.TarError, EOFError, zlib.error, OSError, ValueError, KeyError, TypeError, AttributeError),
    *(OverflowError, RecursionError),
)


@dataclass(frozen=True, slots=True)
class ArchiveContents:
    """Describes the contents of an archive whose digests have all been verified."""

    made_at: int  # epoch milliseconds
    version: str
    vault: str  # path of the vault at the time of the backup
    files: Mapping[str, int]  # name in the archive → size


class Header(tarfile.TarInfo):
    """Reads a header of an archive, and rejects every header that `pack` can't have written.

    Without this check, tarfile can spend hours on a hostile header."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Return the header in `buf`. Raises InvalidArgument for another kind of header, or an extension that is too long."""
        header = super().frombuf(buf, encoding, errors)
        extension = header.type == tarfile.XHDTYPE and header.size <= LARGEST_EXTENSION
        if header.size < 0 or not (extension or header.isreg()):
            raise InvalidArgument("the archive contains an entry that no backup has; nothing was changed")
        return header


def irreplaceable_files(state: Path) -> Iterator[str]:
    """Yield the names of the files of a state folder that can't be rebuilt, without the files of the ledger."""
    for folder, folders, names in os.walk(state):
        inner = Path(folder).relative_to(state)
        folders[:] = sorted(name for name in folders if not _is_derived(inner / name) and not name.startswith("."))
        for name in sorted(names):
            path = str(inner / name)
            if (
                not _is_derived(inner / name)
                and path not in OWN
                and not name.startswith(".")
                and not Path(folder, name).is_symlink()
                and Path(folder, name).is_file()  # false too for a file that is gone
            ):
                yield path


def _is_derived(path: Path) -> bool:
    """Return whether a path of a state folder is derived, or a set-aside copy of a derived path."""
    return _is_derived_name(str(path).partition(ASIDE)[0])


def _is_derived_name(name: str) -> bool:
    return name in DERIVED or _REPLACED_NAME.fullmatch(name) is not None


def free_replaced_path(state: Path) -> Path:
    """Return a free path for the archive of the state that a restore replaces: an older one may hold the only good copy."""
    names = (REPLACED, *(f"replaced-{number}.tar.gz" for number in range(2, 10_000)))
    return next(state / name for name in names if not os.path.lexists(state / name))


def pack(
    state: Path,
    target: Path,
    *,
    vault: Path,
    settings: Path | None,
    version: str,
    now: int,
    damaged: bool = False,
    progress: Progress = lambda _: None,
) -> ArchiveContents:
    """Write the archive `target` durably and atomically, with mode 0600; a daemon may run at the same time.

    `damaged`: copy a damaged ledger with all that can be read, or as a plain file, instead of raising Unavailable."""
    if not (state / LEDGER).is_file():
        raise NotFound(f"{state} has nothing to back up: this vault is not set up")
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=state) as folder:
        files = _collect_files(state, Path(folder), damaged=damaged)
        if settings is not None:
            files[SETTINGS] = Path(shutil.copyfile(settings, Path(folder, SETTINGS)))  # it may be edited meanwhile
        sizes = {name: file.stat().st_size for name, file in files.items()}
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "made_at": now,
            "version": version,
            "vault": replace_surrogates(os.fsdecode(os.fsencode(vault))),
            "files": {name: {"size": size, "sha256": _file_digest(files[name], size)} for name, size in sizes.items()},
        }
        with (
            _write_atomically(target) as stream,
            tarfile.open(fileobj=stream, mode="w:gz", format=tarfile.PAX_FORMAT) as archive,
        ):
            encoded = json.dumps(manifest, indent=1).encode()
            archive.addfile(_tar_member(MANIFEST, len(encoded), now), io.BytesIO(encoded))
            for done, (name, file) in enumerate(files.items()):
                progress({"stage": "packing", "done": done, "total": len(files)})
                with file.open("rb") as content:
                    archive.addfile(_tar_member(name, sizes[name], now), content)
    return ArchiveContents(now, version, manifest["vault"], sizes)


def _collect_files(state: Path, folder: Path, *, damaged: bool) -> dict[str, Path]:
    """Return the files to pack, by name in the archive.

    `folder` gets a hard link or a copy of each file, because a job's file may be removed when the job is done."""
    copy = folder / LEDGER
    try:
        ledger.back_up(state / LEDGER, copy, without=FORGET_ALL, damaged=damaged)
    except Unavailable:
        if not damaged:
            raise
        copy = state / LEDGER
    files = {STATE + LEDGER: copy}
    for number, path in enumerate(irreplaceable_files(state)):
        held = folder / str(number)
        with suppress(FileNotFoundError):
            try:
                held.hardlink_to(state / path)
            except FileNotFoundError:
                raise
            except OSError:  # the file system has no hard links
                shutil.copyfile(state / path, held)
            files[STATE + path] = held
    return files


def _tar_member(name: str, size: int, now: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, now // 1000
    return member


def _file_digest(file: Path, size: int) -> str:
    """Return the SHA-256 of the first `size` bytes: a running daemon may append to a log."""
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while size and (piece := content.read(min(size, PIECE))):
            digest.update(piece)
            size -= len(piece)
    return digest.hexdigest()


@contextmanager
def _write_atomically(target: Path) -> Iterator[IO[bytes]]:
    """Write a private file that becomes `target` once it is complete and synced to disk."""
    fresh = _temporary_name(target)
    try:
        with _write_durably(fresh) as stream:
            yield stream
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
    sync_folder(target.parent)


def _temporary_name(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}")


@contextmanager
def _write_durably(path: Path) -> Iterator[IO[bytes]]:
    """Create a private file that is synced to disk at the end."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as stream:  # noqa: PTH123 - the descriptor is what makes it private
        yield stream
        stream.flush()
        os.fsync(fd)


def unpack(archive: Path, into: Path, progress: Progress = lambda _: None) -> ArchiveContents:
    """Unpack an archive into the empty folder `into`, and return its verified contents.

    Raises InvalidArgument if anything in the archive is wrong, NotFound if it does not exist, and Unavailable when the
    disk fails."""
    try:
        _read_through(archive)
        with tarfile.open(archive, mode="r:gz", tarinfo=Header) as opened:
            contents, digests = _read_manifest(opened)
            left = dict(digests)
            while (member := opened.next()) is not None:
                progress({"stage": "unpacking", "done": len(digests) - len(left), "total": len(digests)})
                digest = left.pop(member.name, None)
                if digest is None or not member.isreg() or member.size != contents.files[member.name]:
                    raise InvalidArgument(
                        f"{archive.name} contains {member.name[:100]!r}, which differs from its manifest"
                    )
                safe = SAFE(member, str(into))
                _unpack_member(opened, safe, into / safe.name, digest)
    except FileNotFoundError:
        raise NotFound(f"no such file: {archive}") from None
    except IsADirectoryError:
        raise InvalidArgument(f"{archive} is a folder") from None
    except DAMAGED as error:
        if isinstance(error, OSError) and error.errno:  # an error of the disk; errors of gzip have no number
            raise Unavailable(f"{archive.name} can't be unpacked: {error.strerror}; nothing was changed") from error
        raise InvalidArgument(
            f"{archive.name} is damaged, or not a backup of Memex ({error}); nothing was changed"
        ) from error
    if left:
        raise InvalidArgument(
            f"{archive.name} is truncated: {', '.join(sorted(left)[:3])} is missing; nothing was changed"
        )
    return contents


def _read_through(archive: Path) -> None:
    """Read the whole archive once: gzip's checksum finds truncation and changes, and the limit stops a decompression bomb."""
    size = 0
    with gzip.open(archive) as stream:
        while piece := stream.read(1 << 20):
            size += len(piece)
            if size > LARGEST + 2 * LARGEST_MANIFEST:
                raise InvalidArgument(f"{archive.name} is larger than {LARGEST:,} bytes; nothing was changed")


def _read_manifest(opened: tarfile.TarFile) -> tuple[ArchiveContents, dict[str, str]]:
    """Read and check the manifest, which is the first member; return its contents, and the digest of each file."""
    first = opened.next()
    if first is None or first.name != MANIFEST or not first.isreg() or first.size > LARGEST_MANIFEST:
        raise InvalidArgument("it does not begin with a manifest, so it is not a backup of Memex; nothing was changed")
    stream = opened.extractfile(first)
    assert stream is not None
    manifest: dict[str, Any] = json.loads(stream.read(LARGEST_MANIFEST))
    if manifest["format"] != FORMAT:
        raise InvalidArgument("the backup was made by another version of Memex: update this one; nothing was changed")
    sizes = {str(name): int(entry["size"]) for name, entry in manifest["files"].items()}
    if wrong := [name for name in sizes if not _is_valid_name(name)]:
        raise InvalidArgument(f"the backup names {wrong[0][:100]!r}, which no backup does; nothing was changed")
    if min(sizes.values(), default=0) < 0 or sum(sizes.values()) > LARGEST:
        raise InvalidArgument(f"the backup says it is larger than {LARGEST:,} bytes; nothing was changed")
    if STATE + LEDGER not in sizes:
        raise InvalidArgument("the backup has no ledger; nothing was changed")
    digests = {name: str(manifest["files"][name]["sha256"]) for name in sizes}
    made_at, version = int(manifest["made_at"]), str(manifest["version"])
    if not 0 <= made_at <= LATEST or not version.isprintable():  # both are shown to a person
        raise InvalidArgument("the backup lacks its time or its version; nothing was changed")
    return ArchiveContents(made_at, version, str(manifest["vault"]), sizes), digests


def _is_valid_name(name: str) -> bool:
    """Return whether a backup of Memex can contain a file with this name."""
    path = PurePosixPath(name)
    plain = name.isprintable() and not path.is_absolute() and str(path) == name and ".." not in path.parts
    inner = name.removeprefix(STATE)
    derived = inner in OWN - {LEDGER} or any(part.startswith(".") for part in path.parts) or path.parts[1:2] == ()
    return plain and (name == SETTINGS or (name != inner and not derived and not _is_derived_name(path.parts[1])))


def _unpack_member(opened: tarfile.TarFile, member: tarfile.TarInfo, target: Path, digest: str) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    stream = opened.extractfile(member)
    assert stream is not None
    with _write_durably(target) as file:
        shutil.copyfileobj(stream, file)
    if _file_digest(target, target.stat().st_size) != digest:
        raise InvalidArgument(f"{member.name} in the backup is damaged; nothing was changed")


def check_ledger(folder: Path) -> None:
    """Raise an error unless this version of Memex can use the ledger that was unpacked to `folder`."""
    fresh = folder / STATE / LEDGER
    if wrong := ledger.check_integrity(fresh):
        raise InvalidArgument(f"the ledger in the backup can't be used: {wrong}; nothing was changed")
    ledger.Ledger.open(fresh).close()  # migrates an older schema


def restore_files(folder: Path, state: Path, contents: ArchiveContents) -> list[str]:
    """Copy the unpacked files from `folder` to `state`, the ledger last, and return their names.

    An OSError while the files are copied, such as of a full disk, leaves the old state as it was. The caller holds the
    lock of `state`."""
    names = sorted(name.removeprefix(STATE) for name in contents.files if name.startswith(STATE))
    names.sort(key=lambda name: name == LEDGER)
    fresh = {name: _temporary_name(state / name) for name in names}
    try:
        for name, path in fresh.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _write_durably(path) as stream, (folder / STATE / name).open("rb") as file:
                shutil.copyfileobj(file, stream)
        for name, path in fresh.items():
            if name == LEDGER:  # SQLite must not apply the old ledger's write-ahead log to the new ledger
                for old in {*OWN, HEAD, CAME} - {LEDGER}:  # and the saved head is the end of the old audit log
                    (state / old).unlink(missing_ok=True)
            path.replace(state / name)
    finally:
        for path in fresh.values():
            path.unlink(missing_ok=True)
    for parent in {path.parent for path in fresh.values()}:
        sync_folder(parent)
    return names


def relocate_settings(text: str, *, vault: Path, state: Path | None) -> str | None:
    """Return a settings file's text with another vault and state folder (None: the default state folder).

    Returns None if the text can't be changed line by line."""
    lines, section = [], ""
    for line in text.splitlines():
        name = line.partition("=")[0].strip()
        if line.lstrip().startswith("["):
            section = line.strip()
        if section == "" and name == "state":
            continue
        lines.append(f"path = {toml_string(vault)}" if section == "[vault]" and name == "path" else line)
    head = [f"state = {toml_string(state)}"] if state else []
    made = "\n".join([*head, *lines]) + "\n"
    try:
        parsed = tomllib.loads(made)
    except tomllib.TOMLDecodeError:
        return None
    right = parsed.get("vault", {}).get("path") == str(vault) and parsed.get("state") == (str(state) if state else None)
    return made if right else None


def check_replaceable(state: Path, *, force: bool) -> None:
    """Raise Conflict when a state folder has a ledger, unless `force` allows its replacement."""
    if (state / LEDGER).exists() and not force:
        raise Conflict(
            f"{state} already has keys and a ledger; to replace them: --force (the old ones are kept in {free_replaced_path(state).name})"
        )


def check_target(target: Path, vault: Path) -> None:
    """Raise InvalidArgument for a target inside the vault, because a backup contains the owner's key."""
    real, root = target.parent.resolve(), vault.resolve()
    if real == root or root in real.parents:
        raise InvalidArgument(
            f"{target} is inside the vault, and the backup contains your keys: choose a file outside {vault}"
        )
    if not real.is_dir():
        raise NotFound(f"no such folder: {target.parent}; make it, or choose another folder")
