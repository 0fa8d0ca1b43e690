"""List the files that Git touched while HEAD moved from one position to another, step by step from HEAD's log.

Law, tested: every step counts, not only the two ends, because a note may have changed in between and changed back.
An uncertain answer is not guessed: None means that any file may have changed."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from syncd.git.repository import GitPosition, Repository

_MOVE = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) ")  # a line of the log: old commit, new commit
# New commit, time (epoch s), how.
_STEP = re.compile(rb"[0-9a-f]{40,64} ([0-9a-f]{40,64}) .*? (\d+) [+-]\d{4}(?:\t(.*))?\Z")
_UNKNOWN = re.compile(r"[0-9a-f]{40,64} [0-9a-f]{40,64}\n")  # Git echoes the line when it lacks one of the commits
RECENT: Final = 64 * 1024  # bytes of HEAD's log that are read: some hundreds of moves
ASKED: Final = 200  # most commits checked for one file
AT_ONCE: Final = 5_000  # most of these checks in one process
_GONE: Final = "--diff-filter=D"
_NAMES = ("-r", "-z", "--name-only")


def changed_paths(repo: Repository, since: GitPosition, now: GitPosition) -> set[str] | None:
    """Return the files that Git touched between two positions; None when that is unknown."""
    paths: set[str] = set()
    if (since.head, since.log) != (now.head, now.log):
        touched = _paths_in_steps(repo, since, now)
        if touched is None:
            return None
        paths |= touched
    for stash in {since.stash, now.stash} - {None} if since.stash != now.stash else ():
        if (taken := diff_paths(repo, f"{stash}^1", str(stash))) is None:
            return None
        # None when the stash has no such files.
        untracked = repo.query("ls-tree", *_NAMES, "--end-of-options", f"{stash}^3")
        paths |= taken | _split_paths(untracked or "")
    return paths


def removed_paths(repo: Repository, since: GitPosition, now: GitPosition) -> set[str]:
    """Return the files that Git removed at any step between two positions and has not restored.

    Without a log of the steps, return those that are in the first commit but not in the second."""
    if since.head is None or now.head is None:
        return set()
    gone = diff_paths(repo, since.head, now.head, _GONE) if since.head != now.head else None
    way = _paths_in_steps(repo, since, now, gone=True) if 0 < since.log < now.log else None
    there = repo.query("ls-tree", *_NAMES, "--end-of-options", now.head) if way else ""
    return (gone or set()) | (set() if there is None else (way or set()) - _split_paths(there))


def diff_paths(repo: Repository, old: str, new: str, *options: str) -> set[str] | None:
    """Return the paths in which two commits differ."""
    output = repo.query("diff-tree", *_NAMES, "--no-renames", *options, "--end-of-options", old, new)
    return None if output is None else _split_paths(output)


class RecentCommits:
    """Knows what the commits to which HEAD lately moved have at some paths; Git is asked once for many paths."""

    def __init__(self, repo: Repository, written: Mapping[str, int]) -> None:
        """Ask Git about these paths; `written`: for each, when its file was written (epoch seconds)."""
        self._repo, self._written, self._position = repo, dict(written), repo.position()
        self._blobs = defaultdict[str, set[str]](set)  # path → names of blobs
        steps = self._read_steps() if self._position.head else []
        commits = {at: self._commits_of(steps, at) for at in set(written.values())}
        asked = [(path, commit) for path, at in written.items() if "\n" not in path for commit in commits[at]]
        self._failed = False
        for start in range(0, len(asked), AT_ONCE):
            part = asked[start : start + AT_ONCE]
            names = "".join(f"{commit}:{path}\n" for path, commit in part)
            output = repo.query("cat-file", "--batch-check=%(objectname)", stdin=names)
            self._failed = self._failed or output is None
            for (path, _), line in zip(part, (output or "").split("\n"), strict=False):
                self._blobs[path].add(line)

    def are_current(self, path: str, written: int) -> bool:
        """Return whether Git answered about the path and its file of this time, and HEAD has not moved since."""
        asked = self._written.get(path) == written and not self._failed
        return asked and self._repo.position() == self._position

    def have(self, path: str, raw: bytes) -> bool:
        """Return whether one of these commits has these bytes at `path`, so that Git may have put them there.

        A commit made here took its bytes from the file, unless the file was written after it."""
        blobs, digits = self._blobs.get(path, ()), len(self._position.head or "")
        contents = (raw, raw.replace(b"\r\n", b"\n")) if blobs else ()
        return any(_blob_id(content, digits) in blobs for content in contents)

    def _read_steps(self) -> list[re.Match[bytes]]:
        start = max(0, self._position.log - RECENT)
        lines = (self._repo.read_reflog(start) or [])[start > 0 :]
        return [match for line in lines if (match := _STEP.match(line))]

    def _commits_of(self, steps: Sequence[re.Match[bytes]], written: int) -> list[str]:
        """Return the commits that a file of this time may come from, the latest first; without a log, HEAD's."""
        if not steps:
            return [self._position.head] if self._position.head else []
        commits = (
            step[1].decode()
            for step in reversed(steps)
            if not (step[3] or b"").startswith(b"commit") or int(step[2]) < written
        )
        return list(dict.fromkeys(commits))[:ASKED]


def is_from_git(repo: Repository, path: str, raw: bytes, written: int) -> bool:
    """Return whether Git put these bytes at `path`, into a file that was `written` then (epoch seconds).

    That is so if HEAD lately moved to a commit that has them there. For many paths, use `RecentCommits`."""
    return RecentCommits(repo, {path: written}).have(path, raw)


def _blob_id(raw: bytes, digits: int) -> str:
    """Return Git's name of these bytes, in a repository whose names have this many digits."""
    made = hashlib.new("sha256" if digits == 64 else "sha1", usedforsecurity=False)
    made.update(b"blob %d\0" % len(raw) + raw)
    return made.hexdigest()


def _paths_in_steps(repo: Repository, since: GitPosition, now: GitPosition, *, gone: bool = False) -> set[str] | None:
    """Return the files that were touched, or are `gone`, at any step in HEAD's log."""
    lines = repo.read_reflog(since.log)
    if not lines or since.head is None or now.head is None:
        return None
    steps = {(match[1].decode(), match[2].decode()) for line in lines if (match := _MOVE.match(line))}
    if not gone and any(old == new for old, new in steps):
        return None  # a reset or checkout of the same commit, which may have discarded edits
    if since.head != now.head:
        steps.add((since.head, now.head))
    pairs = "".join(f"{new} {old}\n" for old, new in sorted(steps))
    asked = ("--stdin", *_NAMES, "--no-renames", "--no-commit-id", *([_GONE] if gone else []))
    output = repo.query("diff-tree", *asked, stdin=pairs)
    touched = None if output is None else _split_paths(output)
    return None if touched is None or any(_UNKNOWN.match(path) for path in touched) else touched


def _split_paths(output: str) -> set[str]:
    return set(filter(None, output.split("\0")))
