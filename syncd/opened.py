"""What is open while Memex works on a vault: its files, the stores beside them, the index, and who reads and writes those.

Law: nothing here runs by itself but the encoder that loads; what acts on a vault is made of this, and imports it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass

from index.embed import Embedder
from index.errors import Unavailable
from index.reader import Looks
from index.rerank import Reranker
from syncd.audit import Audit
from syncd.audited import Audited
from syncd.check import DeepCheck
from syncd.config import Settings
from syncd.edits import Edits
from syncd.enrich import Enricher
from syncd.filing import wanted
from syncd.keys import Keys
from syncd.ledger import Ledger
from syncd.lock import Lock
from syncd.past import Past
from syncd.perspectives import Perspectives
from syncd.queue import Queue
from syncd.repo import Repo
from syncd.shelf import Shelf, ShelfSettings, Slot
from syncd.state import LEDGER, claim
from syncd.sync import Sync
from syncd.tools import Tools
from syncd.uploads import Uploads
from syncd.vault import Vault
from syncd.witness import Witness

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """All of it, in the order in which it is opened. `App` closes it."""

    settings: Settings
    since: int  # when it was opened, in epoch milliseconds
    lock: Lock
    ledger: Ledger
    audit: Audit
    past: Past
    vault: Audited
    keys: Keys
    embedder: Embedder
    repo: Repo
    perspectives: Perspectives
    shelf: Shelf
    sync: Sync
    witness: Witness
    enricher: Enricher
    reranker: Reranker | None
    queue: Queue
    check: DeepCheck

    @property
    def captures(self) -> Slot:
        """Where the index of the captures is found."""
        return self.shelf.slots["captures"]

    @property
    def notes(self) -> Slot:
        """Where the index of the vault proper is found."""
        return self.shelf.slots["vault"]


def opened(settings: Settings, stack: ExitStack, *, embedder: Embedder | None = None) -> Opened:
    """Open everything, alone: Conflict while another process has the vault open. `stack` closes it again."""
    state, since = settings.state, _now()
    claim(state, settings.vault.path)
    lock = Lock.acquire(state)
    stack.callback(lock.release)
    ledger = stack.enter_context(closing(Ledger.open(state / LEDGER)))
    audit = stack.enter_context(closing(Audit(ledger, state)))
    past = Past(state, days=settings.git.past_days, most=settings.git.past_mb << 20)
    vault = stack.enter_context(closing(_vault(settings, audit, past)))
    vault.sweep()
    keys = Keys(ledger, static=_static_keys())
    stack.callback(keys.flush)
    embedder = stack.enter_context(closing(embedder or _embedder(settings)))
    repo = stack.enter_context(closing(Repo(settings.vault.path)))
    perspectives = Perspectives(ledger)
    shelf = stack.enter_context(closing(Shelf(state / "index", embedder, _shelf_settings(settings, perspectives.of))))
    captures = shelf.slots["captures"]
    edits = Edits(ledger, audit, repo, vault)
    sync = _sync(settings, vault, shelf, repo, edits)
    witness = _witness(settings, audit, vault, captures, stack)
    enricher = Enricher(settings.enrich, captures=captures, embedder=embedder, ledger=ledger)
    stack.callback(enricher.close)
    reranker = _reranker(settings, stack)
    queue = _queue(settings, ledger, audit)
    check = DeepCheck(vault, shelf, sync.hint, state / "deep_check.json")
    return Opened(
        settings, since, lock, ledger, audit, past, vault, keys, embedder, repo, perspectives, shelf, sync,
        witness, enricher, reranker, queue, check,
    )  # fmt: skip


def agents_tools(opened: Opened, degraded: Callable[[], list[str]]) -> Tools:
    """What the workspaces of agents work with. `degraded` says what does not work as it should just now."""
    settings = opened.settings
    return Tools(
        vault=opened.vault,
        audit=opened.audit,
        captures=opened.captures,
        inbox=settings.vault.inbox,
        taken=opened.sync.taken,
        now=_now,
        degraded=degraded,
        enricher=opened.enricher,
        queue=opened.queue,
        quiet_s=settings.sync.adopt_s,
        edited=opened.sync.edits.pending,
        uploads=Uploads(settings.state, opened.queue, settings.kb, vault=settings.vault.path, now=_now),
        collections=settings.kb.known,
        reranker=opened.reranker,
    )


def _now() -> int:
    return time.time_ns() // 1_000_000


def _vault(settings: Settings, audit: Audit, past: Past) -> Audited:
    return Audited(
        settings.vault.path,
        audit,
        inbox=settings.vault.inbox,
        past=past,
        ignore=settings.vault.ignore,
        max_bytes=settings.vault.max_bytes,
        wanted=wanted(settings),
    )


def _sync(settings: Settings, vault: Vault, shelf: Shelf, repo: Repo, edits: Edits) -> Sync:
    return Sync(
        vault,
        shelf,
        repo,
        edits,
        settings.sync,
        inbox=settings.vault.inbox,
        state=settings.state,
        collections=settings.kb.known,
    )


def _witness(settings: Settings, audit: Audit, vault: Audited, captures: Slot, stack: ExitStack) -> Witness:
    """Who sees what the audit log does not know of, until this is closed."""
    witness = Witness(audit, vault, captures, inbox=settings.vault.inbox)
    stack.callback(witness.look)
    audit.look = witness.look
    witness.settle()
    return witness


def _queue(settings: Settings, ledger: Ledger, audit: Audit) -> Queue:
    """The queue, in which nothing is under way any more."""
    queue = Queue(ledger, settings.state, settings.kb)
    try:
        queue.recover(audit.made)
    except Unavailable as error:  # the ledger's, whose disk is full, say: the next start finds out
        log.warning("what was under way when the daemon ended is left as it is: %s", error.message)
    return queue


def _shelf_settings(settings: Settings, perspectives: Looks) -> ShelfSettings:
    index = settings.index
    return ShelfSettings(index.uri, index.storage_options, index.chunk_tokens, index.chunk_overlap, perspectives)


def _embedder(settings: Settings) -> Embedder:
    root = settings.state / "index"
    made = Shelf.made(root)
    embedder = Embedder(
        settings.embed,
        cache=settings.state / "models",
        prefer=made.identity if made else None,
        made_with=made.encoder if made else None,
        begun=Shelf.begun(root),
    )
    embedder.start()
    return embedder


def _reranker(settings: Settings, stack: ExitStack) -> Reranker | None:
    search = settings.search
    if not search.reranker:
        return None
    reranker = Reranker(search.reranker, search.rerank_pool, search.rerank_s, threads=settings.embed_section.threads)
    stack.callback(reranker.close)
    return reranker


def _static_keys() -> dict[str, str]:
    """Keys that the environment gives, by surface."""
    named = {"mcp": os.environ.get("KB_MCP_API_KEY"), "rest": os.environ.get("KB_API_KEY")}
    return {surface: secret for surface, secret in named.items() if secret}
