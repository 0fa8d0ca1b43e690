"""The composition root: opens everything in order, hands each part what it needs, and closes it again.

The one file that looks both ways: it is imported by the command line, and imports the rim when it serves."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from index.embed import Embedder
from index.errors import MemexError, Unavailable
from index.memory import frugal
from syncd import roster, traces
from syncd.config import Settings
from syncd.control import ControlServer
from syncd.daemon_metrics import samples
from syncd.desk import Desk
from syncd.filing import filing, wanted
from syncd.follow import Follow
from syncd.handled import Handled
from syncd.health import Health
from syncd.jobs import Jobs
from syncd.labels import Labels
from syncd.lock import sole
from syncd.names import note as is_note
from syncd.opened import Opened, agents_tools, opened
from syncd.owner import Operation, operations
from syncd.pulse import Pulse, Vitals
from syncd.pushes import Pushes
from syncd.roster import REMOTE
from syncd.state import KEY_FILE, private
from syncd.steward import vault_services
from syncd.telemetry import Sample
from syncd.watch import Hearing, Watch

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
        self.watch: Watch | None = None  # as `traces`: while the daemon serves
        self.traces: traces.Traces | None = None
        self._sole: socket.socket | None = None
        with ExitStack() as stack:
            self.opened = opened(settings, stack, embedder=embedder)
            self._name(self.opened)
            tools = agents_tools(self.opened, lambda: self.health.degraded(("captures",)))
            self.follow = Follow(
                self.repo, settings.state, self._hint_notes, self.sync.want_listing, self._wanted, pushed=self._pushed
            )
            self.pushes = Pushes(self.ledger, settings.state, self._pushed)
            self.desk = Desk(tools, self.keys, self._status, self.pushes, self._samples)
            self.filing = filing(tools, self.sync, self.queue, Handled(self.ledger), settings)
            self.worker = roster.worker(self.opened, self.desk, tools, self.filing.handler)
            self.steward = vault_services(self.opened, self.desk, self.follow, lambda: self.jobs.stopping)
            captures = self.opened.captures
            self.labels = Labels(
                lambda name, path, found, replacing: self.desk.workspace(name).enrich(path, found, replacing=replacing),
                self.desk.workspace,
                captures,
                self.vault,
                self.enricher,
                inbox=settings.vault.inbox,
            )
            self.jobs = self._planned()
            self.health = Health(
                self.opened,
                self.desk,
                self.steward,
                follow=self.follow,
                dropped=self.filing.dropped,
                labels=self.labels,
                worker=self.worker,
                jobs=lambda: self.jobs,
                hearing=self._hearing,
                alone=self.alone,
            )
            self._closing = stack.pop_all()

    def _name(self, parts: Opened) -> None:
        """Give what is open names on the App too, for commands."""
        self.ledger, self.audit, self.past, self.vault = parts.ledger, parts.audit, parts.past, parts.vault
        self.keys, self.embedder, self.repo, self.shelf = parts.keys, parts.embedder, parts.repo, parts.shelf
        self.sync, self.witness, self.enricher = parts.sync, parts.witness, parts.enricher
        self.reranker, self.queue, self.check = parts.reranker, parts.queue, parts.check

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
        return operations(
            self.opened,
            self.desk,
            self.steward,
            self.health,
            labels=self.labels,
            worker=self.worker,
            jobs=lambda: self.jobs,
        )

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

    def _status(self, workspaces: Collection[str] | None) -> dict[str, Any]:
        return self.health.status(workspaces)

    def _planned(self) -> Jobs:
        """The jobs, once for commands and once for serving: see `background_jobs`."""
        return roster.background_jobs(
            self.opened, self.steward, uploads=self.desk.uploads, dropped=self.filing.dropped, labels=self.labels
        )

    def _samples(self) -> list[Sample]:
        return samples(self.health, self.sync, self.embedder, self.steward.commits)

    def _hearing(self) -> Hearing | None:
        """How the watcher does; None while nobody watches the vault."""
        return self.watch.hearing() if self.watch else None

    def alone(self) -> bool:
        """Whether no other daemon serves this vault, with another state folder."""
        if self._sole is None:
            with suppress(Unavailable):  # the vault is missing, and that is told
                self._sole = sole(self.vault.root)
                return self._sole is not None
        return True

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
            private(daemon, json.dumps({"url": url, "pid": os.getpid(), "epoch": self.opened.lock.epoch}))
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
        self.jobs = self._planned()
        self.jobs.start()
        running.callback(self.jobs.stop)
        self.worker.start()
        running.callback(self.worker.stop)
        running.callback(self._unclaim)
        running.callback(self.steward.remote.interrupt)
        running.callback(sync.interrupt)  # before that: a job may wait for the pass under way

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


def rim_ahead() -> None:
    """Begin to import the rim in a thread, while the index is opened."""

    def work() -> None:
        from mcp_server import server  # noqa: F401, PLC0415 - as above

    threading.Thread(target=work, name="rim-ahead", daemon=True).start()
