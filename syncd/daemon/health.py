"""Report the daemon's health: numbers, facts for the owner, and a sentence for each thing that does not work.

Law: no failure is silent. Everything degraded is stated here, and status and monitors repeat all of it. A search repeats
only what may keep notes from being found: the state of Git, say, makes no search incomplete."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

from index.errors import EARLY_CLOCK, Conflict, MemexError, Unavailable
from index.model import Document, Record
from syncd.daemon.note_warnings import SimilarNames, graph_totals, name_warnings
from syncd.daemon.open_parts import OpenParts
from syncd.daemon.vault_services import VaultServices
from syncd.documents.parser import parse
from syncd.enrichment.backfill import Backfill
from syncd.files.conversion.sandbox_report import SandboxReport
from syncd.files.file_import import FileImport
from syncd.files.inbox_file_scanner import MISSING, InboxFileScanner
from syncd.git import hooks
from syncd.git.head_follower import HeadFollower
from syncd.indexes.coverage import compute_coverage
from syncd.jobs.scheduler import Scheduler
from syncd.jobs.worker import Worker
from syncd.notes.secret_patterns import list_flagged, redact
from syncd.sync.hand_edits import visible_digest
from syncd.vault.location import locate
from syncd.vault.obsidian_settings import ObsidianSettings
from syncd.version import installed
from syncd.watch.watcher import WatcherState
from syncd.workspaces.agent_access import AgentAccess

COMPARED = 50  # captures that wait, of which each is looked at to see whether agents may know of it
NO_RERANKER: Final[Mapping[str, str]] = {"state": "off", "problem": ""}
ELSEWHERE: Final = "vault: process {} serves it too, with another state folder; stop one of the two"
UNWRITABLE: Final = "vault: {} can't be written to, so captures and promotions fail; give Memex's user the right, or mount its disk writable"
CLOCK: Final = f"clock: {EARLY_CLOCK}"
HOMELESS: Final = "inbox: it holds no workspace, so nothing can be captured: `memex workspace create default`"

# What placeholders make of the properties of a template.
TEMPLATE_DEFECTS: Final = frozenset({"template", "bad-frontmatter", "bad-date", "duplicate-keys"})

Facts: TypeAlias = tuple[tuple[str, Callable[[], Any]], ...]  # the name of each, and the part that states it


@dataclass(frozen=True, slots=True)
class Part:
    """A part that may be degraded. Each sentence stays for as long as its cause does; "" = all is well."""

    name: str
    sentences: Callable[[], list[str]]
    of_search: bool = False  # whether searches may miss notes, or order them worse, meanwhile


class Health:
    """Tells how an open vault does, and all that works on it: it collects what each part states of itself.

    `jobs` and `hearing` are called each time: once a daemon serves it has other jobs, and watches the vault."""

    def __init__(
        self,
        opened: OpenParts,
        agent_access: AgentAccess,
        services: VaultServices,
        *,
        head_follower: HeadFollower,
        files: FileImport,
        backfill: Backfill,
        worker: Worker,
        jobs: Callable[[], Scheduler],
        hearing: Callable[[], WatcherState | None],  # None: nobody watches the vault
        other_daemon: Callable[[], int | None],  # the pid of one that serves it too; 0: which one can't be told
    ) -> None:
        self._builds, self._sync, self._vault = opened.builds, opened.sync, opened.vault
        self._inbox = opened.settings.vault.inbox
        self._agent_access, self._worker = agent_access, worker
        self._hearing, self._other_daemon = hearing, other_daemon
        self._pending, self._defects = PendingNotes(opened), NoteDefects(opened, files.dropped)
        self._background: Facts = (
            ("watch", lambda: asdict(hearing() or WatcherState("off"))),
            ("jobs", lambda: jobs().facts()),
            ("queue", worker.facts),
        )
        self._facts = self._list_facts(opened, services, backfill, files)
        self.parts = self._list_parts(opened, services, head_follower, jobs, files.sandbox)

    def _list_facts(self, opened: OpenParts, services: VaultServices, backfill: Backfill, files: FileImport) -> Facts:
        """What the owner may want to know, in the order in which status states it."""
        captures, reranker = opened.captures, opened.reranker
        return (
            ("vault_path", lambda: str(opened.vault.root)),
            ("state_path", lambda: str(opened.settings.state)),
            ("workspaces", self._workspaces),
            ("encoder", opened.embedder.facts),
            ("reranker", reranker.facts if reranker else lambda: dict(NO_RERANKER)),
            ("git", lambda: _git_facts(opened, services)),
            ("enrichment", backfill.facts),
            *self._background,
            ("files", files.dropped.facts),
            ("sandbox", lambda: files.sandbox.facts() if self._is_daemon() else {}),  # to find out starts a process
            ("review", services.review.summary),
            ("consolidation", services.consolidation_facts),
            ("promotion", services.promotion_facts),
            ("names", lambda: name_warnings(opened.builds.indexes.values(), self._defects.twins)),
            ("deep_check", opened.check.facts),
            ("graph", lambda: graph_totals(captures.index.graph(name) for name in self._workspaces())),
            ("removals_held", lambda: opened.sync.held_removals),
            ("keys", lambda: opened.keys.facts(_now())),
            ("audit", opened.audit.facts),
            ("flagged", lambda: list_flagged(captures.index.defects())),
            ("pid", os.getpid),
            ("since", lambda: opened.since),
            ("version", installed),
        )

    def _list_parts(
        self,
        opened: OpenParts,
        services: VaultServices,
        head_follower: HeadFollower,
        jobs: Callable[[], Scheduler],
        sandbox: SandboxReport,
    ) -> tuple[Part, ...]:
        """What may be degraded besides the index, in the order in which it is stated."""
        reranker, push_webhook = opened.reranker, self._agent_access.push_webhook
        return (
            Part("inbox", self._workspace_sentences),
            Part("writes", self._write_sentences),
            Part("clock", lambda: [CLOCK] if time.time() < 0 else []),
            Part("reranker", lambda: [reranker.degraded if reranker else ""], of_search=True),
            Part("enrichment", lambda: [opened.enricher.degraded]),
            Part("watch", self._watch_sentences, of_search=True),
            Part("daemons", self._daemon_sentences),
            Part("repository", lambda: [head_follower.unwell]),
            Part("webhooks", lambda: [push_webhook.problem]),
            Part("ledger", lambda: [opened.ledger.problem]),
            Part("audit", lambda: [opened.audit.problem]),
            Part("exchange", lambda: _exchange_sentences(head_follower.unwell, services)),
            Part("queue", self._queue_sentences),
            Part("sandbox", lambda: [sandbox.degraded] if self._is_daemon() else []),
            Part("sync", lambda: opened.sync.problems, of_search=True),
            Part("jobs", lambda: jobs().troubles()),
        )

    def status(self, workspaces: Collection[str] | None) -> dict[str, Any]:
        """The state in numbers: of the whole vault for the owner (None), else of the captures of these workspaces.

        Without any workspace there are no numbers: who asks often would learn when somebody else writes."""
        ready = self._sync.ready.is_set() or (self._hearing() is None and self._builds.is_complete)
        degraded = self.degraded(workspaces)
        if workspaces is not None and not workspaces:
            return {"ready": ready, "degraded": degraded}
        defects = [{"path": path, "defect": defect} for path, defect in self._defects.find(workspaces)]
        if workspaces is None:
            return {
                "ready": ready,
                "pending": len(self._sync.pending_paths),
                "generation": self._builds.generation,
                **self._builds.facts(),
                "defects": defects,
                "degraded": degraded,
            }
        return {
            "ready": ready,
            "pending": len(self._pending.visible_to_agents(workspaces)),
            "captures": self._count_captures(workspaces),
            "defects": defects,
            "degraded": degraded,
        }

    def _count_captures(self, workspaces: Collection[str]) -> dict[str, int]:
        rows = [row for name in workspaces for row in self._builds.scopes["captures"].index.tally(name)]
        return {"documents": sum(row[2] for row in rows), "chunks": sum(row[3] for row in rows)}

    def facts(self) -> dict[str, Any]:
        """What else the owner may want to know: where things are."""
        return {name: state() for name, state in self._facts}

    def coverage(self) -> dict[str, Any]:
        """How much of what lies on the disk now is indexed, by scope, and why the rest is not."""
        known = self._builds.paths()
        by_scope = compute_coverage(self._vault.list_notes(), known, self._sync.failures, inbox=self._inbox)
        for scope, index in self._builds.indexes.items():
            by_scope[scope]["words_only"] = index.words_only_count
        return by_scope

    def background(self) -> dict[str, Any]:
        """How the watcher and the jobs do: what of the facts costs nothing to ask, every few seconds if need be."""
        return {name: state() for name, state in self._background}

    def degraded(self, workspaces: Collection[str] | None = None) -> list[str]:
        """What does not work as it should just now, in sentences; notes are counted in these workspaces only (None: everywhere)."""
        return self._collect_sentences(self.parts, workspaces)

    def degraded_search(self, workspaces: Collection[str] | None = None) -> list[str]:
        """Of `degraded`, what may keep a search from finding notes or from ordering them well."""
        return self._collect_sentences([part for part in self.parts if part.of_search], workspaces)

    def _collect_sentences(self, parts: Iterable[Part], workspaces: Collection[str] | None) -> list[str]:
        if workspaces is None:
            of_index = self._builds.degraded()
        else:
            of_index = self._builds.degraded(("captures",), [f"{self._inbox}/{name}" for name in workspaces])
        return of_index + [sentence for part in parts for sentence in part.sentences() if sentence]

    def activity(self) -> str:
        """What the daemon does just now, in a few words for a service manager's page."""
        if doing := self._sync.activity:
            return doing
        amiss = "; not all is well: memex status" if self.degraded() else ""
        return f"ready: {self._builds.documents:,} notes{amiss}"

    def _is_daemon(self) -> bool:
        return self._hearing() is not None

    def _workspaces(self) -> list[str]:
        try:
            return self._agent_access.workspaces()
        except Unavailable:  # the vault is missing; its owner must still be able to ask what is wrong
            return []

    def _write_sentences(self) -> list[str]:
        """Whether Memex can't write where it has to; without the names of workspaces, as agents read it too."""
        inbox = (self._inbox, *(f"{self._inbox}/{name}" for name in self._workspaces()))
        if not self._vault.can_write():
            return [UNWRITABLE.format("it")]
        return [] if all(map(self._vault.can_write, inbox)) else [UNWRITABLE.format("a folder of its inbox")]

    def _workspace_sentences(self) -> list[str]:
        with suppress(Unavailable):  # the vault is missing, and the pipeline says so
            return [] if self._agent_access.workspaces() else [HOMELESS]
        return []

    def _watch_sentences(self) -> list[str]:
        hearing = self._hearing()
        return [f"watch: {hearing.problem}"] if hearing and hearing.problem else []

    def _daemon_sentences(self) -> list[str]:
        other = None if self._hearing() is None else self._other_daemon()
        return [] if other is None else [ELSEWHERE.format(other or "?")]

    def _queue_sentences(self) -> list[str]:
        with suppress(Unavailable):  # of the ledger, which says so itself
            return self._worker.troubles(_now())
        return []


