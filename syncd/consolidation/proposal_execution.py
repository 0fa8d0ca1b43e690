"""Execute accepted proposals about captures: change all files of a proposal or none, in one commit.

Laws, tested: a note that changed since its proposal is left alone and reported; after a crash at any point the next
call finishes the work, and nothing is done twice; links to moved notes still lead to them."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from index.document_ids import sha256
from index.errors import Conflict, MemexError, NotFound, Unavailable
from index.timings import now_ms
from syncd.commits.commit_message import format_message
from syncd.commits.committer import Committer, DueCommit, MadeCommit
from syncd.consolidation.proposal_plans import FileKind, GraphKind, Proposed
from syncd.git.repository import Repository
from syncd.history.audit_log import CONSOLIDATION, AuditLog, acting_as
from syncd.history.change_journal import (
    RECENT_MS,
    ChangeJournal,
    Entry,
    FileChange,
    MovePlan,
    ReadVersion,
    UnfinishedChanges,
    require_bytes,
)
from syncd.promotion.link_updates import plan_link_updates
from syncd.promotion.promotions import NO_HISTORY, NOTHING
from syncd.promotion.proposal_store import Proposals
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.vault.location import REPORTS

KINDS: Final = ("merge-duplicates", "tag-merge", "relate", "summary", "archive")
# The graph does these before the journal has an entry; they are not rolled back.
BY_GRAPH: Final = ("relate", "summary")
NAMED: Final = 5  # most files in a message
SEARCHED: Final = 5_000  # latest changes of the vault in which carried-out proposals are searched
MOST: Final = 1_000  # log entries searched for the writes of one proposal

log = logging.getLogger(__name__)


class ProposalExecution:
    """Carries out the proposals of consolidation. Safe from any thread: one at a time."""

    def __init__(
        self,
        snapshot: VaultSnapshot,
        journal: ChangeJournal,
        repo: Repository,
        commits: Committer,
        *,
        kinds: Sequence[FileKind | GraphKind],
        indexed: Callable[[Collection[str]], object],
        owner: Callable[[], str],
        lock: threading.RLock,
        audit: AuditLog,
        read_version: ReadVersion,
    ) -> None:
        """Set the parts it works with. All code that moves captures holds `lock`."""
        self._snapshot, self._journal, self._repo, self._commits = snapshot, journal, repo, commits
        self._kinds, self._indexed, self._owner = kinds, indexed, owner
        self._lock, self._audit, self._read_version = lock, audit, read_version
        self._unfinished = UnfinishedChanges()

    def register(self, proposals: Proposals) -> None:
        """Register the carriers of these kinds."""
        for kind in self._kinds:
            if isinstance(kind, FileKind):
                proposals.register(kind.name, partial(self._carry_out_plan, kind))
            else:
                proposals.register(kind.name, partial(self._carry_out_in_graph, kind))

    def finish_pending(self, *, at_once: bool = False) -> list[MadeCommit]:
        """Finish interrupted proposals, commit what is not committed yet, and return the commits.

        After a failure it waits before the next try, unless `at_once` is set."""
        made: list[MadeCommit] = []
        if not self._unfinished.are_due(at_once=at_once):
            return made
        with self._lock, self._unfinished.finishing():
            for entry in self._journal.unfinished():
                with acting_as(replace(CONSOLIDATION, request=entry.document_id)):
                    self._finish(entry)
            for entry in self._journal.uncommitted(now_ms() - RECENT_MS):
                if self._unfinished.are_delayed():  # Git refuses the other commits too
                    break
                made += self._commit(entry, self._journal.steps(entry.seq))
        return made

    def due_commits(self) -> Iterator[DueCommit]:
        """Yield the commits that Git has not allowed yet."""
        for entry in self._journal.uncommitted(now_ms() - RECENT_MS):
            with suppress(MemexError):  # a file can't be read
                yield self._make_commit(entry, self._journal.steps(entry.seq))

    def _finish(self, entry: Entry) -> None:
        try:
            if busy := self._repo.busy_reason():
                raise Unavailable(f"a Git operation is in progress ({busy})")
            self._resume(entry)
        except (Conflict, NotFound) as error:
            log.warning("did not carry out an interrupted proposal: %s", error.message)
        except MemexError as error:
            log.warning("could not finish an interrupted proposal yet: %s", error.message)
            self._unfinished.delay()

    def facts(self) -> dict[str, Any]:
        """Return the proposals that are torn, unfinished or uncommitted."""
        recent = self._journal.latest_entries(200)
        torn = [json.loads(entry.about) for entry in recent if entry.state == "torn"]
        return {
            "torn": [{"path": "", "what": about["subject"], "left": about.get("left", [])} for about in torn],
            "begun": sum(entry.state == "begun" for entry in recent),
            "uncommitted": sum(entry.state == "done" and not entry.commit_id for entry in recent),
        }

    def _carry_out_in_graph(self, kind: GraphKind, proposed: Proposed) -> str:
        """Let the graph carry out the proposal, and commit the notes that it wrote in one commit."""
        key = proposed["key"]
        with self._lock, acting_as(replace(CONSOLIDATION, request=key)):
            for entry in self._journal.entries_of(key):
                if entry.state == "done":
                    return str(json.loads(entry.about)["said"])
            before = self._audit.head.seq
            answer = kind.work(proposed)
            if steps := self._logged_changes(key, before):
                about = {"said": answer, "subject": kind.subject.format(answer), "ids": list(proposed["ids"])}
                self._unfinished.expect()  # until it is committed
                entry = self._journal.begin(
                    MovePlan(kind.name, key, "", "", steps, about), by=self._owner(), at=now_ms()
                )
                self._end(entry, steps)
            return answer

    def _logged_changes(self, key: str, after: int) -> list[FileChange]:
        """Return the file changes made for a proposal since log entry `after`, from the audit log."""
        was: dict[str, str] = {}
        for entry in self._audit.find(MOST, after=after):
            if entry.request == key and entry.path:
                was.setdefault(entry.path, entry.before)
        steps = []
        for path, before in sorted(was.items()):
            with suppress(MemexError):  # the file is missing or being written
                raw, _ = self._snapshot.vault.read(path)
                if sha256(raw) != before:
                    steps.append(FileChange(path, before, sha256(raw), None, raw))
        return steps

    def _carry_out_plan(self, kind: FileKind, proposed: Proposed) -> str:
        """Carry out the plan of this kind, or finish an interrupted one."""
        key = proposed["key"]
        with self._lock, acting_as(replace(CONSOLIDATION, request=key)):
            if busy := self._repo.busy_reason():
                raise Unavailable(f"a Git operation is in progress ({busy}); the proposal is carried out after it")
            for entry in self._journal.entries_of(key):
                if entry.state == "begun":
                    self._resume(entry)
                if entry.state in ("begun", "done"):
                    return str(json.loads(entry.about)["said"])
            plan = kind.plan(proposed)
            about = {"said": plan.said, "subject": plan.subject, "ids": list(plan.ids)}
            self._change_files(MovePlan(kind.name, key, "", "", plan.steps, about))
            return plan.said

    def _change_files(self, plan: MovePlan) -> None:
        """Change all files as planned, or none."""
        self._unfinished.expect()  # until it has succeeded
        entry = self._journal.begin(plan, by=self._owner(), at=now_ms())
        try:
            self._journal.roll_forward(plan.steps)
        except BaseException:
            self._take_back(entry, plan.steps)
            raise
        self._end(entry, plan.steps)

    def undo(self, key: str) -> list[str]:
        """Undo the proposal with this key that was carried out, in a commit of its own; return the changed files.

        Raises NotFound if none was, or a text is no longer kept, and Conflict, with the files, if somebody changed one of
        its files since."""
        with self._lock, acting_as(replace(CONSOLIDATION, request=f"undo {key}")):
            entry = self._find_standing(key)
            if busy := self._repo.busy_reason():
                raise Unavailable(f"a Git operation is in progress ({busy}); undo the proposal after it")
            about, reports = json.loads(entry.about), f"{self._snapshot.inbox}/{REPORTS}/"
            back = [
                FileChange(step.path, step.now, step.was, step.after, step.before, step.twin)
                for step in reversed(self._journal.complete_steps(entry.seq, self._read_version))
                if not step.path.startswith(reports)
            ]
            if changed := [step.path for step in back if self._journal.current_digest(step) != step.was]:
                raise Conflict(f"changed since, so nothing was undone: {', '.join(changed[:NAMED])}", paths=changed)
            for step in back:
                if step.now:
                    require_bytes(step.after, step.path)
            about |= {"subject": f"Undo: {about['subject']}", "undoes": entry.seq}
            self._change_files(MovePlan(entry.kind, key, "", "", back, about))
            self._mend_reports(back, reports)
            return [step.path for step in back]

    def is_by_graph(self, key: str) -> bool:
        """Return whether the graph carried out this proposal, so that its writes are undone as those of a call.

        Raises NotFound if it was not carried out, and Conflict if it is undone."""
        return self._find_standing(key).kind in BY_GRAPH

    def is_undone(self, key: str) -> bool:
        """Return whether a proposal was carried out and undone."""
        try:
            self._find_standing(key)
        except Conflict:
            return True
        except NotFound:  # nobody knows
            return False
        return False

    def mark_undone(self, key: str) -> None:
        """Record that the writes of a proposal that the graph carried out are undone."""
        entry = self._find_standing(key)
        self._journal.set_state(entry.seq, "done", about=json.dumps(json.loads(entry.about) | {"undone": True}))

    def _find_standing(self, key: str) -> Entry:
        """Return the journal's entry of a proposal that was carried out and not undone. Raises NotFound or Conflict."""
        done = [entry for entry in self._journal.entries_of(key) if entry.state == "done"]
        if not done:
            raise NotFound(f"Memex carried out no proposal {key[:40]!r}; memex consolidate --list shows those it did")
        if json.loads(done[-1].about).keys() & {"undoes", "undone"}:
            raise Conflict("that proposal is undone already")
        return done[-1]

    def _mend_reports(self, steps: Sequence[FileChange], reports: str) -> None:
        """Let the links of reports lead to the notes that an undo moved back."""
        gone = [step.path for step in steps if not step.now]
        back = [step.path for step in steps if not step.was]
        if len(gone) == len(back) == 1:
            updates = plan_link_updates(
                self._snapshot.vault, {gone[0]: back[0]}, inbox=self._snapshot.inbox, moved=True
            )
            for path, (before, after) in updates.changes.items():
                if path.startswith(reports):
                    with suppress(Conflict, NotFound):  # a person is editing it
                        self._snapshot.vault.replace(path, after, digest=sha256(before))

    def latest(self, limit: int) -> list[dict[str, Any]]:
        """Return the proposals that were carried out, the newest first, each with whether it was undone."""
        undone: set[str] = set()
        rows: list[dict[str, Any]] = []
        for entry in reversed(self._journal.latest_entries(SEARCHED)):
            about = json.loads(entry.about)
            if entry.state != "done" or len(rows) == limit:
                continue
            if "undoes" in about:
                undone.add(entry.document_id)
                continue
            row = {"key": entry.document_id, "kind": entry.kind, "subject": about["subject"], "said": about["said"]}
            row |= {"at": entry.at, "by": entry.by, "undone": "undone" in about or entry.document_id in undone}
            rows.append(row | {"commit": entry.commit_id.removeprefix(NOTHING)})
        return rows

    def changes_of(self, key: str) -> list[FileChange]:
        """Return the file changes of a proposal that was carried out, without those of reports; none for an unknown key."""
        reports = f"{self._snapshot.inbox}/{REPORTS}/"
        done = [entry for entry in self._journal.entries_of(key) if entry.state == "done"]
        first = next((entry for entry in reversed(done) if "undoes" not in json.loads(entry.about)), None)
        steps = self._journal.steps(first.seq) if first else []
        return [step for step in steps if not step.path.startswith(reports)]

    def _resume(self, entry: Entry) -> None:
        """Finish a proposal that a crash interrupted; roll it back if somebody changed one of its files."""
        steps = self._journal.steps(entry.seq)
        if entry.kind not in BY_GRAPH and self._journal.find_conflicts(steps):
            left = self._take_back(entry, steps, resumed=True)
            but = f", except in {', '.join(left)}, which somebody else changed" if left else ""
            raise Conflict(f"notes changed while the proposal was carried out, so Memex rolled it back{but}")
        if entry.kind not in BY_GRAPH:  # the graph's changes were made before the journal entry
            self._journal.roll_forward(steps)
        self._end(entry, steps)

    def _take_back(self, entry: Entry, steps: Sequence[FileChange], *, resumed: bool = False) -> list[str]:
        left = self._journal.roll_back(steps, resumed=resumed)
        about = json.dumps(json.loads(entry.about) | {"left": left})
        self._journal.set_state(entry.seq, "torn" if left else "undone", about=about)
        self._indexed([step.path for step in steps])
        return left

    def _end(self, entry: Entry, steps: Sequence[FileChange]) -> None:
        self._journal.set_state(entry.seq, "done")
        self._indexed([step.path for step in steps])
        self._commit(entry, steps)

    def _commit(self, entry: Entry, steps: Sequence[FileChange]) -> list[MadeCommit]:
        """Commit the changes that still stand, and return the commit."""
        try:
            due = self._make_commit(entry, steps)
        except MemexError:  # a file can't be read
            self._unfinished.delay()
            return []
        made = None
        with suppress(MemexError):
            made = self._commits.commit(due.digests, due.message, approved=due.approved)
        if made is None and self._commits.is_on and self._repo.local_state() not in NO_HISTORY:
            self._unfinished.delay()
            return []
        self._journal.set_state(entry.seq, "done", commit_id=made or NOTHING)
        return [MadeCommit(made, due.message.partition("\n")[0], tuple(due.digests))] if made else []

    def _make_commit(self, entry: Entry, steps: Sequence[FileChange]) -> DueCommit:
        """Return the commit of the files that are unchanged since. Raises Unavailable when a file can't be read."""
        about = json.loads(entry.about)
        trailers = [
            *(("Capture-Id", id) for id in about["ids"]),
            ("Approved-By", entry.by),
            ("Memex-Tool", "consolidation"),
        ]
        reports = (
            f"{self._snapshot.inbox}/{REPORTS}/"  # reports stay out of commits: a person may be ticking boxes in them
        )
        done = [
            step
            for step in steps
            if not step.path.startswith(reports) and self._journal.current_digest(step) == step.now
        ]
        text = format_message(about["subject"], [step.path for step in done if step.now], trailers)
        # New and removed files are committed whole; elsewhere a person's edits stay out.
        moved = [step.path for step in done if not step.was or not step.now]
        return DueCommit({step.path: step.now for step in done}, text, moved)
