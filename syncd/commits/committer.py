"""The committer commits files that Memex wrote, once they are quiet, and nothing that a person did.

Laws, tested: each commit holds only states that the audit log reaches from HEAD: nothing that a person staged
differently, nothing that looks like a secret or an unfinished merge. A commit is made only while no other Git
operation is under way. A file that cannot be committed stays as it is, is checked again, and is reported."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from index.errors import Conflict, MemexError, NotFound, Unavailable
from syncd.commits.commit_builder import CommitBuilder, Content, FilterFailed, FilterHangs, GitLockHeld, HeadMoved
from syncd.commits.commit_selection import REFUSED, CommitSelection, select_changes
from syncd.commits.own_changes import CommitBatch
from syncd.git import head_moves
from syncd.git.repository import GitPosition, Repository
from syncd.history.audit_log import AuditLog
from syncd.history.change_journal import RECENT_MS, sha256, uncommitted_paths
from syncd.settings.automation import GitSettings
from syncd.state import named_values
from syncd.state.ledger import Ledger
from syncd.vault.vault import Vault

log = logging.getLogger(__name__)

FOLDER: Final = "commit"  # in the state folder: the private index and tree of the commit under way
SEEN: Final = "git.seen"  # named value: how far the audit log was examined
LEFT: Final = "git.left"  # named value: which files to examine again
PAUSES: Final = 0.1, 5.0  # least and most seconds between two looks at a lock
PATIENCE_S: Final = 30.0  # for a lock
GRACE_S: Final = 8.0  # for what is left when the daemon ends
ROUND: Final = 1_000  # files that are looked at together
RACES: Final = 20  # times that HEAD may move under our hands
SUGGESTIONS: Final = "review"  # the tool whose writes cause no commit: they go into the next one
HUNG_S: Final = 600.0  # until a filter that did not come to an end is tried again
AGAIN_S: Final = 60.0  # until what could not be committed is tried again
_NONE: Final = "git: the vault has no history, so nothing is committed"
_STATES: Final[Mapping[str, str]] = {
    "no-git": _NONE,
    "no-repo": _NONE,
    "bare": _NONE,
    "detached": "git: no branch is checked out, so what Memex writes is not committed; memex status has the way out",
    "conflict": "git: conflicts are left to mend, so what Memex writes is not committed",
    "mid-operation": "git: an operation is not finished, so what Memex writes is not committed until it is",
    "locked": "git: another program holds the repository, so what Memex writes is not committed yet",
}
_BLOCKED: Final = "git: what Memex writes is not committed until the repository is mended; memex status has the way out"
_ABLE: Final = frozenset({"ok", "unborn"})

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class MadeCommit:
    """A commit, or one that would be made."""

    commit: str  # in hex; "" = it was not made
    subject: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DueCommit:
    """A commit that is to be made of what was done: as `Committer.commit` takes it."""

    changes: Mapping[str, bytes | None]
    message: str
    approved: Collection[str]


class Committer:
    """The commits of one vault. Safe from any thread: one is made at a time."""

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
        self.problem = ""  # why commits wait, in a sentence without paths
        self.made = 0  # commits since the start
        self.kept: dict[str, str] = {}  # path → why it stays local
        self.edited: set[str] = set()  # of the last look: what a person has edited before it was committed
        self._repo, self._vault, self._audit, self._ledger = repo, vault, audit, ledger
        self._folder, self._settings, self._inbox = state / FOLDER, settings, inbox
        self._lock = threading.RLock()
        self._seen = int(named_values.read(ledger, SEEN) or 0)
        self._waiting: set[str] = set(json.loads(named_values.read(ledger, LEFT) or "[]"))
        self._marks: object = None
        self._stash: GitPosition | None = None  # the newest stash, when it was looked for last
        self._flushed_at = float("-inf")  # when commits were last made without being asked for, in epoch milliseconds
        self._tried = float("-inf")
        self._hung: float | None = None  # since when a filter is known to hang

    # What others ask for

    @property
    def is_on(self) -> bool:
        """Whether anything is to be committed at all."""
        return self._settings.commit

    def commit(
        self,
        changes: Mapping[str, bytes | None],
        message: str,
        *,
        author: str = "",
        approved: Collection[str] = (),
    ) -> str | None:
        """Commit these bytes (None = the file is gone), which have been written already, on top of HEAD; the commit.

        "" when nothing of it is to be committed: HEAD has it, or it is a person's or kept local. None when Git does not
        allow it just now, or commits are off: `problem` says why, and `flush` makes up for it. A person has `approved` all
        that some of these say."""

        def build(builder: CommitBuilder) -> str:
            selection = self._select_due(builder, DueCommit(changes, message, approved))
            self._record_outcome(selection, changes)
            made = builder.add_commit(selection.contents, message, author or "Memex") if selection.contents else ""
            builder.move_head()
            self.made += bool(made)
            return made

        with self._lock:
            return self._run_on_head(build, PATIENCE_S) if self.is_on else None

    def flush(self, patience_s: float = PATIENCE_S) -> int:
        """Commit what Memex wrote and nobody has edited since; how many commits were made."""
        return len(self.commit_pending(patience_s)) if self.is_on else 0

    def commit_pending(self, patience_s: float = PATIENCE_S) -> list[MadeCommit]:
        """Do so even where it is not done by itself; the commits that were made."""
        with self._lock:
            made: list[MadeCommit] = []
            if not self._has_history():
                return made
            self.edited.clear()
            seen = self._audit.head.seq
            self._collect_written(seen)
            marks = self._repo.position()
            owed = sorted(self._waiting | self.kept.keys())
            for at in range(0, len(owed), ROUND):
                done = self._run_on_head(partial(self._commit_round, owed[at : at + ROUND]), patience_s)
                if done is None:
                    return made
                made += done
            self._marks = self._repo.position() if made else marks
            self._save_progress(seen)
            return made

    def preview(self, due: Iterable[DueCommit] = ()) -> tuple[list[MadeCommit], CommitSelection]:
        """What `commit_pending` would commit now, and what is `due` beside that, and what neither would; nothing is changed.

        Conflict when Git does not allow it."""
        with self._lock:
            if why := self.hindrance():
                raise Conflict(why)
            self._collect_written(self._audit.head.seq)
            with CommitBuilder(self._repo, self._folder, self._repo.head()) as builder:
                asked = sorted((self._waiting | self.kept.keys()) - self._list_promoted())
                selection = self._select(builder, self._read_digests(asked), self._read_content)
                ours = CommitBatch(dict(sorted(selection.ours.items())))
                made = [MadeCommit("", _subject(ours.message), tuple(ours.steps))] if ours.steps else []
                for commit in due:
                    fit = self._select_due(builder, commit)
                    selection.kept |= fit.kept
                    made += [MadeCommit("", _subject(commit.message), tuple(fit.contents))] if fit.contents else []
            return made, selection

    def tick(self) -> None:
        """Flush when what was written has been quiet for long enough."""
        self._forget_solved_problem()
        if not self.is_on:
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
        """Drop a problem whose cause is gone, as nothing may be left to commit that would show it."""
        if self.problem and time.monotonic() - self._tried >= AGAIN_S and self.hindrance() in ("", _NONE):
            self.problem = ""

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Commit what is left, and wait no longer than that for it: what is not done then is done at the next start."""

        def flush_rest() -> None:
            try:
                if self._waiting or self._audit.write_times(self._seen, without=SUGGESTIONS):
                    self.flush(0.0)
            except (MemexError, OSError) as error:
                log.warning("what is left could not be committed: %s", error)

        last = threading.Thread(target=flush_rest, name="commits", daemon=True)
        last.start()
        last.join(grace_s)

    def facts(self) -> dict[str, Any]:
        """What its owner is told; it waits for no commit that is under way."""
        waiting = set(self._waiting)
        if self.is_on and self._has_history():
            waiting |= self._list_written(self._audit.head.seq)
        kept = dict(self.kept)
        return {
            "on": self.is_on,
            "waiting": len(waiting - kept.keys()),
            "kept": [{"path": path, "why": why} for path, why in sorted(kept.items())],
            "problem": self.problem,
        }

    # How

    def _has_history(self) -> bool:
        """Whether the vault has a history at all."""
        return os.path.lexists(Path(self._repo.vault, ".git"))

    def _is_due(self) -> bool:
        """Whether it is time to commit: the last time is long enough ago, and what was written is quiet or has waited as long.

        A clock that was set back makes nothing wait."""
        times = self._audit.write_times(self._seen, without=SUGGESTIONS)
        if times is None:
            return bool(self._waiting) or (bool(self.kept) and self._marks != self._repo.position())
        now, every_ms = self._audit.now(), self._settings.every_s * 1000
        if 0 <= now - self._flushed_at < every_ms:
            return False
        quiet_ms = self._settings.quiet_s * 1000
        return not 0 <= now - times[1] < quiet_ms or now - times[0] >= max(every_ms, quiet_ms)

    def _collect_written(self, seen: int) -> None:
        """Add the files that were written since the last look, or were away then."""
        self._collect_stashed()
        self._waiting |= self._list_written(seen)

    def _collect_stashed(self) -> None:
        """Add what a stash has taken or given back since the last look, of what Memex wrote."""
        now = GitPosition(stash=self._repo.position().stash)
        paths = head_moves.changed_paths(self._repo, self._stash or now, now) or ()
        self._waiting |= {path for path in paths if self._audit.last_entry(path) is not None}
        self._stash = now

    def _list_written(self, seen: int) -> set[str]:
        return self._audit.changed_paths(self._seen, seen)

    def _commit_round(self, paths: Sequence[str], builder: CommitBuilder) -> list[MadeCommit]:
        """Commit what is ours of these; what a promotion has changed is left to its own commit."""
        now = self._read_digests(paths)
        theirs = self._list_promoted()  # after that: whatever changes files has said so before
        now = {path: digest for path, digest in now.items() if path not in theirs}
        selection = self._select(builder, now, self._read_content)
        made = self._commit_batch(builder, CommitBatch(dict(sorted(selection.ours.items()))), selection)
        builder.move_head()
        self._record_outcome(selection, now)
        self._waiting -= selection.ours.keys()
        self.edited.update(selection.edited)
        self.made += len(made)
        return made

    @staticmethod
    def _commit_batch(builder: CommitBuilder, batch: CommitBatch, selection: CommitSelection) -> list[MadeCommit]:
        """Make the commit, without what a filter fails on; none of nothing."""
        if not batch.steps:
            return []
        try:
            name = builder.add_commit(
                {path: selection.contents[path] for path in batch.steps}, batch.message, batch.author
            )
        except FilterFailed as error:
            for path in error.paths:
                del selection.ours[path], batch.steps[path]
                selection.kept[path] = REFUSED
            return Committer._commit_batch(builder, batch, selection)
        return [MadeCommit(name, _subject(batch.message), tuple(batch.steps))] if name else []

    def _list_promoted(self) -> set[str]:
        return uncommitted_paths(self._ledger, time.time_ns() // 1_000_000 - RECENT_MS)

    def _record_outcome(self, selection: CommitSelection, asked: Iterable[str]) -> None:
        """Take note of what became of the paths that were asked for."""
        for path in asked:
            self.kept.pop(path, None)
        self.kept |= selection.kept
        self._waiting -= set(asked) - selection.ours.keys() - set(selection.unsettled)

    def _run_on_head(self, work: Callable[[CommitBuilder], _T], patience_s: float) -> _T | None:
        """Do something on top of HEAD as soon as Git allows it; None, and the problem, when it does not."""
        if self._hung is not None and time.monotonic() - self._hung < HUNG_S:
            return None
        end, pause, races = time.monotonic() + patience_s, PAUSES[0], 0
        while True:
            why = self.hindrance()
            if not why:
                try:
                    with CommitBuilder(self._repo, self._folder, self._repo.head()) as builder:
                        done = work(builder)
                except HeadMoved:
                    races += 1
                    why = _STATES["locked"] if races > RACES else ""
                except GitLockHeld:
                    why = _STATES["locked"]
                except (Unavailable, OSError) as error:
                    self._hung = time.monotonic() if isinstance(error, FilterHangs) else None
                    log.warning("nothing could be committed: %s", error)
                    why = f"git: what Memex writes can't be committed just now ({_reason(error)})"
                else:
                    self.problem, self._hung = "", None
                    return done
            if why and (why != _STATES["locked"] or time.monotonic() + pause > end or races > RACES):
                self.problem = "" if why == _NONE else why  # of a vault without a history nothing is owed
                self._tried = time.monotonic()
                return None
            if why:
                time.sleep(pause)
                pause = min(2 * pause, PAUSES[1])

    def hindrance(self) -> str:
        """Why nothing may be committed just now."""
        state = self._repo.local_state()
        return "" if state in _ABLE else _STATES.get(state, _BLOCKED)

    # What is ours

    def _read_digests(self, paths: Iterable[str]) -> dict[str, str | None]:
        """What these files hold: the digest, "" = no file, None = nobody can tell."""
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
        """The bytes of a file that has this digest; those of a large one in a file of ours. Conflict when it changed."""
        if not digest:
            return None
        if (stat := self._vault.stat(path)) is not None and stat.size > self._vault.max_bytes:
            copy = self._folder / f"file-{digest}"
            with copy.open("wb") as file:
                if self._vault.digest_file(path, file.write).digest != digest:
                    raise Conflict(f"{path} has changed")
            return copy
        raw, _ = self._vault.read(path)
        if sha256(raw) != digest:
            raise Conflict(f"{path} has changed")
        return raw

    def _select_due(self, builder: CommitBuilder, due: DueCommit) -> CommitSelection:
        """What of a commit that is due may be in it."""
        digests = {path: sha256(raw) for path, raw in due.changes.items()}
        return self._select(builder, digests, lambda path, _: due.changes[path], due.approved)

    def _select(
        self,
        builder: CommitBuilder,
        now: Mapping[str, str | None],
        content: Callable[[str, str], Content],
        approved: Collection[str] = (),
    ) -> CommitSelection:
        root, inbox = self._vault.root, self._inbox
        return select_changes(builder, self._audit, now, content, vault=root, inbox=inbox, approved=approved)

    # What is remembered

    def _save_progress(self, seen: int) -> None:
        """Have the next look begin where this one ended; what can't be written down is looked at once more."""
        left = json.dumps(sorted(self._waiting | self.kept.keys()))
        if (seen, left) == (self._seen, named_values.read(self._ledger, LEFT)):
            return
        self._seen = seen
        with suppress(Unavailable):
            named_values.write(self._ledger, {SEEN: str(seen), LEFT: left})


def _subject(message: str) -> str:
    return message.partition("\n")[0]


def _reason(error: Exception) -> str:
    """What went wrong, without a path: an error of the system, or that Git failed."""
    if isinstance(error, FilterHangs):
        return error.message
    return str(error.strerror) if isinstance(error, OSError) else "Git failed; the log says more"
