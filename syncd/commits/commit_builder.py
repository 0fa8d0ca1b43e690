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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Final, Self

from index.errors import Conflict, Unavailable
from syncd.commits.object_writer import ObjectWriter
from syncd.commits.tree_series import TreeSeries, is_sha1, name_object
from syncd.git.child_process import ProcessResult
from syncd.git.ignored_paths import find_ignored
from syncd.git.repository import (
    INDEX_CHANGES,
    OBJECT,
    GitFailed,
    IndexChange,
    Repository,
    name_author,
    parse_index_changes,
    split_batch,
)
from syncd.vault.path_rules import parent_folders

# The new content of a file: bytes, a private file that has the bytes for this path alone, or None = removed.
Content = bytes | Path | None

_STAGED: Final = "staged"  # in the builder's folder: what an unfinished `move_head` has put into the person's index
_PIECE: Final = 1 << 20
_POINTER: Final = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:[a-z0-9.-]+ .*\n)*?oid sha256:([0-9a-f]{64})\n"
)
_POINTER_MOST: Final = 1024
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


class FilesRefused(GitFailed):
    """Reports that Git refuses these files, such as those on which a filter fails; others can still be committed."""

    def __init__(self, paths: list[str], command: str, why: str) -> None:
        super().__init__(f"git {command} failed: {why}", paths=paths)
        self.paths = paths


@dataclass(frozen=True, slots=True)
class Blob:
    """Describes an object of Git."""

    oid: str
    kind: str  # blob, tree …
    digests: frozenset[str]  # of the files that match it: its own, or that of the file which its LFS pointer names


@dataclass(frozen=True, slots=True)
class NewCommit:
    """Describes a commit to make: the new contents by path, and the message."""

    changes: Mapping[str, Content]
    message: str


