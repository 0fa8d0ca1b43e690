"""Carry out promotions: move a capture out of the inbox as a note of the vault, with all its links; and move it back.

Laws, tested: a promotion is complete or did not happen, whatever fails or is killed; nothing at the destination is
overwritten; changes that somebody makes meanwhile are kept. When a call returns, the index matches the files."""

from __future__ import annotations

import getpass
import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from index.document_ids import sha256
from index.errors import Conflict, MemexError, NotFound, Unavailable
from index.model import Record
from index.timings import now_ms
from syncd.captures.writer import hold_commits
from syncd.changes.change_approval import APPLY, UNAPPLY, ChangePlans
from syncd.commits.committer import Committer, DueCommit, MadeCommit
from syncd.git.repository import Repository
from syncd.history.audit_log import Author, acting_as
from syncd.history.change_journal import RECENT_MS, ChangeJournal, Entry, FileChange, MovePlan, UnfinishedChanges
from syncd.indexes import note_lookup
from syncd.promotion.link_updates import MoveSeries, plan_link_updates
from syncd.promotion.plan import (
    CHANGES,
    Plan,
    choose_id,
    compose_text,
    describe_links,
    format_commit_message,
    make_due_commit,
    make_plan,
    plan_merge,
)
from syncd.promotion.promoted_note import DEFECT, Problem
from syncd.promotion.return_to_inbox import STANDING, plan_return
from syncd.promotion.vault_snapshot import VaultSnapshot
from syncd.vault.path_rules import parent_folders

log = logging.getLogger(__name__)

WAYS: Final = ("promote", "unpromote", "merge", APPLY, UNAPPLY)  # kinds in the journal
TRIES: Final = 5  # a try fails when somebody changes a note at the same moment
NOTHING: Final = "-"  # in place of a commit id, when there was nothing to commit
NO_HISTORY: Final = frozenset({"no-git", "no-repo", "bare"})
SERIES: Final = 20  # promotions that are committed together
KNOWN_S: Final = 1.0  # how often a series of promotions updates the index
FOLDERS: Final = 1_000  # latest moves that are searched for folders a promotion created
AUTHOR: Final = Author("daemon", "promote")
Progress = Callable[[int, int, str], None]


@dataclass(slots=True)
class _Move:
    """Describes a move whose files have been changed; its commit is added to the outcome when it is made."""

    entry: Entry
    steps: Sequence[FileChange]
    outcome: dict[str, Any]


@dataclass(slots=True)
class _Earlier:
    """Records what the promotions of one call have done so far."""

    relinked: set[str] = field(default_factory=set)  # notes whose links were rewritten
    ids: set[str] = field(default_factory=set)  # ids of the promoted notes
    unindexed: list[FileChange] = field(default_factory=list)  # changes that are not in the index yet
    uncommitted: list[_Move] = field(default_factory=list)  # no file is in two of them


