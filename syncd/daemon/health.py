"""Report the daemon's health: numbers, facts for the owner, and a sentence for each degraded part.

Law: no failure is silent. Everything degraded is reported here, and status and monitors repeat all of it. A search
repeats only what may hide notes from it: the state of Git, for example, makes no search incomplete."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

from index.errors import EARLY_CLOCK, Conflict, InvalidArgument, MemexError, Unavailable
from index.model import Document, Record
from index.names import pluralize
from index.timings import now_ms
from syncd.daemon.note_warnings import SimilarNames, graph_totals, name_warnings, same_id_defects
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
from syncd.sharing.share_problems import find_share_problems
from syncd.state.vault_claim import find_holder
from syncd.sync.hand_edits import visible_digest
from syncd.sync.pipeline import HELD
from syncd.vault.location import locate
from syncd.vault.obsidian_settings import ObsidianSettings
from syncd.version import installed
from syncd.watch.watcher import WatcherState
from syncd.workspaces.agent_access import AgentAccess

COMPARED = 50  # up to this many pending captures, each is checked for changes that agents can see
NO_RERANKER: Final[Mapping[str, str]] = {"state": "off", "problem": ""}
ELSEWHERE: Final = "vault: process {} also serves it, with another state folder; stop one of the two"
UNWRITABLE: Final = "vault: Memex can't write to {}, so captures and promotions fail; give Memex's user write access, or mount the disk writable"
CLOCK: Final = f"clock: {EARLY_CLOCK}"
HOMELESS: Final = (
    "inbox: it is missing or has no workspace, so agents can't capture notes; "
    "put it back, or create a new one: `memex workspace create default`"
)
MOVED: Final = (
    "inbox: it was moved or renamed, or a workspace was moved out of it, so agents have lost their notes, and none is promoted; "
    "move it back; if you renamed the inbox, you can name its new folder in `vault.inbox` instead, and restart Memex"
)
BLOCKED: Final = (
    "inbox: a link or a file takes the place of its folder, so agents can't capture notes; "
    "move it away, and put the folder back or create a new one: `memex workspace create default`"
)

# Defects that placeholders cause in the properties of a template.
TEMPLATE_DEFECTS: Final = frozenset({"template", "bad-frontmatter", "bad-date", "duplicate-keys"})

Facts: TypeAlias = tuple[tuple[str, Callable[[], Any]], ...]  # the name of each fact, and the function that returns it


@dataclass(frozen=True, slots=True)
class Part:
    """Describes a part that may be degraded. Each sentence is reported as long as its cause lasts; "" = all is well."""

    name: str
    sentences: Callable[[], list[str]]
    of_search: bool = False  # whether searches may miss notes or rank them worse meanwhile


class Health:
    """Reports the health of an open vault and its services, from what each part reports.

    `jobs` and `watcher_state` are called each time, because a serving daemon has other jobs and watches the vault."""

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
        watcher_state: Callable[[], WatcherState | None],  # None: the vault is not watched
        other_daemon: Callable[[], int | None],  # the pid of another daemon on this vault; 0: unknown pid
    ) -> None:
        self._builds, self._sync, self._vault = opened.builds, opened.sync, opened.vault
        self._inbox, self._shares = opened.settings.vault.inbox, opened.shares
        # For which state `_may_read_held` has answered, and what.
        self._held: tuple[object, dict[frozenset[str], bool]] = (None, {})
        self._agent_access, self._worker, self._head_follower = agent_access, worker, head_follower
        self._manual_moves = services.manual_moves
        self._watcher_state, self._other_daemon = watcher_state, other_daemon
        self._pending, self._defects = PendingNotes(opened), NoteDefects(opened, files.dropped)
        self._background: Facts = (
            ("watch", lambda: asdict(watcher_state() or WatcherState("off"))),
            ("jobs", lambda: jobs().facts()),
            ("queue", worker.facts),
        )
        self._facts = self._list_facts(opened, services, backfill, files)
        self.parts = self._list_parts(opened, services, head_follower, jobs, files.sandbox)

    def _list_facts(self, opened: OpenParts, services: VaultServices, backfill: Backfill, files: FileImport) -> Facts:
        """Return the facts for the owner, in the order of `memex status`."""
        captures, reranker = opened.captures, opened.reranker
        return (
            ("vault_path", lambda: str(opened.vault.root)),
            ("state_path", lambda: str(opened.settings.state)),
            ("workspaces", self._workspaces),
            ("encoder", opened.embedder.facts),
            ("reranker", reranker.facts if reranker else lambda: dict(NO_RERANKER)),
            ("git", lambda: self._git_facts(opened, services)),
            ("enrichment", backfill.facts),
            *self._background,
            ("files", files.dropped.facts),
            ("sandbox", lambda: files.sandbox.facts() if self._is_daemon() else {}),  # finding out starts a process
            ("review", services.review.summary),
            ("consolidation", services.consolidation_facts),
            ("promotion", services.promotion_facts),
            ("contexts", lambda: {"strays": opened.contexts.find_strays() if opened.vault.is_present() else []}),
            ("shares", lambda: self._share_facts(opened)),
            ("names", lambda: name_warnings(opened.builds.indexes.values(), self._defects.twins)),
            ("deep_check", opened.check.facts),
            ("graph", lambda: graph_totals(captures.index.graph(name) for name in self._workspaces())),
            ("removals_held", lambda: len(opened.sync.held_paths)),
            ("keys", lambda: opened.keys.facts(now_ms())),
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
        """Return the parts that may be degraded besides the index, in the order of the report."""
        reranker, push_webhook = opened.reranker, self._agent_access.push_webhook
        return (
            Part("inbox", self._workspace_sentences),
            Part("writes", self._write_sentences),
            Part("clock", lambda: [CLOCK] if time.time() < 0 else []),
            Part("reranker", lambda: [reranker.degraded if reranker else ""], of_search=True),
            Part("enrichment", lambda: [opened.enricher.degraded]),
            Part("watch", self._watch_sentences, of_search=True),
            Part("daemons", self._daemon_sentences),
            Part("repository", lambda: [head_follower.current_problem()]),
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
        """Return the state in numbers: of the whole vault for the owner (None), else of the captures of these workspaces.

        Without any workspace there are no numbers: frequent calls would reveal when somebody else writes."""
        ready = self._sync.ready.is_set() or (self._watcher_state() is None and self._builds.is_complete)
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
        """Return more facts for the owner, such as paths."""
        return {name: state() for name, state in self._facts}

    def coverage(self) -> dict[str, Any]:
        """Return how many files on disk are indexed, by scope, and why the others are not."""
        known = self._builds.paths()
        by_scope = compute_coverage(self._vault.list_notes(), known, self._sync.failures, inbox=self._inbox)
        for scope, index in self._builds.indexes.items():
            by_scope[scope]["words_only"] = len(index.words_only_paths())
        return by_scope

    def background(self) -> dict[str, Any]:
        """Return the state of the watcher and the jobs: the facts that are cheap enough to ask every few seconds."""
        return {name: state() for name, state in self._background}

    def degraded(self, workspaces: Collection[str] | None = None) -> list[str]:
        """Return what is degraded now, in sentences; notes are counted in these workspaces only (None: everywhere)."""
        return self._collect_sentences(self.parts, workspaces)

    def degraded_search(self, workspaces: Collection[str] | None = None) -> list[str]:
        """Return the part of `degraded` that may keep a search from finding notes or ranking them well."""
        return self._collect_sentences([part for part in self.parts if part.of_search], workspaces)

    def _collect_sentences(self, parts: Iterable[Part], workspaces: Collection[str] | None) -> list[str]:
        if workspaces is None:
            of_index = self._builds.degraded()
        else:
            of_index = self._builds.degraded(("captures",), [f"{self._inbox}/{name}" for name in workspaces])
        sentences = of_index + [sentence for part in parts for sentence in part.sentences() if sentence]
        if workspaces and HELD in sentences and not self._may_read_held(frozenset(workspaces)):
            return [sentence for sentence in sentences if sentence != HELD]
        return sentences

    def _may_read_held(self, workspaces: frozenset[str]) -> bool:
        """Return whether agents of these workspaces may read a note whose removal is held: a capture, or a shared note."""
        state = rules, paths = self._shares.rules, self._sync.held_paths
        if self._held[0] != state:
            self._held = (state, {})
        answers = self._held[1]
        if workspaces not in answers:
            answers[workspaces] = any(
                path.startswith(f"{self._inbox}/{name}/") or rules.shares(path, name)
                for path in paths
                for name in workspaces
            )
        return answers[workspaces]

    def activity(self) -> str:
        """Return the daemon's current activity in a few words for the service manager."""
        if doing := self._sync.activity:
            return doing
        amiss = "; there are problems: see memex status" if self.degraded() else ""
        return f"ready: {pluralize(self._builds.documents, 'note')}{amiss}"

    def _is_daemon(self) -> bool:
        return self._watcher_state() is not None

    def _workspaces(self) -> list[str]:
        try:
            return self._agent_access.workspaces()
        except Unavailable:  # the vault is missing; the status must still work
            return []

    def _share_facts(self, opened: OpenParts) -> dict[str, Any]:
        """Return the number of shares, and those through which agents read nothing."""
        rules = opened.shares.rules
        problems = find_share_problems(opened.vault, rules, self._workspaces()) if opened.vault.is_present() else []
        return {"count": sum(map(len, rules.entries.values())), "problems": [asdict(problem) for problem in problems]}

    def _git_facts(self, opened: OpenParts, services: VaultServices) -> dict[str, Any]:
        """Return the state of Git, which is then reported as degraded too; for the owner only, because the advice names paths."""
        facts: dict[str, Any] = opened.repo.facts() | {"hooks": []} | services.git_facts()
        self._head_follower.use_state(facts["state"])
        if facts["state"] not in ("no-git", "no-repo"):
            with suppress(Conflict):  # Git can't read the repository, which the state reports
                facts |= hooks.facts(opened.repo.hooks_folder(), opened.settings.state)
        return facts

    def _write_sentences(self) -> list[str]:
        """Report whether Memex can't write where it has to, without names of workspaces, because agents read it too."""
        inbox = (self._inbox, *(f"{self._inbox}/{name}" for name in self._workspaces()))
        if not self._vault.can_write():
            return [UNWRITABLE.format("the vault")]
        closed = UNWRITABLE.format("a folder of the inbox (memex doctor names it)")
        return [] if all(map(self._vault.can_write, inbox)) else [closed]

    def _workspace_sentences(self) -> list[str]:
        if self._manual_moves.is_inbox_moved:
            return [MOVED]
        try:
            if self._agent_access.workspaces():
                return []
            self._vault.check_folder(self._inbox)
        except InvalidArgument:
            return [BLOCKED]
        except Unavailable:  # the vault is missing, which the pipeline reports
            return []
        return [HOMELESS]

    def _watch_sentences(self) -> list[str]:
        state = self._watcher_state()
        return [f"watch: {state.problem}"] if state and state.problem else []

    def _daemon_sentences(self) -> list[str]:
        if self._is_daemon():
            other = self._other_daemon()
        else:  # a command only looks: while it had the claim, no daemon could start
            holder = find_holder(self._vault.root)
            other = None if holder in (0, os.getpid()) else holder
        return [] if other is None else [ELSEWHERE.format(other or "?")]

    def _queue_sentences(self) -> list[str]:
        with suppress(Unavailable):  # the ledger fails, which it reports itself
            return self._worker.troubles(now_ms())
        return []