class CommitBuilder:
    """Builds commits in a private index on top of one commit (None = no commit yet), inside a folder of the state folder."""

    def __init__(self, repo: Repository, folder: Path, base: str | None, index: bytes = b"") -> None:
        """Begin; `index` is the private index of an earlier builder that ended with the commit `base`."""
        self._repo, self._folder, self.base = repo, folder, base
        self._unstage()
        shutil.rmtree(folder, ignore_errors=True)  # leftovers of a killed process
        folder.mkdir(mode=0o700)
        self._tree = folder / "tree"
        git_folder = repo.git_folder()
        config = {f"GIT_CONFIG_KEY_{n}": name for n, name in enumerate(_OWN)}
        config |= {f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(_OWN.values())}
        self._plain = {"GIT_CONFIG_COUNT": str(len(_OWN)), **config}
        self._index = {**self._plain, "GIT_INDEX_FILE": str(folder / "index")}
        self._private = {**self._index, "GIT_DIR": str(git_folder), "GIT_WORK_TREE": str(self._tree)}
        if index:
            (folder / "index").write_bytes(index)
        else:
            self._run("read-tree", *([base] if base else ["--empty"]), env=self._index)
        # The commit, or the empty tree, that the first new commit follows; and the latest commit, at first the same.
        self._first = self._last = base or self._run("write-tree", env=self._index).text
        self._tip = base
        # What the commits change together; empty if it was not read after the latest ones were added.
        self._changed: dict[str, IndexChange] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not (self._folder / _STAGED).exists():
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
                if match := OBJECT.fullmatch(out.readline()):
                    oid, kind, size = match.groups()
                    digest, start = _hash_bytes(out, int(size))
                    blobs[path] = Blob(oid.decode(), kind.decode(), frozenset({digest, _lfs_digest(start)} - {""}))
                    out.read(1)
        return blobs

    def checkout_digest(self, path: str, blob: Blob) -> str:
        """Return the digest of the file that a checkout of this blob writes. Raises FilesRefused when Git fails, such as its filter."""
        with tempfile.TemporaryFile(dir=self._folder) as out:
            stdin, env = f"{blob.oid} {path}\n".encode(), {"GIT_LFS_SKIP_SMUDGE": "1"}
            result = self._run_with_filters("cat-file", "--batch", "--filters", stdin=stdin, env=env, out=out)
            if result.code:
                raise FilesRefused([path], "cat-file", result.said)
            end = out.seek(0, os.SEEK_END)
            out.seek(0)
            if not OBJECT.fullmatch(out.readline()):  # it names the size of the blob, not of the file
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
        if result.code:
            raise _command_error("diff-index", result)
        return {path: change.blob for path, change in parse_index_changes(result.out).items()}

    def _read_index(self) -> dict[str, str]:
        """Return all entries of the person's index."""
        split = (line.partition("\t") for line in filter(None, self._run("ls-files", "--stage", "-z").fields))
        return {path: head.split(" ")[1] for head, _, path in split}

    def list_submodules(self) -> set[str]:
        """Return the folders that the commit has as submodules."""
        staged = self._run("ls-files", "--stage", "-z", env=self._index).fields
        lines = (line.partition("\t") for line in staged if line.startswith("160000 "))
        return {path for _, _, path in lines}

    # Writing

    def add_commits(self, commits: Sequence[NewCommit], author: str) -> list[str]:
        """Add these commits on top of the latest one, through the repository's filters; `author` is the name of who wrote the contents.

        Returns the name of each, "" if it changes nothing; they are invisible until `move_head`. Several commits take few processes,
        and may have no path in common. If they can't be added together, this raises Unavailable, and each may still be added alone.
        For one commit, it raises FilesRefused when Git refuses some of the files."""
        _check_apart(commits)
        self._stage({path: content for commit in commits for path, content in commit.changes.items()}, of=len(commits))
        changed = self._read_changes(self._last)
        self._changed = changed if self._last == self._first else {}
        each = [{path: changed[path] for path in commit.changes if path in changed} for commit in commits]
        messages = [commit.message for commit, changes in zip(commits, each, strict=True) if changes]
        if not messages:
            return [""] * len(commits)
        tree = self._run("write-tree", env=self._index).text
        trees = [tree] if len(messages) == 1 else self._make_trees(list(filter(None, each)), tree)
        name = self._commit_tree(trees[0], messages[0], author)
        names = [name, *self._make_similar(name, trees[1:], messages[1:])]
        self._tip = self._last = names[-1]
        left = iter(names)
        return [next(left) if changes else "" for changes in each]

    def _make_trees(self, changes: Sequence[Mapping[str, IndexChange]], last: str) -> list[str]:
        """Write the trees of successive commits; return their names, the last of which is that of the private index."""
        folders = {folder for commit in changes for path in commit for folder in parent_folders(path)}
        with ObjectWriter(partial(self._run, env=self._plain), self._folder, "tree") as writer:
            series = TreeSeries(self._read_trees(folders), writer.add, is_sha1=is_sha1(last))
            trees = [series.apply(commit) for commit in changes]
        if trees[-1] != last:
            raise Unavailable("the trees of a series of commits differ from the private index")
        return trees

    def _read_trees(self, folders: Iterable[str]) -> dict[str, bytes]:
        """Return the trees of the latest commit, by folder."""
        stdin = "".join(f"{self._last}:{folder}\n" for folder in folders).encode()
        objects = split_batch(self._run("cat-file", "--batch", stdin=stdin).out)
        return {folder: raw for folder, (_, kind, raw) in zip(folders, objects, strict=True) if kind == "tree"}

    def _make_similar(self, name: str, trees: Sequence[str], messages: Sequence[str]) -> list[str]:
        """Write a commit of each of these trees after the commit `name`, with its author, committer and time; return their names."""
        if not trees:
            return []
        lines = self._run("cat-file", "commit", name).out.partition(b"\n\n")[0].split(b"\n")
        people = b"\n".join(line for line in lines if line.startswith((b"author ", b"committer ")))
        names = []
        with ObjectWriter(partial(self._run, env=self._plain), self._folder, "commit") as writer:
            for tree, message in zip(trees, messages, strict=True):
                raw = b"tree %s\nparent %s\n%s\n\n%s" % (tree.encode(), name.encode(), people, message.encode())
                name = name_object("commit", raw, is_sha1=is_sha1(name)).hex()
                writer.add(name, raw)
                names.append(name)
        return names

    def _stage(self, changes: Mapping[str, Content], *, of: int) -> None:
        """Put the changes of `of` commits into the private index.

        For one commit, it raises FilesRefused when Git refuses some; none is in the index then."""
        with self._placed_in_tree({**self._read_attributes(changes), **changes}):
            # Removals first, so that they don't block new paths.
            order = sorted(changes, key=lambda path: (changes[path] is not None, path))
            result = self._update_index(order)
            if result.code and of == 1:
                refused = self._find_refused(order)
                self.drop_changes()
                if refused == order:
                    self._check_space()
                if refused:
                    raise FilesRefused(refused, "update-index", result.said)
        if result.code:
            raise _command_error("update-index", result)

    def _find_refused(self, order: Sequence[str]) -> list[str]:
        """Return those of these paths that Git refuses; it is asked about ever smaller parts."""
        if not self._update_index(order).code:
            return []
        half = len(order) // 2
        return [*self._find_refused(order[:half]), *self._find_refused(order[half:])] if half else list(order)

    def _check_space(self) -> None:
        """Raise OSError if Git has no space, or no right, to write objects: then it would refuse every file."""
        with tempfile.TemporaryFile(dir=self._repo.common_folder() / "objects") as file:
            file.write(bytes(_PIECE))

    @contextmanager
    def _placed_in_tree(self, contents: Mapping[str, Content]) -> Iterator[None]:
        """Have these contents in the private tree; then move the private files back, as another try may need them."""
        files = {path: content for path, content in contents.items() if isinstance(content, Path)}
        self._tree.mkdir()
        try:
            for path, content in contents.items():
                if content is not None:
                    target = self._tree / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    if isinstance(content, Path):
                        content.rename(target)
                    else:
                        target.write_bytes(content)
            yield
        finally:
            for path, file in files.items():
                with suppress(FileNotFoundError):  # it was not placed
                    (self._tree / path).rename(file)
            shutil.rmtree(self._tree)

    def _read_changes(self, since: str) -> dict[str, IndexChange]:
        """Return how the private index differs from a commit or tree, by path."""
        return parse_index_changes(self._run("diff-index", "--cached", *INDEX_CHANGES, since, env=self._index).out)

    def drop_changes(self) -> None:
        """Forget the changes of commits that could not be added; the commits before them stay."""
        self._unlock()
        self._run("read-tree", self._last, env=self._index)

    def _unlock(self) -> None:
        """Remove the lock of the private index: a killed Git leaves it, and no other uses this folder."""
        (self._folder / "index.lock").unlink(missing_ok=True)

    def _commit_tree(self, tree: str, message: str, author: str) -> str:
        """Make a commit of a tree, in the name of the person or, if Git has no identity, of Memex."""
        words = ("commit-tree", tree, *(["-p", self._tip] if self._tip else []), "-F", "-")
        named = author if any(map(str.isalnum, author)) else "Memex"  # Git refuses some names, such as only dots
        who = {**self._plain, **name_author(named)}
        result = self._repo.run(*words, stdin=message.encode(), env=who)
        if result.code:
            who |= self._repo.identity(named)
            return self._run(*words, stdin=message.encode(), env=who).text
        return result.text

    def _update_index(self, paths: Iterable[str]) -> ProcessResult:
        """Update the private index at these paths from the private tree."""
        self._unlock()
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
        made, stage = self._changed or self._read_changes(self._first), self.read_staged()
        if any(stage.get(path, to.blob) != to.blob for path, to in made.items()) or self._repo.head() != self.base:
            raise HeadMoved("HEAD or the index has moved")
        if self._repo.busy_reason():
            raise GitLockHeld("another program works in the repository")
        lines = (f"{to.mode} {to.blob}\t{path}\0" for path, to in made.items() if path not in stage)
        if stdin := "".join(lines).encode():
            (self._folder / _STAGED).write_bytes(stdin)
            self._run("update-index", "-z", "--index-info", stdin=stdin)
        # the reflog entry begins with "commit", as Git's own do
        result = self._repo.run(
            "update-ref", "-m", "commit (memex)", "HEAD", self._tip, self.base or "", env=self._plain
        )
        if result.code:
            with suppress(Conflict, Unavailable):  # the next builder tries again
                self._unstage()
            raise (
                HeadMoved("HEAD has moved") if self._repo.head() != self.base else _command_error("update-ref", result)
            )
        (self._folder / _STAGED).unlink(missing_ok=True)

    def _unstage(self) -> None:
        """Take back what a `move_head` that failed or was killed has staged, if nobody has staged anything else since."""
        record = self._folder / _STAGED
        if not record.exists():
            return
        lines = record.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]
        staged = self.read_staged()
        made = ((head.split(" ")[1], path) for head, _, path in (line.partition("\t") for line in lines))
        if stdin := "".join(f"{path}\0" for blob, path in made if staged.get(path) == blob):
            options = ("--quiet", "--pathspec-from-file=-", "--pathspec-file-nul")
            self._run("reset", *options, stdin=stdin.encode("utf-8", "surrogateescape"))
        record.unlink()

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
    ) -> ProcessResult:
        """Run a command that runs filters; it can be stopped, because it writes only private files."""
        result = self._repo.run_in_session(*words, environ=env, stdin=stdin, limit_s=FILTER_S, out=out)
        if result.late:
            raise FilterHangs(f"a filter of the repository did not finish within {FILTER_S:g} s")
        return result

    def _run(
        self,
        command: str,
        *options: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        out: IO[bytes] | None = None,
    ) -> ProcessResult:
        result = self._repo.run(command, *options, stdin=stdin, env=env, out=out)
        if result.code:
            raise _command_error(command, result)
        return result


def _check_apart(commits: Sequence[NewCommit]) -> None:
    """Raise Unavailable if two commits share a path, or one has a file where the other has a folder: their order would matter."""
    numbers: dict[str, int] = {}
    for number, commit in enumerate(commits):
        for path in commit.changes:
            if numbers.setdefault(path, number) != number:
                raise Unavailable("two commits of a series change one file")
    for path, number in numbers.items():
        if any(numbers.get(folder, number) != number for folder in parent_folders(path)):
            raise Unavailable("a commit of a series has a file where another one has a folder")


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


def _command_error(command: str, result: ProcessResult) -> Conflict | Unavailable:
    if ".lock'" in result.said and "File exists" in result.said:
        return GitLockHeld("another program works in the repository")
    return GitFailed(f"git {command} failed: {result.said or result.code}")
