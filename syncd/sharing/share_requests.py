"""Share requests are what the owner asks of the window: share, list, stop sharing, and preview."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from syncd.sharing.share_preview import preview_shares
from syncd.sharing.share_rules import make_entry
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
        workspace = self._workspace(arguments)
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

    def _workspace(self, arguments: Arguments) -> str:
        name = str(arguments.get("workspace") or "default")
        self.require_workspace(name)
        return name
