"""Sync the vault with its remote branch: fetch, merge in memory, update the work tree without a conflict, and push.

Law, tested on real repositories: no uncommitted byte is changed, nothing is forced, no person is asked, and an
operation that is impossible now says what to do. A merge with conflicts is parked and touches no file."""

from __future__ import annotations

import logging
import shlex
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from index.errors import Conflict, MemexError, Unavailable
from index.timings import now_ms
from syncd.git.ignored_paths import explain_obstacle, format_paths
from syncd.git.repository import Repository
from syncd.git.repository_state import PLAIN, REWRITTEN, UNWELL, RepositoryState
from syncd.git.stale_locks import is_held
from syncd.remote.fast_forward import (
    JOURNAL,
    ConcurrentGitChange,
    ForwardStep,
    UncommittedChanges,
    apply_step,
    finish_interrupted,
    redo_undone_step,
)
from syncd.remote.generated_notes import MergeNote, merge_generated
from syncd.remote.outgoing_secrets import find_leaks
from syncd.remote.upstream_branch import (
    TrackedBranch,
    check_may_push,
    fetch,
    find_tracked_branch,
    missing_branch_error,
    push,
    push_command,
)
from syncd.settings.automation import GitSettings
from syncd.vault.location import CONTEXT

log = logging.getLogger(__name__)

TICK_S: Final = 6.0  # seconds between two checks for due work
TRIES: Final = 5  # attempts, because somebody else may commit or push at the same moment
LOCKED_S: Final = 30.0  # seconds to wait for another program's lock
WATCHED_S: Final = 20.0  # seconds to keep checking a pull during which another Git was running
BACKOFF_S: Final = 60.0, 3600.0  # seconds to wait after a failure: the first pause, and the longest
PARKED: Final = "refs/memex/conflict"  # refs below this one keep commits that only a person can merge
_NO_BRANCH: Final = ("no-git", "no-repo", "bare")  # states of a vault without a repository of its own
UNREACHED: Final = "git: Memex could not sync the vault with its remote; memex sync tries again and shows the reason"
_READY: Final = ("ok", "ahead", "behind", "rewritten", "diverged", "shallow")
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SyncOutcome:
    """Describes the result of a sync."""

    took: int = 0  # commits that the branch received from the remote
    files: int = 0  # files changed by the received commits
    merged: bool = False  # the received commits were merged with local ones
    sent: int = 0  # commits that the remote received


class MergeNeedsPerson(Conflict):
    """The branch and the remote have diverged, and only a person can merge them; `state` is the repository's state."""

    def __init__(self, message: str, state: str) -> None:
        super().__init__(message, state=state)
        self.state = state


class NothingTracked(Conflict):
    """The checked-out branch follows no branch of a remote, or the vault has no branch at all."""