class PendingNotes:
    """Counts the captures that have changed and are not indexed yet, as far as agents can see them."""

    def __init__(self, opened: OpenParts) -> None:
        self._sync, self._vault, self._captures = opened.sync, opened.vault, opened.captures
        self._inbox, self._collections = opened.settings.vault.inbox, opened.settings.kb.all_collections

    def visible_to_agents(self, workspaces: Collection[str]) -> set[str]:
        """Return the paths of these captures in these workspaces; if there are very many, each one counts."""
        # Filters by the inbox first, because the whole vault may be pending.
        inbox_paths = (path for path in self._sync.pending_paths if path.startswith(f"{self._inbox}/"))
        places = ((path, locate(path, self._inbox)) for path in inbox_paths)
        waiting = {path for path, place in places if place.scope == "captures" and place.workspace in workspaces}
        return {path for path in waiting if self._is_visible(path)} if len(waiting) <= COMPARED else waiting

    def _is_visible(self, path: str) -> bool:
        """Return whether agents could see a difference between the capture on disk and its indexed version."""
        index = self._captures.index
        with suppress(MemexError):
            entry, stat, record = index.manifest.get(path), self._vault.stat(path), index.record_at(path)
            if entry is None or stat is None or record is None:
                return entry is not None or stat is not None
            if entry.stat == stat:
                return False  # it has been indexed since
            raw, stat = self._vault.read(path)
            document = parse(raw, path, mtime_ms=stat.mtime_ms, inbox=self._inbox, collections=self._collections)
            return bool(_visible_fields(document) != _visible_fields(record))
        return True


