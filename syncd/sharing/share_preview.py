"""The share preview lists which notes agents of a workspace could read under given rules, and which are withheld and why.

Law, tested: it lists exactly the notes that the window would show under these rules."""

from __future__ import annotations

from index.errors import MemexError
from index.foreground import foreground
from syncd.notes.front_matter import decode
from syncd.sharing.share_property import why_withheld
from syncd.sharing.share_rules import BELOW, ShareRules
from syncd.vault.vault import Vault


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
