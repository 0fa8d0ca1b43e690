"""Share rules decide from a note's path alone which workspaces may read a note of the vault.

Laws, tested: without an entry nothing is shared; no entry shares what `share.never` or the inbox covers; the entries of one
workspace share nothing with another one; and an additional pattern in `share.never` never shares more."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from index.errors import InvalidArgument
from index.names import fold
from syncd.vault.path_rules import compile_ignore_patterns, is_below, is_note, objection

BELOW: Final = "/**"  # the end of an entry for a folder: everything below it
MOST: Final = 200  # entries of one workspace


def make_entry(text: str) -> str:
    """Return the entry for `text`: a note's path, or a folder followed by `/**`. Raises InvalidArgument.

    `References`, `References/` and `References/**` mean the same folder."""
    path = unicodedata.normalize("NFC", text.strip())
    folder = not is_note(path)
    path = path.removesuffix(BELOW).rstrip("/")
    if path in ("", "*", "**"):
        raise InvalidArgument("name a folder or a note: the whole vault can't be shared at once", field="path")
    if "*" in path or "?" in path:
        raise InvalidArgument(
            f"{path[:200]!r} is not one folder or note: the only wildcard of a share is {BELOW} after a folder",
            field="path",
        )
    if reason := objection(path):
        raise InvalidArgument(f"{path[:200]!r} can't be shared: the path {reason}", field="path")
    return f"{path}{BELOW}" if folder else path


@dataclass(frozen=True, slots=True)
class ShareRules:
    """Holds what each workspace may read. `never` has patterns like those of `vault.ignore`; letter case does not count there."""

    inbox: str
    never: tuple[str, ...] = ()
    # Of each workspace, as `make_entry` returns them.
    entries: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _folders: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)
    _notes: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)
    _is_never: Callable[[str], bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Sort the entries by kind, so that a path is checked in time that does not depend on their number."""
        folders, notes = dict[str, frozenset[str]](), dict[str, frozenset[str]]()
        for workspace, entries in self.entries.items():
            folders[workspace] = frozenset(entry.removesuffix(BELOW) for entry in entries if entry.endswith(BELOW))
            notes[workspace] = frozenset(entry for entry in entries if not entry.endswith(BELOW))
        object.__setattr__(self, "_folders", folders)
        object.__setattr__(self, "_notes", notes)
        never = [fold(pattern) for pattern in self.never]
        object.__setattr__(self, "_is_never", compile_ignore_patterns(never))

    @property
    def is_empty(self) -> bool:
        """Return whether no workspace may read anything."""
        return not any(self.entries.values())

    def is_open(self, workspace: str) -> bool:
        """Return whether the owner shares anything with this workspace."""
        return bool(self.entries.get(workspace))

    def shares(self, path: str, workspace: str) -> bool:
        """Return whether agents of `workspace` may read the note at `path`, unless a property of the note forbids it."""
        return self._has_entry(path, workspace) and not self.why_excluded(path)

    def shares_with_any(self, path: str) -> bool:
        """Return whether agents of any workspace may read the note at `path`, unless a property of the note forbids it."""
        return any(self._has_entry(path, workspace) for workspace in self.entries) and not self.why_excluded(path)

    def why_excluded(self, path: str) -> str:
        """Return why no entry can share `path`; "" if one can."""
        key = fold(path)
        if is_below(key, {fold(self.inbox)}):
            return "it lies in the inbox"
        if self._is_never(key) or self._is_never(key.removesuffix(".md")):  # `Private` means the note Private.md too
            return "share.never covers it"
        return f"its path {reason}" if (reason := objection(path)) else ""

    def check_entry(self, entry: str) -> None:
        """Raise InvalidArgument if an entry would share nothing, now or later."""
        if reason := self.why_excluded(entry.removesuffix(BELOW)):
            raise InvalidArgument(f"{entry!r} can't be shared: {reason}", field="path")

    def _has_entry(self, path: str, workspace: str) -> bool:
        plain = unicodedata.normalize("NFC", path)
        if not is_note(plain):
            return False
        return plain in self._notes.get(workspace, ()) or is_below(plain, self._folders.get(workspace, frozenset()))