class NoteDefects:
    """Lists the defects of notes: all of them for the owner, those of their captures for agents."""

    def __init__(self, opened: OpenParts, dropped: InboxFileScanner) -> None:
        builds = opened.builds
        self._builds, self._sync, self._captures, self._dropped = builds, opened.sync, opened.captures, dropped
        self._inbox, self._obsidian = opened.settings.vault.inbox, ObsidianSettings(opened.vault)
        self.twins = SimilarNames(
            lambda: [path for paths in builds.paths().values() for path in paths], lambda: builds.generation
        )

    def find(self, workspaces: Collection[str] | None) -> list[tuple[str, str]]:
        """Return each defective note with its defect, sorted; of the whole vault (None), or of these workspaces."""
        if workspaces is None:
            is_template = self._obsidian.template_test()
            # The placeholders of a template are not properties, so their defects don't count.
            defects = [
                (path, why)
                for path, why in self._builds.defects()
                if why.partition(":")[0] not in TEMPLATE_DEFECTS or not is_template(path)
            ]
            defects += same_id_defects(self._captures.index)
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
        """Return the notes of stored files that no longer exist."""
        return [(note, MISSING) for note, _ in self._dropped.find_missing(workspaces)]

    def _public_path(self, path: str) -> str:
        """Return the path of a capture for agents: the number in its name would reveal a note outside the inbox."""
        record = self._captures.index.record_at(path)
        return path if record is None else f"{path.rpartition('/')[0]}/{redact(record.title)}.md"


def _exchange_sentences(git_unwell: str, services: VaultServices) -> list[str]:
    """Return the problems of the remote and of commits, unless the repository's state already explains them."""
    services.commits.look_again()
    remote = services.remote.unwell
    return ["" if remote == git_unwell else remote, "" if git_unwell else services.commits.problem]


def _visible_fields(note: Document | Record) -> tuple[object, ...]:
    """Return what agents see of a capture, as a value to compare."""
    return (
        visible_digest(note),
        note.type,
        note.defects,
        note.superseded_by,
        note.created_at,
        note.updated_at,
        note.version,
    )
