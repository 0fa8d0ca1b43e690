"""Open every part of Memex on one vault in order, and hold the open parts as one typed value."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass

from index.encoders.bundled_tokenizer import count_tokens
from index.encoders.embedder import Embedder
from index.errors import Unavailable
from index.model import Document, Stat
from index.search.reranker import Reranker
from index.timings import now_ms
from syncd.captures.automatic_values import AutomaticValues
from syncd.captures.inbox import Inbox
from syncd.context.contexts import Contexts
from syncd.context.use_counts import UseCounts
from syncd.documents.parser import parse
from syncd.enrichment.enricher import Enricher
from syncd.files.file_import import file_filter
from syncd.git.repository import Repository
from syncd.graph.perspectives import Perspectives
from syncd.history.audit_log import AuditLog
from syncd.history.audited_vault import AuditedVault
from syncd.history.overwritten_bytes import OverwrittenBytes
from syncd.history.unlogged_changes import UnloggedChanges
from syncd.indexes.build_inputs import build_in_use
from syncd.indexes.index_builds import IndexBuilds, ScopeIndex
from syncd.jobs.queue import Queue
from syncd.settings.settings import Settings
from syncd.sharing.shares import Shares
from syncd.sharing.window import Window
from syncd.state.folder import LEDGER
from syncd.state.folder import claim as claim_state
from syncd.state.ledger import Ledger
from syncd.state.process_lock import ProcessLock
from syncd.state.vault_claim import VaultClaim
from syncd.sync.deep_check import DeepCheck
from syncd.sync.hand_edits import HandEdits
from syncd.sync.pipeline import Sync
from syncd.sync.shared_notes import SharedNotes
from syncd.telemetry.search_log import SearchLog
from syncd.uploads.upload_sessions import Uploads
from syncd.vault.vault import Vault
from syncd.workspaces.api_keys import ApiKeys, read_environment_keys

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenParts:
    """Holds the open parts in the order in which they were opened. `App` closes them."""

    settings: Settings
    since: int  # when it was opened, in epoch milliseconds
    lock: ProcessLock
    ledger: Ledger
    audit: AuditLog
    overwritten: OverwrittenBytes
    vault: AuditedVault
    keys: ApiKeys
    embedder: Embedder
    repo: Repository
    perspectives: Perspectives
    shares: Shares
    builds: IndexBuilds
    sync: Sync
    unlogged_changes: UnloggedChanges
    enricher: Enricher
    reranker: Reranker | None
    searches: SearchLog
    queue: Queue
    check: DeepCheck
    automatic: AutomaticValues
    contexts: Contexts

    @property
    def captures(self) -> ScopeIndex:
        """Return the index of the captures."""
        return self.builds.scopes["captures"]

    @property
    def notes(self) -> ScopeIndex:
        """Return the index of the vault's notes outside the inbox."""
        return self.builds.scopes["vault"]


def open_parts(
    settings: Settings,
    stack: ExitStack,
    *,
    embedder: Embedder | None = None,
    claim: VaultClaim | None = None,
    later: bool = False,
) -> OpenParts:
    """Open all parts; `stack` closes them.

    Raises Conflict while another process holds the state folder or the vault."""
    state, since = settings.state, now_ms()
    environment_keys = read_environment_keys(os.environ)
    lock = _lock_folders(settings, stack, claim)
    ledger = stack.enter_context(closing(Ledger.open(state / LEDGER)))
    audit = stack.enter_context(closing(AuditLog(ledger, state, reads=settings.audit.reads)))
    overwritten = OverwrittenBytes(state, days=settings.git.past_days, most=settings.git.past_mb << 20)
    vault = stack.enter_context(closing(_open_vault(settings, audit, overwritten)))
    vault.remove_leftovers()
    keys = ApiKeys(ledger, static=environment_keys)
    stack.callback(keys.flush)
    embedder = stack.enter_context(closing(embedder or _make_embedder(settings, start=not later)))
    repo = Repository(settings.vault.path)
    perspectives, shares = Perspectives(ledger), _open_shares(settings, ledger)
    builds = stack.enter_context(
        closing(IndexBuilds(state / "index", embedder, settings.index, perspectives=perspectives.of, later=later))
    )
    captures = builds.scopes["captures"]
    edits = HandEdits(ledger, audit, repo, vault)
    _notice_replaced_edits(settings, vault, edits, captures)
    sync = _build_sync(settings, vault, builds, repo, edits, shares=shares)
    unlogged_changes = _build_unlogged_changes(settings, audit, vault, captures, stack)
    enricher = stack.enter_context(closing(_make_enricher(settings, builds, embedder, ledger, keys)))
    reranker = _build_reranker(settings, stack)
    queue, check = _open_queue(settings, ledger, audit), DeepCheck(vault, builds, sync.hint, state / "deep_check.json")
    contexts = _build_contexts(settings, vault, captures, ledger)
    return OpenParts(
        settings, since, lock, ledger, audit, overwritten, vault, keys, embedder, repo, perspectives, shares, builds, sync,
        unlogged_changes, enricher, reranker, SearchLog(state, enabled=settings.search.log), queue, check, _open_automatic_values(ledger, captures), contexts,
    )  # fmt: skip


def _make_enricher(
    settings: Settings, builds: IndexBuilds, embedder: Embedder, ledger: Ledger, keys: ApiKeys
) -> Enricher:
    captures, notes = builds.scopes["captures"], builds.scopes["vault"]
    return Enricher(
        settings.enrich, captures=captures, embedder=embedder, ledger=ledger, vault=notes, is_bound=keys.is_bound
    )


