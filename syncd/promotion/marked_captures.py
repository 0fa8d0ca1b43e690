"""Promote captures that a person marked for promotion, once the note is quiet and no Git operation is under way.

Laws, tested: the reason why a marked capture cannot be promoted is written into it as `promote_problem`, once, and
removed when the problem is solved; nothing else is written; two machines that see the same mark promote to equal
bytes; a bug that one capture triggers delays no other capture."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from index.document_ids import sha256
from index.errors import Conflict, InvalidArgument, MemexError, NotFound, Unavailable
from index.model import Document, Record
from index.names import fold
from syncd.documents.capture_note import CHANGE
from syncd.documents.owner_marks import OwnerMarks, read_marks
from syncd.git import head_moves
from syncd.git.repository import Repository
from syncd.history.audit_log import acting_as
from syncd.notes.front_matter import FrontmatterError, decode, edit, encode
from syncd.promotion.destination_conflicts import DestinationConflicts
from syncd.promotion.plan import Plan, TakenDestination, is_in_use, read_promotable, reserve_paths
from syncd.promotion.promoted_note import DEFECT, UNCLEAR, Problem
from syncd.promotion.promotions import AUTHOR, Promotions
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.promotion.waiting_captures import WaitingCaptures
from syncd.sync.hand_edits import LATEST_MS

log = logging.getLogger(__name__)

KEY: Final = "promote_problem"


@dataclass(slots=True)
class _Batch:
    """Collects the results of the marked captures, in the order in which they are planned."""

    plans: list[Plan] = field(default_factory=list)
    # Captures, and the path of the note at their destination.
    taken: list[tuple[Record, str]] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)  # path → why it can't be promoted
    reserved: dict[str, str] = field(default_factory=dict)  # paths that plans create, folded → as they are spelled
    recent: head_moves.RecentCommits | None = None  # what Git knows about the captures
    again: bool = False  # whether a capture can't be decided yet
    unsure: bool = False  # whether a capture may have a conflict that is not known yet

    def add_plan(self, plan: Plan) -> None:
        """Add the plan for a capture that can be promoted."""
        self.plans.append(plan)
        reserve_paths(self.reserved, plan)

    def add_problem(self, record: Record, problem: Problem) -> None:
        """Add why a capture can't be promoted."""
        self.problems[record.path] = problem.message
        if isinstance(problem, TakenDestination):
            self.taken.append((record, problem.target))

    def postpone(self) -> None:
        """Record that a capture can't be decided yet, so that the job checks it again."""
        self.again = self.unsure = True


