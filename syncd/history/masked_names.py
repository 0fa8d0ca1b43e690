"""Mask names that contain a secret in the audit log, because nothing can be removed from the chain later.

The real names are in the ledger beside the log, so that undo and history find their files. The owner's export, the
list and the seals contain only the masks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from syncd.history.digest_chain import Entry
from syncd.notes import secret_patterns
from syncd.state import named_values
from syncd.state.ledger import Ledger

FIELDS: Final = ("path", "id", "workspace", "name", "request")  # fields of an entry that somebody else may have chosen
_PREFIX: Final = "audit.masked "

# An entry has most of these names from the entry before, and its path was just looked up.
mask = lru_cache(maxsize=1024)(secret_patterns.mask)


class MaskedNames:
    """Holds the masks of one ledger, each with its name."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._names = named_values.read_prefixed(ledger, _PREFIX)

    def mask_entries(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return the entries with masks; new masks are on disk when this returns."""
        masked: list[Entry] = []
        new: dict[str, str] = {}
        for entry in entries:
            masked.append(_with_names(entry, mask))
            pairs = ((getattr(masked[-1], field), getattr(entry, field)) for field in FIELDS)
            new |= {shown: name for shown, name in pairs if shown != name and self._names.get(shown) != name}
        if new:
            named_values.write(self._ledger, {_PREFIX + shown: name for shown, name in new.items()})
            self._names |= new
        return masked

    def spellings(self, name: str) -> tuple[str, ...]:
        """Return all forms of `name` in entries: itself, its current mask, and masks of releases that know other secrets."""
        return tuple(dict.fromkeys((name, mask(name), *(shown for shown, real in self._names.items() if real == name))))

    def reveal(self, shown: str) -> str:
        """Return the name behind a mask; any other text stays."""
        return self._names.get(shown, shown)

    def reveal_entry(self, entry: Entry) -> Entry:
        """Return the entry with its real names."""
        return _with_names(entry, self.reveal) if self._names else entry

    def forget(self, kept: Iterable[str]) -> None:
        """Forget the masks that are not in `kept`: no entry has them any more."""
        if gone := self._names.keys() - set(kept):
            named_values.delete(self._ledger, [_PREFIX + shown for shown in gone])
            for shown in gone:
                del self._names[shown]


def _with_names(entry: Entry, change: Callable[[str], str]) -> Entry:
    changes: dict[str, Any] = {
        field: changed for field in FIELDS if (changed := change(name := getattr(entry, field))) != name
    }
    return replace(entry, **changes) if changes else entry
