"""Build the app from its open parts, serve it, and close it again.

This is the composition root: the command line imports it, and it imports `mcp_server` when it serves. Apart from
`stdio.py`, no other module of `syncd` imports `mcp_server`."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from index.deferred_models import defer_models
from index.encoders.embedder import Embedder
from index.errors import MemexError
from index.foreground import shorten_turns
from index.process_memory import collect_as_usual, freeze_objects, limit_arenas
from syncd.daemon import background_jobs
from syncd.daemon.background_jobs import REMOTE
from syncd.daemon.control_socket import ControlServer, Operation
from syncd.daemon.health import Health
from syncd.daemon.metrics import collect_samples
from syncd.daemon.open_parts import build_inbox, open_parts
from syncd.daemon.service_watchdog import ServiceWatchdog, Supervisor, VitalSigns
from syncd.daemon.vault_services import build_services
from syncd.enrichment.backfill import Backfill
from syncd.files.file_import import build_file_import, file_filter
from syncd.files.imported_files import ImportedFiles
from syncd.git.head_follower import HeadFollower
from syncd.jobs.scheduler import Scheduler
from syncd.owner.operations import operations
from syncd.remote.push_webhook import PushWebhook
from syncd.settings.settings import Settings
from syncd.state.folder import KEY_FILE, write_private
from syncd.state.vault_claim import VaultClaim
from syncd.telemetry import request_traces
from syncd.telemetry.log import flush
from syncd.telemetry.metric_samples import HistogramSample, Sample
from syncd.vault.path_rules import is_note
from syncd.version import installed
from syncd.watch.watcher import Watcher, WatcherState
from syncd.workspaces.agent_access import AgentAccess

log = logging.getLogger(__name__)

LOCK_S = 2.0  # seconds between two checks whether another process has taken over the state folder
SETTLED_S = 20.0  # seconds after a start by which all modules are loaded and the first questions are answered


@dataclass(frozen=True, slots=True)
class Ready:
    """Describes a daemon whose port is bound. `first_listing` waits until the vault has been indexed once."""

    url: str
    state: Path
    key_file: Path
    first_listing: Callable[[float | None], bool]


class App:
    """Holds everything that is open while Memex works on a vault, in the daemon or for one command.

    Raises Conflict while another process holds this state folder. With `alone`, for serving, another daemon on the vault with
    a different state folder is a Conflict too. With `later`, the encoder and the index are opened at their first use."""

    def __init__(
        self, settings: Settings, *, embedder: Embedder | None = None, alone: bool = False, later: bool = False
    ) -> None:
        limit_arenas()  # before any thread starts
        self.settings, self.later = settings, later
        self.claim = VaultClaim(settings.vault.path)
        self.watch: Watcher | None = None  # like `traces`, set while the daemon serves
        self.traces: request_traces.Traces | None = None
        with ExitStack() as stack:
            claim = self.claim if alone else None
            parts = self.opened = open_parts(settings, stack, embedder=embedder, claim=claim, later=later)
            inbox = build_inbox(
                parts,
                lambda workspace: self.health.degraded((workspace,)),
                lambda workspace: self.health.degraded_search((workspace,)),
            )
            self.head_follower = HeadFollower(
                parts.repo,
                settings.state,
                self._hint_notes,
                parts.sync.request_listing,
                self._is_wanted,
                pushed=self._on_push,
            )
            self.push_webhook = PushWebhook(self.opened.ledger, settings.state, self._on_push)
            self.agent_access = AgentAccess(inbox, parts.keys, self._status, self.push_webhook, self._metric_samples)
            self.file_import = build_file_import(inbox, parts.sync, parts.queue, ImportedFiles(parts.ledger), settings)
            self.worker = background_jobs.build_worker(self.opened, self.agent_access, inbox, self.file_import.handler)
            self.services = build_services(parts, self.agent_access, self.head_follower, lambda: self.jobs.stopping)
            self.backfill = self._build_backfill()
            self.jobs = self._build_jobs()
            self.health = self._build_health()
            self._closing = stack.pop_all()

    def _build_health(self) -> Health:
        return Health(
            self.opened,
            self.agent_access,
            self.services,
            head_follower=self.head_follower,
            files=self.file_import,
            backfill=self.backfill,
            worker=self.worker,
            jobs=lambda: self.jobs,
            watcher_state=self._watcher_state,
            other_daemon=self.claim.other_holder,
        )

    def _build_backfill(self) -> Backfill:
        access = self.agent_access
        return Backfill(
            lambda document, enrichment, replacing: access.workspace(document.workspace).enrich(
                document, enrichment, replacing=replacing
            ),
            access.workspace,
            self.opened.captures,
            self.opened.vault,
            self.opened.enricher,
            inbox=self.settings.vault.inbox,
            summed=self.opened.automatic.notes_with_summary,
            record_summary=self.opened.automatic.record_summary,
        )

    def close(self) -> None:
        """Finish accepted work and release everything."""
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def operations(self) -> dict[str, Operation]:
        """Return the owner's operations by name."""
        return operations(
            self.opened,
            self.agent_access,
            self.services,
            self.health,
            backfill=self.backfill,
            worker=self.worker,
            jobs=lambda: self.jobs,
        )

    @property
    def commands(self) -> dict[str, Operation]:
        """Return the operations of the control socket: the owner's, and those that only a serving process has."""
        return self.operations | {"stop": _stop_this_process}

    def _is_wanted(self, path: str) -> bool:
        """Return whether changes of this file matter."""
        return is_note(path) or file_filter(self.settings)(path, 0) is not None

    def _hint_notes(self, paths: Iterable[str]) -> None:
        self.opened.sync.hint(path for path in paths if not self.opened.vault.ignores(path))

    def _on_push(self) -> None:
        """React to a push to the remote."""
        self.services.remote.notify_push()
        with suppress(MemexError):  # the job is not scheduled, or the daemon is stopping
            self.jobs.run(REMOTE, wait=False)

    def _status(self, workspaces: Collection[str] | None) -> dict[str, Any]:
        return self.health.status(workspaces)

    def _build_jobs(self) -> Scheduler:
        """Build the jobs, once for commands and once for serving: see `background_jobs`."""
        return background_jobs.build_scheduler(
            self.opened,
            self.services,
            uploads=self.agent_access.uploads,
            dropped=self.file_import.dropped,
            backfill=self.backfill,
        )

    def _metric_samples(self) -> list[Sample | HistogramSample]:
        return collect_samples(self.health, self.opened.sync, self.opened.embedder, self.services.commits)

    def _watcher_state(self) -> WatcherState | None:
        """Return the state of the watcher; None while the vault is not watched."""
        return self.watch.status() if self.watch else None

    # Serving

    def serve(
        self,
        on_ready: Callable[[Ready], None],
        stop: threading.Event,
        watchdog: ServiceWatchdog | None = None,
        *,
        any_port: bool = False,
    ) -> None:
        """Run the daemon until `stop` is set: watch, index, answer. Returns when everything is released.

        `watchdog` gets the health checks once requests are answered. `any_port`: use a free port if the chosen one is taken."""
        from mcp_server.server import serve  # noqa: PLC0415 - imported only where it serves

        shorten_turns()
        answering, state = threading.Event(), self.settings.state
        daemon = state / "daemon.json"

        def announce_url(url: str) -> None:
            write_private(daemon, json.dumps({"url": url, "pid": os.getpid(), "epoch": self.opened.lock.epoch}))
            log.debug("serving %s at %s", self.opened.vault.root, url)
            collect_as_usual()  # a rare collection is a long one, which calls would have to wait for
            answering.set()
            if watchdog is not None:
                # The server calls this on its event loop.
                watchdog.mark_serving(self._vital_signs(asyncio.get_running_loop()))
            on_ready(Ready(url, state, state / KEY_FILE, self.opened.sync.ready.wait))

        with ExitStack() as running:
            running.callback(lambda: daemon.unlink(missing_ok=True))
            self._start_parts(running, answering)
            self._watch_lock(running)
            settled = threading.Timer(SETTLED_S, freeze_objects)
            settled.daemon = True
            settled.start()
            running.callback(settled.cancel)
            self.traces = request_traces.open_traces(self.settings.telemetry, os.environ, version=installed())
            if self.traces:
                running.callback(self.traces.close)
            access, settings, traces = self.agent_access, self.settings, self.traces
            serve(access, settings, on_bound=announce_url, stop=stop, traces=traces, any_port=any_port)

    def _start_parts(self, running: ExitStack, answering: threading.Event | None = None) -> None:
        sync = self.opened.sync
        running.callback(self.claim.release)
        threading.Thread(target=self.file_import.sandbox.facts, name="sandbox-probe", daemon=True).start()
        control = ControlServer(self.settings.state, self.commands)
        control.start()
        running.callback(control.stop)
        # The watcher first, so that changes during the first listing are not missed.
        self.watch = Watcher(
            self.opened.vault.root,
            self._hint_changes,
            self._list_again,
            ignored=self.opened.vault.ignores,
            mode=self.settings.watch.mode,
            poll_s=self.settings.watch.poll_s,
            wanted=self._is_wanted,
        )
        self.watch.start()
        if (other := self.claim.take()) is not None:
            log.warning(
                "process %s also serves this vault, with another state folder; stop one of the two", other or "?"
            )
        running.callback(self.watch.stop)
        if self.opened.reranker:
            self.opened.reranker.start()
        self.head_follower.start()
        running.callback(self.head_follower.stop)
        running.callback(self.services.commits.stop)  # after the last write
        sync.start(after=answering)  # the first answer does not wait for the listing of all notes
        running.callback(sync.stop)
        if answering is not None:
            running.callback(answering.set)
        self.jobs = self._build_jobs()
        self.jobs.start(may_rest=True)
        running.callback(self.jobs.stop)
        self.worker.start()
        running.callback(self.worker.stop)
        running.callback(self.services.remote.interrupt)
        running.callback(sync.interrupt)  # before the jobs stop: one may wait for the current pass

    def _hint_changes(self, paths: Iterable[str]) -> None:
        self.opened.sync.hint(paths)
        self.jobs.wake()

    def _list_again(self, _: str) -> None:
        self.opened.sync.request_listing()
        self.jobs.wake()

    def _vital_signs(self, loop: asyncio.AbstractEventLoop) -> VitalSigns:
        watch, sync = self.watch, self.opened.sync
        return VitalSigns(
            loop,
            readable=self.opened.vault.is_present,
            watched=lambda: watch is None or watch.is_supervised,
            still_s=lambda: sync.stalled_s,
            doing=self.health.activity,
            busy=lambda: sync.progress is not None,
        )

    def _watch_lock(self, running: ExitStack) -> None:
        """End this process once another one has taken over its state folder, for example after its lock was replaced.

        It ends at once: everything it would still write or remove now belongs to the other process."""
        ended, lock = threading.Event(), self.opened.lock

        def watch() -> None:
            while not ended.wait(LOCK_S):
                if (pid := lock.successor()) is not None:
                    log.error(
                        "process %s has replaced this daemon on %s; this daemon stops", pid or "?", self.settings.state
                    )
                    flush()
                    os._exit(os.EX_UNAVAILABLE)

        threading.Thread(target=watch, name="lock-watch", daemon=True).start()
        running.callback(ended.set)


def _stop_this_process(_: Any, __: Any) -> dict[str, Any]:
    """Stop like after a signal, so that there is one way to stop; return who runs this daemon."""
    os.kill(os.getpid(), signal.SIGTERM)
    supervisor = Supervisor.from_environment(os.environ, os.getpid())
    return {"pid": os.getpid(), "service": supervisor is not None}


def import_server_early() -> None:
    """Import the server in a thread while the index is opened."""

    def import_server() -> None:
        with defer_models():
            from mcp_server import server  # noqa: F401, PLC0415 - as above

    threading.Thread(target=import_server, name="server-import", daemon=True).start()
