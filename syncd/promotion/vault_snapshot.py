"""Define the vault snapshot that a promotion works on: captures, notes, paths and settings as they are now."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from index.document_ids import sha256
from index.errors import Conflict, NotFound
from index.model import Document, Record, Stat
from syncd.captures.automatic_values import AutomaticValues, file_stem
from syncd.documents.parser import parse
from syncd.indexes import note_lookup
from syncd.indexes.index_builds import ScopeIndex
from syncd.promotion.link_updates import LinkUpdates
from syncd.settings.settings import Settings
from syncd.sync.pipeline import Sync
from syncd.vault.location import ARCHIVE, locate
from syncd.vault.vault import Vault


@dataclass(frozen=True, slots=True)
class VaultSnapshot:
    """Holds the vault, its indexes and its settings for a promotion."""

    vault: Vault
    sync: Sync
    captures: ScopeIndex
    notes: ScopeIndex
    settings: Settings
    automatic: AutomaticValues

    @property
    def inbox(self) -> str:
        """Return the path of the inbox."""
        return self.settings.vault.inbox

    def parse(self, raw: bytes, path: str, stat: Stat) -> Document:
        """Parse these bytes as the note at `path`."""
        collections = self.settings.kb.all_collections
        return parse(raw, path, mtime_ms=stat.mtime_ms, inbox=self.inbox, collections=collections)

    def workspace_of(self, path: str) -> str:
        """Return the workspace that contains a path; "" = none."""
        return locate(path, self.inbox).workspace

    def is_archived(self, path: str) -> bool:
        """Return whether a path is that of an archived capture."""
        return path.startswith(f"{self.inbox}/{ARCHIVE}/")

    def names_in(self, folder: str) -> list[str]:
        """Return the names that a new file in `folder` can't have."""
        return self.vault.list_names(folder) + self.sync.sparse_files.names_in(folder)

    def keeps_old_title(self, record: Record) -> bool:
        """Return whether Memex made the file's name from an earlier title, so that no person chose it."""
        return self.automatic.has(record.workspace, record.id, "file", file_stem(record.path))

    def find_capture(self, reference: str) -> Record:
        """Return the capture that a reference means. Raises NotFound, or InvalidArgument when several match."""
        record = note_lookup.find_note([self.captures.index], reference)
        if record is None:
            raise note_lookup.missing_note([self.captures.index], reference, "to list captures: memex recent")
        return record

    def write_links(self, updates: LinkUpdates) -> None:
        """Write link updates, except into files that somebody is just changing."""
        for path, (before, after) in updates.changes.items():
            with suppress(Conflict, NotFound):
                self.vault.replace(path, after, digest=sha256(before))
        self.sync.hint(updates.changes)
