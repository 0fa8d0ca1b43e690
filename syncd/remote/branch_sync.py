"""Sync the vault with its remote branch: fetch, merge in memory, update the work tree without a conflict, and push.

Law, tested on real repositories: no uncommitted byte is changed, nothing is forced, no person is asked, and an
operation that is impossible now says what to do. A merge with conflicts is parked and touches no file."""

from __future__ import annotations

import logging
import shlex
import threading
import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from index.errors import Conflict, MemexError, Unavailable
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

log = logging.getLogger(__name__)

TICK_S: Final = 5.0  # seconds between two looks at whether anything is due
TRIES: Final = 5  # somebody else commits or pushes at the same moment
LOCKED_S: Final = 30.0  # another program's lock is waited for so long
WATCHED_S: Final = 20.0  # what another Git was at work beside is looked at again for so long
BACKOFF_S: Final = 60.0, 3600.0  # seconds after a failure: the first time, and at most
PARKED: Final = "refs/memex/conflict"  # what can't be merged without a person is kept there
UNREACHED: Final = "git: the vault and its remote could not be brought together; memex sync tries it and says why"
_READY: Final = ("ok", "ahead", "behind", "rewritten", "diverged", "shallow")
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SyncOutcome:
    """What came of it."""

    took: int = 0  # commits of the remote that the branch has now
    files: int = 0  # that were changed by them
    merged: bool = False  # with commits of our own
    sent: int = 0  # commits that the remote has now


class MergeNeedsPerson(Conflict):
    """Both have moved on, and it takes a person to bring them together; `state` is that of the repository."""

    def __init__(self, message: str, state: str) -> None:
        super().__init__(message, state=state)
        self.state = state


class NothingTracked(Conflict):
    """The branch follows no branch of a remote."""


