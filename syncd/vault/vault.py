"""Read, list and durably change the files of the vault; no path leads out of its root.

Laws, tested: no path and no link leads out of the root or into a hidden folder; an acknowledged change is on disk,
and a failed call changed nothing; absence is not deletion: only `Listing.is_gone` proves that a note was removed."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from index.document_ids import sha256
from index.errors import Conflict, InvalidArgument, MemexError, NotFound, Unavailable
from index.model import Stat
from syncd.vault import atomic_write
from syncd.vault.disk_errors import error_text, failure, open_source
from syncd.vault.listing import ANY_SIZE, AWAY, Listing, ListingWalk, Speller, Wanted, unfit_reason, want_none
from syncd.vault.openat import FOLDER, Calls, lstat, scan_folder
from syncd.vault.path_rules import (
    compile_ignore_patterns,
    is_ignored,
    is_note,
    is_temporary,
    is_utf8,
    join,
    objection,
    parent_folders,
    path_behind_placeholder,
    placeholder_path,
    to_printable,
)

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_RACES = 10  # how often an empty new folder may be removed by others
_PIECE = 1 << 20  # bytes of a large file in memory at a time
_PATIENCE = (0.0, 0.005, 0.01, 0.02, 0.04, 0.08)  # seconds before each try to read a file or folder that keeps changing
LOST = "the vault's folder is missing or was replaced; Memex changes nothing until it is back"


@dataclass(frozen=True, slots=True)
class FileDigest:
    """Holds the digest of a whole file, and its stat."""

    digest: str  # SHA-256 in hex
    stat: Stat


class Replacement(NamedTuple):
    """Describes the new data of a file whose bytes have the SHA-256 `digest`."""

    path: str
    data: bytes
    digest: str


class Vault:
    """Provides one folder of Markdown. Paths are relative to it, "/" between names, exactly as on disk."""

    def __init__(
        self,
        root: Path,
        *,
        ignore: Sequence[str] = (),
        max_bytes: int = 5_000_000,
        wanted: Wanted = want_none,
        calls: Calls | None = None,
    ) -> None:
        self.root = root
        self.max_bytes = max_bytes
        self._wanted = wanted  # which files other than notes are listed
        self._ignores = compile_ignore_patterns(ignore)
        self._calls = calls or Calls()
        self._fd = self._open_root()
        umask = os.umask(0o077)  # it can only be read by setting it; stricter for that moment
        os.umask(umask)
        self._mode = 0o666 & ~umask  # a new note has the mode that the owner's editor would give it

    def _open_root(self) -> int:
        try:
            return os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Unavailable(f"the vault at {self.root} can't be opened: {error_text(error)}") from error

    def reopen(self) -> None:
        """Use the folder that is now at the root's path; safe beside calls in other threads.

        An empty folder is refused: it may be the mount point of a missing disk."""
        fresh = self._open_root()
        try:
            if not os.listdir(fresh):  # noqa: PTH208 - of a descriptor
                raise Unavailable(f"the vault at {self.root} is empty: is its disk not mounted?")
            os.dup2(fresh, self._fd, inheritable=False)
        except OSError as error:
            raise Unavailable(f"the vault at {self.root} can't be read: {error_text(error)}") from error
        finally:
            os.close(fresh)

    def close(self) -> None:
        """Close the folder; the vault can't be used afterwards."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def is_present(self) -> bool:
        """Return whether the folder at the root's path is still the one that was opened."""
        try:
            return os.path.samestat(self.root.stat(), os.fstat(self._fd))
        except OSError:
            return False

    def can_write(self, folder: str = "") -> bool:
        """Return whether this user may create files in a folder, by its permissions and its disk; True if there is no folder."""
        try:
            if folder:
                self.check_folder(folder)
            missing = folder != "" and not self.exists(folder)
            return missing or os.access(folder or ".", os.W_OK | os.X_OK, dir_fd=self._fd)
        except (OSError, MemexError):
            return True  # a missing vault, and a file or a link in place of a folder, are reported elsewhere

    def ignores(self, path: str, *, folder: bool = False) -> bool:
        """Return whether a path is noise, or the person wants to ignore it."""
        return is_ignored(path, folder=folder) or self._ignores(path)

    def list_notes(self, under: str = "", speller: Speller | None = None) -> Listing:
        """List the notes below a folder, or the one at a path; nothing is read and no link is followed.

        If folders are moved meanwhile it lists again, because unseen notes would be neither present nor removed."""
        under = "" if under == "." else under
        if under and (objection(under, reading=True) or self.ignores(under, folder=True)):
            return Listing({}, {}, complete=True)
        for pause in _PATIENCE:
            time.sleep(pause)
            walk = ListingWalk(self._calls.open, self._fd, self.ignores, self.max_bytes, self._wanted)
            walk.visit(under, speller)
            listing = walk.to_listing(LOST if not self.is_present() else "")
            if not listing.shifted:
                break
        return listing

    def speller(self) -> Speller:
        """Return what spells many paths at this moment, and reads each folder once for all of them."""
        return Speller(self._calls.open, self._fd)

    def spell(self, path: str, speller: Speller | None = None) -> str:
        """Return `path` in the letter case that its names have on disk, where the disk ignores case; unknown names stay."""
        with suppress(OSError):
            return (speller or self.speller()).spell(path)
        return path

    def list_folders(self, under: str = "") -> list[str]:
        """Return the names of the folders directly in `under`, sorted, without hidden ones; none when it is missing."""
        if under:
            self._check_path(under, reading=True)
        with self._translate_errors(under or "."), suppress(FileNotFoundError):
            return sorted(
                entry.name
                for path, entry in scan_folder(self._calls.open, self._fd, under)
                if entry.is_dir(follow_symlinks=False) and is_utf8(path) and not self.ignores(path, folder=True)
            )
        return []

    def list_names(self, under: str = "") -> list[str]:
        """Return the names of everything directly in `under`, hidden or not; none when it is missing."""
        if under:
            self._check_path(under, reading=True)
        with self._translate_errors(under or "."), suppress(FileNotFoundError):
            return sorted(entry.name for _, entry in scan_folder(self._calls.open, self._fd, under))
        return []

    def walk_files(self, ignores: Callable[..., bool] = is_ignored) -> Iterator[str]:
        """Yield the paths of all files, even ones that are not downloaded or are ignored; unreadable folders are skipped."""
        folders = [""]
        while folders:
            with suppress(OSError):
                for named, entry in scan_folder(self._calls.open, self._fd, folders.pop()):
                    inner = entry.is_dir(follow_symlinks=False)
                    path = named if inner else path_behind_placeholder(named)
                    if not is_utf8(entry.name) or ignores(path, folder=inner):
                        continue
                    if inner:
                        folders.append(path)
                    else:
                        yield path

    def walk_other_files(self) -> Iterator[str]:
        """Return the paths of all files that are not notes; unreadable folders are skipped."""
        return (path for path in self.walk_files(self.ignores) if not is_note(path))

    # Reading

    def stat(self, path: str) -> Stat | None:
        """Return the stat of the regular file at `path`; None when there certainly is none, Unavailable when unknown."""
        if objection(path, reading=True):
            return None
        with self._translate_errors(path):
            status = self._lstat(path)
        return atomic_write.to_stat(status) if status is not None and stat.S_ISREG(status.st_mode) else None

    def exists(self, path: str) -> bool:
        """Return whether anything is at `path`, even a link or a folder. Raises Unavailable when unknown."""
        if objection(path, reading=True):
            return False
        with self._translate_errors(path):
            return self._lstat(path) is not None

    def check_folder(self, path: str) -> None:
        """Raise InvalidArgument if `path` can't be a folder because a file or a link has its name, or one above it."""
        for folder in (*parent_folders(path)[1:], path):
            with self._translate_errors(path):
                status = self._lstat(folder)
            if status is None:
                return
            if not stat.S_ISDIR(status.st_mode):
                raise InvalidArgument(f"{path} can't be a folder: a file or a link blocks the path")

    def read(self, path: str) -> tuple[bytes, Stat]:
        """Return the bytes and the stat of one state of a file, never a mix of two states."""
        self._check_path(path, reading=True)
        for pause in _PATIENCE:
            if pause:
                time.sleep(pause)
            with self._translate_errors(path), self._open_file(path) as file:
                data, was = self._read_bytes(file)
                status = self._lstat(path)
                if status is not None and atomic_write.to_stat(status) == was and len(data) == was.size:
                    return data, was
        raise Unavailable(f"{path} keeps changing while Memex reads it; Memex reads it again once it is quiet")

    def digest_file(self, path: str, into: Callable[[bytes], object] = lambda _: None) -> FileDigest:
        """Return the digest of a file of any size; its bytes go to `into` piece by piece.

        Raises Conflict when it changes."""
        self._check_path(path, reading=True)
        digest = hashlib.sha256()
        with self._translate_errors(path), self._open_file(path, most=ANY_SIZE) as file:
            was = atomic_write.to_stat(os.fstat(file))
            while piece := os.read(file, _PIECE):
                digest.update(piece)
                into(piece)
            if atomic_write.to_stat(os.fstat(file)) != was:
                raise atomic_write.FileChanged
        return FileDigest(digest.hexdigest(), was)

    @contextmanager
    def _open_file(self, path: str, *, most: int | None = None) -> Iterator[int]:
        file = self._open_regular(path, self.max_bytes if most is None else most)
        try:
            yield file
        finally:
            os.close(file)

    def _open_regular(self, path: str, most: int) -> int:
        """Open a regular file; its stat is checked first, because opening alone can block or trigger a device."""
        self._check_readable(path, self._lstat(path), most)
        file = self._calls.open(self._fd, path, _READ, 0)
        try:
            self._check_readable(path, os.fstat(file), most)
        except BaseException:
            os.close(file)
            raise
        return file

    def _check_readable(self, path: str, status: os.stat_result | None, most: int) -> None:
        if status is None:
            raise NotFound(f"there is no file at {path}")
        if reason := unfit_reason(status, most):
            raise Unavailable(f"{path} {reason}", retryable=reason == AWAY)

    def _lstat(self, path: str) -> os.stat_result | None:
        status = lstat(self._calls.open, self._fd, path)
        if status is None and lstat(self._calls.open, self._fd, placeholder_path(path)) is not None:
            raise Unavailable(f"{path} {AWAY}")
        return status

    def _read_bytes(self, file: int) -> tuple[bytes, Stat]:
        """Return the bytes of an open file, at most one more than its size, and its stat before the first byte was read."""
        was = atomic_write.to_stat(os.fstat(file))
        pieces, size, most = [], 0, min(was.size, self.max_bytes)
        while size < most and (piece := os.read(file, most + 1 - size)):  # all of it in one piece, as a rule
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces), was

    # Changing

    def create(self, path: str, data: bytes, *, again: bool = False) -> Stat:
        """Create a file, and the folders it needs; raises Conflict when the name is taken.

        `again` restores a file that existed a moment ago, so any name that the disk accepts is allowed."""
        self._check_path(path, new=not again)
        folder, _, name = path.rpartition("/")
        with self._translate_errors(path, making=True):
            return self._make_in_folder(
                folder, lambda here: atomic_write.create(self._calls, here, name, (data,), mode=self._mode)
            )

    def create_from_file(self, path: str, source: Path, digest: str, *, again: bool = False) -> Stat:
        """Create a file from `source` piece by piece; raises Conflict when the name is taken. `again`: as for `create`.

        Its SHA-256 must be `digest`; otherwise it has changed since it was read, and Conflict is raised."""
        self._check_path(path, new=not again)
        folder, _, name = path.rpartition("/")

        def copy(here: int) -> Stat:
            file.seek(0)
            return atomic_write.create(self._calls, here, name, _read_verified(file, digest), mode=self._mode)

        with open_source(source, path) as file, self._translate_errors(path, making=True):
            return self._make_in_folder(folder, copy)

    def replace(self, path: str, data: bytes, *, digest: str) -> Stat:
        """Change a file whose bytes have the SHA-256 `digest`; raises Conflict when they have another."""
        return self.replace_all([Replacement(path, data, digest)])[0]

    def replace_all(self, changes: Sequence[Replacement]) -> list[Stat]:
        """Change several files as `replace` does, all or none. Each folder is synced once."""
        files, before = list[atomic_write.OpenReplacement](), list[bytes]()
        folders, descriptors = dict[str, int](), list[int]()
        with ExitStack() as opened:
            # The last descriptor frees an old file, which takes milliseconds on a disk that is mounted with `discard`.
            opened.callback(atomic_write.run_together, os.close, descriptors)
            for path, data, digest in changes:
                self._check_path(path)
                with self._translate_errors(path):
                    descriptors.append(old := self._open_regular(path, self.max_bytes))
                    folder, _, name = path.rpartition("/")
                    if folder not in folders:
                        folders[folder], _ = opened.enter_context(self._open_parent(path))
                    raw, was = self._read_unchanged(old, digest)
                files.append(atomic_write.OpenReplacement(folders[folder], name, data, old, was, raw))
                before.append(raw)
            opened.enter_context(self._replacing(changes, before))
            with self._translate_errors(changes[0].path if len(changes) == 1 else f"one of {len(changes)} files"):
                return atomic_write.replace_all(self._calls, files)

    def _replacing(self, _changes: Sequence[Replacement], _before: Sequence[bytes]) -> AbstractContextManager[None]:
        """Return what surrounds the replacement of files, whose bytes were `_before`."""
        return nullcontext()

    def remove(self, path: str, *, digest: str) -> None:
        """Remove a file whose bytes have the SHA-256 `digest`; raises Conflict when they have another."""
        self._check_path(path)
        with self._translate_errors(path), self._open_parent(path) as (folder, name):
            with self._open_file(path) as old:
                _, was = self._read_unchanged(old, digest)
            atomic_write.remove(self._calls, folder, name, was=was)

    @contextmanager
    def removing(self, path: str, was: FileDigest) -> Iterator[None]:
        """Remove a file of any size if it is unchanged; if the block fails, restore it."""
        self._check_path(path)
        with ExitStack() as gone:
            with self._translate_errors(path):
                folder, name = gone.enter_context(self._open_parent(path))
                gone.enter_context(atomic_write.removing(self._calls, folder, name, was=was.stat))
            yield

    def remove_file(self, path: str, *, digest: str) -> None:
        """Remove a file of any size as `remove` does."""
        was = self.digest_file(path)
        if was.digest != digest:
            raise Conflict(f"{path} has changed since it was read; read it again")
        with self.removing(path, was):
            pass

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents; an existing one is fine."""
        self._check_path(path, new=True)
        with self._translate_errors(path, making=True), self._make_folders(path) as (folder, undo):
            self._calls.fsync(folder)
            undo.pop_all()

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder; raises Conflict when it is not empty."""
        self._check_path(path)
        with self._translate_errors(path), self._open_parent(path) as (folder, name):
            self._calls.rmdir(name, dir_fd=folder)
            self._calls.fsync(folder)

    def remove_empty_folders(self, path: str, *, below: str) -> None:
        """Remove the folder that contained `path`, and its parents, while they are empty; `below` itself stays."""
        folder = path.rpartition("/")[0]
        with suppress(MemexError):  # it is not empty, or somebody else has removed it
            while folder.startswith(f"{below}/"):
                self.remove_folder(folder)
                folder = folder.rpartition("/")[0]

    def remove_leftovers(self, *, older_s: float = 0) -> list[str]:
        """Remove half-written files of a crash, and return their names; while others write, only those `older_s` seconds old."""
        swept: list[str] = []
        folders = [""]
        while folders:
            folder = folders.pop()
            with suppress(OSError):  # Memex can't have left files in a folder that it can't read
                for path, entry in scan_folder(self._calls.open, self._fd, folder):
                    if entry.is_dir(follow_symlinks=False):
                        if not is_ignored(path, folder=True):
                            folders.append(path)
                    elif (
                        is_temporary(entry.name)
                        and entry.is_file(follow_symlinks=False)
                        and (not older_s or time.time() - entry.stat(follow_symlinks=False).st_ctime > older_s)
                    ):
                        with self._open_parent(path) as (here, name):
                            self._calls.unlink(name, dir_fd=here)
                        swept.append(to_printable(path))
        return sorted(swept)

    def _read_unchanged(self, file: int, digest: str) -> tuple[bytes, Stat]:
        """Return the bytes and the stat of an open file. Raises `FileChanged` if the bytes have another digest."""
        data, was = self._read_bytes(file)
        if sha256(data) != digest or atomic_write.to_stat(os.fstat(file)) != was:
            raise atomic_write.FileChanged
        return data, was

    @contextmanager
    def _open_parent(self, path: str) -> Iterator[tuple[int, str]]:
        folder, _, name = path.rpartition("/")
        here = self._calls.open(self._fd, folder or ".", FOLDER, 0)
        try:
            yield here, name
        finally:
            os.close(here)

    def _make_in_folder(self, path: str, make: Callable[[int], Stat]) -> Stat:
        """Call `make` with a folder, creating it if needed; repeat if somebody removed the empty folder."""
        for left in reversed(range(_RACES)):
            try:
                with self._make_folders(path) as (folder, undo):
                    made = make(folder)
                    undo.pop_all()
            except FileNotFoundError:
                if not left:
                    raise
            else:
                return made
        raise AssertionError

    @contextmanager
    def _make_folders(self, path: str) -> Iterator[tuple[int, ExitStack]]:
        """Open a folder, creating missing ones; they are removed again unless the caller empties the stack."""
        with ExitStack() as opened, ExitStack() as undo:
            here, done = self._fd, ""
            for part in path.split("/") if path else ():
                done = join(done, part)
                try:
                    below = self._calls.open(self._fd, done, FOLDER, 0)
                except FileNotFoundError:
                    with suppress(FileExistsError):
                        self._calls.mkdir(part, dir_fd=here)
                        undo.callback(self._remove_made_folder, here, part)
                        self._calls.fsync(here)
                    below = self._calls.open(self._fd, done, FOLDER, 0)
                opened.callback(os.close, below)
                here = below
            yield here, undo

    def _remove_made_folder(self, folder: int, name: str) -> None:
        with suppress(OSError):  # somebody else has added a file there
            self._calls.rmdir(name, dir_fd=folder)

    # Errors

    def _check_path(self, path: str, *, reading: bool = False, new: bool = False) -> None:
        reason = objection(path, reading=reading, new=new)
        if reason:
            raise InvalidArgument(f"the path {to_printable(path)!r} {reason}")

    @contextmanager
    def _translate_errors(self, path: str, *, making: bool = False) -> Iterator[None]:
        """Translate system errors into errors of the vault; a replaced root is always reported as missing."""
        if not self.is_present():
            raise Unavailable(LOST)
        try:
            yield
        except atomic_write.FileChanged as error:
            raise Conflict(f"{path} has changed since it was read; read it again") from error
        except OSError as error:
            if not self.is_present():
                raise Unavailable(LOST) from error
            raise failure(error, path, making=making) from error


def _read_verified(file: FileIO, digest: str) -> Iterator[bytes]:
    """Yield the pieces of a file, and compare its digest at the end."""
    hasher = hashlib.sha256()
    while piece := file.read(_PIECE):
        hasher.update(piece)
        yield piece
    if hasher.hexdigest() != digest:
        raise atomic_write.FileChanged
