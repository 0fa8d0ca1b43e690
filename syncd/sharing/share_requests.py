"""Share requests are what the owner asks of the window: share, list, stop sharing, and preview.

Law, tested: a preview lists exactly the notes that the window would show under the given rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from index.errors import MemexError
from index.foreground import foreground
from syncd.notes.front_matter import decode
from syncd.sharing.share_property import why_withheld
from syncd.sharing.share_rules import BELOW, ShareRules, make_entry
from syncd.sharing.shares import Shares
from syncd.vault.vault import Vault

Arguments: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ShareRequests:
    """Carries out the commands `memex share …`; no route and no tool leads to them."""

    shares: Shares
    vault: Vault
    workspaces: Callable[[], list[str]]
    require_workspace: Callable[[str], object]  # raises NotFound
    widened: Callable[[], object]  # called after more is shared
    narrowed: Callable[[], object]  # called after less is shared; when it returns, nothing of it is stored

    def operations(self) -> dict[str, Callable[[Arguments, Any], Any]]:
        """Return the owner's operations on shares, by name."""
        return {
            "share.add": lambda arguments, _: self.add(arguments),
            "share.remove": lambda arguments, _: self.remove(arguments),
            "share.list": lambda arguments, _: self.list(arguments),
            "share.preview": lambda arguments, _: self.preview(arguments),
        }

    def add(self, arguments: Arguments) -> dict[str, Any]:
        """Share folders and notes with a workspace, and return what its agents can read now."""
        workspace = str(arguments.get("workspace") or "default")
        self.require_workspace(workspace)
        self.shares.add(workspace, arguments["paths"])
        self.widened()
        return self._preview(workspace, [])

    def remove(self, arguments: Arguments) -> dict[str, Any]:
        """Stop sharing folders and notes with a workspace, and return what its agents can still read."""
        workspace = arguments.get("workspace") or "default"
        self.shares.remove(workspace, arguments["paths"])
        self.narrowed()
        return self._preview(workspace, [])

    def list(self, arguments: Arguments) -> list[dict[str, Any]]:
        """Return the shares of one workspace, or of all."""
        named = arguments.get("workspace")
        if named is not None and not self.shares.entries_of(named):  # shares outlive a workspace that was deleted
            self.require_workspace(named)
        every = sorted({*self.workspaces(), *self.shares.rules.entries}) if named is None else [named]
        return [{"workspace": name, "entries": entries} for name in every if (entries := self.shares.entries_of(name))]

    def preview(self, arguments: Arguments) -> dict[str, Any]:
        """Return what agents of a workspace can read or, with paths, what they could also read if these were shared."""
        workspace = arguments.get("workspace") or "default"
        added = sorted({make_entry(path) for path in arguments.get("paths") or ()})
        if added or not self.shares.entries_of(workspace):
            self.require_workspace(workspace)
        known = self.shares.entries_of(workspace)  # they may be excluded since they were shared
        for entry in set(added).difference(known):
            self.shares.rules.check_entry(entry)
        return self._preview(workspace, added)

    def _preview(self, workspace: str, added: Sequence[str]) -> dict[str, Any]:
        rules, entries = self.shares.rules, self.shares.entries_of(workspace)
        proposed = replace(rules, entries={**rules.entries, workspace: added or entries})
        shared, withheld = preview_shares(self.vault, proposed, workspace)
        return {"workspace": workspace, "entries": added or entries, "shared": shared, "withheld": withheld}


def preview_shares(vault: Vault, rules: ShareRules, workspace: str) -> tuple[list[str], dict[str, str]]:
    """Read the notes that `rules` share with `workspace`; return the paths that agents could read, and why others are withheld."""
    shared, withheld = [], dict[str, str]()
    for path in _list_paths(vault, rules, workspace, withheld):
        foreground.pace()
        try:
            reason = why_withheld(decode(vault.read(path)[0]))
        except MemexError as error:
            reason = error.message
        if reason:
            withheld[path] = reason
        else:
            shared.append(path)
    return shared, dict(sorted(withheld.items()))


def _list_paths(vault: Vault, rules: ShareRules, workspace: str, withheld: dict[str, str]) -> list[str]:
    """Return the paths that the entries of `workspace` share, sorted; notes that can't be indexed are `withheld`."""
    paths = set()
    for entry in rules.entries.get(workspace, ()):
        listing = vault.list_notes(entry.removesuffix(BELOW))
        paths |= {path for path in listing.files if rules.shares(path, workspace)}
        withheld |= {path: reason for path in listing.files if (reason := rules.why_excluded(path))}
        withheld |= {path: f"it {reason}" for path, reason in listing.skipped.items()}
    return sorted(paths)
