"""The composition root: opens everything in order, hands each part what it needs, and closes it again.

The one file that looks both ways: it is imported by the command line, and imports the rim when it serves."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from index.embed import Embedder
from index.errors import MemexError, Unavailable
from index.memory import frugal
from index.model import Record
from index.reader import Looks
from index.rerank import Reranker
from syncd import roster, traces
from syncd.audit import Audit
from syncd.audited import Audited
from syncd.check import DeepCheck
from syncd.config import Settings
from syncd.control import ControlServer
from syncd.desk import Desk
from syncd.edits import Edits
from syncd.enrich import Enricher
from syncd.filing import filing, wanted
from syncd.follow import Follow
from syncd.handled import Handled
from syncd.health import Health
from syncd.keys import Keys
from syncd.labels import Labels
from syncd.ledger import Ledger
from syncd.lock import Lock, sole
from syncd.names import note as is_note
from syncd.note import decode, split
from syncd.owner import Operation, operations
from syncd.past import Past
from syncd.perspectives import Perspectives
from syncd.pulse import Pulse, Vitals
from syncd.pushes import Pushes
from syncd.queue import Queue
from syncd.repo import Repo
from syncd.roster import REMOTE
from syncd.shelf import Shelf, ShelfSettings
from syncd.state import KEY_FILE, LEDGER, claim, private
from syncd.steward import steward
from syncd.sync import Sync
from syncd.telemetry import samples
from syncd.tools import Tools
from syncd.uploads import Uploads
from syncd.watch import Watch
from syncd.witness import Witness

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ready:
    """A daemon whose port is bound. `first_listing` waits until the vault has been indexed once."""

    url: str
    vault: Path
    state: Path
    key_file: Path
    first_listing: Callable[[float | None], bool]


class App:
    """Everything that is open while Memex works on a vault, in the daemon or for one command."""

    def __init__(self, settings: Settings, *, embedder: Embedder | None = None) -> None:
        frugal()  # before threads are started
        self.settings = settings
        self.since = time.time_ns() // 1_000_000
        state = settings.state
        claim(state, settings.vault.path)
        with ExitStack() as opened:
            self.lock = Lock.acquire(state)
            opened.callback(self.lock.release)
            self.ledger = Ledger.open(state / LEDGER)
            opened.callback(self.ledger.close)
            self.audit = Audit(self.ledger, state)
            opened.callback(self.audit.close)
            own = settings.vault
            self.past = Past(state, days=settings.git.past_days, most=settings.git.past_mb << 20)
            self.vault = Audited(
                own.path,
                self.audit,
                inbox=own.inbox,
                past=self.past,
                ignore=own.ignore,
                max_bytes=own.max_bytes,
                wanted=wanted(settings),
            )
            opened.callback(self.vault.close)
            self.vault.sweep()
            self.keys = Keys(self.ledger, static=_static_keys())
            opened.callback(self.keys.flush)
            self.embedder = embedder or _embedder(settings)
            opened.callback(self.embedder.close)
            self.repo = Repo(settings.vault.path)
            opened.callback(self.repo.close)
            self.perspectives = Perspectives(self.ledger)
            self.shelf = Shelf(state / "index", self.embedder, _shelf_settings(settings, self.perspectives.of))
            opened.callback(self.shelf.close)
            self.sync = Sync(
                self.vault,
                self.shelf,
                self.repo,
                Edits(self.ledger, self.audit, self.repo, self.vault),
                settings.sync,
                inbox=settings.vault.inbox,
                state=state,
                collections=settings.kb.known,
            )
            captures = self.shelf.slots["captures"]
            self.witness = self._witnessing(opened)
            self.enricher = Enricher(settings.enrich, captures=captures, embedder=self.embedder, ledger=self.ledger)
            opened.callback(self.enricher.close)
            self.reranker = _reranker(settings, opened)
            self.queue = self._queued()
            self.check = DeepCheck(self.vault, self.shelf, self.sync.hint, state / "deep_check.json")
            self.health = Health(self)
            tools = Tools(
                vault=self.vault,
                audit=self.audit,
                captures=captures,
                inbox=settings.vault.inbox,
                taken=self.sync.taken,
                now=_now,
                degraded=partial(self.health.degraded, ("captures",)),
                enricher=self.enricher,
                queue=self.queue,
                quiet_s=settings.sync.adopt_s,
                edited=self.sync.edits.pending,
                uploads=Uploads(state, self.queue, settings.kb, vault=own.path, now=_now),
                collections=settings.kb.known,
                reranker=self.reranker,
            )
            self.follow = Follow(
                self.repo, state, self._hint_notes, self.sync.want_listing, self._wanted, pushed=self._pushed
            )
            self.pushes = Pushes(self.ledger, state, self._pushed)
            self.desk = Desk(tools, self.keys, self.health.status, self.pushes, partial(samples, self))
            self.filing = filing(tools, self.sync, self.queue, Handled(self.ledger), settings)
            self.worker = roster.worker(self, tools)
            self.steward = steward(self)
            self.labels = Labels(
                lambda name, path, found, replacing: self.desk.workspace(name).enrich(path, found, replacing=replacing),
                self.desk.workspace,
                captures,
                self.vault,
                self.enricher,
                inbox=settings.vault.inbox,
            )
            self.watch: Watch | None = None
            self.traces: traces.Traces | None = None
            self.jobs = roster.jobs(self)
            self._sole: socket.socket | None = None
            self._closing = opened.pop_all()

    @classmethod
    def open(cls, settings: Settings) -> App:
        """Open everything, alone: a second one is refused with CONFLICT while this one lives."""
        return cls(settings)

    def close(self) -> None:
        """Finish what was accepted and release everything."""
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def operations(self) -> dict[str, Operation]:
        """What the owner may ask for, by name."""
        return operations(self)

    def _wanted(self, path: str) -> bool:
        """Whether a change of this file is to be looked at."""
        return is_note(path) or wanted(self.settings)(path, 0) is not None

    def _hint_notes(self, paths: Iterable[str]) -> None:
        self.sync.hint(path for path in paths if not self.vault.ignores(path))

    def _pushed(self) -> None:
        """The remote was pushed to."""
        self.steward.remote.rung()
        with suppress(MemexError):  # none is scheduled, or the daemon stops
            self.jobs.run(REMOTE, wait=False)

    def alone(self) -> bool:
        """Whether no other daemon serves this vault, with another state folder."""
        if self._sole is None:
            with suppress(Unavailable):  # the vault is missing, and that is told
                self._sole = sole(self.vault.root)
                return self._sole is not None
        return True

    def text_of(self, record: Record) -> str:
        """The body of any note of the vault; for its owner only."""
        raw, _ = self.vault.read(record.path)
        return split(decode(raw))[1].encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    # Serving

    def serve(
        self, on_ready: Callable[[Ready], None], stop: threading.Event | None = None, pulse: Pulse | None = None
    ) -> None:
        """Be the daemon until SIGTERM, SIGINT or `stop`: watch, index, answer. Returns when all of it has been put away.

        `pulse` is told once requests are answered, and how to tell that all is well."""
        from mcp_server.server import installed, serve  # noqa: PLC0415 - the rim is imported only where it is served

        state = self.settings.state
        daemon = state / "daemon.json"

        def bound(url: str) -> None:
            private(daemon, json.dumps({"url": url, "pid": os.getpid(), "epoch": self.lock.epoch}))
            log.debug("serving %s at %s", self.vault.root, url)
            if pulse is not None:
                pulse.serving(self._vitals(asyncio.get_running_loop()))  # the server says this on its loop
            on_ready(Ready(url, self.vault.root, state, state / KEY_FILE, self.sync.ready.wait))

        with ExitStack() as running:
            running.callback(lambda: daemon.unlink(missing_ok=True))
            self._start(running)
            self.traces = traces.opened(self.settings.telemetry, os.environ, version=installed())
            if self.traces:
                running.callback(self.traces.close)
            serve(self.desk, self.settings, on_bound=bound, stop=stop, traces=self.traces)

    def _start(self, running: ExitStack) -> None:
        sync = self.sync
        control = ControlServer(self.settings.state, self.operations)
        control.start()
        running.callback(control.stop)
        # The watcher first: what changes while the first listing runs is then a hint, not a gap.
        self.watch = Watch(
            self.vault.root,
            sync.hint,
            lambda _: sync.want_listing(),
            ignored=self.vault.ignores,
            mode=self.settings.watch.mode,
            poll_s=self.settings.watch.poll_s,
            wanted=self._wanted,
        )
        self.watch.start()
        if not self.alone():
            log.warning("another Memex works on this vault with another state folder; stop one of the two")
        running.callback(self.watch.stop)
        if self.reranker:
            self.reranker.start()
        self.follow.start()
        running.callback(self.follow.stop)
        running.callback(self.steward.commits.stop)  # once nothing is written any more
        sync.start()
        running.callback(sync.stop)
        self.jobs = roster.jobs(self)
        self.jobs.start()
        running.callback(self.jobs.stop)
        self.worker.start()
        running.callback(self.worker.stop)
        running.callback(self._unclaim)
        running.callback(self.steward.remote.interrupt)
        running.callback(sync.interrupt)  # before that: a job may wait for the pass under way

    def _witnessing(self, opened: ExitStack) -> Witness:
        """Who sees what the audit log does not know of, until this is closed."""
        captures, inbox = self.shelf.slots["captures"], self.settings.vault.inbox
        witness = Witness(self.audit, self.vault, captures, inbox=inbox)
        opened.callback(witness.look)
        self.audit.look = witness.look
        witness.settle()
        return witness

    def _queued(self) -> Queue:
        """The queue, in which nothing is under way any more."""
        queue = Queue(self.ledger, self.settings.state, self.settings.kb)
        try:
            queue.recover(self.audit.made)
        except Unavailable as error:  # the ledger's, whose disk is full, say: the next start finds out
            log.warning("what was under way when the daemon ended is left as it is: %s", error.message)
        return queue

    def _vitals(self, loop: asyncio.AbstractEventLoop) -> Vitals:
        watch, sync = self.watch, self.sync
        return Vitals(
            loop,
            readable=self.vault.present,
            watched=lambda: watch is None or watch.supervised,
            still_s=lambda: sync.still_s,
            doing=self.health.doing,
            busy=lambda: sync.progress is not None,
        )

    def _unclaim(self) -> None:
        if self._sole is not None:
            self._sole.close()
            self._sole = None


def _now() -> int:
    return time.time_ns() // 1_000_000


def _shelf_settings(settings: Settings, perspectives: Looks) -> ShelfSettings:
    own = settings.index
    return ShelfSettings(own.uri, own.storage_options, own.chunk_tokens, own.chunk_overlap, perspectives)


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


def _reranker(settings: Settings, opened: ExitStack) -> Reranker | None:
    own = settings.search
    if not own.reranker:
        return None
    reranker = Reranker(own.reranker, own.rerank_pool, own.rerank_s, threads=settings.embed_section.threads)
    opened.callback(reranker.close)
    return reranker


def _static_keys() -> dict[str, str]:
    """Keys that the environment gives, by surface."""
    named = {"mcp": os.environ.get("KB_MCP_API_KEY"), "rest": os.environ.get("KB_API_KEY")}
    return {surface: secret for surface, secret in named.items() if secret}


def rim_ahead() -> None:
    """Begin to import the rim in a thread, while the index is opened."""

    def work() -> None:
        from mcp_server import server  # noqa: F401, PLC0415 - as above

    threading.Thread(target=work, name="rim-ahead", daemon=True).start()
