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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from index.errors import Conflict, Unavailable
from syncd.git.repository import quote_path
from syncd.git.stale_locks import is_held
from syncd.state.folder import write_private
from syncd.vault.openat import FOLDER, choose_opener, lstat
from syncd.vault.path_rules import parent_folders

if TYPE_CHECKING:
    from syncd.git.child_process import ProcessResult
    from syncd.git.repository import Repository

log = logging.getLogger(__name__)

JOURNAL: Final = "forward"  # in the state folder while an update is unfinished; the running Git holds a lock on it
INDEX: Final = "forward.index"
_LOCKS: Final = ("index.lock", "HEAD.lock", "ORIG_HEAD.lock")
# Words in Git's output when it refuses before it changes any file.
_REFUSED: Final = (
    "Aborting",
    "Not possible to fast-forward",
    "invalid path",
    ".lock': File exists",
    "refusing to merge",
)
_LINK: Final = "120000"
GROUP: Final = 64  # files that are compared and then written together
_SLACK_NS: Final = 10_000_000  # nanoseconds by which a file system's clock may lag

# begun: Git has begun to write the later version. other: the file has content that neither commit has there.
State = Literal["old", "new", "missing", "begun", "other"]


@dataclass(frozen=True, slots=True)
class ChangedEntry:
    """Describes one file in which two commits differ. A mode of zeros means that the commit lacks the file."""

    path: str
    modes: tuple[str, str]
    blobs: tuple[str, str]

    @property
    def is_removal(self) -> bool:
        """Return whether the later commit lacks the file."""
        return _is_null_blob(self.blobs[1])


