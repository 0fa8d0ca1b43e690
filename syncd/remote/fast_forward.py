"""Fast-forward the work tree from its commit to a later one, and finish the update after a crash.

Law, tested with a kill at every change of the disk: a file in a state that Git does not pass through between the two
commits belongs to a person and is left as it is. Git moves the tree, in its own session, so that the end of the
daemon does not interrupt it; the journal names the unfinished update for the next start."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from index.errors import Conflict, Unavailable
from syncd.git.stale_locks import held
from syncd.state.folder import private
from syncd.vault.openat import FOLDER, lstat, opener

if TYPE_CHECKING:
    from syncd.git.child_process import ProcessResult
    from syncd.git.repository import Repository

log = logging.getLogger(__name__)

JOURNAL: Final = "forward"  # in the state folder while the tree is moved; whoever moves it holds a lock on it
INDEX: Final = "forward.index"
_LOCKS: Final = ("index.lock", "HEAD.lock", "ORIG_HEAD.lock")
# Git's words when it has looked and has not begun.
_REFUSED: Final = (
    "Aborting",
    "Not possible to fast-forward",
    "invalid path",
    ".lock': File exists",
    "refusing to merge",
)
_LINK: Final = "120000"
_SLACK_NS: Final = 10_000_000  # a file system's clock is a little behind

# begun: Git has begun to write the later one. other: it holds what neither of the two commits has there.
State = Literal["old", "new", "missing", "begun", "other"]


@dataclass(frozen=True, slots=True)
class ChangedEntry:
    """One file in which two commits differ. A mode of zeros: it is not in that commit."""

    path: str
    modes: tuple[str, str]
    blobs: tuple[str, str]


class UncommittedChanges(Conflict):
    """Changes that are not committed stand in the way; nothing was moved."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__("changes that are not committed stand in the way", paths=list(paths))
        self.paths = tuple(paths)


class ConcurrentGitChange(Unavailable):
    """Somebody else has worked in the repository at the same moment; nothing was moved."""


def entries(repo: Repository, old: str, new: str) -> list[ChangedEntry]:
    """The files in which two commits differ."""
    told = _told(repo, "diff-tree", "-r", "-z", "--no-renames", "--end-of-options", old, new)
    fields = iter(told.decode("utf-8", "surrogateescape").split("\0"))
    found = []
    for raw in fields:
        if raw:
            modes_blobs = raw.removeprefix(":").split()
            found.append(ChangedEntry(next(fields), (modes_blobs[0], modes_blobs[1]), (modes_blobs[2], modes_blobs[3])))
    return found


@dataclass(frozen=True, slots=True)
class ForwardStep:
    """From where to where a branch and the work tree are moved."""

    branch: str  # refs/heads/main
    old: str
    new: str  # a commit that follows `old`
    changes: tuple[ChangedEntry, ...]  # the files in which the two differ

    @classmethod
    def of(cls, repo: Repository, branch: str, old: str, new: str) -> Self:
        """The step between two commits."""
        return cls(branch, old, new, tuple(entries(repo, old, new)))


def forward(repo: Repository, state: Path, step: ForwardStep) -> None:
    """Move branch and work tree on. Raises UncommittedChanges, Conflict or Unavailable."""
    journal = state / JOURNAL
    began = time.time_ns()
    private(journal, json.dumps({"old": step.old, "new": step.new, "branch": step.branch, "began": began}))
    with journal.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        options = ("--ff-only", "--no-autostash", "--no-overwrite-ignore", "--no-stat", "--quiet")
        done = repo.apart(
            "merge", *options, "--end-of-options", step.new, environ=repo.identity(), keep=(file.fileno(),)
        )
    if done.code == 0:
        journal.unlink(missing_ok=True)
        return
    begun = not any(word in done.said for word in _REFUSED)  # the disk is full, say
    # else another tool may have brought the same files already, Syncthing say
    if begun or ("Aborting" in done.said and _arrived(survey(repo, step.changes))):
        finish(repo, state)
        if repo.head() == step.new:
            return
    journal.unlink(missing_ok=True)
    raise _failure(done)


