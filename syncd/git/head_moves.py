"""List the files that Git touched while HEAD moved from one position to another, step by step from HEAD's log.

Law, tested: every step counts, not only the two ends, because a note may end as it began and yet have changed in
between. An uncertain answer is not guessed: None means that any file may have changed."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from syncd.git.repository import GitPosition, Repository

_MOVE = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) ")  # a line of the log: from where, to where
_STEP = re.compile(
    rb"[0-9a-f]{40,64} ([0-9a-f]{40,64}) .*? (\d+) [+-]\d{4}(?:\t(.*))?\Z"
)  # where to, when (epoch s), how
_UNKNOWN = re.compile(r"[0-9a-f]{40,64} [0-9a-f]{40,64}\n")  # what Git repeats when it lacks one of the two
RECENT: Final = 64 * 1024  # bytes of HEAD's log: some hundreds of moves
ASKED: Final = 200  # commits at most that are asked for one file
_GONE: Final = "--diff-filter=D"
_NAMES = ("-r", "-z", "--name-only")


def changed_paths(repo: Repository, since: GitPosition, now: GitPosition) -> set[str] | None:
    """The files that Git touched on the way from one to the other; None when it can't tell."""
    paths: set[str] = set()
    if (since.head, since.log) != (now.head, now.log):
        touched = _paths_in_steps(repo, since, now)
        if touched is None:
            return None
        paths |= touched
    for stash in {since.stash, now.stash} - {None} if since.stash != now.stash else ():
        if (taken := diff_paths(repo, f"{stash}^1", str(stash))) is None:
            return None
        untracked = repo.query("ls-tree", *_NAMES, "--end-of-options", f"{stash}^3")  # None when it took no such files
        paths |= taken | _split_paths(untracked or "")
    return paths


def removed_paths(repo: Repository, since: GitPosition, now: GitPosition) -> set[str]:
    """The files that Git took away at any step from one to the other, and has not brought back.

    When no log tells the way, those that the one has and the other has not."""
    if since.head is None or now.head is None:
        return set()
    gone = diff_paths(repo, since.head, now.head, _GONE) if since.head != now.head else None
    way = _paths_in_steps(repo, since, now, gone=True) if 0 < since.log < now.log else None
    there = repo.query("ls-tree", *_NAMES, "--end-of-options", now.head) if way else ""
    return (gone or set()) | (set() if there is None else (way or set()) - _split_paths(there))


def diff_paths(repo: Repository, old: str, new: str, *options: str) -> set[str] | None:
    """The paths in which two commits differ."""
    output = repo.query("diff-tree", *_NAMES, "--no-renames", *options, "--end-of-options", old, new)
    return None if output is None else _split_paths(output)


def is_from_git(repo: Repository, path: str, raw: bytes, written: int) -> bool:
    """Whether Git put these bytes at `path`: HEAD has lately come to a commit that has them there.

    A commit that was made here took them from the file instead, unless the file was `written` (epoch seconds) after it."""
    if "\n" in path or repo.head() is None:
        return False
    start = max(0, repo.position().log - RECENT)
    steps = [match for line in (repo.read_reflog(start) or [])[start > 0 :] if (match := _STEP.match(line))]
    commits = [
        step[1].decode() for step in steps if not (step[3] or b"").startswith(b"commit") or int(step[2]) < written
    ] or ([] if steps else [str(repo.head())])  # no log is kept: then HEAD's word is taken
    asked = [f"{commit}:{path}" for commit in dict.fromkeys(reversed(commits))][:ASKED]
    output = repo.query("cat-file", "--batch-check=%(objectname)", stdin="\n".join(asked) + "\n") if asked else None
    blob_ids = {*(output or "").split()}
    return any(_blob_id(content, len(repo.head() or "")) in blob_ids for content in (raw, raw.replace(b"\r\n", b"\n")))


def _blob_id(raw: bytes, digits: int) -> str:
    """The name that Git gives these bytes, in a repository whose names have so many digits."""
    made = hashlib.new("sha256" if digits == 64 else "sha1", usedforsecurity=False)
    made.update(b"blob %d\0" % len(raw) + raw)
    return made.hexdigest()


def _paths_in_steps(repo: Repository, since: GitPosition, now: GitPosition, *, gone: bool = False) -> set[str] | None:
    """The files that were touched, or are `gone`, at any of the steps that HEAD's log tells."""
    lines = repo.read_reflog(since.log)
    if not lines or since.head is None or now.head is None:
        return None
    steps = {(match[1].decode(), match[2].decode()) for line in lines if (match := _MOVE.match(line))}
    if not gone and any(old == new for old, new in steps):
        return None  # a reset or checkout to the same place, which may have undone edits
    if since.head != now.head:
        steps.add((since.head, now.head))
    pairs = "".join(f"{new} {old}\n" for old, new in sorted(steps))
    asked = ("--stdin", *_NAMES, "--no-renames", "--no-commit-id", *([_GONE] if gone else []))
    output = repo.query("diff-tree", *asked, stdin=pairs)
    touched = None if output is None else _split_paths(output)
    return None if touched is None or any(_UNKNOWN.match(path) for path in touched) else touched


def _split_paths(output: str) -> set[str]:
    return set(filter(None, output.split("\0")))
