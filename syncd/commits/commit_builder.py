"""Put bytes on top of HEAD as a commit, with Git plumbing commands: from a private index, never from the work tree.

Laws, tested: changes and staged content of a person are in no commit of Memex and stay unchanged; HEAD moves by
compare-and-set, so a kill leaves it before or after the move; paths and bytes reach Git through standard input and
private files."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self

from index.errors import Conflict, Unavailable
from syncd.commits.commit_import import ImportedCommit, config_variables, import_commits
from syncd.git.ignored_paths import find_ignored
from syncd.git.repository import INDEX_CHANGES, GitResult, IndexChange, Repository, name_author, parse_index_changes

Content = bytes | Path | None  # the new content of a file: bytes, a private file with the bytes, or None = removed

_PIECE: Final = 1 << 20
_POINTER: Final = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:[a-z0-9.-]+ .*\n)*?oid sha256:([0-9a-f]{64})\n"
)
_POINTER_MOST: Final = 1024
# Git's line before an object: id, kind and size. For a missing one it is its name and one word.
_OBJECT: Final = re.compile(rb"([0-9a-f]{40,64}) ([a-z]+) ([0-9]+)\n")
_NOT_WRITTEN: Final = "failed to insert into database"  # what Git says of a file when, for example, the disk is full
# The private index and tree are complete and plain, whatever the person has configured; objects are synced to the
# disk before HEAD names them; file modes are those in Git.
_OWN: Final = {
    "core.fileMode": "false",
    "core.splitIndex": "false",
    "core.untrackedCache": "false",
    "core.safecrlf": "false",  # it would refuse files with line ends of another system
    "core.sparseCheckout": "false",
    "index.sparse": "false",
    "core.fsync": "committed",
    "i18n.commitEncoding": "UTF-8",
}


FILTER_S: Final = 120.0  # time limit for the repository's filters on the files of a commit


class FilterHangs(Unavailable):
    """Reports that a filter of the repository does not finish."""


class HeadMoved(Conflict):
    """Reports that HEAD has moved."""


class GitLockHeld(Conflict):
    """Reports that another program holds a lock of Git."""


class FilesRefused(Unavailable):
    """Reports that Git refuses these files, such as when a filter of the repository fails; the others can be added again."""

    def __init__(self, paths: list[str], why: str) -> None:
        super().__init__(f"git update-index failed: {why}", paths=paths)
        self.paths = paths


@dataclass(frozen=True, slots=True)
class Blob:
    """Describes an object of Git."""

    oid: str
    kind: str  # blob, tree …
    digests: frozenset[str]  # of the files that match it: its own, or that of the file which its LFS pointer names


@dataclass(frozen=True, slots=True)
class NewCommit:
    """Describes a commit to make: the new contents by path, the message, and the name of who wrote the contents."""

    changes: Mapping[str, Content]
    message: str
    author: str


class CommitBuilder:
    """Builds commits in a private index on top of one commit (None = no commit yet), inside a folder of the state folder."""

    def __init__(self, repo: Repository, folder: Path, base: str | None, index: bytes = b"") -> None:
        """Begin; `index` is the private index of an earlier builder that ended with the commit `base`."""
        self._repo, self._folder, self.base = repo, folder, base
        shutil.rmtree(folder, ignore_errors=True)  # leftovers of a killed process
        folder.mkdir(mode=0o700)
        self._tree = folder / "tree"
        git_folder = repo.git_folder()
        self._plain = config_variables(_OWN.items())
        self._index = {**self._plain, "GIT_INDEX_FILE": str(folder / "index")}
        self._private = {**self._index, "GIT_DIR": str(git_folder), "GIT_WORK_TREE": str(self._tree)}
        if index:
            (folder / "index").write_bytes(index)
        else:
            self._run("read-tree", *([base] if base else ["--empty"]), env=self._index)
        self._first = (
            base or self._run("write-tree", env=self._index).text
        )  # the commit, or the empty tree, below the new ones
        self._tip = base
        self._made: dict[str, IndexChange] = {}  # what the new commits change together, by path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    # Reading

    def read_blobs(self, paths: Iterable[str]) -> dict[str, Blob]:
        """Return the objects that the commit has at these paths, none of which contains a line end."""
        return {} if self.base is None else self.read_objects({path: f"{self.base}:{path}" for path in paths})

    def read_objects(self, names: Mapping[str, str]) -> dict[str, Blob]:
        """Return the objects that Git has under these names, by path."""
        if not names:
            return {}
        blobs = {}
        stdin = "".join(f"{name}\n" for name in names.values()).encode()
        with tempfile.TemporaryFile(dir=self._folder) as out:
            self._run("cat-file", "--batch", stdin=stdin, out=out)
            out.seek(0)
            for path in names:
                if match := _OBJECT.fullmatch(out.readline()):
                    oid, kind, size = match.groups()
                    digest, start = _hash_bytes(out, int(size))
                    blobs[path] = Blob(oid.decode(), kind.decode(), frozenset({digest, _lfs_digest(start)} - {""}))
                    out.read(1)
        return blobs

    def checkout_digest(self, path: str, blob: Blob) -> str:
        """Return the digest of the file that a checkout of this blob writes."""
        with tempfile.TemporaryFile(dir=self._folder) as out:
            stdin, env = f"{blob.oid} {path}\n".encode(), {"GIT_LFS_SKIP_SMUDGE": "1"}
            result = self._run_with_filters("cat-file", "--batch", "--filters", stdin=stdin, env=env, out=out)
            if result.status:
                raise _command_error("cat-file", result)
            end = out.seek(0, os.SEEK_END)
            out.seek(0)
            if not _OBJECT.fullmatch(out.readline()):  # it names the size of the blob, not of the file
                raise Unavailable("Git can't read one of its objects; see memex status", retryable=False)
            return _hash_bytes(out, end - 1 - out.tell())[0]

    def find_ignored(self, paths: Iterable[str]) -> set[str]:
        """Return the paths that a `.gitignore` excludes and that are not in the commit."""
        return find_ignored(self._repo, paths, self._index)

    def read_staged(self) -> dict[str, str]:
        """Return what a person has staged: path → the blob; zeros = removed."""
        if self.base is None:
            return self._read_index()
        result = self._repo.read_staged(self.base)
        if result.status:
            raise _command_error("diff-index", result)
        return {path: change.blob for path, change in parse_index_changes(result.out).items()}

    def _read_index(self) -> dict[str, str]:
        """Return all entries of the person's index."""
        output = self._run("ls-files", "--stage", "-z").out.decode("utf-8", "surrogateescape")
        split = (line.partition("\t") for line in filter(None, output.split("\0")))
        return {path: head.split(" ")[1] for head, _, path in split}

    def list_submodules(self) -> set[str]:
        """Return the folders that the commit has as submodules."""
        output = self._run("ls-files", "--stage", "-z", env=self._index).out.decode("utf-8", "surrogateescape")
        lines = (line.partition("\t") for line in output.split("\0") if line.startswith("160000 "))
        return {path for _, _, path in lines}

    # Writing

    def add_commits(self, commits: Sequence[NewCommit]) -> list[str]:
        """Write these commits, no two of which have a path in common, in their order; return the name of each, "" if it changes nothing.

        Called once for a builder, unless it raises. The files get in through the repository's filters, and nothing shows
        before `move_head`. Raises FilesRefused when Git refuses some of the files; no commit is written then."""
        self._stage({path: content for commit in commits for path, content in commit.changes.items()})
        output = self._run("diff-index", "--cached", *INDEX_CHANGES, self._first, env=self._index).out
        made = parse_index_changes(output)
        names, imported = [""] * len(commits), dict[int, ImportedCommit]()
        people = {author: self._name_people(author) for author in {commit.author for commit in commits} if made}
        for number, commit in enumerate(commits):
            if changes := {path: made[path] for path in commit.changes if path in made}:
                imported[number] = ImportedCommit(changes, commit.message, *people[commit.author])
        if imported:
            result = import_commits(self._repo, self._folder, self.base, list(imported.values()), _OWN)
            if result.status:
                raise _command_error("fast-import", result)
            for number, name in zip(imported, result.text.split("\n"), strict=True):
                names[number] = self._tip = name
        self._made = made
        return names

    def _stage(self, changes: Mapping[str, Content]) -> None:
        """Put these contents into the private index. Raises FilesRefused when Git refuses some; none is in the index then."""
        for path, content in {**self._read_attributes(changes), **changes}.items():
            if content is not None:
                _place_file(self._tree / path, content)
        self._tree.mkdir(exist_ok=True)
        # Removals first, so that they don't block new paths.
        order = sorted(changes, key=lambda path: (changes[path] is not None, path))
        result = self._update_index(order)
        if result.status > 0:  # it was not ended by a signal, after which it leaves a lock
            refused = [path for path in order if self._update_index([path]).status]
            self._run("read-tree", self._first, env=self._index)
            is_theirs = "filter" in result.err or (len(refused) < len(order) and _NOT_WRITTEN not in result.err)
            if refused and is_theirs:
                raise FilesRefused(refused, result.err)
        if result.status:
            raise _command_error("update-index", result)
        shutil.rmtree(self._tree)

    def _name_people(self, author: str) -> tuple[bytes, bytes]:
        """Return how Git names author and committer: the person commits or, if Git has no identity, Memex."""
        named = author if any(map(str.isalnum, author)) else "Memex"  # Git refuses some names, such as only dots
        who = self._plain | name_author(named)
        committer = self._repo.run("var", "GIT_COMMITTER_IDENT", env=who)
        if committer.status:
            committer = self._run("var", "GIT_COMMITTER_IDENT", env=who | self._repo.identity(named))
        return self._run("var", "GIT_AUTHOR_IDENT", env=who).out.rstrip(b"\n"), committer.out.rstrip(b"\n")

    def _update_index(self, paths: Iterable[str]) -> GitResult:
        """Update the private index at these paths from the private tree."""
        stdin = "".join(f"{path}\0" for path in paths).encode()
        return self._run_with_filters(
            "update-index", "--add", "--remove", "-z", "--stdin", stdin=stdin, env=self._private
        )

    def private_index(self) -> tuple[str | None, bytes]:
        """Return the latest commit, and the private index, which has exactly its files; no bytes if it can't be read."""
        with suppress(OSError):
            return self._tip, (self._folder / "index").read_bytes()
        return self._tip, b""

    def move_head(self) -> None:
        """Move HEAD to the new commit, and update the person's index.

        Raises HeadMoved when HEAD or the staged files changed."""
        if self._tip is None or self._tip == self.base:
            return
        made, stage = self._made, self.read_staged()
        if any(stage.get(path, to.blob) != to.blob for path, to in made.items()) or self._repo.head() != self.base:
            raise HeadMoved("HEAD or the index has moved")
        if self._repo.busy_reason():
            raise GitLockHeld("another program works in the repository")
        lines = (f"{to.mode} {to.blob}\t{path}\0" for path, to in made.items() if path not in stage)
        if stdin := "".join(lines).encode():
            self._run("update-index", "-z", "--index-info", stdin=stdin)
        # the reflog entry begins with "commit", as Git's own do
        result = self._repo.run(
            "update-ref", "-m", "commit (memex)", "HEAD", self._tip, self.base or "", env=self._plain
        )
        if result.status:
            raise (
                HeadMoved("HEAD has moved") if self._repo.head() != self.base else _command_error("update-ref", result)
            )

    def _read_attributes(self, paths: Iterable[str]) -> dict[str, Content]:
        """Return the `.gitattributes` files above these paths, which name the filters, from the vault."""
        folders = {folder for path in paths for folder in parent_folders(path)}
        contents: dict[str, Content] = {}
        for name in sorted(f"{folder}/.gitattributes".lstrip("/") for folder in folders):
            with suppress(OSError):
                contents[name] = Path(self._repo.vault, name).read_bytes()
        return contents

    def _run_with_filters(
        self, *words: str, stdin: bytes, env: Mapping[str, str], out: IO[bytes] | None = None
    ) -> GitResult:
        """Run a command that runs filters; it can be stopped, because it writes only private files."""
        result = self._repo.run_in_session(*words, environ=env, stdin=stdin, limit_s=FILTER_S, out=out)
        if result.late:
            raise FilterHangs(f"a filter of the repository did not finish within {FILTER_S:g} s")
        return GitResult(result.code, b"", result.said)

    def _run(
        self,
        command: str,
        *options: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        out: IO[bytes] | None = None,
    ) -> GitResult:
        result = self._repo.run(command, *options, stdin=stdin, env=env, out=out)
        if result.status:
            raise _command_error(command, result)
        return result


def parent_folders(path: str) -> list[str]:
    """Return the folders above a path; "" is the vault."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:n]) for n in range(len(parts) + 1)]


def _place_file(target: Path, content: bytes | Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, Path):
        if content.exists():  # otherwise an earlier try placed it, before a filter refused another file
            content.rename(target)
    else:
        target.write_bytes(content)


def _hash_bytes(file: IO[bytes], left: int) -> tuple[str, bytes]:
    """Return the digest of the next `left` bytes, and the beginning of them."""
    digest, start = hashlib.sha256(), b""
    while left and (piece := file.read(min(left, _PIECE))):
        digest.update(piece)
        start = start or piece[:_POINTER_MOST]
        left -= len(piece)
    return digest.hexdigest(), start


def _lfs_digest(raw: bytes) -> str:
    """Return the digest of the large file that a Git LFS pointer names; "" when it is not a pointer."""
    match = _POINTER.match(raw)
    return match[1].decode() if match else ""


def _command_error(command: str, result: GitResult) -> Conflict | Unavailable:
    if ".lock'" in result.err and "File exists" in result.err:
        return GitLockHeld("another program works in the repository")
    return Unavailable(f"git {command} failed: {result.err or result.status}")