class RemoteSync:
    """Brings the vault and its remote together, one at a time, from any thread."""

    def __init__(
        self,
        repo: Repository,
        state: Path,
        settings: GitSettings,
        *,
        inbox: str,
        flush: Callable[[], object],
        reserved: Callable[[Collection[str]], AbstractContextManager[None]],
        moved: Callable[[], None],
        untied: Callable[[], None],
    ) -> None:
        """`flush` commits what Memex has written; `reserved` keeps its writers off files. `moved`: files were changed.

        `untied` is told when a push was announced and there is no remote to fetch it from."""
        self.problem = ""  # why the last try failed, for the owner
        self._logged = ""  # of that, what the log says; who asks by hand is told in the answer
        self.unwell = ""  # that it failed, in a sentence without names
        self._repo, self._state, self._settings, self._inbox = repo, state, settings, inbox
        self._flush, self._reserved, self._moved, self._untied = flush, reserved, moved, untied
        self._alone = threading.RLock()
        self._ended = threading.Event()
        self._asked = False
        self._owed = (False, False)  # whether a pull and a push were wanted by the last try, which failed
        self._beside: tuple[ForwardStep, float] | None = None  # the last pull, when another Git was at work beside it
        self._pulled = -float("inf")  # monotonic, as `_due`
        self._sent: str | None = None  # HEAD when the remote was known to have it
        self._due, self._pause, self._failed_at = 0.0, 0.0, ""  # the next try after a failure, and HEAD at that
        self._times: dict[str, int | None] = {"pulled_at": None, "pushed_at": None, "failed_at": None}

    # When

    def notify_push(self) -> None:
        """The remote was pushed to, or may have been."""
        self._asked = True

    def tick(self) -> None:
        """Do what is due: what a setting plans, what somebody announced, what a crash has torn, what failed before."""
        if not self._alone.acquire(blocking=False):
            return
        try:
            self._redo_undone_pull()
            head, now = self._repo.head() or "", time.monotonic()
            asked, planned = self._asked, self._settings.pull_s
            pull = asked or self._owed[0] or bool(planned and now - self._pulled >= planned)
            push = self._owed[1] or (self._settings.push and head != self._sent)
            torn = (self._state / JOURNAL).exists()
            waits = now < self._due and head == self._failed_at and not asked
            if waits or not (pull or push or torn):
                return
            self._asked = False
            if asked and find_tracked_branch(self._repo) is None:
                self._untied()
                return
            try:
                self.sync(pull=pull, push=push, planned=True)
            except MemexError as error:  # it is told, and tried again
                if error.message != self._logged:
                    self._logged = error.message
                    why = error.message if isinstance(error, Unavailable) else error.code  # the others name notes
                    log.warning("the vault and its remote were not brought together: %s", why)
        finally:
            self._alone.release()

    def interrupt(self) -> None:
        """End what waits for the network, now and from now on."""
        self._ended.set()

    def facts(self) -> dict[str, Any]:
        """How it went, for the owner; times in epoch milliseconds."""
        return {"problem": self.problem, **self._times}

    # What

    def pull(self) -> SyncOutcome:
        """Take what the remote has."""
        return self.sync(push=False)

    def push(self) -> SyncOutcome:
        """Send what the remote has not; if it has gone on meanwhile, that is taken first."""
        return self.sync(pull=False)

    def sync(
        self, *, pull: bool = True, push: bool = True, planned: bool = False, tell: Tell = lambda _: None
    ) -> SyncOutcome:
        """Take what the remote has, then send what it has not. Raises Conflict or Unavailable, with the way out.

        What Memex wrote is committed first; of a `planned` exchange only where it is in the way."""
        with self._alone:
            try:
                outcome = self._exchange(pull, push, tell, planned=planned)
            except MemexError as error:
                if isinstance(error, NothingTracked) and not self._is_planned:
                    self._record_success()  # a history of its own is all that a vault needs
                else:
                    self._record_failure(error)
                    self._owed = pull, push
                raise
            self._record_success()
            return outcome

    @property
    def _is_planned(self) -> bool:
        """Whether the settings ask for an exchange."""
        return bool(self._settings.push or self._settings.pull_s)

    def _record_success(self) -> None:
        self._owed = (False, False)
        self.problem = self.unwell = self._logged = ""
        self._due = self._pause = 0.0

    def _record_failure(self, error: MemexError) -> None:
        first, most = BACKOFF_S
        self._pause = min(max(first, 2 * self._pause), most)
        self._due, self._failed_at = time.monotonic() + self._pause, self._repo.head() or ""
        self._times["failed_at"] = _now_ms()
        self.problem = error.message
        self.unwell = UNWELL[error.state] if isinstance(error, MergeNeedsPerson) else UNREACHED

    def _exchange(self, pull: bool, push: bool, tell: Tell, *, planned: bool) -> SyncOutcome:
        self._await_ready()
        self._finish_interrupted()
        tracked = find_tracked_branch(self._repo)
        if tracked is None:
            state = self._repo.read_state()
            advice = self._repo.advice(state) or f"add one: `{self._git_command()} remote add origin ADDRESS`"
            raise NothingTracked(
                f"there is no branch of a remote to exchange anything with; {advice}", state=state.state
            )
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
        raise Unavailable("others push all the time; it is tried again")

    def _await_ready(self) -> None:
        """Wait for another program's lock; Conflict, with the way out, in a state in which nothing can be exchanged."""
        end, pause = time.monotonic() + LOCKED_S, 0.1
        if (self._state / JOURNAL).exists():
            return  # what was torn is finished first, and the lock may be its own
        while (state := self._repo.read_state()).state == "locked" and time.monotonic() < end:
            if self._ended.wait(pause):
                break
            pause = min(2 * pause, 5.0)
        if state.state not in (*_READY, "no-remote", "no-upstream"):
            raise Conflict(f"nothing was exchanged with the remote: {self._repo.advice(state)}", state=state.state)

    def _finish_interrupted(self) -> None:
        if not (self._state / JOURNAL).exists():
            return
        left = finish_interrupted(self._repo, self._state)
        self._moved()
        self._await_ready()
        if left:
            raise Conflict(
                f"a pull that a crash had torn is finished, but for {format_paths(left)}, edited since and left as it is: "
                f"`{self._git_command()} diff HEAD` shows how that differs from what was pulled",
                paths=left,
            )

    # Pulling

    def _pull(self, tracked: TrackedBranch, outcome: SyncOutcome, tell: Tell) -> SyncOutcome:
        tell("fetching")
        before = self._resolve_commit(tracked.tracking)
        fetch(self._repo, tracked, limit_s=self._settings.timeout_s, stop=self._ended)
        self._pulled = time.monotonic()
        self._times["pulled_at"] = _now_ms()
        theirs = self._resolve_commit(tracked.tracking)
        if theirs is None:
            raise missing_branch_error(self._repo, tracked)
        if before and not self._history_has(theirs, before):
            self._park(REWRITTEN, theirs)
        for last in (*(False,) * (TRIES - 1), True):
            try:
                return self._update_branch(tracked, theirs, outcome, tell)
            except UncommittedChanges as blocked:
                if last or not self._flush():  # what an agent wrote in this very moment can be committed
                    raise Conflict(
                        f"nothing was taken from {tracked.remote}, as it changes what is not committed: "
                        + explain_obstacle(self._repo, blocked.paths),
                        paths=list(blocked.paths),
                    ) from None
            except ConcurrentGitChange:
                if last or self._ended.wait(0.2):
                    raise
        raise AssertionError

    def _update_branch(self, tracked: TrackedBranch, theirs: str, outcome: SyncOutcome, tell: Tell) -> SyncOutcome:
        """The branch with what the remote has; nothing happens when it has that already."""
        ours = self._repo.head()
        if ours is None:
            raise Conflict(f"nothing was exchanged with the remote: {self._repo.advice(self._repo.read_state())}")
        if self._history_has(ours, theirs):
            self._unpark()
            return outcome
        ahead = not self._history_has(theirs, ours)
        target = self._merge(tracked, ours, theirs, tell) if ahead else theirs
        step = ForwardStep.between(self._repo, tracked.branch, ours, target)
        tell("moving")
        with self._reserved([change.path for change in step.changes]):
            apply_step(self._repo, self._state, step)
            others = is_held(self._repo.git_folder() / "index.lock", Path(self._repo.vault))
            self._beside = (step, time.monotonic()) if others else None
        self._moved()
        self._unpark()
        took = outcome.took + self._count_commits(theirs, ours)
        log.info("pulled: %d commits, %d files%s", took, len(step.changes), ", merged" if ahead else "")
        return replace(outcome, took=took, files=outcome.files + len(step.changes), merged=outcome.merged or ahead)

    def _redo_undone_pull(self) -> None:
        """See that no other Git, which was at work at the same moment, has undone what was brought."""
        if self._beside is None:
            return
        step, at = self._beside
        with suppress(MemexError), self._reserved([change.path for change in step.changes]):
            if redo_undone_step(self._repo, self._state, step):
                self._moved()
        if time.monotonic() - at > WATCHED_S:
            self._beside = None

    def _merge(self, tracked: TrackedBranch, ours: str, theirs: str, tell: Tell) -> str:
        """A commit that has both. Parked when that takes a person."""
        if self._list_refs(f"--merged={theirs}", f"--no-merged={ours}", REWRITTEN):
            upstream = tracked.tracking.removeprefix("refs/remotes/")
            raise MergeNeedsPerson(self._repo.advice(RepositoryState("rewritten", upstream=upstream)), "rewritten")
        tell("merging")
        options = ("--write-tree", "--name-only", "-z", "--no-messages")
        result = self._repo.run_in_session(*PLAIN, "merge-tree", *options, "--end-of-options", ours, theirs)
        tree, *conflicts = result.out.decode("utf-8", "surrogateescape").split("\0")
        if result.code == 1 and tree:
            kept = self._park(PARKED, theirs)
            raise MergeNeedsPerson(
                f"the vault and {tracked.remote} have both changed {format_paths(list(filter(None, conflicts)))}; no file was "
                f"touched, and what {tracked.remote} has is kept as {kept}: run `{self._git_command()} {' '.join(PLAIN)} pull --no-rebase`, resolve the conflicts that Git lists, "
                "add and commit the files; then the exchange resumes by itself",
                "diverged",
            )
        if result.code:
            raise Conflict(f"Git (2.38 or later is needed) can't merge this: {result.said.strip()[:300]}")
        # Made of constants and of what Git named: no text of a note.
        message = f"Merge {tracked.remote}\n\nMemex-Tool: pull\n".encode()
        made = self._repo.run_in_session(
            "commit-tree", tree, "-p", ours, "-p", theirs, stdin=message, environ=self._repo.identity()
        )
        if made.code:
            raise Unavailable(f"Git can't commit the merge: {made.said.strip()[:300]}")
        return made.out.decode().strip()

    def _park(self, folder: str, commit: str) -> str:
        """Keep a commit reachable below this folder of refs; the ref."""
        if kept := self._list_refs(f"--points-at={commit}", folder):
            return kept[0]
        ref = f"{folder}/{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
        self._repo.query("update-ref", "--end-of-options", ref, commit)
        return ref

    def _unpark(self) -> None:
        """Let go of what the branch has by now."""
        if merged := self._list_refs("--merged=HEAD", "refs/memex"):
            self._repo.query("update-ref", "--stdin", stdin="".join(f"delete {ref}\n" for ref in merged))

    # Pushing

    def _push(self, tracked: TrackedBranch, tell: Tell) -> int | None:
        """How many commits were sent; None when the remote has some that must be taken first."""
        tip, known = self._repo.head(), self._resolve_commit(tracked.tracking)
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
        self._sent, self._times["pushed_at"] = tip, _now_ms()
        log.info("pushed: %d commits", count)
        return count

    # What Git says

    def _resolve_commit(self, ref: str) -> str | None:
        return self._repo.query("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")

    def _history_has(self, commit: str, other: str) -> bool:
        """Whether the history of `commit` has the other one."""
        return self._repo.query("merge-base", "--is-ancestor", other, commit) is not None

    def _count_commits(self, tip: str, known: str) -> int:
        return int(self._repo.query("rev-list", "--count", tip, f"^{known}") or 0)

    def _list_refs(self, *which: str) -> list[str]:
        return (self._repo.query("for-each-ref", "--format=%(refname)", *which) or "").split()

    def _git_command(self) -> str:
        return f"git -C {shlex.quote(self._repo.vault)}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