def _failure(done: ProcessResult) -> Conflict | Unavailable:
    """Why Git has not moved anything."""
    named = [line.removeprefix("\t") for line in done.said.splitlines() if line.startswith("\t")]
    if "Aborting" in done.said:
        return UncommittedChanges(named)
    if "Not possible to fast-forward" in done.said or ".lock': File exists" in done.said:
        return ConcurrentGitChange("somebody else works in the repository at the same moment; nothing was moved")
    said = " ".join(line for line in done.said.splitlines() if not line.startswith("hint:"))
    return Conflict(f"Git refuses what the remote has: {said.strip()[:400]}")


def _arrived(found: Mapping[str, State]) -> bool:
    return set(found.values()) <= {"old", "new"} and "new" in found.values()


# After a crash


def finish(repo: Repository, state: Path) -> list[str]:
    """Finish what a crash has torn; the paths that are left to a person, as they have changed since.

    Raises Unavailable while it can't be: then it is tried again later."""
    journal = state / JOURNAL
    try:
        said = json.loads(journal.read_bytes())
    except FileNotFoundError:
        return []
    _await_git(journal)
    _unlock(repo, said)
    old, new = said["old"], said["new"]
    if repo.head() != old:
        journal.unlink()  # it was done, or somebody has moved on from there
        return []
    changes = entries(repo, old, new)
    found = survey(repo, changes)
    if set(found.values()) <= {"old", "other"}:
        journal.unlink()  # it had not begun
        return []
    left = sorted(path for path, how in found.items() if how == "other")
    _bring(repo, state, new, [one for one in changes if found[one.path] != "other"], found)
    _stage(repo, changes)
    reason = ("-m", "merge: Fast-forward, finished")
    _told(repo, "update-ref", *reason, "--end-of-options", "HEAD", new, old, environ=repo.identity())
    repo.apart("update-index", "-q", "--refresh", environ={"GIT_OPTIONAL_LOCKS": "1"})
    journal.unlink()
    log.info("a fast-forward that was torn is finished: %d files, %d left to a person", len(changes), len(left))
    return left


# Beside another Git


def mended(repo: Repository, state: Path, step: ForwardStep) -> bool:
    """Bring back what another Git has undone; whether it had.

    A `git merge` that began before the step and fails after it puts tree and index back to where it began, while HEAD stays;
    the next commit would then delete what was brought. Only where HEAD is as the step has left it, and all of its files are as before it, in the tree and in the index."""
    if repo.head() != step.new or repo.busy() or set(survey(repo, step.changes[:1]).values()) != {"old"}:
        return False
    found, staged = survey(repo, step.changes), _staged(repo)
    undone = (staged.get(one.path, "0").strip("0") == one.blobs[0].strip("0") for one in step.changes)
    if set(found.values()) != {"old"} or not all(undone):
        return False
    _bring(repo, state, step.new, step.changes, found)
    _stage(repo, step.changes)
    repo.apart("update-index", "-q", "--refresh", environ={"GIT_OPTIONAL_LOCKS": "1"})
    log.warning("another Git at work had undone a pull in the files: %d of them are brought back", len(step.changes))
    return True


def _await_git(journal: Path) -> None:
    """Raise Unavailable while Git, which has outlived a daemon, is still moving the tree."""
    with journal.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable("Git is still moving the work tree on; ask again in a moment") from None


def _unlock(repo: Repository, said: Mapping[str, str]) -> None:
    """Take away the locks that Git died with: made after it was begun, and held by nobody."""
    own = [repo.own_folder() / name for name in _LOCKS]
    for lock in (*own, repo.common_folder() / f"{said['branch']}.lock"):
        with suppress(FileNotFoundError):
            if lock.stat().st_mtime_ns < int(said["began"]) - _SLACK_NS or held(lock, Path(repo.vault)):
                raise Unavailable("another program works in the repository; what was torn is finished after it")
            lock.unlink()
            log.info("the lock that a fast-forward had died with is taken away")


