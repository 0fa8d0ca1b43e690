"""Track the names taken by files that are not notes, or reserved for them, so that no other file gets such a name.

Law: the link `[[report.pdf]]` keeps its target, no matter who wrote the file and where in the vault it is."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from index.errors import Unavailable
from index.names import base_name, fold
from syncd.vault.vault import Vault

FRESH_S: Final = 2.0  # how long a listing of the whole vault is reused: uploads come in bursts
_ENDING = re.compile(r"\.\w{1,10}\Z")


class OtherFileNames:
    """Holds the files of a vault that are not notes, by base name."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._lock = threading.Lock()
        self._named: dict[str, set[str]] = {}
        self._looked = float("-inf")
        self._reserved: set[str] = set()

    def find_paths(self, folded: str) -> set[str]:
        """Return the paths of files with this base name, in the form of `names.fold`."""
        if not _ENDING.search(folded):
            return set()  # then `[[name]]` means a note
        with self._lock:
            if time.monotonic() - self._looked >= FRESH_S:
                named: dict[str, set[str]] = {}
                for path in self._vault.walk_other_files():
                    named.setdefault(_folded_name(path), set()).add(path)
                self._named, self._looked = named, time.monotonic()
            paths = set(self._named.get(folded, ()))
        return {path for path in paths if self._exists(path)}

    def _exists(self, path: str) -> bool:
        """Return whether the file still exists, as far as is known."""
        try:
            return self._vault.exists(path)
        except Unavailable:
            return True

    def is_taken(self, folded: str) -> bool:
        """Return whether any file has the name."""
        return bool(self.find_paths(folded))

    def add(self, path: str) -> None:
        """Add a new file at `path`."""
        with self._lock:
            self._named.setdefault(_folded_name(path), set()).add(path)

    @contextmanager
    def reserve(self, *names: str) -> Iterator[bool]:
        """Reserve folded base names, or paths, for the caller; yields False when another caller has one of them."""
        with self._lock:
            ours = self._reserved.isdisjoint(names)
            if ours:
                self._reserved.update(names)
        try:
            yield ours
        finally:
            if ours:
                with self._lock:
                    self._reserved.difference_update(names)


def _folded_name(path: str) -> str:
    return fold(base_name(path))
