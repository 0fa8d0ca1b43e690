"""The committer commits files that Memex wrote, once they are quiet, and nothing that a person wrote.

Laws, tested: each commit holds only states that the audit log reaches from HEAD, without files that a person staged
differently or that look like a secret or an unfinished merge. A commit is made only while no other Git operation is
under way. A file that cannot be committed stays unchanged, is checked again, and is reported."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from index.document_ids import sha256
from index.errors import Conflict, MemexError, NotFound, Unavailable
from index.timings import now_ms
from syncd.commits.commit_builder import (
    CommitBuilder,
    Content,
    FilesRefused,
    FilterHangs,
    GitLockHeld,
    HeadMoved,
    NewCommit,
)
from syncd.commits.commit_selection import REFUSED, CommitSelection, select_changes
from syncd.commits.own_changes import CommitBatch
from syncd.git import head_moves
from syncd.git.repository import GitFailed, GitPosition, Repository
from syncd.history.audit_log import AuditLog
from syncd.history.change_journal import RECENT_MS, uncommitted_paths
from syncd.settings.automation import GitSettings
from syncd.state import named_values
from syncd.state.ledger import Ledger
from syncd.vault.vault import Vault

log = logging.getLogger(__name__)

FOLDER: Final = "commit"  # in the state folder: the private index and tree of the current commit
SEEN: Final = "git.seen"  # named value: how far the audit log was read
LEFT: Final = "git.left"  # named value: the files to check again
PAUSES: Final = 0.1, 5.0  # shortest and longest wait before a lock is checked again, in seconds
PATIENCE_S: Final = 30.0  # longest wait for a lock
GRACE_S: Final = 8.0  # time for the last commits when the daemon stops
ROUND: Final = 1_000  # files checked together
SMALL: Final = 64 * 1024  # bytes; a larger file of a commit is not kept in memory
RACES: Final = 20  # how often HEAD may move during one commit
SUGGESTIONS: Final = "review"  # the tool whose writes cause no commit of their own: they go into the next commit
HUNG_S: Final = 600.0  # wait before a hanging filter is tried again
AGAIN_S: Final = 60.0  # wait before a failed commit is tried again
_NONE: Final = "git: the vault has no Git history, so Memex commits nothing"
_STATES: Final[Mapping[str, str]] = {
    "no-git": _NONE,
    "no-repo": _NONE,
    "bare": _NONE,
    "detached": "git: no branch is checked out, so Memex can't commit its changes; memex status shows how to fix this",
    "conflict": "git: there are unresolved conflicts, so Memex can't commit its changes",
    "mid-operation": "git: an operation is not finished; Memex commits its changes after it",
    "no-files": "git: core.bare says that the repository has no files, so Memex can't commit its changes; memex status shows how to fix this",
    "stale-lock": "git: a stale lock blocks Git, so Memex can't commit its changes; memex status shows how to fix this",
    "locked": "git: another program holds the repository lock; Memex commits its changes after it",
}
_BLOCKED: Final = (
    "git: the repository is damaged, so Memex can't commit its changes; memex status shows how to fix this"
)
_ABLE: Final = frozenset({"ok", "unborn"})

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class MadeCommit:
    """Describes a commit, or one that would be made."""

    commit: str  # in hex; "" = not made
    subject: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DueCommit:
    """Holds the arguments of `Committer.commit` for a commit that is still to be made."""

    digests: Mapping[str, str]  # path → SHA-256 of the file, "" = removed
    message: str
    approved: Collection[str]


class Committer:
    """Makes the commits of one vault. Safe from any thread: one is made at a time."""

    def __init__(
        self,
        repo: Repository,
        vault: Vault,
        audit: AuditLog,
        ledger: Ledger,
        settings: GitSettings,
        *,
        state: Path,
        inbox: str,
    ) -> None:
        self._looked_at: object = None  # the state of the repository in which `look_again` found the present hindrance
        self.problem = ""  # why commits are delayed, as a sentence without paths
        self.made = 0  # commits since the start
        self.kept: dict[str, str] = {}  # path → why it stays local
        self.edited: set[str] = set()  # found by the last check: files that a person edited before they were committed
        self._repo, self._vault, self._audit, self._ledger = repo, vault, audit, ledger
        self._folder, self._settings, self._inbox = state / FOLDER, settings, inbox
        self._lock = threading.RLock()
        self._seen = int(named_values.read(ledger, SEEN) or 0)
        self._waiting: set[str] = set(json.loads(named_values.read(ledger, LEFT) or "[]"))
        # The last commit and its private index, so that a series of commits does not read all trees for each.
        self._index: tuple[str | None, bytes] = (None, b"")
        self._marks: object = None
        self._stash: GitPosition | None = None  # the newest stash at the last check
        self._flushed_at = float("-inf")  # when commits were last made automatically, in epoch milliseconds
        self._tried = float("-inf")
        self._hung: float | None = None  # when a filter was found to hang

    # For callers

    @property
    def is_on(self) -> bool:
        """Return whether commits are enabled."""
        return self._settings.commit

    def commit(self, digests: Mapping[str, str], message: str, *, approved: Collection[str] = ()) -> str | None:
        """Commit the files that have these digests ("" = removed) on top of HEAD; return the commit.

        "" when there is nothing to commit: HEAD has it, a person edited it, or it is kept local. None when Git does
        not allow it now, or commits are off: `problem` says why, and `flush` commits it later. A person has
        `approved` whole files."""
        return self.commit_series([DueCommit(digests, message, approved)])[0]

    def commit_series(self, due: Sequence[DueCommit]) -> list[str | None]:
        """Make these commits in their order, as `commit` makes one; no two of them may have a path in common.

        They are selected together, their objects are written together, and HEAD moves once."""
        digests = {path: digest for commit in due for path, digest in commit.digests.items()}
        whole = DueCommit(digests, "", {path for commit in due for path in commit.approved})
        refused: list[Unavailable] = []

        def build(builder: CommitBuilder) -> list[str | None]:
            refused.clear()
            selection = self._select_due(builder, whole)
            self._record_outcome(selection, digests)
            made = self._add_due(builder, due, selection, refused)
            if len(due) == 1 and refused:
                raise refused[0]
            builder.move_head()
            self.made += sum(map(bool, made))
            return made

        with self._lock:
            made = self._run_on_head(build, PATIENCE_S) if self.is_on else None
            if made is not None and refused:
                self.problem, self._tried = _describe_failure(refused[0]), time.monotonic()
        return [None] * len(due) if made is None else made

    def _add_due(
        self, builder: CommitBuilder, due: Sequence[DueCommit], selection: CommitSelection, refused: list[Unavailable]
    ) -> list[str | None]:
        """Add the due commits without what was not selected; None for each that Git refuses, and the reason in `refused`."""
        contents = [
            {path: selection.contents[path] for path in commit.digests if path in selection.contents} for commit in due
        ]
        commits = [NewCommit(fit, commit.message) for fit, commit in zip(contents, due, strict=True)]
        try:
            return list(builder.add_commits(commits, "Memex")) if any(contents) else [""] * len(due)
        except Unavailable as error:  # such as a filter that fails or hangs
            if len(due) == 1 and isinstance(error, FilterHangs):
                raise
            builder.drop_changes()
            if len(due) == 1:
                refused.append(error)
                return [None]
            # Each alone: one that Git refuses holds up no other, and a filter has the time for each.
            return [name for commit in due for name in self._add_due(builder, [commit], selection, refused)]

    def flush(self, patience_s: float = PATIENCE_S) -> int:
        """Commit what Memex wrote and nobody has edited since, if commits are on; return the number of commits."""
        return len(self.commit_pending(patience_s)) if self.is_on else 0

    def commit_pending(self, patience_s: float = PATIENCE_S) -> list[MadeCommit]:
        """Commit what Memex wrote and nobody has edited since, even if commits are off; return the commits."""
        with self._lock:
            made: list[MadeCommit] = []
            if not self._has_history():
                return made
            self.edited.clear()
            seen = self._audit.head.seq
            self._collect_written(seen)
            marks = self._repo.position()
            due = sorted(self._waiting | self.kept.keys())
            for at in range(0, len(due), ROUND):
                done = self._run_on_head(partial(self._commit_round, due[at : at + ROUND]), patience_s)
                if done is None:
                    return made
                made += done
            self._marks = self._repo.position() if made else marks
            self._save_progress(seen)
            return made

    def preview(self, due: Iterable[DueCommit] = ()) -> tuple[list[MadeCommit], CommitSelection]:
        """Return what `commit_pending` and the `due` commits would commit now, and the selection with the rest; nothing changes.

        Raises Conflict when Git does not allow it."""
        with self._lock:
            if why := self.hindrance():
                raise Conflict(self.explain(why))
            self._collect_written(self._audit.head.seq)
            with CommitBuilder(self._repo, self._folder, self._repo.head()) as builder:
                asked = sorted((self._waiting | self.kept.keys()) - self._list_promoted())
                selection = self._select(builder, self._read_digests(asked))
                ours = CommitBatch(dict(sorted(selection.ours.items())))
                made = [MadeCommit("", _subject(ours.message), tuple(ours.steps))] if ours.steps else []
                for commit in due:
                    fit = self._select_due(builder, commit)
                    selection.kept |= fit.kept
                    made += [MadeCommit("", _subject(commit.message), tuple(fit.contents))] if fit.contents else []
            return made, selection

    def tick(self) -> None:
        """Commit when the written files have been quiet for long enough."""
        self._index = (None, b"")  # a series of commits has probably ended: its index needs no memory any more
        self._forget_solved_problem()
        if not self.is_on or not self._has_history():
            return
        with self._lock:
            seen = self._audit.head.seq
            self._collect_stashed()
            if seen == self._seen and not self._waiting and (not self.kept or self._marks == self._repo.position()):
                return
            if self.problem and time.monotonic() - self._tried < AGAIN_S:
                return
            if self._is_due() and self.flush():
                self._flushed_at = self._audit.now()

    def _forget_solved_problem(self) -> None:
        """Clear a problem whose cause is gone; there may be nothing left to commit that would clear it."""
        is_due = self.problem and time.monotonic() - self._tried >= AGAIN_S and not self._is_hung()
        if is_due and self.hindrance() in ("", _NONE):
            self.problem = ""

    def look_again(self) -> None:
        """Forget at once a hindrance of the repository that is over; the next check then commits."""
        problem = self.problem
        if problem not in {*_STATES.values(), _BLOCKED} or (now := self._repo.state_fingerprint()) == self._looked_at:
            return
        is_over, self._looked_at = self.hindrance() in ("", _NONE), now
        if is_over and self.problem == problem:
            self.problem = ""

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Commit the rest, for at most `grace_s` seconds; what is left is committed at the next start."""

        def flush_rest() -> None:
            try:
                if self._waiting or self._audit.write_times(self._seen, without=SUGGESTIONS):
                    self.flush(0.0)
            except (MemexError, OSError) as error:
                log.warning("could not commit the last changes: %s", error)

        last = threading.Thread(target=flush_rest, name="commits", daemon=True)
        last.start()
        last.join(grace_s)

    def facts(self) -> dict[str, Any]:
        """Return what the owner's status page shows about commits; it does not wait for a commit under way."""
        self.look_again()
        waiting = set(self._waiting)
        if self.is_on and self._has_history():
            waiting |= self._audit.changed_paths(self._seen, self._audit.head.seq)
        kept = dict(self.kept)
        return {
            "on": self.is_on,
            "waiting": len(waiting - kept.keys()),
            "kept": [{"path": path, "why": why} for path, why in sorted(kept.items())],
            "problem": self.problem,
        }

    # Details

    def _has_history(self) -> bool:
        """Return whether the vault has a Git history."""
        return os.path.lexists(Path(self._repo.vault, ".git"))

    def _is_due(self) -> bool:
        """Return whether it is time to commit: the last commit is long enough ago, and the changes are quiet or old enough.

        A clock that was set back delays nothing."""
        times = self._audit.write_times(self._seen, without=SUGGESTIONS)
        if times is None:
            return bool(self._waiting) or (bool(self.kept) and self._marks != self._repo.position())
        now, every_ms = self._audit.now(), self._settings.every_s * 1000
        if 0 <= now - self._flushed_at < every_ms:
            return False
        quiet_ms = self._settings.quiet_s * 1000
        return not 0 <= now - times[1] < quiet_ms or now - times[0] >= max(every_ms, quiet_ms)

    def _collect_written(self, seen: int) -> None:
        """Add the files that were written since the last check, or that a stash held back then."""
        self._collect_stashed()
        self._waiting |= self._audit.changed_paths(self._seen, seen)

    def _collect_stashed(self) -> None:
        """Add the files written by Memex that a stash took or returned since the last check; if Git can't list them, wait."""
        now = GitPosition(stash=self._repo.position().stash)
        before = self._stash or now
        paths = head_moves.changed_paths(self._repo, before, now)
        if paths is None:
            if not self._has_lost((before.stash, now.stash)):
                return
            paths = set()
        self._waiting |= {path for path in paths if self._audit.last_entry(path) is not None}
        self._stash = now

    def _has_lost(self, commits: Iterable[str | None]) -> bool:
        """Return whether Git no longer has one of these commits, such as a dropped stash."""
        asked = "".join(f"{commit}\n" for commit in commits if commit)
        answer = self._repo.query("cat-file", "--batch-check=%(objectname)", stdin=asked) or ""
        return any(line.endswith(" missing") for line in answer.split("\n"))

    def _commit_round(self, paths: Sequence[str], builder: CommitBuilder) -> list[MadeCommit]:
        """Commit Memex's own changes of these paths; files of a promotion are left to its own commit."""
        now = self._read_digests(paths)
        theirs = self._list_promoted()  # read after the digests: a promotion is recorded before it changes files
        now = {path: digest for path, digest in now.items() if path not in theirs}
        selection = self._select(builder, now)
        made = self._commit_batch(builder, CommitBatch(dict(sorted(selection.ours.items()))), selection)
        builder.move_head()
        self._record_outcome(selection, now)
        self._waiting -= selection.ours.keys()
        self.edited.update(selection.edited)
        self.made += len(made)
        return made

    @staticmethod
    def _commit_batch(builder: CommitBuilder, batch: CommitBatch, selection: CommitSelection) -> list[MadeCommit]:
        """Make the commit, without files that Git refuses; no commit if nothing is left."""
        if not batch.steps:
            return []
        try:
            contents = {path: selection.contents[path] for path in batch.steps}
            [name] = builder.add_commits([NewCommit(contents, batch.message)], batch.author)
        except FilesRefused as error:
            for path in error.paths:
                del selection.ours[path], batch.steps[path]
                selection.kept[path] = REFUSED
            return Committer._commit_batch(builder, batch, selection)
        return [MadeCommit(name, _subject(batch.message), tuple(batch.steps))] if name else []

    def _list_promoted(self) -> set[str]:
        return uncommitted_paths(self._ledger, now_ms() - RECENT_MS)

    def _record_outcome(self, selection: CommitSelection, asked: Iterable[str]) -> None:
        """Record the outcome for the checked paths."""
        for path in asked:
            self.kept.pop(path, None)
        self.kept |= selection.kept
        self._waiting -= set(asked) - selection.ours.keys() - selection.unsettled

    def _run_on_head(self, work: Callable[[CommitBuilder], _T], patience_s: float) -> _T | None:
        """Run `work` on top of HEAD as soon as Git allows it; return None and set the problem when it does not."""
        if self._is_hung():
            return None
        end, pause, races = time.monotonic() + patience_s, PAUSES[0], 0
        while True:
            why = self.hindrance()
            if not why:
                try:
                    head = self._repo.head()
                    index = self._index[1] if self._index[0] == head else b""
                    with CommitBuilder(self._repo, self._folder, head, index) as builder:
                        done = work(builder)
                        self._index = builder.private_index()
                except HeadMoved:
                    races += 1
                    why = _STATES["locked"] if races > RACES else ""
                except GitLockHeld:
                    why = _STATES["locked"]
                except (Unavailable, OSError) as error:
                    self._hung = time.monotonic() if isinstance(error, FilterHangs) else None
                    why = _describe_failure(error)
                else:
                    self.problem, self._hung = "", None
                    return done
            if why and (why != _STATES["locked"] or time.monotonic() + pause > end or races > RACES):
                self.problem = "" if why == _NONE else why  # a vault without Git history needs no commits
                self._tried = time.monotonic()
                return None
            if why:
                time.sleep(pause)
                pause = min(2 * pause, PAUSES[1])

    def _is_hung(self) -> bool:
        """Return whether a filter was found to hang so recently that it is not tried again yet."""
        return self._hung is not None and time.monotonic() - self._hung < HUNG_S

    def hindrance(self) -> str:
        """Return why nothing may be committed now; "" = it may."""
        state = self._repo.local_state()
        return "" if state in _ABLE else _STATES.get(state, _BLOCKED)

    def explain(self, why: str) -> str:
        """Return a hindrance as the owner reads it: it may name a repository around the vault."""
        state = self._repo.read_state() if why == _NONE else None
        return f"git: {self._repo.advice(state)}" if state and state.top else why

    # Memex's own changes

    def _read_digests(self, paths: Iterable[str]) -> dict[str, str | None]:
        """Return the content of these files: the digest, "" = no file, None = unknown."""
        digests: dict[str, str | None] = {}
        for path in paths:
            try:
                digests[path] = self._vault.digest_file(path).digest
            except NotFound:
                digests[path] = "" if self._vault.is_present() else None
            except (MemexError, OSError):
                digests[path] = None
        return digests

    def _read_content(self, path: str, digest: str) -> Content:
        """Return the bytes of a file with this digest; of one that is not small, a private copy. Raises Conflict when it changed."""
        if not digest:
            return None
        if (stat := self._vault.stat(path)) is not None and stat.size > min(SMALL, self._vault.max_bytes):
            with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as file:
                if self._vault.digest_file(path, file.write).digest != digest:
                    raise Conflict(f"{path} has changed")
            return Path(file.name)
        raw, _ = self._vault.read(path)
        if sha256(raw) != digest:
            raise Conflict(f"{path} has changed")
        return raw

    def _select_due(self, builder: CommitBuilder, due: DueCommit) -> CommitSelection:
        """Select what may be in a due commit: files that still have its digests, as a person may have edited and committed one.

        They are read after HEAD, so a commit by a person that comes later moves HEAD, and the selection is made again."""
        now = self._read_digests(due.digests)
        unchanged = {path: digest for path, digest in due.digests.items() if now[path] == digest}
        return self._select(builder, unchanged, due.approved)

    def _select(
        self, builder: CommitBuilder, now: Mapping[str, str | None], approved: Collection[str] = ()
    ) -> CommitSelection:
        root, inbox = self._vault.root, self._inbox
        return select_changes(builder, self._audit, now, self._read_content, vault=root, inbox=inbox, approved=approved)

    # Stored progress

    def _save_progress(self, seen: int) -> None:
        """Save how far the log was read; if that fails, the next check reads it again."""
        left = json.dumps(sorted(self._waiting | self.kept.keys()))
        if (seen, left) == (self._seen, named_values.read(self._ledger, LEFT)):
            return
        self._seen = seen
        with suppress(Unavailable):
            named_values.write(self._ledger, {SEEN: str(seen), LEFT: left})


def _subject(message: str) -> str:
    return message.partition("\n")[0]


def _describe_failure(error: Exception) -> str:
    """Log why a commit failed, and describe it without a path."""
    log.warning("could not commit: %s", error)
    return f"git: Memex can't commit its changes now ({_reason(error)})"


def _reason(error: Exception) -> str:
    """Return the cause without a path, which only messages of Git contain."""
    if isinstance(error, MemexError) and not isinstance(error, GitFailed):
        return error.message
    return str(error.strerror) if isinstance(error, OSError) else "Git failed; see the daemon's log"
