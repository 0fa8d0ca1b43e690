"""Keep the index of the notes that agents may read equal to the files and the share rules: the last step of a pass.

Law: it fails closed. A note that is missing, unshared or withheld leaves this index at once, also while the removal from the
vault's own index is held back. It takes in only notes that the vault's index has just as they are, and that index lends their
vectors, so nothing is embedded here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from index.errors import MemexError
from index.model import Document, Entry, Stat
from index.scope.index import Index
from index.storage.crash_repair import StoreDamaged
from syncd.documents.parser import parse
from syncd.indexes.shared_index import SharedIndex
from syncd.notes.front_matter import decode
from syncd.sharing.share_property import why_withheld
from syncd.sharing.share_rules import ShareRules
from syncd.sharing.shares import Shares
from syncd.sync.change_plan import compare_stats, split_into_windows
from syncd.vault.listing import Listing
from syncd.vault.vault import Vault

log = logging.getLogger(__name__)

REMOVED: Final = 1_000  # notes that are removed in one commit


class SharedNotes:
    """Brings the shared index up to date with what a pass has listed."""

    def __init__(
        self, vault: Vault, shared: SharedIndex, shares: Shares, *, inbox: str, collections: Sequence[str]
    ) -> None:
        self._vault, self._shared, self._shares = vault, shared, shares
        self._parse = partial(parse, inbox=inbox, collections=collections)
        self._withheld: dict[str, Stat] = {}  # notes that their properties withhold, so that no pass reads them again

    def update(
        self, vault_index: Index, listing: Listing, under: Collection[str] | None, *, stopped: Callable[[], bool]
    ) -> None:
        """Take in and remove the notes of `listing`; `under` as in a pass. `vault_index` is the vault's own index.

        If the shared index fails, it is removed, and a later pass fills a new one: the vault's own index is not affected."""
        rules = self._shares.rules
        try:
            if not rules.is_empty:
                self._compare_and_index(vault_index, listing, under, rules, stopped)
            elif under is None:
                self._withheld.clear()
                self._shared.discard()
        except (MemexError, StoreDamaged, OSError) as error:
            log.warning("the index of shared notes failed and is filled again: %s", error)
            self._shared.discard()

    def _compare_and_index(
        self,
        vault_index: Index,
        listing: Listing,
        under: Collection[str] | None,
        rules: ShareRules,
        stopped: Callable[[], bool],
    ) -> None:
        files = {path: stat for path, stat in listing.files.items() if rules.shares_with_any(path)}
        with self._shared.write() as index:
            entries = index.entries(under)
            comparison = compare_stats(files, entries, under=under, embedded=vault_index.can_embed)
            missing = [path for path in comparison.missing if not rules.shares_with_any(path) or listing.is_gone(path)]
            self._remove(index, missing)
        if under is None:
            self._withheld = {path: stat for path, stat in self._withheld.items() if files.get(path) == stat}
        suspects = [
            path for path in comparison.suspects if under is not None or self._withheld.get(path) != files[path]
        ]
        suspects += sorted(_find_rewritten(entries.keys() & files.keys() - set(suspects), entries, vault_index))
        for window in split_into_windows(suspects, [files[path].size for path in suspects]):
            if stopped() or not self._take_in(index, vault_index, window):
                return
        if under is None and listing.complete:
            self._shared.mark_complete(index)

    def _take_in(self, index: Index, vault_index: Index, window: Sequence[str]) -> bool:
        """Index these notes again, and remove those that are withheld; return False if the index was removed meanwhile."""
        documents, withheld = self._read_notes(vault_index, window)
        with self._shared.write() as current:
            if current is not index:
                return False
            self._remove(index, withheld)
            rules = self._shares.rules  # they may have changed since the files were listed
            shared = [pair for pair in documents if rules.shares_with_any(pair[0].path)]
            ready = index.prepare(shared, later=True, lent=vault_index.passage_vectors)
            index.commit(ready, fresh=self._vault.stat)
            return True

    def _read_notes(self, vault_index: Index, window: Iterable[str]) -> tuple[list[tuple[Document, Stat]], list[str]]:
        """Read these notes; return the documents that `vault_index` has too, and the paths of withheld notes."""
        documents, withheld = [], []
        for path in window:
            with suppress(MemexError):  # the pass over the vault's own index has reported it, and tries again
                raw, stat = self._vault.read(path)
                entry = vault_index.manifest.get(path)
                if why_withheld(decode(raw)):
                    withheld.append(path)
                    self._withheld[path] = stat
                    continue
                document = self._parse(raw, path, mtime_ms=stat.mtime_ms)
                if entry is not None and entry.digest == document.digest:
                    documents.append((document, stat))
        return documents, withheld

    def _remove(self, index: Index, paths: Iterable[str]) -> None:
        gone = [path for path in paths if path in index.manifest]
        if gone:
            self._shared.mark_remains()
        for start in range(0, len(gone), REMOVED):
            index.commit([], gone[start : start + REMOVED])


def _find_rewritten(paths: Iterable[str], entries: Mapping[str, Entry], vault_index: Index) -> Iterator[str]:
    """Yield the notes whose change left their stat as it was, and which the vault's own index has as they are now."""
    for path in paths:
        entry = vault_index.manifest.get(path)
        if entry is not None and entry.digest != entries[path].digest:
            yield path
