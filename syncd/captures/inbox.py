"""Hold what every workspace needs of the inbox: its files, index, queue, uploads, clock and settings.

The composition root builds it once. Law: of the vault outside the inbox, it holds only the window: the notes that the owner
shares with agents."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field

from index.errors import MemexError, NotFound
from index.model import Document
from index.search.reranker import Reranker
from syncd.captures.automatic_values import AutomaticValues
from syncd.context.contexts import Contexts
from syncd.documents.parser import parse
from syncd.enrichment.enricher import Enricher
from syncd.history.audit_log import AuditLog
from syncd.indexes.index_builds import ScopeIndex
from syncd.jobs.queue import Queue
from syncd.notes.secret_patterns import refuse_secret
from syncd.sharing.window import Window
from syncd.telemetry.search_log import SearchLog
from syncd.uploads.upload_sessions import Uploads
from syncd.vault.location import namespace_path
from syncd.vault.vault import Vault


@dataclass(frozen=True, slots=True)
class Inbox:
    """Holds the inbox's files, index, queue and uploads, and the clock."""

    vault: Vault
    audit: AuditLog
    captures: ScopeIndex
    folder: str  # its path in the vault
    taken: Callable[[str], bool]  # whether a folded base name is in use anywhere in the vault
    now: Callable[[], int]  # epoch milliseconds
    degraded: Callable[[str], list[str]]  # what is degraded now, in sentences that the given workspace may see
    degraded_search: Callable[[str], list[str]]  # the part of it that may make searches incomplete
    enricher: Enricher
    automatic: AutomaticValues  # which values of captures are automatic
    contexts: Contexts  # what agents get at the start of a session
    queue: Queue
    edited: Callable[[Document], bool]  # whether a person edited this note and its properties don't show the edit yet
    quiet_s: float  # seconds without a change after which a note counts as finished
    uploads: Uploads
    collections: tuple[str, ...]  # all known collections, the default first
    searches: SearchLog
    window: Window  # the notes of the vault that the owner shares
    keep_version: Callable[[bytes], object]  # keeps these bytes for a while, so that they are found by their SHA-256
    reranker: Reranker | None = None  # reorders search results, if one is set
    # By workspace: held while entities or memos change.
    writing: dict[str, threading.Lock] = field(default_factory=dict)
    drafted: dict[str, str] = field(default_factory=dict)  # summary drafts by request; see `SummaryDrafts`

    def namespace_folder(self, workspace: str, namespace: str, inside: str = "") -> str:
        """Return the path of a namespace's folder, or of a folder `inside` it; it need not exist.

        Raises InvalidArgument for an invalid name. Agents may read the message: it names no path."""
        names = list(filter(None, namespace_path(namespace).split("/")))
        home = folder = f"{self.folder}/{workspace}"
        shown = f"{inside} in the namespace {namespace!r}" if inside else f"the namespace {namespace!r}"
        try:
            for name in names:
                home = f"{home}/{self._spell_folder(home, name)}"
            folder = f"{home}/{inside}" if inside else home
            if not self.vault.exists(home):  # an existing namespace keeps its name
                refuse_secret("namespace", namespace)
            self.vault.check_folder(folder)
        except MemexError as error:
            words = error.message.replace(folder, shown).replace(home, f"the namespace {namespace!r}")
            raise type(error)(words, retryable=error.retryable, **error.details) from error
        return folder

    def _spell_folder(self, parent: str, name: str) -> str:
        """Return `name` in the Unicode form of the folder in `parent` that has this name; `name` itself if there is none."""
        if name.isascii() or self.vault.exists(f"{parent}/{name}"):
            return name
        try:
            form, folders = unicodedata.normalize("NFC", name), self.vault.list_folders(parent)
        except NotFound:  # a file is there; `check_folder` names it
            return name
        return next((folder for folder in folders if unicodedata.normalize("NFC", folder) == form), name)

    def parse_note(self, raw: bytes, path: str, *, mtime_ms: int) -> Document:
        """Parse a note of the inbox."""
        return parse(raw, path, mtime_ms=mtime_ms, inbox=self.folder, collections=self.collections)
