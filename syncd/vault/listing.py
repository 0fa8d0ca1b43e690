"""Make a listing of the notes below a folder from stats alone, and name every file that is skipped.

Laws, tested: no file is opened and no link followed; a folder that cannot be read, a missing root and a note that is
not downloaded never look like a deletion."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from index.model import Stat
from index.names import fold
from syncd.vault.atomic_write import to_stat
from syncd.vault.disk_errors import error_text
from syncd.vault.openat import Opener, lstat, scan_folder
from syncd.vault.path_rules import (
    is_note,
    is_utf8,
    join,
    name_behind_placeholder,
    placeholder_path,
    to_printable,
)

# For the path and size of a file that is not a note: why it can't be listed, "" = it is listed, None = not wanted.
Wanted: TypeAlias = Callable[[str, int], str | None]

ANY_SIZE: Final = 1 << 63
_DATALESS = 0x40000000  # macOS SF_DATALESS: name and size are right, but reading waits for a download
_KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}
LINK = "is a link; links are not followed"
AWAY = "is not downloaded to this machine"


@dataclass(frozen=True, slots=True)
class Listing:
    """Holds the notes below a folder, and the files that were skipped."""

    files: dict[str, Stat]
    skipped: dict[str, str]  # printable path -> why it is skipped, as the rest of a sentence
    complete: bool  # False: a folder could not be read, or the root was replaced
    unread: frozenset[str] = frozenset()  # existing files and folders that can't be read now; "" = everything
    others: dict[str, Stat] = field(default_factory=dict)  # wanted files that are not notes
    shifted: bool = False  # a folder was moved meanwhile: another listing may be complete

    def is_gone(self, path: str) -> bool:
        """Return whether this listing proves that nothing exists at `path`, which must be in the listed area."""
        parents = (path[:end] for end, letter in enumerate(path) if letter == "/")
        there = path in self.files or path in self.others
        return not there and self.unread.isdisjoint(("", path, *parents))


def want_none(_path: str, _size: int) -> str | None:
    """Want no files other than notes."""
    return None


class ListingWalk:
    """Makes a listing: visits folders, and sorts their files."""

    def __init__(
        self, opened: Opener, root: int, ignores: Callable[..., bool], max_bytes: int, wanted: Wanted = want_none
    ) -> None:
        self._open, self._root, self._ignores, self._max_bytes = opened, root, ignores, max_bytes
        self._wanted = wanted
        self._files: dict[str, Stat] = {}
        self._others: dict[str, Stat] = {}
        self._skipped: dict[str, str] = {}
        self._unread: set[str] = set()
        self._complete = True
        self._shifted = False

    def visit(self, under: str, speller: Speller | None = None) -> None:
        """Visit everything below a folder, or the one file at the path."""
        speller = speller or Speller(self._open, self._root)
        folders = [under]
        try:
            if under:
                status = self._lstat(under)
                if status is not None and speller.spell(under) != under:
                    return  # the disk ignores letter case: this file or folder has another name
                if status is None or not stat.S_ISDIR(status.st_mode):
                    folders = []
                    self._classify(under, status)
        except OSError as error:
            folders = []
            self._record_unread(under, f"can't be checked: {error_text(error)}")
        while folders:
            folder = folders.pop()
            try:
                self._visit_folder(folder, folders)
            except FileNotFoundError:
                self._shifted = True
                self._record_unread(folder, "was moved during the listing")
            except OSError as error:
                self._record_unread(folder, f"can't be read, so its indexed notes are kept: {error_text(error)}")

    def to_listing(self, lost: str) -> Listing:
        """Return the listing; `lost` says why it is not valid, or ""."""
        if lost:
            self._record_unread("", lost)
        return Listing(self._files, self._skipped, self._complete, frozenset(self._unread), self._others, self._shifted)

    def _record_unread(self, folder: str, reason: str) -> None:
        self._skipped[to_printable(folder) or "."] = reason
        self._unread.add(folder)
        self._complete = False

    def _visit_folder(self, folder: str, folders: list[str]) -> None:
        for path, entry in scan_folder(self._open, self._root, folder):
            real = name_behind_placeholder(entry.name)
            if real is not None and not self._ignores(join(folder, real)):
                self._classify(join(folder, real), None)
            inner = entry.is_dir(follow_symlinks=False)
            if self._ignores(path, folder=inner):
                continue
            if inner and is_utf8(entry.name):
                folders.append(path)
            elif is_note(entry.name) or not entry.is_file(follow_symlinks=False) or self._wanted(path, 0) is not None:
                with suppress(FileNotFoundError):
                    self._classify(path, entry.stat(follow_symlinks=False))

    def _classify(self, path: str, status: os.stat_result | None) -> None:
        """Sort one path: a note, a skipped file, or nothing."""
        reason = ""
        if status is None:
            status = self._lstat(path)
            if status is None and self._lstat(placeholder_path(path)) is not None:
                reason = AWAY
        elif not is_utf8(path):
            reason = "has a name that is not UTF-8"
        if status is not None and not reason:
            if not is_note(path) and not stat.S_ISLNK(status.st_mode):
                self._classify_other(path, status)
                return
            reason = unfit_reason(status, self._max_bytes)
        if reason == AWAY:
            self._unread.add(path)
        if reason:
            self._skipped[to_printable(path)] = reason
        elif status is not None:
            self._files[path] = to_stat(status)

    def _classify_other(self, path: str, status: os.stat_result) -> None:
        """Sort a file that is not a note."""
        reason = self._wanted(path, status.st_size) if stat.S_ISREG(status.st_mode) else None
        if reason is None:
            return
        if reason := reason or unfit_reason(status, ANY_SIZE):
            self._skipped[to_printable(path)] = reason
            if reason == AWAY:
                self._unread.add(path)
        else:
            self._others[path] = to_stat(status)

    def _lstat(self, path: str) -> os.stat_result | None:
        return lstat(self._open, self._root, path)


def unfit_reason(status: os.stat_result, max_bytes: int) -> str:
    """Return why a file is not a readable note, or ""."""
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "a device")
        return LINK if stat.S_ISLNK(status.st_mode) else f"is {kind}, not a note"
    if getattr(status, "st_flags", 0) & _DATALESS:
        return AWAY
    if status.st_size > max_bytes:
        return f"is too large: {status.st_size:,} bytes; the limit is {max_bytes:,}"
    return ""


class Speller:
    """Knows the letter case that names have on disk, where the disk ignores case; reads each folder once, so use it briefly."""

    def __init__(self, opened: Opener, root: int) -> None:
        self._open, self._root = opened, root
        self._spelled = {"": ""}  # folder → as its names are on disk
        self._folders: dict[str, dict[str, list[tuple[str, int]]]] = {}  # folder → folded name → names and inodes

    def spell(self, path: str) -> str:
        """Return `path` in the letter case that its names have on disk; unknown names stay. Raises OSError."""
        parent, _, name = path.rpartition("/")
        if parent not in self._spelled:
            self._spelled[parent] = self.spell(parent)
        folder, other = self._spelled[parent], name.swapcase()
        is_alike = other != name and lstat(self._open, self._root, join(folder, other)) is not None
        return join(folder, self._spell_name(folder, name) if is_alike else name)

    def _spell_name(self, folder: str, name: str) -> str:
        if folder not in self._folders:
            self._folders[folder] = _read_names(self._open, self._root, folder)
        names = self._folders[folder].get(fold(name), [])
        if len(names) == 0 or any(there == name for there, _ in names):
            return name
        status = lstat(self._open, self._root, join(folder, name))
        return next((there for there, ino in names if status is not None and ino == status.st_ino), name)


def _read_names(opened: Opener, root: int, folder: str) -> dict[str, list[tuple[str, int]]]:
    """Return the names and inodes in a folder, by folded name."""
    names: dict[str, list[tuple[str, int]]] = {}
    for _, entry in scan_folder(opened, root, folder):
        names.setdefault(fold(entry.name), []).append((entry.name, entry.inode()))
    return names
