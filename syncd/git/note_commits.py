"""List the commits that touched a note, under all names that the note has had, and find its blob in HEAD.

Laws: a path reaches Git through standard input, and Git's output is split by position, never by content. A folder has
no commits, so that no file in it is taken for a note of its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from posixpath import normpath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from syncd.git.repository import Repository

MOST: Final = 1_000  # most commits read for one note
# A commit, followed by its changed files in `--raw` format; a NUL ends each part.
_FORMAT: Final = "--format=%x01%H%x00%ct%x00%an%x00%s%x00"
_ASKED: Final = (
    "--topo-order",
    "-z",
    "--raw",
    "--no-abbrev",
    "--no-show-signature",
    f"--max-count={MOST}",
    _FORMAT,
    "--stdin",
)


@dataclass(frozen=True, slots=True)
class NoteCommit:
    """Describes the change of a note in one commit."""

    commit: str
    at: int  # epoch milliseconds
    author: str
    subject: str
    path: str  # path after it; the last path, when it removed the note
    source: str  # path before it
    before: str  # name of Git's blob; "" = no file
    after: str


def list_commits(repo: Repository, path: str) -> list[NoteCommit]:
    """Return the commits that touched the note at `path`, now or last, newest first; none without Git."""
    if "\n" in path or repo.head() is None:
        return []
    output = repo.query("log", "--follow", *_ASKED, stdin=f"HEAD\n--\n{path}\n")
    return list(_commits_of_file(normpath(path), _parse_log((output or "").split("\0"))))


def find_creation(repo: Repository, path: str) -> NoteCommit | None:
    """Return the commit that created the note at `path`; None when HEAD has none there."""
    first = None
    for touch in list_commits(repo, path):
        if not touch.after:
            break  # an earlier note with the same name
        first = touch
        if not touch.before:
            break
    return first


def find_head_blob(repo: Repository, path: str) -> str | None:
    """Return the name of Git's blob of the note at `path` in HEAD; None when HEAD has none there."""
    if "\n" in path or repo.head() is None:
        return None
    name = repo.query("cat-file", "--batch-check=%(objectname)", stdin=f"HEAD:./{path}\n")
    return None if not name or " " in name else name  # the answer for a missing file has blanks


def _commits_of_file(path: str, commits: Iterable[NoteCommit]) -> Iterator[NoteCommit]:
    """Leave out the files below a folder, which Git lists for the path of the folder."""
    for touch in commits:
        if touch.path == path:
            path = touch.source
            yield touch


def _parse_log(words: list[str]) -> Iterator[NoteCommit]:
    at, commit = 0, ("", 0, "", "")
    while at < len(words):
        word = words[at].lstrip("\n")
        if word.startswith("\1") and at + 3 < len(words):
            commit = (word[1:], int(words[at + 1]) * 1000, words[at + 2], words[at + 3])
            at += 4
        elif word.startswith(":") and at + 1 < len(words):
            _, _, *blobs, how = word.split(" ")
            before, after = (blob if blob.strip("0") else "" for blob in blobs)
            names = words[at + 1 : at + (3 if how[0] in "RC" else 2)]
            yield NoteCommit(*commit, path=names[-1], source=names[0], before=before, after=after)
            at += 1 + len(names)
        else:
            at += 1