class RemoteSync:
    """Syncs the vault with its remote, one sync at a time; safe from any thread."""

    def __init__(
        self,
        repo: Repository,
        state: Path,
        settings: GitSettings,
        *,
        inbox: str,
        merge_note: MergeNote,
        flush: Callable[[], object],
        reserved: Callable[[Collection[str]], AbstractContextManager[None]],
        moved: Callable[[], None],
        untied: Callable[[], None],
    ) -> None:
        """`merge_note` merges notes that Memex generates. `flush` commits what Memex has written; `reserved` keeps Memex's writers away from files.

        `moved` is called after files have changed. `untied` is called when a push was announced but there is no
        remote to fetch it from."""
        self.problem = ""  # why the last try failed, for the owner
        self._logged = ""  # the last problem that was logged; a manual sync reports its problem in the answer instead
        self.unwell = ""  # the failure as a sentence without names of notes
        self._repo, self._state, self._settings, self._inbox = repo, state, settings, inbox
        self._merge_note = merge_note
        self._flush, self._reserved, self._moved, self._untied = flush, reserved, moved, untied
        self._alone = threading.RLock()
        self._ended = threading.Event()
        self._asked = False
        self._unfinished = (False, False)  # whether the last attempt, if it failed, included a pull and a push
        self._beside: tuple[ForwardStep, float] | None = None  # the last pull that ran beside another Git
        self._pulled = -float("inf")  # monotonic time, like `_due`
        self._sent: str | None = None  # the last HEAD that the remote is known to have
        # The time of the next attempt after a failure, the pause before it, and what ends the pause when it changes.
        self._due, self._pause = 0.0, 0.0
        self._failed_at: tuple[str, object] = ("", None)  # HEAD and, for a failure of the repository, its fingerprint
        self._times: dict[str, int | None] = {"pulled_at": None, "pushed_at": None, "failed_at": None}

    # When

    def notify_push(self) -> None:
        """Schedule a pull, because somebody may have pushed to the remote."""
        self._asked = True

    def tick(self) -> None:
        """Sync if anything is due: by the settings, after an announced push, after a crash, or after a failure."""
        if not self._alone.acquire(blocking=False):
            return
        try:
            self._redo_undone_pull()
            head, now = self._repo.head() or "", time.monotonic()
            asked, planned = self._asked, self._settings.pull_s
            pull = asked or self._unfinished[0] or bool(planned and now - self._pulled >= planned)
            push = self._unfinished[1] or (self._settings.push and head != self._sent)
            torn = (self._state / JOURNAL).exists()
            waits = now < self._due and not asked and not self._has_changed(head)
            if waits or not (pull or push or torn):
                return
            self._sync_due(asked=asked, pull=pull, push=push)
        finally:
            self._alone.release()

    def _sync_due(self, *, asked: bool, pull: bool, push: bool) -> None:
        """Sync, and keep an announced push unless it is handled, or a later tick pulls because this sync failed."""
        self._asked, handled = False, False  # cleared before the sync, so that a later announcement causes another one
        try:
            self.sync(pull=pull, push=push, planned=True)
            handled = True
        except MemexError as error:  # a later tick retries
            untied = isinstance(error, NothingTracked)
            handled = untied or self._unfinished[0]
            if asked and untied:
                self._untied()
            elif error.message != self._logged:
                self._logged = error.message
                why = error.message if isinstance(error, Unavailable) else error.code  # others name notes
                log.warning("could not sync the vault with its remote: %s", why)
        finally:
            self._asked = self._asked or (asked and not handled)

    def interrupt(self) -> None:
        """Stop every operation that waits for the network, now and in the future."""
        self._ended.set()

    def facts(self) -> dict[str, Any]:
        """Return the last problem and the times of the last pull, push and failure, in epoch milliseconds."""
        return {"problem": self.problem, **self._times}

    # What

    def sync(
        self, *, pull: bool = True, push: bool = True, planned: bool = False, tell: Tell = lambda _: None
    ) -> SyncOutcome:
        """Pull the remote's commits, then push the commits that it lacks. A push alone also pulls if the remote has new commits.

        Raises Conflict or Unavailable; the message says what to do. What Memex wrote is committed first; in a
        `planned` sync, only where it blocks the pull."""
        with self._alone:
            try:
                outcome = self._exchange(pull, push, tell, planned=planned)
            except (MemexError, OSError) as error:
                failure = error if isinstance(error, MemexError) else _system_failure(error)
                is_planned = self._settings.push or self._settings.pull_s  # by the settings
                if not is_planned and (isinstance(failure, NothingTracked) or self._repo.query("remote") == ""):
                    self._record_success()  # a vault without a remote, or without Git, is fine
                else:
                    self._record_failure(failure)
                    self._unfinished = pull, push
                raise failure from None
            self._record_success()
            return outcome

    def _record_success(self) -> None:
        self._unfinished = (False, False)
        self.problem = self.unwell = self._logged = ""
        self._due = self._pause = 0.0

    def _record_failure(self, error: MemexError) -> None:
        first, most = BACKOFF_S
        self._pause = min(max(first, 2 * self._pause), most)
        # Another state of the repository can't end a failure of the network.
        fingerprint = self._repo.state_fingerprint() if isinstance(error, Conflict) else None
        self._due, self._failed_at = time.monotonic() + self._pause, (self._repo.head() or "", fingerprint)
        self._times["failed_at"] = now_ms()
        self.problem = error.message
        self.unwell = UNWELL[error.state] if isinstance(error, MergeNeedsPerson) else UNREACHED

    def _has_changed(self, head: str) -> bool:
        """Return whether the repository has changed since the last failure, so that a sync may succeed now."""
        before, fingerprint = self._failed_at
        return head != before or (fingerprint is not None and self._repo.state_fingerprint() != fingerprint)

    def _exchange(self, pull: bool, push: bool, tell: Tell, *, planned: bool) -> SyncOutcome:
        self._await_ready()
        self._finish_interrupted()
        tracked = find_tracked_branch(self._repo)
        if tracked is None:
            state = self._repo.read_state()
            advice = self._repo.advice(state) or f"add one: `{self._git_command()} remote add origin ADDRESS`"
            raise NothingTracked(f"there is no remote branch to sync with; {advice}", state=state.state)
        outcome = SyncOutcome()
        for _ in range(TRIES):
            if not planned:
                tell("committing")
                self._flush()
            if pull:
                outcome = self._pull(tracked, outcome, tell)
            if not push:
                return outcome
            sent = self._push(tracked, tell)
            if sent is not None:
                return replace(outcome, sent=sent)
            pull = True
        raise Unavailable("others keep pushing to the remote; Memex tries again later")

    def _await_ready(self) -> None:
        """Wait while another program holds a lock.

        Raises Conflict, with advice, if the repository is in a state that allows no sync."""
        end, pause = time.monotonic() + LOCKED_S, 0.1
        if (self._state / JOURNAL).exists():
            return  # the interrupted update is finished first, and the lock may belong to it
        while (state := self._repo.read_state()).state == "locked" and time.monotonic() < end:
            if self._ended.wait(pause):
                break
            pause = min(2 * pause, 5.0)
        if state.state not in (*_READY, "no-remote", "no-upstream"):
            error = NothingTracked if state.state in _NO_BRANCH else Conflict
            raise error(f"Memex did not sync with the remote: {self._repo.advice(state)}", state=state.state)

    def _finish_interrupted(self) -> None:
        if not (self._state / JOURNAL).exists():
            return
        left = finish_interrupted(self._repo, self._state)
        self._moved()
        self._await_ready()
        self._report_left(left)

    def _report_left(self, left: Sequence[str]) -> None:
        """Raise Conflict if a pull has left files alone because they were edited."""
        if left:
            raise Conflict(
                f"Memex finished an interrupted pull, except in {format_paths(left)}, which was edited since: "
                f"`{self._git_command()} diff HEAD` shows how it differs from the pulled version",
                paths=list(left),
            )

    # Pulling

    def _pull(self, tracked: TrackedBranch, outcome: SyncOutcome, tell: Tell) -> SyncOutcome:
        tell("fetching")
        before = self._resolve_commit(tracked.tracking)
        fetch(self._repo, tracked, limit_s=self._settings.timeout_s, stop=self._ended)
        self._pulled = time.monotonic()
        self._times["pulled_at"] = now_ms()
        theirs = self._resolve_commit(tracked.tracking)
        if theirs is None:
            raise missing_branch_error(self._repo, tracked)
        if (before and not self._history_has(theirs, before)) or self._is_rewritten(tracked, theirs):
            self._park(REWRITTEN, theirs)
        for last in (*(False,) * (TRIES - 1), True):
            try:
                return self._update_branch(tracked, theirs, outcome, tell)
            except UncommittedChanges as blocked:
                if last or not self._flush():  # changes that an agent has just written can be committed
                    raise Conflict(
                        f"Memex pulled nothing from {tracked.remote}, because the new commits would overwrite local changes: "
                        + explain_obstacle(self._repo, blocked.paths),
                        paths=list(blocked.paths),
                    ) from None
            except ConcurrentGitChange:
                if last or self._ended.wait(0.2):
                    raise
        raise AssertionError

    def _update_branch(self, tracked: TrackedBranch, theirs: str, outcome: SyncOutcome, tell: Tell) -> SyncOutcome:
        """Bring the branch up to the remote's commit `theirs`; do nothing if its history already contains it."""
        ours = self._resolve_commit(tracked.branch)  # not HEAD: another branch may be checked out by now
        if ours is None:
            raise Conflict(f"Memex did not sync with the remote: {self._repo.advice(self._repo.read_state())}")
        if self._history_has(ours, theirs):
            self._unpark()
            return outcome
        ahead = not self._history_has(theirs, ours)
        target = self._merge(tracked, ours, theirs, tell) if ahead else theirs
        step = ForwardStep.between(self._repo, tracked.branch, ours, target)
        tell("moving")
        with self._reserved([change.path for change in step.changes]):
            left = apply_step(self._repo, self._state, step)
            others = is_held(self._repo.git_folder() / "index.lock", Path(self._repo.vault))
            self._beside = (step, time.monotonic()) if others else None
        self._moved()
        self._unpark()
        self._report_left(left)
        took = outcome.took + self._count_commits(theirs, ours)
        log.info("pulled: %d commits, %d files%s", took, len(step.changes), ", merged" if ahead else "")
        return replace(outcome, took=took, files=outcome.files + len(step.changes), merged=outcome.merged or ahead)

    def _redo_undone_pull(self) -> None:
        """Redo the last pull if another Git that was running at the same time has undone it."""
        if self._beside is None:
            return
        step, at = self._beside
        with suppress(MemexError), self._reserved([change.path for change in step.changes]):
            if redo_undone_step(self._repo, self._state, step):
                self._moved()
        if time.monotonic() - at > WATCHED_S:
            self._beside = None

    def _merge(self, tracked: TrackedBranch, ours: str, theirs: str, tell: Tell) -> str:
        """Merge both commits in memory and return the merge commit.

        Raises MergeNeedsPerson if only a person can merge them; in a conflict, it first keeps `theirs` under a ref."""
        if self._list_refs(f"--merged={theirs}", f"--no-merged={ours}", REWRITTEN):
            rewritten = RepositoryState("rewritten", upstream=tracked.tracking.removeprefix("refs/remotes/"))
            raise MergeNeedsPerson(self._repo.advice(rewritten), rewritten.state)
        tell("merging")
        tree = self._merge_trees(tracked, ours, theirs)
        # The message contains constants and the remote's name, and no text of a note.
        message = f"Merge {tracked.remote}\n\nMemex-Tool: pull\n".encode()
        made = self._repo.run_in_session(
            "commit-tree", tree, "-p", ours, "-p", theirs, stdin=message, environ=self._repo.identity()
        )
        if made.code:
            raise Unavailable(f"Git can't commit the merge: {made.said.strip()[:300]}")
        return made.out.decode().strip()

    def _merge_trees(self, tracked: TrackedBranch, ours: str, theirs: str) -> str:
        """Return the tree that merges both commits; see `_merge`."""
        options = ("--write-tree", "--name-only", "-z", "--no-messages")
        result = self._repo.run_in_session(*PLAIN, "merge-tree", *options, "--end-of-options", ours, theirs)
        tree, *conflicts = list(filter(None, result.out.decode("utf-8", "surrogateescape").split("\0"))) or [""]
        if result.code == 1 and tree:
            if all(path.startswith(f"{self._inbox}/{CONTEXT}/") for path in conflicts):
                merged = merge_generated(self._repo, tree, (ours, theirs), conflicts, self._merge_note)
                if merged is not None:
                    return merged
            kept = self._park(PARKED, theirs)
            raise MergeNeedsPerson(
                f"the vault and {tracked.remote} have both changed {format_paths(conflicts)}; Memex changed no "
                f"file, and keeps the commits of {tracked.remote} as {kept}: run `{self._git_command()} {' '.join(PLAIN)} pull --no-rebase`, resolve the conflicts that Git lists, "
                "add and commit the files; then Memex resumes the sync",
                "diverged",
            )
        if result.code:
            raise Conflict(f"Git can't merge the commits (Git 2.38 or later is required): {result.said.strip()[:300]}")
        return tree

    def _park(self, folder: str, commit: str) -> str:
        """Keep a commit reachable by a ref below this folder of refs, and return the ref."""
        if kept := self._list_refs(f"--points-at={commit}", folder):
            return kept[0]
        ref = f"{folder}/{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
        self._repo.query("update-ref", "--end-of-options", ref, commit)
        return ref

    def _unpark(self) -> None:
        """Delete the refs of parked commits that the branch contains by now."""
        if merged := self._list_refs("--merged=HEAD", "refs/memex"):
            self._repo.query("update-ref", "--stdin", stdin="".join(f"delete {ref}\n" for ref in merged))

    # Pushing

    def _push(self, tracked: TrackedBranch, tell: Tell) -> int | None:
        """Push, and return how many commits were sent; None if the remote has commits that must be pulled first."""
        tip, known = self._resolve_commit(tracked.branch), self._resolve_commit(tracked.tracking)
        if tip is None or known is None:
            return None
        if self._history_has(known, tip):
            self._sent = tip
            return 0
        if not self._history_has(tip, known):
            return None
        check_may_push(self._repo, tracked)
        if leaked := find_leaks(self._repo, self._inbox, tip, known):
            path, kind = leaked[0]
            upstream = shlex.quote(tracked.tracking.removeprefix("refs/remotes/"))
            raise Conflict(
                f"nothing was pushed, because {path} looks as if it contains a secret ({kind})"
                + (f", and {len(leaked) - 1} more" if len(leaked) > 1 else "")
                + f": remove it from the note, run `{self._git_command()} reset --soft {upstream}` and commit again, so that no commit "
                f"contains it; if it is no secret, push manually: {push_command(self._repo)}",
                paths=[path for path, _ in leaked],
            )
        tell("pushing")
        count = self._count_commits(tip, known)
        if not push(self._repo, tracked, tip, limit_s=self._settings.timeout_s, stop=self._ended):
            return None
        self._sent, self._times["pushed_at"] = tip, now_ms()
        log.info("pushed: %d commits", count)
        return count

    # What Git says

    def _resolve_commit(self, ref: str) -> str | None:
        return self._repo.query("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")

    def _history_has(self, commit: str, other: str) -> bool:
        """Return whether the history of `commit` contains the commit `other`."""
        return self._repo.query("merge-base", "--is-ancestor", other, commit) is not None

    def _is_rewritten(self, tracked: TrackedBranch, theirs: str) -> bool:
        """Return whether the branch contains a commit that the remote once had and `theirs` lacks, whichever program fetched it."""
        shared = self._repo.query("merge-base", "--fork-point", tracked.tracking, tracked.branch)
        return shared is not None and not self._history_has(theirs, shared)

    def _count_commits(self, tip: str, known: str) -> int:
        return int(self._repo.query("rev-list", "--count", tip, f"^{known}") or 0)

    def _list_refs(self, *which: str) -> list[str]:
        return (self._repo.query("for-each-ref", "--format=%(refname)", *which) or "").split()

    def _git_command(self) -> str:
        return f"git -C {shlex.quote(self._repo.vault)}"


def _system_failure(error: OSError) -> Unavailable:
    return Unavailable(f"Memex could not sync the vault with its remote: {error.strerror or type(error).__name__}")