class Promotions:
    """Carries out the promotions of one vault. Safe from any thread: one is carried out at a time."""

    def __init__(
        self,
        snapshot: VaultSnapshot,
        journal: ChangeJournal,
        repo: Repository,
        commits: Committer,
        changes: ChangePlans,
    ) -> None:
        self._snapshot, self.journal, self._repo, self._commits = snapshot, journal, repo, commits
        self.changes = changes  # what agents propose for notes of the vault
        self.lock = threading.RLock()  # held while captures are moved
        self._unfinished = UnfinishedChanges()

    # The owner's commands

    def make_plan(self, record: Record, *, tool: str = "promote", at: int | None = None, **options: Any) -> Plan:
        """Plan the promotion of a capture. Raises Problem for one that can't be promoted as it is."""
        return make_plan(self._snapshot, record, tool=tool, at=now_ms() // 1000 * 1000 if at is None else at, **options)

    def merge(self, reference: str, target: str) -> dict[str, Any]:
        """Append the text of a capture to a note of the vault, redirect all its links there, and return the outcome."""
        return self.carry_out_move(lambda: plan_merge(self._snapshot, self._snapshot.find_capture(reference), target))

    def carry_out(
        self, plans: Sequence[Plan], *, progress: Progress | None = None, stopping: threading.Event | None = None
    ) -> list[dict[str, Any] | MemexError]:
        """Carry out plans one after another, with one scan of the vault, and return the outcome or the error of each."""
        if not plans:
            return []
        by = self.owner()
        done: list[dict[str, Any] | MemexError] = []
        earlier = _Earlier()
        with self.lock, ExitStack() as ending:
            self.finish_pending()
            series, indexed_at = self._make_series(plans), time.monotonic()
            ending.callback(lambda: self._finish_moves(earlier))
            ending.callback(self._repair_links, series)
            for plan in plans:
                if stopping is not None and stopping.is_set():
                    done.append(Unavailable("the daemon is stopping; the remaining captures are promoted later"))
                    continue
                done.append(self._carry_out_plan(plan, by, series, earlier))
                if time.monotonic() - indexed_at > KNOWN_S:
                    self._finish_moves(earlier)
                    indexed_at = time.monotonic()
                if progress:
                    progress(len(done), len(plans), "promoting")
        return done

    def _carry_out_plan(
        self, plan: Plan, by: str, series: MoveSeries | None, earlier: _Earlier
    ) -> dict[str, Any] | MemexError:
        """Carry out one plan after the earlier ones of the same call, and return its outcome or its error."""
        try:
            again = plan.source in earlier.relinked or plan.id in earlier.ids
            move_plan = self.make_move_plan(self._renew_plan(plan, earlier.ids) if again else plan, series)
            self._commit_before(move_plan, earlier.uncommitted)
            move = self._move_files(move_plan, by)
        except MemexError as error:
            return error
        except Exception:  # a bug that one capture triggers must not block the others
            log.exception("could not promote a capture")
            return Problem(DEFECT)
        earlier.relinked.update(move.outcome["relinked"])
        earlier.ids.add(move.outcome["id"])
        if series is not None:
            series.record_moves(plan.moves)
        earlier.unindexed += move.steps
        earlier.uncommitted.append(move)
        return move.outcome

    def _commit_before(self, move_plan: MovePlan, waiting: list[_Move]) -> None:
        """Commit the moves that wait, if there are many, or if the next one changes a file of theirs.

        So each commit has all changes of its move, and a person's commits seldom collide with those of a short series."""
        paths = {step.path for step in move_plan.steps}
        if len(waiting) >= SERIES or any(step.path in paths for move in waiting for step in move.steps):
            self._commit(waiting)

    def _finish_moves(self, earlier: _Earlier) -> None:
        """Update the index, and make the commits, after the latest moves of a call."""
        self._update_indexes(earlier.unindexed)
        earlier.unindexed.clear()
        self._commit(earlier.uncommitted)

    def _repair_links(self, series: MoveSeries | None) -> None:
        """Repair the links that somebody has written during a series, to files that it has moved."""
        try:
            if series is not None:
                self._snapshot.write_links(series.plan_repairs())
        except MemexError as error:
            log.warning("links that were written during a promotion may be broken: %s", error.message)

    def _renew_plan(self, plan: Plan, ids: Collection[str]) -> Plan:
        """Renew a plan after an earlier promotion rewrote links in its capture, or took its id.

        Raises Conflict if the owner has changed the capture too."""
        raw, _ = self._snapshot.vault.read(plan.source)
        if (now := sha256(raw)) != (was := sha256(plan.raw)) and not self.journal.has_relinked(plan.source, was, now):
            raise Conflict("the capture changed a moment ago; try again in a moment", retryable=True)
        id = choose_id(self._snapshot, plan.document, raw, ids)
        return replace(plan, raw=raw, text=compose_text(raw, plan.at, id, plan.taken), id=id)

    def _make_series(self, plans: Sequence[Plan]) -> MoveSeries | None:
        """Return one scan for many plans; None for a single plan, which scans the vault itself."""
        if len(plans) < 2:
            return None
        moves = {old: new for plan in plans for old, new in plan.moves.items()}
        return MoveSeries(self._snapshot.vault, moves, inbox=self._snapshot.inbox)

    def unpromote(self, reference: str) -> dict[str, Any]:
        """Return a promoted note or an appended text to the inbox, or undo an applied change, and return the outcome.

        Raises an error if that is not possible."""
        if (change := self.find_applied_change(reference)) is not None:
            return self.carry_out_move(lambda: self.changes.plan_return(change, self.complete_steps(change)))
        outcome = self.carry_out_move(lambda: plan_return(self._snapshot, self.journal, reference, self.complete_steps))
        self._remove_made_folders(outcome["source"])
        return outcome

    def complete_steps(self, entry: Entry, paths: Collection[str] | None = None) -> list[FileChange]:
        """Return the file changes of an entry, complete for `paths` (None = all); bytes that nobody has any more are None."""
        return self.journal.complete_steps(entry.seq, self.changes.read_version, paths=paths)

    def apply_change(self, path: str, *, shown: str | None = None, tool: str = "promote") -> dict[str, Any]:
        """Apply the change that the capture at `path` proposes, and return the outcome; see `ChangePlans.plan`."""
        return self.carry_out_move(lambda: self.changes.plan(path, shown=shown, tool=tool))

    def find_applied_change(self, reference: str) -> Entry | None:
        """Return the last applied change of a note, or of a proposal, by id or path; None if something else came after it.

        A text that was appended to a note counts as one by the path of that note alone: the capture's id and path may mean
        another note by now."""
        paths = {reference, f"{reference}.md"}
        names = set(paths)
        with suppress(MemexError):  # several notes match
            if (record := note_lookup.find_note([self._snapshot.notes.index], reference)) is not None:
                names.add(record.path)
        undone: list[str] = []
        for entry in reversed(self.journal.entries_named(sorted(names))):
            if entry.state != "done":
                continue
            if entry.kind == UNAPPLY:
                undone.append(entry.document_id)
            elif entry.kind in CHANGES and entry.document_id in undone:
                undone.remove(entry.document_id)
            else:
                return entry if entry.kind == APPLY or (entry.kind in CHANGES and entry.target in paths) else None
        return None

    def carry_out_move(self, decide: Callable[[], MovePlan], *, by: str | None = None) -> dict[str, Any]:
        """Carry out the move that `decide` plans, planning again when a file changed meanwhile; return the outcome.

        `by`: None = the owner. Raises an error if the move is not possible."""
        with self.lock:
            self.finish_pending()
            for _ in range(TRIES):
                with suppress(_FilesChanged):
                    return self._apply_move(decide(), self.owner() if by is None else by)
        raise Conflict("the notes kept changing; try again in a moment", retryable=True)

    def finish_move(self, move_plan: MovePlan, *, by: str | None) -> dict[str, Any]:
        """Carry out a move that the caller has planned, such as the rest of a manual move; return the outcome.

        `by`: as for `carry_out_move`."""
        with self.lock:
            self.finish_pending()
            return self._apply_move(move_plan, self.owner() if by is None else by)

    def owner(self) -> str:
        """Return the person who runs the commands: the person set in Git, or the user of the system."""
        name, mail = (self._repo.query("config", "--get", f"user.{what}") or "" for what in ("name", "email"))
        if name or mail:
            return f"{name} <{mail}>".strip() if mail else name
        with suppress(OSError, KeyError):  # a user without a name
            return getpass.getuser()
        return ""

    def finish_pending(self, *, at_once: bool = False) -> list[MadeCommit]:
        """Finish interrupted promotions, commit what is not committed yet, and return the commits.

        After a failure it waits before the next try, unless `at_once` is set."""
        made: list[MadeCommit] = []
        if not self._unfinished.are_due(at_once=at_once):
            return made
        with self.lock, acting_as(AUTHOR), self._unfinished.finishing():
            for entry in self.journal.unfinished():
                self._resume(entry)
            for entry in self.journal.uncommitted(now_ms() - RECENT_MS):
                steps = self.journal.steps(entry.seq)
                outcome: dict[str, Any] = {"commit": "", "left_out": []}
                self._commit([_Move(entry, steps, outcome)])
                if self._unfinished.are_delayed() and self._commits.hindrance():  # Git refuses the others too
                    break
                if outcome["commit"]:
                    subject = format_commit_message(entry).partition("\n")[0]
                    paths = dict.fromkeys(step.path for step in steps if step.path not in outcome["left_out"])
                    made.append(MadeCommit(outcome["commit"], subject, tuple(paths)))
        return made

    def due_commits(self) -> Iterator[DueCommit]:
        """Yield the recent promotions that still lack a commit, with the commit to make."""
        for entry in self.journal.uncommitted(now_ms() - RECENT_MS):
            with suppress(MemexError):  # a file can't be read
                if due := make_due_commit(self.journal, entry, self.journal.steps(entry.seq)):
                    yield due

    def last_action(self, id: str) -> tuple[str, str, str]:
        """Return the kind of the last action on a capture, its old path and its new path; "" = none."""
        last = next((entry for entry in reversed(self.journal.entries_of(id)) if entry.state == "done"), None)
        return (last.kind, last.source, last.target) if last else ("", "", "")

    def latest(self, limit: int) -> list[dict[str, Any]]:
        """Return the latest promotions that were not undone, newest first."""
        over: set[str] = set()
        rows = []
        for entry in reversed(self.journal.latest_entries(2 * limit)):
            if entry.state == "done" and entry.kind in STANDING and entry.document_id not in over:
                over.add(entry.document_id)
                if entry.kind == "promote":
                    row = {"id": entry.document_id, "source": entry.source, "target": entry.target, "by": entry.by}
                    rows.append({**row, "at": entry.at, "commit": entry.commit_id.removeprefix(NOTHING)})
        return rows[:limit]

    def facts(self) -> dict[str, Any]:
        """Return the promotions that are torn, unfinished or uncommitted."""
        recent = self.journal.latest_entries(200)
        return {
            "torn": [
                {"path": entry.target, "left": json.loads(entry.about).get("left", [])}
                for entry in recent
                if entry.state == "torn"
            ],
            "begun": sum(entry.state == "begun" for entry in recent),
            "uncommitted": sum(entry.state == "done" and not entry.commit_id for entry in recent),
        }

    # Details

    def make_move_plan(self, plan: Plan, series: MoveSeries | None = None) -> MovePlan:
        """Plan the changes to all files that a promotion touches."""
        snapshot, document = self._snapshot, plan.document
        texts = {plan.source: plan.text}
        if series is not None:
            updates = series.plan_step(plan.moves, texts)
        else:
            updates = plan_link_updates(snapshot.vault, plan.moves, texts=texts, inbox=snapshot.inbox)
        steps = plan.steps(updates)
        about = {
            "title": document.title,
            "origin": document.source or "",
            "tool": plan.tool,
            "chosen": plan.chosen,
            "folders": sorted(self._missing_folders(plan.moves.values())),
            **describe_links(updates, [path for path in updates.changes if path != plan.source]),
        }
        return MovePlan("promote", plan.id, plan.source, plan.target, steps, about)

    def _missing_folders(self, paths: Iterable[str]) -> set[str]:
        """Return the folders that files at these paths need and that do not exist."""
        folders = {folder for path in paths for folder in parent_folders(path)[1:]}
        return {folder for folder in folders if not self._snapshot.vault.exists(folder)}

    def _remove_made_folders(self, path: str) -> None:
        """Remove the empty folders above `path` that a promotion created."""
        made = {
            folder
            for entry in self.journal.latest_entries(FOLDERS)
            if entry.kind == "promote"
            for folder in json.loads(entry.about).get("folders", ())
        }
        folder = path.rpartition("/")[0]
        with suppress(MemexError):  # it is not empty, or somebody has removed it
            while folder in made:
                self._snapshot.vault.remove_folder(folder)
                folder = folder.rpartition("/")[0]

    def _apply_move(self, move_plan: MovePlan, by: str) -> dict[str, Any]:
        """Carry out one move, and return its outcome."""
        move = self._move_files(move_plan, by)
        self._update_indexes(move.steps)
        self._commit([move])
        return move.outcome

    def _move_files(self, move_plan: MovePlan, by: str) -> _Move:
        """Change the files; raises `_FilesChanged` when a file changed since the plan was made."""
        steps = move_plan.steps
        self._unfinished.expect()  # until it has succeeded
        entry = self.journal.begin(move_plan, by=by, at=now_ms())
        try:
            self.journal.roll_forward(steps)
        except (Conflict, NotFound) as error:
            if not self._take_back(entry, steps):
                raise  # a new plan would begin in the middle of this one
            raise _FilesChanged(error.message, retryable=True) from error
        except BaseException:
            self._take_back(entry, steps)
            raise
        self.journal.set_state(entry.seq, "done")
        log.info("%s: moved one note", move_plan.kind)
        links = {key: move_plan.about[key] for key in ("relinked", "lost", "mentions", "unread")}
        files = {"id": move_plan.document_id, "source": move_plan.source, "target": move_plan.target}
        return _Move(entry, steps, {**files, "by": by, "commit": "", "left_out": [], **links})

    def _take_back(self, entry: Entry, steps: Sequence[FileChange], *, resumed: bool = False) -> bool:
        """Roll back the move, and return whether that has ended; what can't be rolled back now is tried again later."""
        try:
            left = self.journal.roll_back(steps, resumed=resumed)
            others = {entry.source} if self._is_same_note(entry) else {entry.source, entry.target}  # complete
            files = [step for step in steps if step.twin and not {step.path, step.twin} <= set(left)]
            others |= {step.path for step in files if not step.now or self.journal.current_digest(step) != step.now}
            mine = [path for path in left if path not in others]
            about = json.loads(entry.about) | {"left": mine}
            self.journal.set_state(entry.seq, "torn" if mine else "undone", about=json.dumps(about))
        except MemexError as error:
            log.warning("a promotion is incomplete; Memex finishes it later: %s", error.message)
            self._unfinished.expect()
            return False
        return True

    def _resume(self, entry: Entry) -> None:
        """Finish a move that a crash interrupted; roll it back if the capture changed or the destination is taken."""
        steps: Sequence[FileChange] = ()
        try:
            steps = self.journal.steps(entry.seq)
            strange = self.journal.find_conflicts(steps)
            has_other = entry.source in strange and not any(
                self.journal.has_old_note(step) for step in steps if step.path == entry.source
            )
            paths = {entry.target} if has_other else {entry.source, entry.target}
            ours = entry.target in strange and self._is_same_note(entry)
            if not any(self.journal.current_digest(step) for step in steps if step.path in paths):
                self.journal.set_state(entry.seq, "undone")  # somebody has removed the note, and it stays removed
            elif strange & paths - ({entry.target} if ours else set()):
                self._take_back(entry, steps, resumed=True)
            else:
                self._roll_forward(entry, steps, strange)
        except MemexError as error:
            log.warning("could not finish an interrupted promotion yet: %s", error.message)
            self._unfinished.expect()
        self._snapshot.sync.hint(step.path for step in steps)

    def _roll_forward(self, entry: Entry, steps: Sequence[FileChange], strange: set[str]) -> None:
        """Finish an interrupted move without the files that somebody has changed; roll it back if that is not possible."""
        try:
            self.journal.roll_forward(steps, without=strange)
        except (Conflict, NotFound):
            self._take_back(entry, steps, resumed=True)
            return
        if strange - {entry.source, entry.target}:
            moves = {step.twin: step.path for step in steps if step.twin and step.now} | {entry.source: entry.target}
            updates = plan_link_updates(self._snapshot.vault, moves, inbox=self._snapshot.inbox, moved=True)
            self._snapshot.write_links(updates)
        self.journal.set_state(entry.seq, "done")

    def _is_same_note(self, entry: Entry) -> bool:
        """Return whether the file at the destination is the promoted note, edited since."""
        return self.journal.has_note(entry.target, entry.document_id)

    def _update_indexes(self, steps: Sequence[FileChange]) -> None:
        """Update the index from the files."""
        if not steps:
            return
        gone = [step.path for step in steps if not step.now]
        try:
            for scope_index in (self._snapshot.captures, self._snapshot.notes):
                with hold_commits(scope_index) as index:
                    self._snapshot.sync.edits.note_departures(index, gone)
                    index.commit([], [path for path in gone if path in index.manifest])
            self._snapshot.sync.run(under=[step.path for step in steps])
        except Unavailable as error:  # the files are the truth; the index follows later
            log.warning("promoted notes are not indexed yet: %s", error.message)
            self._snapshot.sync.request_listing()

    def _commit(self, moves: list[_Move]) -> None:
        """Commit these moves, and write into their outcomes the commit, and the notes left out because of a person's edits.

        A failure is logged, and `finish_pending` tries again."""
        waiting, due = moves.copy(), list[tuple[_Move, DueCommit]]()
        moves.clear()
        for move in waiting:
            with self._trying_later():
                commit = make_due_commit(self.journal, move.entry, move.steps)
                if commit is not None:
                    due.append((move, commit))
                else:
                    self.journal.set_state(move.entry.seq, "done", commit_id=NOTHING)
        with self._trying_later():
            made = self._commits.commit_series([commit for _, commit in due]) if due else []
            for (move, commit), name in zip(due, made, strict=True):
                self._record_commit(move, commit, name)

    @contextmanager
    def _trying_later(self) -> Iterator[None]:
        """Log an error of the block: it must not prevent the promotion or the commit of other notes."""
        try:
            yield
        except MemexError as error:
            log.warning("a promotion is committed later: %s", error.message)
            self._unfinished.expect()
        except Exception:  # a bug that one note triggers
            log.exception("could not commit a promotion")
            self._unfinished.delay()

    def _record_commit(self, move: _Move, due: DueCommit, made: str | None) -> None:
        """Record the commit of a move, and the notes that are not in it; None = it can't be made now."""
        if made is None and self._commits.is_on and self._repo.local_state() not in NO_HISTORY:
            self._unfinished.delay()
            return
        self.journal.set_state(move.entry.seq, "done", commit_id=made or NOTHING)
        others = [path for path in due.digests if path not in due.approved]
        move.outcome["commit"] = made or ""
        if made and others:
            asked = ("-r", "-z", "--name-only", "--no-commit-id", "--root", "--end-of-options", made)
            there = set((self._repo.query("diff-tree", *asked) or "").split("\0"))
            move.outcome["left_out"] = [path for path in others if path not in there]


class _FilesChanged(Conflict):
    """Reports that a file changed during the move."""