class PendingNotes:
    """Counts the captures that have changed and are not indexed yet, as far as agents may know of them."""

    def __init__(self, opened: OpenParts) -> None:
        self._sync, self._vault, self._captures = opened.sync, opened.vault, opened.captures
        self._inbox, self._collections = opened.settings.vault.inbox, opened.settings.kb.all_collections

    def visible_to_agents(self, workspaces: Collection[str]) -> set[str]:
        """The paths of those captures of these workspaces; of very many each counts."""
        # The inbox is looked for first, as the whole vault may wait.
        inbox_paths = (path for path in self._sync.pending_paths if path.startswith(f"{self._inbox}/"))
        places = ((path, locate(path, self._inbox)) for path in inbox_paths)
        waiting = {path for path, place in places if place.scope == "captures" and place.workspace in workspaces}
        return {path for path in waiting if self._is_visible(path)} if len(waiting) <= COMPARED else waiting

    def _is_visible(self, path: str) -> bool:
        """Whether agents could tell a capture as it is on the disk now from what is indexed of it."""
        index = self._captures.index
        with suppress(MemexError):
            entry, stat, record = index.manifest.get(path), self._vault.stat(path), index.record_at(path)
            if entry is None or stat is None or record is None:
                return entry is not None or stat is not None
            if entry.stat == stat:
                return False  # it was looked at since
            raw, stat = self._vault.read(path)
            mtime_ms = stat.mtime_ns // 1_000_000
            document = parse(raw, path, mtime_ms=mtime_ms, inbox=self._inbox, collections=self._collections)
            return bool(_visible_fields(document) != _visible_fields(record))
        return True