class MarkedCaptures:
    """Runs the job that promotes marked captures."""

    def __init__(
        self,
        snapshot: VaultSnapshot,
        promotions: Promotions,
        waiting: WaitingCaptures,
        conflicts: DestinationConflicts,
        *,
        repo: Repository,
        stopping: Callable[[], threading.Event],
    ) -> None:
        self._snapshot, self._promotions, self._waiting = snapshot, promotions, waiting
        self._merging, self._repo, self._stopping = conflicts, repo, stopping
        self._moment: object = None  # the state of the indexes at the last check
        self._again = False  # check again even if no note changes
        self._problems: dict[str, str] = {}  # path → why it can't be promoted
        self._promoted = 0  # since the start

    def run(self) -> None:
        """Check the marked captures, if anything has changed since the last check."""
        with acting_as(AUTHOR):
            snapshot = self._snapshot
            if not snapshot.vault.is_present():
                return
            self._promotions.finish_pending()
            if not snapshot.settings.promote.marks or not snapshot.sync.ready.is_set():
                return
            moment = self._waiting.version, snapshot.notes.index.generation if self._problems else None
            if moment == self._moment and not self._again:
                return
            self._moment, self._again = moment, True  # until the check has succeeded
            self._again = self._promote_marked()

    def facts(self) -> dict[str, Any]:
        """Return what the owner's status page shows about marked captures."""
        problems = [{"path": path, "problem": why} for path, why in sorted(self._problems.items())]
        return {"on": self._snapshot.settings.promote.marks, "problems": problems, "promoted": self._promoted}

    def _promote_marked(self) -> bool:
        """Plan the marked captures, carry out the plans, record the problems, and return whether some are left for later."""
        batch = _Batch()
        captures = self._waiting.find_captures(_needs_attention)
        batch.recent = self._ask_git(record.path for record, asked in captures if asked.promote)
        for record, asked in captures:
            self._decide(record, asked, batch)
        problems = batch.problems
        left = self._carry_out(batch.plans, problems)
        for path, note in self._merging.ask(batch.taken, whole=not batch.unsure).items():
            problems[path] += f"; see [[{note}]]"
        self._write_problems(problems)
        self._problems = problems
        return batch.again or left

    def _ask_git(self, paths: Iterable[str]) -> head_moves.RecentCommits:
        """Ask Git about these captures together: a process for each takes several milliseconds."""
        written = dict[str, int]()
        for path in paths:
            with suppress(MemexError):  # reading it fails too, and is reported
                if stat := self._snapshot.vault.stat(path):
                    written[path] = stat.mtime_ns // 1_000_000_000
        return head_moves.RecentCommits(self._repo, written)

    def _decide(self, record: Record, asked: OwnerMarks, batch: _Batch) -> None:
        """Decide what to do with one capture of a batch; a proposed change is applied at once."""
        try:
            if is_in_use(self._snapshot, self._repo, record.path):
                batch.postpone()
            elif not asked.may_be_promotion:
                self._write_problem(record, None)
            elif record.type == CHANGE:
                self._apply_change(record, asked, batch)
            else:
                batch.add_plan(self._make_plan(record, asked, batch))
        except Problem as error:
            if self._is_conflict_unsettled(error, batch):
                batch.postpone()
            else:
                batch.add_problem(record, error)
        except MemexError as error:
            log.info("promoting a marked capture later: %s", error.message)
            batch.postpone()
        except Exception:  # a bug that one capture triggers must not delay the others
            log.exception("could not plan the promotion of a marked capture")
            batch.problems[record.path], batch.unsure = DEFECT, True

    def _is_conflict_unsettled(self, error: Problem, batch: _Batch) -> bool:
        """Return whether a person is asked about a destination conflict later, because its note still changes."""
        if not isinstance(error, TakenDestination):
            return False
        if fold(error.target) in batch.reserved:
            return True  # the other capture is promoted first
        with suppress(MemexError):  # a note that can't be read is a problem too
            return is_in_use(self._snapshot, self._repo, error.target)
        return False

    def _apply_change(self, record: Record, asked: OwnerMarks, batch: _Batch) -> None:
        """Apply the change of a marked proposal, unless its note is in use. Raises Problem if it can't be applied."""
        if not asked.promote:
            raise Problem(UNCLEAR)
        try:
            plan = self._promotions.changes.plan(record.path, shown=record.digest)
            if is_in_use(self._snapshot, self._repo, plan.target):
                batch.postpone()
                return
            self._promotions.apply_change(record.path, shown=record.digest, tool="mark")
        except (Conflict, InvalidArgument, NotFound, Unavailable) as error:
            if error.retryable:
                raise
            raise Problem(error.message) from error
        self._promoted += 1

    def _make_plan(self, record: Record, asked: OwnerMarks, batch: _Batch) -> Plan:
        if not asked.promote:
            read_promotable(self._snapshot, record)
            raise Problem(UNCLEAR)
        at = written_at(self._snapshot, self._repo, record.path, record, batch.recent)
        return self._promotions.make_plan(record, tool="mark", at=at, reserved=batch.reserved)

    def _write_problems(self, problems: Mapping[str, str]) -> None:
        for record, asked in self._waiting.find_captures(_needs_attention):
            why = problems.get(record.path)
            if why and asked.promote_problem != why:
                self._write_problem(record, why)

    def _carry_out(self, plans: list[Plan], problems: dict[str, str]) -> bool:
        """Carry out the plans that can be carried out, and return whether some are left for later."""
        left = False
        outcomes = self._promotions.carry_out(plans, stopping=self._stopping())
        for plan, done in zip(plans, outcomes, strict=True):
            if isinstance(done, Problem):
                problems[plan.source] = done.message
            elif isinstance(done, MemexError):
                log.info("promoting a capture later: %s", done.message)
                left = True
            else:
                self._promoted += 1
        return left

    def _write_problem(self, record: Record, why: str | None) -> None:
        """Write into the capture why it can't be promoted, unless the capture states it already; None removes the reason."""
        try:
            raw, _ = self._snapshot.vault.read(record.path)
            if sha256(raw) == record.digest and read_marks(decode(raw)).promote_problem != why:
                self._snapshot.vault.replace(record.path, encode(edit(decode(raw), {KEY: why})), digest=record.digest)
                self._snapshot.sync.hint([record.path])
        except (MemexError, FrontmatterError) as error:
            log.info("could not write into a capture why it is not promoted: %s", error)
        except Exception:  # as above
            log.exception("could not write into a capture why it is not promoted")


def _needs_attention(marks: OwnerMarks) -> bool:
    """Return whether a capture with these marks needs an action or a message."""
    return marks.may_be_promotion or marks.promote_problem is not None


def written_at(
    snapshot: VaultSnapshot,
    repo: Repository,
    path: str,
    note: Document | Record,
    recent: head_moves.RecentCommits | None = None,
) -> int:
    """Return when a note was written, equal on every machine that has it: the time of its commit, or of its file.

    It is never earlier than the times in the note, which a file that was moved or restored may contradict. `recent`: what
    Git answered about this path and others, if it was asked."""
    raw, stat = snapshot.vault.read(path)
    written = stat.mtime_ns // 1_000_000_000
    if recent is None or not recent.are_current(path, written):
        recent = head_moves.RecentCommits(repo, {path: written})
    if any(recent.have(path, before) for before in _before_adoption(raw)):
        output = repo.query("rev-list", "--max-count=1", "--timestamp", "HEAD", "--stdin", stdin=f"--\n{path}\n")
        first = (output or "").partition(" ")[0]
        written = int(first) if first.isdigit() else written
    dated = note.created_at != stat.mtime_ms  # a note without a date has its file's time
    made = note.created_at if dated else 0
    stated = -(-max(made, note.updated_at or 0) // 1000)  # the next whole second
    return min(max(written, stated, 0) * 1000, LATEST_MS - 1000)


def _before_adoption(raw: bytes) -> Iterator[bytes]:
    """Yield these bytes, and as they were if Memex has added the properties of an adopted note."""
    yield raw
    with suppress(FrontmatterError):
        for names in (["id"], ["id", "created_at"]):
            yield encode(edit(decode(raw), dict.fromkeys(names)))