def survey(repo: Repository, changes: Sequence[ChangedEntry]) -> dict[str, State]:
    """How each file stands on the way from the one commit to the other."""
    found: dict[str, State] = {}
    asked: list[ChangedEntry] = []
    root = os.open(repo.vault, FOLDER)
    try:
        for one in changes:
            seen = lstat(opener(), root, one.path)
            if seen is None:
                found[one.path] = "new" if _gone(one.blobs[1]) else "old" if _gone(one.blobs[0]) else "missing"
            elif stat.S_ISLNK(seen.st_mode):
                target = os.fsencode(Path(repo.vault, one.path).readlink())
                blob = _told(repo, "hash-object", "--stdin", given=target).decode().strip()
                found[one.path] = _state(one, blob, link=True)
            elif stat.S_ISREG(seen.st_mode) and "\n" not in one.path:
                asked.append(one)
            else:
                found[one.path] = "other"
    finally:
        os.close(root)
    given = b"".join(os.fsencode(one.path) + b"\n" for one in asked)
    blobs = _told(repo, "hash-object", "--stdin-paths", given=given).decode().split() if asked else []
    for one, blob in zip(asked, blobs, strict=True):
        how = _state(one, blob, link=False)
        found[one.path] = "begun" if how == "other" and _begins(repo, one) else how
    going = {one.path for one in changes if _gone(one.blobs[1]) and found[one.path] in ("old", "new")}
    for one in changes:
        place = Path(repo.vault, one.path)
        if found[one.path] == "other" and not place.is_symlink() and place.is_dir() and _files(place, repo) <= going:
            found[one.path] = "missing"  # the folder that a file takes the place of
    return found


def _files(folder: Path, repo: Repository) -> set[str]:
    return {str(path.relative_to(repo.vault)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}


def _state(one: ChangedEntry, blob: str, *, link: bool) -> State:
    """Which of the two commits has what is there."""
    fits = [blob == known and (mode == _LINK) == link for mode, known in zip(one.modes, one.blobs, strict=True)]
    return "new" if fits[1] else "old" if fits[0] else "other"


def _begins(repo: Repository, one: ChangedEntry) -> bool:
    """Whether the file holds the first bytes of what Git would write there, and no others."""
    if _gone(one.blobs[1]):
        return False
    given = one.blobs[1].encode() + b" " + os.fsencode(one.path) + b"\n"
    whole = _told(repo, "cat-file", "--batch", "--filters", given=given).partition(b"\n")[2]
    return whole.removesuffix(b"\n").startswith(Path(repo.vault, one.path).read_bytes())


def _bring(
    repo: Repository, state: Path, new: str, changes: Sequence[ChangedEntry], found: Mapping[str, State]
) -> None:
    """Give these files the state of the later commit."""
    index = state / INDEX
    for one in changes:
        if _gone(one.blobs[1]):
            _remove(Path(repo.vault), one.path)
    lacking = [one.path for one in changes if not _gone(one.blobs[1]) and found[one.path] != "new"]
    given = b"".join(os.fsencode(path) + b"\0" for path in lacking)
    kept = {"GIT_INDEX_FILE": str(index)}
    index.unlink(missing_ok=True)
    try:
        _told(repo, "read-tree", "--end-of-options", new, environ=kept)
        _told(repo, "checkout-index", "--force", "--quiet", "-z", "--stdin", given=given, environ=kept)
    finally:
        index.unlink(missing_ok=True)


def _remove(root: Path, path: str) -> None:
    """Take a file away if it is there, and the folders that it leaves empty, as Git does."""
    with suppress(NotADirectoryError):  # a file has taken the folder's name
        (root / path).unlink(missing_ok=True)
    with suppress(OSError):  # one that is not empty
        for folder in (root / path).parents:
            if folder == root:
                break
            folder.rmdir()


def _stage(repo: Repository, changes: Sequence[ChangedEntry]) -> None:
    """Let the index hold the later commit's files, but for those of which somebody has staged something else."""
    staged = _staged(repo)
    given = b"".join(
        f"{'0' if _gone(one.blobs[1]) else one.modes[1]} {one.blobs[1]}\t".encode() + os.fsencode(one.path) + b"\0"
        for one in changes
        if staged.get(one.path, "0") in one.blobs or (one.path not in staged and any(map(_gone, one.blobs)))
    )
    _told(repo, "update-index", "-z", "--index-info", given=given)


def _staged(repo: Repository) -> dict[str, str]:
    """The blob that the index has of each file."""
    listed = _told(repo, "ls-files", "--stage", "-z").decode("utf-8", "surrogateescape").split("\0")
    return {path: words.split()[1] for words, _, path in (line.partition("\t") for line in listed if line)}


def _gone(blob: str) -> bool:
    """Whether Git names no file."""
    return not blob.strip("0")


def _told(repo: Repository, *words: str, **how: Any) -> bytes:
    done = repo.apart(*words, **how)
    if done.code:
        raise Unavailable(f"Git can't finish moving the work tree on: {done.said.strip()[:300]}")
    return done.out