def _open_automatic_values(ledger: Ledger, captures: ScopeIndex) -> AutomaticValues:
    return AutomaticValues(ledger, lambda place, note: captures.index.record(note, place) is not None)


def _lock_folders(settings: Settings, stack: ExitStack, claim: VaultClaim | None) -> ProcessLock:
    claim_state(settings.state, settings.vault.path)
    lock = ProcessLock.acquire(settings.state)
    stack.callback(lock.release)
    if claim is not None:
        stack.callback(claim.release)
        claim.require(settings.state)
    return lock


def build_inbox(
    opened: OpenParts, degraded: Callable[[str], list[str]], degraded_search: Callable[[str], list[str]]
) -> Inbox:
    """Build the inbox for the workspaces of agents.

    `degraded` and `degraded_search` return what a workspace may know."""
    settings = opened.settings
    return Inbox(
        vault=opened.vault,
        audit=opened.audit,
        captures=opened.captures,
        folder=settings.vault.inbox,
        taken=opened.sync.is_name_taken,
        now=now_ms,
        degraded=degraded,
        degraded_search=degraded_search,
        enricher=opened.enricher,
        automatic=opened.automatic,
        contexts=opened.contexts,
        queue=opened.queue,
        quiet_s=settings.sync.adopt_s,
        edited=opened.sync.edits.is_pending,
        uploads=Uploads(settings.state, opened.queue, settings.kb, vault=settings.vault.path, now=now_ms),
        collections=settings.kb.all_collections,
        window=Window(opened.builds.shared, opened.vault, opened.shares),
        keep_version=opened.overwritten.keep,
        reranker=opened.reranker,
        searches=opened.searches,
    )


def _open_vault(settings: Settings, audit: AuditLog, overwritten: OverwrittenBytes) -> AuditedVault:
    return AuditedVault(
        settings.vault.path,
        audit,
        inbox=settings.vault.inbox,
        overwritten=overwritten,
        ignore=settings.vault.ignore,
        max_bytes=settings.vault.max_bytes,
        wanted=file_filter(settings),
    )


def _open_shares(settings: Settings, ledger: Ledger) -> Shares:
    return Shares(ledger, inbox=settings.vault.inbox, never=settings.share.never)


def _build_sync(
    settings: Settings,
    vault: Vault,
    builds: IndexBuilds,
    repo: Repository,
    edits: HandEdits,
    *,
    shares: Shares,
) -> Sync:
    return Sync(
        vault,
        builds,
        repo,
        edits,
        settings.sync,
        inbox=settings.vault.inbox,
        state=settings.state,
        collections=settings.kb.all_collections,
        shared_notes=SharedNotes(
            vault, builds.shared, shares, inbox=settings.vault.inbox, collections=settings.kb.all_collections
        ),
    )


def _notice_replaced_edits(settings: Settings, vault: AuditedVault, edits: HandEdits, captures: ScopeIndex) -> None:
    """Let `edits` see the bytes that Memex replaces: a person may have changed them after the last pass."""
    inbox, collections = settings.vault.inbox, settings.kb.all_collections

    def parse_note(raw: bytes, path: str, stat: Stat) -> Document:
        return parse(raw, path, mtime_ms=stat.mtime_ms, inbox=inbox, collections=collections)

    vault.on_replace = lambda path, raw, new: edits.notice_replaced(path, raw, new, captures.index, parse_note)


def _build_unlogged_changes(
    settings: Settings, audit: AuditLog, vault: AuditedVault, captures: ScopeIndex, stack: ExitStack
) -> UnloggedChanges:
    """Build the part that logs other people's changes to captures, until the vault is closed."""
    unlogged_changes = UnloggedChanges(audit, vault, captures, inbox=settings.vault.inbox)
    stack.callback(unlogged_changes.log_hand_edits)
    audit.look = unlogged_changes.log_hand_edits
    unlogged_changes.log_unfinished()
    return unlogged_changes


def _build_contexts(settings: Settings, vault: Vault, captures: ScopeIndex, ledger: Ledger) -> Contexts:
    return Contexts(
        vault,
        captures,
        ledger,
        UseCounts(ledger),
        inbox=settings.vault.inbox,
        tokens=settings.context.tokens,
        count=count_tokens,
    )


def _open_queue(settings: Settings, ledger: Ledger, audit: AuditLog) -> Queue:
    """Open the queue, and settle the jobs that a crash interrupted."""
    queue = Queue(ledger, settings.state, settings.kb)
    try:
        queue.recover(audit.has_created)
    except Unavailable as error:  # for example a full disk: the next start tries again
        log.warning("could not settle the jobs that were running when the daemon stopped: %s", error.message)
    return queue


def _make_embedder(settings: Settings, *, start: bool) -> Embedder:
    root = settings.state / "index"
    _, inputs = build_in_use(root)
    embedder = Embedder(
        settings.embed,
        cache=settings.state / "models",
        prefer=inputs.identity if inputs else None,
        made_with=inputs.encoder if inputs else None,
        begun=IndexBuilds.read_identities(root),
    )
    if start:
        embedder.start()
    return embedder


def _build_reranker(settings: Settings, stack: ExitStack) -> Reranker | None:
    search = settings.search
    if not search.reranker:
        return None
    reranker = Reranker(
        *(search.reranker, search.rerank_pool, search.rerank_s),
        threads=settings.embed_section.threads,
        languages=search.rerank_languages,
    )
    stack.callback(reranker.close)
    return reranker
