"""Report the daemon's health: numbers, facts for the owner, and a sentence for each thing that does not work.

Law: no failure is silent. Everything degraded is stated here, and status, searches and monitors repeat it from here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from index.errors import Conflict, MemexError, Unavailable
from index.model import Document, Record, Scope, Stat
from syncd.daemon.open_parts import OpenParts
from syncd.daemon.vault_services import VaultServices
from syncd.daemon.vault_warnings import SimilarNames, oddities, tally
from syncd.documents.parser import parse
from syncd.enrichment.backfill import Backfill
from syncd.files.inbox_file_scanner import MISSING, InboxFileScanner
from syncd.git.head_follower import HeadFollower
from syncd.git.hooks import HOOKS, find
from syncd.indexes.coverage import coverage
from syncd.indexes.index_builds import SCOPES
from syncd.jobs.scheduler import Scheduler
from syncd.jobs.worker import Worker
from syncd.notes.secret_patterns import flagged, redacted
from syncd.sync.hand_edits import said
from syncd.vault.location import place
from syncd.version import installed
from syncd.watch.watcher import WatcherState
from syncd.workspaces.agent_access import AgentAccess

COMPARED = 50  # captures that wait, of which each is looked at to see whether agents may know of it


class Health:
    """Tells how an open vault does, and all that works on it.

    `jobs` and `hearing` are called each time: once a daemon serves it has other jobs, and watches the vault."""

    def __init__(
        self,
        opened: OpenParts,
        agent_access: AgentAccess,
        services: VaultServices,
        *,
        head_follower: HeadFollower,
        dropped: InboxFileScanner,
        backfill: Backfill,
        worker: Worker,
        jobs: Callable[[], Scheduler],
        hearing: Callable[[], WatcherState | None],  # None: nobody watches the vault
        alone: Callable[[], bool],  # whether no other daemon serves it
    ) -> None:
        self._opened, self._agent_access, self._services = opened, agent_access, services
        self._head_follower, self._dropped, self._backfill = head_follower, dropped, backfill
        self._worker = worker
        self._jobs, self._hearing, self._alone = jobs, hearing, alone
        self._twins = SimilarNames(
            self._paths, lambda: sum(scope_index.index.generation for scope_index in opened.builds.scopes.values())
        )

    def status(self, workspaces: Collection[str] | None) -> dict[str, Any]:
        """The state in numbers: of the whole vault for the owner (None); else of captures, with these workspaces' defects."""
        indexes = {scope: scope_index.index for scope, scope_index in self._opened.builds.scopes.items()}
        scopes: tuple[Scope, ...] = SCOPES if workspaces is None else ("captures",)
        waiting = self._opened.sync.waiting
        if workspaces is not None:  # else whoever asks again and again is told when a person writes
            inbox = self._opened.settings.vault.inbox  # looked for first, as the whole vault may wait
            inbox_paths = (path for path in waiting if path.startswith(f"{inbox}/"))
            waiting = {path for path in inbox_paths if place(path, inbox).scope == "captures"}
            if len(waiting) <= COMPARED:
                waiting = {path for path in waiting if self._shows(path)}
        return {
            "ready": self._opened.sync.ready.is_set()
            or (self._hearing() is None and all(index.listed for index in indexes.values())),
            "pending": len(waiting),
            # Not for others: it also grows with what is written for the owner alone.
            **({"generation": sum(index.generation for index in indexes.values())} if workspaces is None else {}),
            **{scope: dict(zip(("documents", "chunks"), indexes[scope].counts, strict=True)) for scope in scopes},
            "defects": [{"path": path, "defect": defect} for path, defect in self._defects(workspaces)],
            "degraded": self.degraded(scopes),
        }

    def _shows(self, path: str) -> bool:
        """Whether agents could tell a capture as it is on the disk now from what is indexed of it."""
        index = self._opened.captures.index
        with suppress(MemexError):
            entry, stat, record = index.manifest.get(path), self._opened.vault.stat(path), index.at(path)
            if entry is None or stat is None or record is None:
                return entry is not None or stat is not None
            if entry.stat == stat:
                return False  # it was looked at since
            raw, stat = self._opened.vault.read(path)
            now = self._parsed(raw, path, stat)
            return bool(_told(now) != _told(record))
        return True

    def _parsed(self, raw: bytes, path: str, stat: Stat) -> Document:
        settings = self._opened.settings
        mtime_ms = stat.mtime_ns // 1_000_000
        return parse(raw, path, mtime_ms=mtime_ms, inbox=settings.vault.inbox, collections=settings.kb.known)

    def facts(self) -> dict[str, Any]:
        """What else the owner may want to know: where things are."""
        return {
            "vault_path": str(self._opened.vault.root),
            "state_path": str(self._opened.settings.state),
            "workspaces": self._workspaces(),
            "encoder": {"state": self._opened.embedder.state, "problem": self._encoder_problem()},
            "reranker": self._reranker(),
            "git": self._git(),
            "enrichment": self._backfill.facts(),
            **self.background(),
            "files": self._dropped.facts(),
            **self._services.facts(),
            "names": oddities((scope_index.index for scope_index in self._opened.builds.scopes.values()), self._twins),
            "deep_check": asdict(self._opened.check.last),
            "graph": tally(self._opened.captures.index.graph(name) for name in self._workspaces()),
            "removals_held": self._opened.sync.held,
            "keys": self._opened.keys.facts(time.time_ns() // 1_000_000),
            "audit": self._audit_facts(),
            "flagged": flagged(self._opened.captures.index.defects()),
            "pid": os.getpid(),
            "since": self._opened.since,
            "version": installed(),
        }

    def coverage(self) -> dict[str, Any]:
        """How much of what lies on the disk now is indexed, by scope, and why the rest is not."""
        known: dict[str, Collection[str]] = {
            scope: scope_index.index.manifest.copy() for scope, scope_index in self._opened.builds.scopes.items()
        }
        by_scope = coverage(
            self._opened.vault.listing(), known, self._opened.sync.failed, inbox=self._opened.settings.vault.inbox
        )
        for scope, scope_index in self._opened.builds.scopes.items():
            by_scope[scope]["words_only"] = scope_index.index.wordbound
        return by_scope

    def _audit_facts(self) -> dict[str, Any]:
        audit = self._opened.audit
        with suppress(Unavailable):  # of the ledger, as above
            return {"entries": audit.count, "head": str(audit.head), "problem": audit.problem}
        return {"entries": None, "head": str(audit.head), "problem": audit.problem}

    def background(self) -> dict[str, Any]:
        """How the watcher and the jobs do: what of the facts costs nothing to ask, every few seconds if need be."""
        return {
            "watch": asdict(self._hearing() or WatcherState("off")),
            "jobs": {name: asdict(job) for name, job in self._jobs().standing().items()},
            "queue": self._worker.facts(),
        }

    def degraded(self, scopes: Iterable[Scope] = SCOPES) -> list[str]:
        """What does not work as it should just now, in sentences; notes are counted in these scopes only."""
        sentences = [self._opened.builds.rebuilt_because] if self._opened.builds.rebuilt_because else []
        if not sentences and not all(scope_index.index.listed for scope_index in self._opened.builds.scopes.values()):
            sentences.append("index: the vault is being read for the first time; until then searches miss notes")
        meanwhile = "the encoder before it answers" if self._opened.builds.answering else "searches use full text only"
        if self._opened.embedder.state != "ready":
            sentences.append(f"encoder: {self._encoder_problem() or 'still loading'}; {meanwhile}")
        elif self._opened.builds.outdated():
            sentences.append(f"index: made with another encoder; {meanwhile} until it is built anew")
        if bare := sum(self._opened.builds.scopes[scope].index.wordbound for scope in scopes):
            sentences.append(f"index: {bare} notes can be found by their words only")
        if self._homeless():
            sentences.append(
                "inbox: it holds no workspace, so nothing can be captured: `memex workspace create default`"
            )
        if self._opened.reranker and self._opened.reranker.degraded:
            sentences.append(self._opened.reranker.degraded)
        if self._opened.enricher.problem:
            sentences.append(
                "enrichment: it fails just now; new captures have no summary and tags until it works, and get them then"
            )
        hearing = self._hearing()
        if hearing and hearing.problem:
            sentences.append(f"watch: {hearing.problem}")
        if hearing and not self._alone():
            sentences.append("vault: another Memex works on it with another state folder; stop one of the two")
        parts = (
            self._head_follower.unwell,
            self._agent_access.push_webhook.problem,
            self._opened.ledger.problem,
            self._opened.audit.problem,
        )
        sentences += [text for text in parts if text]
        sentences += [text for text in (self._services.remote.unwell,) if text and text not in sentences]
        if (waits := self._services.commits.problem) and not self._head_follower.unwell:
            sentences.append(waits)
        with suppress(Unavailable):  # of the ledger, and that is told
            sentences += self._worker.troubles(time.time_ns() // 1_000_000)
        return sentences + self._opened.sync.degraded + self._jobs().troubles()

    def _reranker(self) -> dict[str, Any]:
        reranker = self._opened.reranker
        return {"state": reranker.state if reranker else "off", "problem": reranker.problem if reranker else ""}

    def _git(self) -> dict[str, Any]:
        """How the vault stands with Git; for its owner only, as the advice names paths."""
        standing = self._opened.repo.standing()
        facts: dict[str, Any] = asdict(standing) | {"advice": self._opened.repo.advice(standing), "hooks": []}
        facts |= self._services.git_facts()
        with suppress(Conflict):  # no repository, and the state says so
            hooks = find(self._opened.repo.hooks_folder(), HOOKS, self._opened.settings.state)
            facts["hooks"] = [hook.name for hook in hooks if hook.state in ("installed", "wrapped")]
            facts["hooks_amiss"] = {hook.name: hook.state for hook in hooks if hook.state in ("changed", "replaced")}
        return facts

    def _defects(self, workspaces: Collection[str] | None) -> list[tuple[str, str]]:
        inbox = self._opened.settings.vault.inbox
        if workspaces is None:
            defects = [
                defect for scope_index in self._opened.builds.scopes.values() for defect in scope_index.index.defects()
            ]
            return sorted({*defects, *self._opened.sync.failed.items(), *self._twins.defects(), *self._fileless(None)})
        captures = self._opened.captures.index
        defects = [defect for name in workspaces for defect in captures.defects(name)]
        unread = [
            (path, why) for path, why in self._opened.sync.failed.items() if place(path, inbox).workspace in workspaces
        ]
        return sorted(
            {
                (self._entitled(path), why)
                for path, why in (*defects, *unread, *self._fileless(workspaces))
                if place(path, inbox).scope == "captures"
            }
        )

    def _fileless(self, workspaces: Collection[str] | None) -> list[tuple[str, str]]:
        """The notes of files that are gone."""
        return [(note, MISSING) for note, _ in self._dropped.missing(workspaces)]

    def _entitled(self, path: str) -> str:
        """The path of a capture as an agent may know it: the number in a name would tell of a note outside the inbox."""
        record = self._opened.captures.index.at(path)
        return path if record is None else f"{path.rpartition('/')[0]}/{redacted(record.title)}.md"

    def _workspaces(self) -> list[str]:
        try:
            return self._agent_access.workspaces()
        except Unavailable:  # the vault is missing; its owner must still be able to ask what is wrong
            return []

    def _encoder_problem(self) -> str:
        """What keeps it from working; that it loads is its state, and no problem."""
        return "" if self._opened.embedder.state == "loading" else self._opened.embedder.problem

    def _homeless(self) -> bool:
        try:
            return not self._agent_access.workspaces()
        except Unavailable:  # the vault is missing, and that is told
            return False

    def doing(self) -> str:
        """What the daemon does just now, in a few words for a service manager's page."""
        if (progress := self._opened.sync.progress) and progress[1] > 1:
            return f"indexing {progress[0]:,}/{progress[1]:,}"
        if not self._opened.sync.ready.is_set():
            return "reading the vault for the first time"
        notes = sum(scope_index.index.counts[0] for scope_index in self._opened.builds.scopes.values())
        return f"ready: {notes:,} notes" + ("; not all is well: memex status" if self.degraded() else "")

    def _paths(self) -> list[str]:
        return [
            path for scope_index in self._opened.builds.scopes.values() for path in scope_index.index.manifest.copy()
        ]


def _told(note: Document | Record) -> tuple[object, ...]:
    """What agents are told of a capture, as a value to compare."""
    return said(note), note.type, note.defects, note.superseded_by, note.created_at, note.updated_at, note.version