class NoteDefects:
    """Lists what is wrong with single notes: for the owner all of it, for agents what concerns their captures."""

    def __init__(self, opened: OpenParts, dropped: InboxFileScanner) -> None:
        builds = opened.builds
        self._builds, self._sync, self._captures, self._dropped = builds, opened.sync, opened.captures, dropped
        self._inbox, self._obsidian = opened.settings.vault.inbox, ObsidianSettings(opened.vault)
        self.twins = SimilarNames(
            lambda: [path for paths in builds.paths().values() for path in paths], lambda: builds.generation
        )

    def find(self, workspaces: Collection[str] | None) -> list[tuple[str, str]]:
        """Each note with a defect of it, sorted; of the whole vault (None), or of the captures of these workspaces."""
        if workspaces is None:
            is_template = self._obsidian.template_test()
            # The placeholders of a template are no properties, and none of its other oddities is a defect of a note.
            defects = [
                (path, why) for path, why in self._builds.defects() if not _is_excused(why) or not is_template(path)
            ]
            return sorted({*defects, *self._sync.failures.items(), *self.twins.defects(), *self._missing_files(None)})
        captures, inbox = self._captures.index, self._inbox
        defects = [defect for name in workspaces for defect in captures.defects(name)]
        unread = [
            (path, why) for path, why in self._sync.failures.items() if locate(path, inbox).workspace in workspaces
        ]
        return sorted(
            {
                (self._public_path(path), why)
                for path, why in (*defects, *unread, *self._missing_files(workspaces))
                if locate(path, inbox).scope == "captures"
            }
        )

    def _missing_files(self, workspaces: Collection[str] | None) -> list[tuple[str, str]]:
        """The notes of files that are gone."""
        return [(note, MISSING) for note, _ in self._dropped.find_missing(workspaces)]

    def _public_path(self, path: str) -> str:
        """The path of a capture as an agent may know it: the number in a name would tell of a note outside the inbox."""
        record = self._captures.index.record_at(path)
        return path if record is None else f"{path.rpartition('/')[0]}/{redact(record.title)}.md"