class UncommittedChanges(Conflict):
    """Uncommitted changes block the update; no file was changed."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__("uncommitted changes conflict with the new commits", paths=list(paths))
        self.paths = tuple(paths)


class ConcurrentGitChange(Unavailable):
    """Another program worked in the repository at the same time; no file was changed."""


def list_changes(repo: Repository, old: str, new: str) -> list[ChangedEntry]:
    """Return the files in which two commits differ."""
    output = _run_git(repo, "diff-tree", "-r", "-z", "--no-renames", "--end-of-options", old, new)
    fields = iter(output.decode("utf-8", "surrogateescape").split("\0"))
    changes = []
    for raw in fields:
        if raw:
            modes_blobs = raw.removeprefix(":").split()
            changes.append(
                ChangedEntry(next(fields), (modes_blobs[0], modes_blobs[1]), (modes_blobs[2], modes_blobs[3]))
            )
    return changes


@dataclass(frozen=True, slots=True)
class ForwardStep:
    """Describes an update of a branch and the work tree from one commit to a later one."""

    branch: str  # refs/heads/main
    old: str
    new: str  # a descendant of `old`
    changes: tuple[ChangedEntry, ...]  # the files in which the two commits differ

    @classmethod
    def between(cls, repo: Repository, branch: str, old: str, new: str) -> Self:
        """Return the step between two commits."""
        return cls(branch, old, new, tuple(list_changes(repo, old, new)))


def apply_step(repo: Repository, state: Path, step: ForwardStep) -> list[str]:
    """Fast-forward the branch and the work tree, and return the paths left alone because their files were edited meanwhile.

    Raises UncommittedChanges, Conflict or Unavailable."""
    if repo.query("symbolic-ref", "--quiet", "HEAD") != step.branch:
        raise ConcurrentGitChange("another branch was checked out during the sync; Memex changed no file")
    journal = state / JOURNAL
    began = time.time_ns()
    write_private(journal, json.dumps({"old": step.old, "new": step.new, "branch": step.branch, "began": began}))
    with journal.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        options = ("--ff-only", "--no-autostash", "--no-overwrite-ignore", "--no-stat", "--quiet")
        result = repo.run_in_session(
            "merge", *options, "--end-of-options", step.new, environ=repo.identity(), keep=(file.fileno(),)
        )
    if result.code == 0:
        journal.unlink(missing_ok=True)
        return []
    begun = not any(word in result.said for word in _REFUSED)  # for example, the disk is full
    # Otherwise another tool, such as Syncthing, may already have brought the same files.
    states = set(survey(repo, step.changes).values()) if "Aborting" in result.said else set[State]()
    if begun or ("new" in states and states <= {"old", "new"}):
        left = finish_interrupted(repo, state)
        if repo.head() == step.new:
            return left
    journal.unlink(missing_ok=True)
    raise _failure(result)


def _failure(result: ProcessResult) -> Conflict | Unavailable:
    """Return the error for a Git command that changed nothing."""
    named = [line.removeprefix("\t") for line in result.said.splitlines() if line.startswith("\t")]
    if "Aborting" in result.said:
        return UncommittedChanges(named)
    if "Not possible to fast-forward" in result.said or ".lock': File exists" in result.said:
        return ConcurrentGitChange("another program works in the repository; Memex changed no file")
    message = " ".join(line for line in result.said.splitlines() if not line.startswith("hint:"))
    return Conflict(f"Git refuses the commits of the remote: {message.strip()[:400]}")


# After a crash


def finish_interrupted(repo: Repository, state: Path) -> list[str]:
    """Finish an update that a crash interrupted, and return the paths left alone because their files changed since.

    Raises Unavailable while that is impossible; the caller retries later."""
    journal = state / JOURNAL
    try:
        record = json.loads(journal.read_bytes())
    except FileNotFoundError:
        return []
    _await_git(journal)
    _remove_stale_locks(repo, record)
    old, new = record["old"], record["new"]
    if repo.head() != old:
        journal.unlink()  # the update was complete, or somebody has moved HEAD since
        return []
    changes = list_changes(repo, old, new)
    states = survey(repo, changes)
    if set(states.values()) <= {"old", "other"}:
        journal.unlink()  # the update had not begun
        return []
    left = [path for path, how in states.items() if how == "other"]
    left += _write_files(repo, state, new, [change for change in changes if states[change.path] != "other"])
    _stage_files(repo, changes)
    reason = ("-m", "merge: Fast-forward, finished")
    _run_git(repo, "update-ref", *reason, "--end-of-options", "HEAD", new, old, environ=repo.identity())
    repo.run_in_session("update-index", "-q", "--refresh", environ={"GIT_OPTIONAL_LOCKS": "1"})
    journal.unlink()
    log.info(
        "finished an interrupted fast-forward: %d files, %d left unchanged because they were edited",
        len(changes),
        len(left),
    )
    return sorted(left)


# Beside another Git


def redo_undone_step(repo: Repository, state: Path, step: ForwardStep) -> bool:
    """Repeat a step in the files if another Git has undone it there, and return whether it had.

    A `git merge` that began before the step and fails after it restores the earlier work tree and index, while HEAD
    stays; the next commit would then delete what the step brought. The step is repeated only if HEAD is where the step
    left it, and all its files are as before the step, in the work tree and in the index."""
    if repo.head() != step.new or repo.busy_reason() or set(survey(repo, step.changes[:1]).values()) != {"old"}:
        return False
    states, staged = survey(repo, step.changes), _read_staged(repo)
    undone = (staged.get(change.path, "0").strip("0") == change.blobs[0].strip("0") for change in step.changes)
    if set(states.values()) != {"old"} or not all(undone):
        return False
    left = _write_files(repo, state, step.new, step.changes)
    _stage_files(repo, step.changes)
    repo.run_in_session("update-index", "-q", "--refresh", environ={"GIT_OPTIONAL_LOCKS": "1"})
    restored = len(step.changes) - len(left)
    log.warning("another Git process reverted files that a pull had written: restored %d of them", restored)
    return True


def _await_git(journal: Path) -> None:
    """Raise Unavailable while a Git process that outlived its daemon is still updating the work tree."""
    with journal.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable("Git is still updating the work tree; try again in a moment") from None


def _remove_stale_locks(repo: Repository, record: Mapping[str, str]) -> None:
    """Remove the locks that a dead Git left: made after the update began, and held by no process.

    Raises Unavailable if a lock is older than the update or held by a process."""
    locks = [repo.git_folder() / name for name in _LOCKS]
    for lock in (*locks, repo.common_folder() / f"{record['branch']}.lock"):
        with suppress(FileNotFoundError):
            if lock.stat().st_mtime_ns < int(record["began"]) - _SLACK_NS or is_held(lock, Path(repo.vault)):
                raise Unavailable(
                    "another program works in the repository; Memex finishes the interrupted update when that program has ended; "
                    f"if none does, remove {lock}"
                )
            lock.unlink()
            log.info("removed the stale lock of an interrupted fast-forward")


def survey(repo: Repository, changes: Sequence[ChangedEntry]) -> dict[str, State]:
    """Return, by path, which state between the two commits each file is in."""
    states: dict[str, State] = {}
    files: list[ChangedEntry] = []
    folders: list[ChangedEntry] = []
    obstacles: dict[str, str] = {}  # path of a missing file → the link or file that has the place of its folder
    with _open_vault(repo) as root:
        for change in changes:
            seen = lstat(choose_opener(), root, change.path)
            if seen is None:
                is_new = _is_null_blob(change.blobs[0])
                states[change.path] = "new" if change.is_removal else "old" if is_new else "missing"
                if not change.is_removal and (obstacle := _find_obstacle(root, change.path)):
                    obstacles[change.path] = obstacle
            elif stat.S_ISLNK(seen.st_mode):
                target = os.fsencode(Path(repo.vault, change.path).readlink())
                blob = _run_git(repo, "hash-object", "--stdin", stdin=target).decode().strip()
                states[change.path] = _file_state(change, blob, link=True)
            elif stat.S_ISREG(seen.st_mode) and "\n" not in change.path:
                files.append(change)
            else:
                # A folder may have replaced a removed file; the files in the folder have states of their own.
                states[change.path] = "new" if change.is_removal and stat.S_ISDIR(seen.st_mode) else "other"
                folders += [change] if stat.S_ISDIR(seen.st_mode) and not change.is_removal else []
    states |= _survey_files(repo, files)
    states |= {path: "other" for path, above in obstacles.items() if states.get(above, "other") == "other"}
    removed = {change.path for change in changes if change.is_removal and states[change.path] in ("old", "new")}
    # A folder of removed files, which a file replaces.
    states |= {
        change.path: "missing" for change in folders if _list_files(Path(repo.vault, change.path), repo) <= removed
    }
    return states


@contextmanager
def _open_vault(repo: Repository) -> Iterator[int]:
    root = os.open(repo.vault, FOLDER)
    try:
        yield root
    finally:
        os.close(root)


def _find_obstacle(root: int, path: str) -> str | None:
    """Return the first path above a file that exists and is not a folder, such as a link to a folder elsewhere."""
    for folder in parent_folders(path)[1:]:
        seen = lstat(choose_opener(), root, folder)
        if seen is None:
            return None
        if not stat.S_ISDIR(seen.st_mode):
            return folder
    return None


def _survey_files(repo: Repository, files: Sequence[ChangedEntry]) -> dict[str, State]:
    """Return the states of regular files."""
    if not files:
        return {}
    names = b"".join(quote_path(change.path) for change in files)
    blobs = _run_git(repo, "hash-object", "--stdin-paths", stdin=names).decode().split()
    states: dict[str, State] = {}
    for change, blob in zip(files, blobs, strict=True):
        state = _file_state(change, blob, link=False)
        states[change.path] = "begun" if state == "other" and _is_partly_written(repo, change) else state
    return states


def _list_files(folder: Path, repo: Repository) -> set[str]:
    return {str(path.relative_to(repo.vault)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}


def _file_state(change: ChangedEntry, blob: str, *, link: bool) -> State:
    """Return which of the two commits contains this version of the file."""
    fits = [blob == known and (mode == _LINK) == link for mode, known in zip(change.modes, change.blobs, strict=True)]
    return "new" if fits[1] else "old" if fits[0] else "other"


def _is_partly_written(repo: Repository, change: ChangedEntry) -> bool:
    """Return whether the file is a beginning of what Git would write there."""
    if change.is_removal:
        return False
    request = change.blobs[1].encode() + b" " + os.fsencode(change.path) + b"\n"
    whole = _run_git(repo, "cat-file", "--batch", "--filters", stdin=request).partition(b"\n")[2]
    return whole.removesuffix(b"\n").startswith(Path(repo.vault, change.path).read_bytes())


def _write_files(repo: Repository, state: Path, new: str, changes: Sequence[ChangedEntry]) -> list[str]:
    """Bring these files of the work tree to the later commit; return the paths left alone because their files were edited.

    Each small group of files is compared again just before it is written, so an edit is lost only if it is saved in the
    milliseconds in which Git starts to write its group."""
    index, left = state / INDEX, list[str]()
    kept = {"GIT_INDEX_FILE": str(index)}
    _discard_index(index)
    try:
        _run_git(repo, "read-tree", "--end-of-options", new, environ=kept)
        # Removals first: a file may replace a folder, or a folder a file.
        ordered = sorted(changes, key=lambda change: not change.is_removal)
        for start in range(0, len(ordered), GROUP):
            left += _write_group(repo, ordered[start : start + GROUP], kept)
    finally:
        _discard_index(index)
    return left


def _write_group(repo: Repository, group: Sequence[ChangedEntry], kept: Mapping[str, str]) -> list[str]:
    """Bring a few files to the commit in an index, and return the paths left alone."""
    states = survey(repo, group)
    with _open_vault(repo) as root:
        for change in group:
            if change.is_removal and states[change.path] != "other":
                _remove_file(root, change.path)
    lacking = [change.path for change in group if not change.is_removal and states[change.path] not in ("new", "other")]
    names = b"".join(os.fsencode(path) + b"\0" for path in lacking)
    _run_git(repo, "checkout-index", "--force", "--quiet", "-z", "--stdin", stdin=names, environ=kept)
    return [path for path, how in states.items() if how == "other"]


def _discard_index(index: Path) -> None:
    for file in (index, index.with_name(f"{index.name}.lock")):  # a killed Git leaves the lock
        file.unlink(missing_ok=True)


def _remove_file(root: int, path: str) -> None:
    """Remove a file below `root` if it exists, and the folders that become empty, as Git does; no link is followed."""
    seen = lstat(choose_opener(), root, path)
    if seen is not None and not stat.S_ISDIR(seen.st_mode):
        _remove_name(root, path, os.unlink)
    with suppress(OSError):  # the folder is not empty
        for folder in reversed(parent_folders(path)[1:]):
            _remove_name(root, folder, os.rmdir)


def _remove_name(root: int, path: str, remove: Callable[..., None]) -> None:
    folder, _, name = path.rpartition("/")
    opened = choose_opener()(root, folder or ".", FOLDER, 0)
    try:
        remove(name, dir_fd=opened)
    finally:
        os.close(opened)


def _stage_files(repo: Repository, changes: Sequence[ChangedEntry]) -> None:
    """Put the later commit's files into the index, except files for which somebody has staged something else."""
    staged = _read_staged(repo)
    lines = b"".join(
        f"{'0' if change.is_removal else change.modes[1]} {change.blobs[1]}\t".encode()
        + os.fsencode(change.path)
        + b"\0"
        for change in changes
        if staged.get(change.path, "0") in change.blobs
        or (change.path not in staged and any(map(_is_null_blob, change.blobs)))
    )
    _run_git(repo, "update-index", "-z", "--index-info", stdin=lines)


def _read_staged(repo: Repository) -> dict[str, str]:
    """Return the blob of each file in the index, by path."""
    listed = _run_git(repo, "ls-files", "--stage", "-z").decode("utf-8", "surrogateescape").split("\0")
    return {path: words.split()[1] for words, _, path in (line.partition("\t") for line in listed if line)}


def _is_null_blob(blob: str) -> bool:
    """Return whether a blob id consists of zeros, which in Git's output means "no file"."""
    return not blob.strip("0")


def _run_git(repo: Repository, *words: str, **how: Any) -> bytes:
    result = repo.run_in_session(*words, **how)
    if result.code:
        raise Unavailable(f"Git can't finish updating the work tree: {result.said.strip()[:300]}")
    return result.out
