"""Shares are what the owner shares with each workspace; the ledger keeps them.

Law, tested: a change is on disk when the call returns, and every later question is answered by the new rules."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from index.errors import NotFound, ResourceExhausted
from syncd.sharing.share_rules import MOST, ShareRules, make_entry
from syncd.state.ledger import Ledger


class Shares:
    """Manages the share rules of all workspaces; safe to use from any thread."""

    def __init__(self, ledger: Ledger, *, inbox: str, never: Sequence[str]) -> None:
        self._ledger, self._inbox, self._never = ledger, inbox, tuple(never)
        self._changing = threading.Lock()
        self.rules = self._read_rules()  # replaced as a whole by each change

    def add(self, workspace: str, paths: Sequence[str]) -> None:
        """Share these folders and notes with `workspace`. Raises InvalidArgument."""
        added = [make_entry(path) for path in paths]
        for entry in added:
            self.rules.check_entry(entry)
        with self._changing:
            if len({*self.entries_of(workspace), *added}) > MOST:
                raise ResourceExhausted(f"a workspace can have at most {MOST} shares; share a common folder instead")
            rows = ((workspace, entry) for entry in added)
            self._ledger.execute_each("INSERT OR IGNORE INTO shares VALUES (?, ?)", rows)
            self.rules = self._read_rules()

    def remove(self, workspace: str, paths: Sequence[str]) -> None:
        """Stop sharing these folders and notes with `workspace`. Raises NotFound."""
        with self._changing:
            entries = self.entries_of(workspace)
            removed = [path if path in entries else make_entry(path) for path in paths]
            if unknown := next((entry for entry in removed if entry not in entries), None):
                raise NotFound(
                    f"{unknown!r} is not shared with {workspace!r}; `memex share list` names what is, and a note in a shared "
                    "folder is withheld by its property `share: false`"
                )
            self._delete(workspace, removed)

    def clear(self, workspace: str) -> None:
        """Stop sharing anything with `workspace`."""
        with self._changing:
            if entries := self.entries_of(workspace):
                self._delete(workspace, entries)

    def entries_of(self, workspace: str) -> list[str]:
        """Return the entries of `workspace`, sorted."""
        return list(self.rules.entries.get(workspace, ()))

    def _delete(self, workspace: str, entries: Sequence[str]) -> None:
        rows = ((workspace, entry) for entry in entries)
        self._ledger.execute_each("DELETE FROM shares WHERE workspace = ? AND entry = ?", rows)
        self.rules = self._read_rules()

    def _read_rules(self) -> ShareRules:
        entries: dict[str, list[str]] = {}
        for workspace, entry in self._ledger.query("SELECT workspace, entry FROM shares ORDER BY workspace, entry"):
            entries.setdefault(workspace, []).append(entry)
        return ShareRules(self._inbox, self._never, entries)