def _git_facts(opened: OpenParts, services: VaultServices) -> dict[str, Any]:
    """How the vault stands with Git; for its owner only, as the advice names paths."""
    facts: dict[str, Any] = opened.repo.facts() | {"hooks": []} | services.git_facts()
    if facts["state"] not in ("no-git", "no-repo"):
        with suppress(Conflict):  # Git can't read the repository, and the state says so
            facts |= hooks.facts(opened.repo.hooks_folder(), opened.settings.state)
    return facts


def _exchange_sentences(git_unwell: str, services: VaultServices) -> list[str]:
    """What keeps the remote and the commits back, unless the state of the repository says it already."""
    remote = services.remote.unwell
    return ["" if remote == git_unwell else remote, "" if git_unwell else services.commits.problem]


def _is_excused(defect: str) -> bool:
    """Whether a defect is what a template's properties have by their nature."""
    return defect.partition(":")[0] in TEMPLATE_DEFECTS


def _now() -> int:
    return time.time_ns() // 1_000_000


def _visible_fields(note: Document | Record) -> tuple[object, ...]:
    """What agents are told of a capture, as a value to compare."""
    return (
        visible_digest(note),
        note.type,
        note.defects,
        note.superseded_by,
        note.created_at,
        note.updated_at,
        note.version,
    )
