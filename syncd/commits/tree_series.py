"""Make the trees of successive commits from the tree below the first one and the changes of each.

With Git's commands, each tree takes an `update-index` and a `write-tree`. Law, tested: the trees are those that Git makes. Format of
a tree: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from syncd.git.repository import IndexChange
from syncd.vault.path_rules import parent_folders

_TREE: Final = b"40000"  # the mode of a folder in its parent's tree
_KINDS: Final = {0o040000: _TREE, 0o120000: b"120000", 0o160000: b"160000"}  # by the upper bits of the mode
_SHA1_HEX: Final = 40  # hex digits of an object's name; SHA-256 has more
_Entries: TypeAlias = dict[bytes, tuple[bytes, bytes]]  # name → mode, and name of the object in bytes


class TreeSeries:
    """Holds the trees of one commit, and applies the changes of later commits to them."""

    def __init__(self, trees: Mapping[str, bytes], write: Callable[[str, bytes], None], *, is_sha1: bool) -> None:
        """Begin with the trees as Git stores them, by folder; "" is the root. Folders in which nothing changes may be missing.

        `write` gets the name and the bytes of each new tree once."""
        self._write, self._written = write, set[bytes]()
        self._is_sha1, size = is_sha1, 20 if is_sha1 else 32
        self._folders = {_encode(folder): _parse(raw, size) for folder, raw in trees.items()}
        self._folders.setdefault(b"", {})

    def apply(self, changes: Mapping[str, IndexChange]) -> str:
        """Apply the changes of one commit, by path; return the name of its tree."""
        touched = {b""}
        # Removals first, so that they don't remove what a new path put in their place.
        for path, change in sorted(changes.items(), key=lambda item: (not item[1].is_removal, item[0])):
            folder, _, name = _encode(path).rpartition(b"/")
            touched |= set(map(_encode, parent_folders(path)))
            if not change.is_removal:
                self._set_file(folder, name, (change.mode.encode(), bytes.fromhex(change.blob)))
            elif self._is_file(folder, name):
                del self._folders[folder][name]
        for folder in sorted(touched - {b""}, key=lambda folder: -folder.count(b"/")):
            self._renew(folder)
        return self._make(self._folders[b""]).hex()

    def _set_file(self, folder: bytes, name: bytes, entry: tuple[bytes, bytes]) -> None:
        """Set an entry for a file; a folder of its name is dropped."""
        path = folder + b"/" + name if folder else name
        for below in [known for known in self._folders if known == path or known.startswith(path + b"/")]:
            del self._folders[below]
        self._folders.setdefault(folder, {})[name] = entry

    def _is_file(self, folder: bytes, name: bytes) -> bool:
        return self._folders.get(folder, {}).get(name, (_TREE,))[0] != _TREE

    def _renew(self, folder: bytes) -> None:
        """Write the tree of a folder into that of its parent; a folder without files is in no tree."""
        parent, _, name = folder.rpartition(b"/")
        if entries := self._folders.get(folder):
            self._folders.setdefault(parent, {})[name] = (_TREE, self._make(entries))
        elif not self._is_file(parent, name):
            self._folders.get(parent, {}).pop(name, None)

    def _make(self, entries: _Entries) -> bytes:
        # Git sorts a folder as if its name ended with a slash.
        names = sorted(entries, key=lambda name: name + b"/" if entries[name][0] == _TREE else name)
        raw = b"".join(b"%s %s\0%s" % (entries[name][0], name, entries[name][1]) for name in names)
        digest = name_object("tree", raw, is_sha1=self._is_sha1)
        if digest not in self._written:
            self._write(digest.hex(), raw)
            self._written.add(digest)
        return digest


def is_sha1(name: str) -> bool:
    """Return whether an object's name in hex is a SHA-1, and not a SHA-256."""
    return len(name) == _SHA1_HEX


def name_object(kind: str, raw: bytes, *, is_sha1: bool) -> bytes:
    """Return the name that Git gives to an object of this kind with these bytes."""
    return (hashlib.sha1 if is_sha1 else hashlib.sha256)(b"%s %d\0%s" % (kind.encode(), len(raw), raw)).digest()


def _encode(path: str) -> bytes:
    """Return a path as Git stores it."""
    return path.encode("utf-8", "surrogateescape")


def _parse(raw: bytes, size: int) -> _Entries:
    """Return the entries of a tree, with the modes that Git writes today; `size`: bytes in the name of an object."""
    entries: _Entries = {}
    at = 0
    while at < len(raw):
        space = raw.index(b" ", at)
        end = raw.index(b"\0", space)
        mode = int(raw[at:space], 8)
        file_mode = b"100755" if mode & 0o100 else b"100644"
        entries[raw[space + 1 : end]] = _KINDS.get(mode & 0o170000, file_mode), raw[end + 1 : end + 1 + size]
        at = end + 1 + size
    return entries
