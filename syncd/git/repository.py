"""Query Git about the vault's repository: its state, its HEAD, and operations under way; and run Git commands in it.

Law: every command, option and revision is a constant of our code, or a hex id or name from Git; a path or a message
reaches Git through standard input, never as an argument. Git and all its child processes get only the variables that
`inherited_environment` names, so that no filter or helper can read a key, and a hook's GIT_DIR cannot lead to
another repository. The module works without Git, and imports GitPython only when there is a repository to query."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

from index.errors import Conflict, Unavailable
from syncd.git.child_process import ProcessResult, inherited_environment, run
from syncd.git.repository_folder import (
    branch_fingerprint,
    file_fingerprint,
    find_common_folder,
    find_git_folder,
    find_lock,
    find_repository_around,
    head_fingerprint,
)
from syncd.git.repository_state import REWRITTEN, RepositoryState, advice, with_upstream_state
from syncd.git.stale_locks import is_stale

if TYPE_CHECKING:
    from syncd.git.command import GitCommand

_MIDST: Mapping[str, str] = {  # file that exists during an operation → the operation
    "rebase-merge": "rebase",
    "rebase-apply/applying": "am",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
_OPTIONS = (
    "core.hooksPath=/dev/null",  # Memex's commands run no code of the repository
    "core.fsmonitor=false",
    "core.quotePath=false",
    "gc.auto=0",
    "protocol.ext.allow=never",
    "core.protectHFS=true",  # the vault may be copied to a system where such a name means .git
    "core.protectNTFS=true",
    "submodule.recurse=false",
)
_PATIENCE_S = 30
DETACHED = 1  # exit status of `symbolic-ref` when no branch is checked out
_NOT_FOUND = 127  # exit status of a shell when a program does not exist
_LOG = "logs/HEAD"
_MAIL = "memex@localhost"
# Longer than the steps of the clock in a file's times, and in those of file systems that keep whole seconds.
_TICK_NS, _COARSE_TICK_NS = 20_000_000, 3_000_000_000
_HEAD = re.compile(rb"ref:\s*refs/|[0-9a-fA-F]{40}")  # the content by which Git knows a HEAD
# Git's line before an object: id, kind and size. For a missing one it is its name and one word.
OBJECT = re.compile(rb"([0-9a-f]{40,64}) ([a-z]+) ([0-9]+)\n")
INDEX_CHANGES = ("--raw", "--no-renames", "--no-abbrev", "-z")  # the format of `parse_index_changes`


class GitFailed(Unavailable):
    """Reports that a command of Git failed, in Git's words, which may name files."""


@dataclass(frozen=True, slots=True)
class GitPosition:
    """Describes the position of Git: HEAD's commit and the newest stash, in hex, and the length of HEAD's log."""

    head: str | None = None
    stash: str | None = None
    log: int = 0  # bytes


@dataclass(frozen=True, slots=True)
class IndexChange:
    """Describes how one file of an index differs from a commit."""

    mode: str
    blob: str  # zeros = removed
    unmerged: bool

    @property
    def is_removal(self) -> bool:
        """Return whether the index does not have the file."""
        return not self.blob.strip("0")


class Repository:
    """Provides the Git side of a vault. Every method works in every state of the repository."""

    def __init__(self, vault: Path) -> None:
        self.vault = os.path.abspath(vault)  # noqa: PTH100 - Path.absolute() keeps ".."
        # Answers of Git, each with the fingerprint of the files that it depends on.
        self._marks: tuple[object, GitPosition] = (None, GitPosition())
        self._branch: tuple[object, str | None] = (None, None)
        self._staged: tuple[object, ProcessResult] = (None, ProcessResult(0, b"", ""))
        self._readable: object = None  # Git could read the work tree

    # State

    def read_state(self) -> RepositoryState:
        """Return the state of the repository: the first that applies, the worst first."""
        state = self._read_local_state()
        return with_upstream_state(self._add_upstream_state(state)) if state.state == "ok" else state

    def local_state(self) -> str:
        """Return the state of the repository without its remote."""
        return self._read_local_state().state

    def advice(self, state: RepositoryState) -> str:
        """Return what the owner can do about a state."""
        install = "xcode-select --install" if sys.platform == "darwin" else "apt install git"
        return advice(state, self.vault, install=install)

    def facts(self) -> dict[str, Any]:
        """Return the state and the advice; for the owner only, because the advice names paths."""
        standing = self.read_state()
        return asdict(standing) | {"advice": self.advice(standing)}

    def _read_local_state(self) -> RepositoryState:
        if shutil.which("git") is None:
            return RepositoryState("no-git")
        folder = self._find_git_folder()
        if folder is None:
            if _is_whole(Path(self.vault)):
                return RepositoryState("bare")
            return RepositoryState("no-repo", top=str(find_repository_around(Path(self.vault)) or ""))
        state = RepositoryState("ok", head=None, operation=self._find_operation(folder))
        head, result = None, self._ask_work_tree(folder)
        if not result.code:
            head = self.head()
            result = self._ask_staged(head) if head else self._ask("ls-files", "--unmerged", "-z")
        if result.code:
            return replace(state, state=self._name_failure(folder, result))
        unmerged = any(change.unmerged for change in parse_index_changes(result.out).values()) if head else result.out
        state = replace(state, head=head, branch=self._read_branch(folder))
        return self._read_work_tree_state(state, folder, unmerged=bool(unmerged))

    def _name_failure(self, folder: Path, result: ProcessResult) -> str:
        """Return the state of a repository whose work tree Git can't read."""
        if "dubious ownership" in result.said:
            return "dubious"
        if self.query("rev-parse", "--is-bare-repository") == "true":
            return "no-files"
        return "broken" if _is_whole(find_common_folder(folder)) else "unmade"

    def _ask_work_tree(self, folder: Path) -> ProcessResult:
        """Ask Git for the work tree; a success holds until the configuration of the repository changes."""
        config = (find_common_folder(folder) / "config", folder / "config.worktree")
        seen = (folder, *map(file_fingerprint, config))
        if self._readable == seen:
            return ProcessResult(0, b"", "")
        result = self._ask("rev-parse", "--show-toplevel")
        self._readable = None if result.code else seen
        return result

    def _read_branch(self, folder: Path) -> str | None:
        """Return the branch that is checked out; None without one."""
        known, seen = self._branch, branch_fingerprint(folder)
        if seen is None or known[0] != seen:
            result = self._ask("symbolic-ref", "--short", "--quiet", "HEAD")
            known = (seen if result.code in (0, DETACHED) else None, None if result.code else result.text)
            self._branch = known
        return known[1]

    def _read_work_tree_state(self, state: RepositoryState, folder: Path, *, unmerged: bool) -> RepositoryState:
        """Return the state of a work tree that Git can read."""
        if lock := find_lock(folder):
            gone = is_stale(lock, Path(self.vault))
            return replace(state, state="stale-lock" if gone else "locked", lock=str(lock))
        if unmerged:
            return replace(state, state="conflict")
        if state.operation:
            return replace(state, state="mid-operation")
        if state.head is None:
            return replace(state, state="unborn" if state.branch and not self._has_lost_commit() else "broken")
        if state.branch is None:
            contains = ("--contains", "HEAD", "--count=1", "--format=%(refname:short)", "refs/heads")
            return replace(state, state="detached", branch=self.query("for-each-ref", *contains) or None)
        return state

    def _has_lost_commit(self) -> bool:
        """Return whether HEAD names a commit that Git can't read; a branch without a commit has no name for one."""
        names_commit = not self._ask("rev-parse", "--quiet", "--verify", "HEAD").code
        return names_commit and self._ask("cat-file", "-e", "HEAD^{commit}").code != 0

    def _add_upstream_state(self, state: RepositoryState) -> RepositoryState:
        upstream = self.query("rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}") or ""
        counts = self.query("rev-list", "--left-right", "--count", "HEAD...@{upstream}") if upstream else None
        ahead, behind = map(int, (counts or "0 0").split())
        state = replace(state, upstream=upstream, ahead=ahead, behind=behind)
        if behind:
            anew = ("--merged=@{upstream}", "--no-merged=HEAD", REWRITTEN)
            state = replace(state, rewritten=bool(self.query("for-each-ref", "--format=%(refname)", *anew)))
        remote = (self.query("remote") or "").partition("\n")[0]
        shallow = (find_common_folder(self._find_git_folder() or Path(self.vault)) / "shallow").exists()
        return replace(state, remote=remote, shallow=shallow)

    def _find_operation(self, folder: Path) -> str:
        return next((what for name, what in _MIDST.items() if os.path.lexists(folder / name)), "")

    # Position and content

    def head(self) -> str | None:
        """Return HEAD's commit in hex; None without one. Costs a few stats while nothing has moved."""
        return self.position().head

    def position(self) -> GitPosition:
        """Return the position of Git. Costs a few stats while nothing has moved."""
        folder = self._find_git_folder()
        if folder is None or shutil.which("git") is None:
            return GitPosition()
        seen = head_fingerprint(folder)
        if seen is None or self._marks[0] != seen:
            length = file_fingerprint(folder / _LOG)  # read first, so that a move in between is seen twice, not missed
            lines = self.query("cat-file", "--batch-check=%(objectname)", stdin="HEAD^{commit}\nrefs/stash\n")
            head, stash = (None if " " in line else line for line in (lines or "- -\n- -").split("\n"))
            marks = GitPosition(head, stash, length[1] if length else 0)
            self._marks = (seen if lines else None, marks)
        return self._marks[1]

    def state_fingerprint(self, upstream: str = "") -> object:
        """Return a value that changes when the state of the repository may have changed; costs a few stats."""
        folder = self._find_git_folder()
        if folder is None:
            return None
        names = ("config", "FETCH_HEAD", "shallow", *([f"refs/remotes/{upstream}"] if upstream else []))
        shared = find_common_folder(folder)
        return (
            head_fingerprint(folder),
            self.busy_reason(),
            file_fingerprint(folder / "index"),
            tuple(file_fingerprint(shared / name) for name in names),
        )

    def read_staged(self, commit: str) -> ProcessResult:
        """Return Git's list of how the index differs from a commit, for `parse_index_changes`.

        The last list holds while the index is the same file."""
        known, asked = self._staged, (commit, file_fingerprint(self.git_folder() / "index"))
        return known[1] if known[0] == asked else self._ask_staged(commit)

    def _ask_staged(self, commit: str) -> ProcessResult:
        seen = file_fingerprint(self.git_folder() / "index")  # read first, so that a write in between is seen
        # A file that was written this moment may be written again with equal times.
        is_settled = seen is not None and time.time_ns() - seen[0] > (_TICK_NS if seen[0] % 10**9 else _COARSE_TICK_NS)
        result = self._ask("diff-index", "--cached", *INDEX_CHANGES, commit)
        self._staged = ((commit, seen) if is_settled and not result.code else None, result)
        return result

    def read_reflog(self, since: int) -> list[bytes] | None:
        """Return the lines of HEAD's log after its first `since` bytes; None when there is no log, or it was cut."""
        folder = self._find_git_folder()
        try:
            with Path(folder or self.vault, _LOG).open("rb") as file:
                if file.seek(0, os.SEEK_END) < since:
                    return None
                file.seek(since)
                return file.read().splitlines()
        except OSError:
            return None

    def query(self, command: str, *options: str, stdin: str = "") -> str | None:
        """Return Git's answer to a query, without the last line end; None when it fails."""
        result = self._ask(command, *options, stdin=stdin.encode("utf-8", "surrogateescape"))
        return None if result.code else result.out.decode("utf-8", "surrogateescape").removesuffix("\n")

    def run_in_session(self, *words: str, environ: Mapping[str, str] | None = None, **how: Any) -> ProcessResult:
        """Run Git with its output in files, with or without a time limit; `how` goes to `child_process.run`."""
        command = ["git", "-C", self.vault, *(part for option in _OPTIONS for part in ("-c", option)), *words]
        try:
            return run(command, inherited_environment(os.environ) | self._environ() | dict(environ or {}), **how)
        except (FileNotFoundError, PermissionError) as error:
            return ProcessResult(_NOT_FOUND, b"", str(error))

    def run(
        self,
        command: str,
        *options: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        out: IO[bytes] | None = None,
    ) -> ProcessResult:
        """Run a command that may change something, however long it takes: an interrupted write leaves locks.

        Its output goes to `out`, if given."""
        return self._run_in_repository(command, *options, stdin=stdin, env=env, out=out)

    def read_blob(self, name: str) -> bytes | None:
        """Return the content of the blob with this hex name; None when there is none."""
        return self.read_blobs([name]).get(name)

    def read_blobs(self, names: Collection[str]) -> dict[str, bytes]:
        """Return the contents of the blobs with these hex names, which one process reads; those that are missing are left out."""
        if not names:
            return {}
        result = self._ask("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode())
        return {} if result.code else {name: raw for name, kind, raw in split_batch(result.out) if kind == "blob"}

    def hooks_folder(self) -> Path:
        """Return the folder of Git's hooks. Raises Conflict when there is no repository that Git can read."""
        # Without our own options, which disable the person's hooks.
        words = ("rev-parse", "--path-format=absolute", "--git-path", "hooks")
        result = self._execute(self._make_command(()), *words, limit_s=_PATIENCE_S)
        if result.code:
            state = self.read_state()
            raise Conflict(
                self.advice(state) or f"Git can't find the hooks folder: {_error_text(result.said)}", state=state.state
            )
        return Path(result.out.decode("utf-8", "surrogateescape").removesuffix("\n"))

    def common_folder(self) -> Path:
        """Return Git's folder that all work trees of the repository share."""
        folder = self._find_git_folder()
        return Path(self.vault) if folder is None else find_common_folder(folder)

    def git_folder(self) -> Path:
        """Return Git's folder of this work tree."""
        return self._find_git_folder() or Path(self.vault)

    def busy_reason(self) -> str:
        """Return why the files may be inconsistent now, e.g. "index.lock" or "MERGE_HEAD"; "" = they are not."""
        folder = self._find_git_folder()
        if folder is None:
            return ""
        if lock := find_lock(folder):
            return lock.name
        return next((name for name in _MIDST if os.path.lexists(folder / name)), "")

    def init(self) -> None:
        """Make the vault a work tree; do nothing if it is one."""
        if self.local_state() != "no-repo":
            return
        result = self._execute(self._make_command(), "init", "--quiet")
        if result.code:
            raise Unavailable(f"git init failed: {_error_text(result.said)}", retryable=False)

    def commit_all(self, message: str) -> str | None:
        """Commit every file of a new vault; returns the commit, None if nothing changed.

        Never use it for a vault with a history of its own: there, only files that Memex wrote may be staged."""
        state = self._read_local_state()
        if state.state not in ("ok", "unborn"):
            raise Conflict(f"can't commit in {self.vault}: {self.advice(state)}", state=state.state)
        self._run_checked("add", "--all")
        if not self._run_checked("status", "--porcelain").out:
            return None
        options = ("--quiet", "--no-gpg-sign", "--cleanup=verbatim", "--file=-")
        self._run_checked("commit", *options, stdin=message.encode(), env=self.identity())
        return self.head()

    def _find_git_folder(self) -> Path | None:
        return find_git_folder(Path(self.vault))

    def _run_checked(self, command: str, *options: str, **how: Any) -> ProcessResult:
        result = self.run(command, *options, **how)
        if result.code:
            raise Unavailable(f"git could not commit: {_error_text(result.said)}", retryable=False)
        return result

    def _ask(self, command: str, *options: str, stdin: bytes = b"") -> ProcessResult:
        """Run a query, which changes nothing and may therefore be interrupted."""
        return self._run_in_repository(command, *options, stdin=stdin, limit_s=_PATIENCE_S)

    def _run_in_repository(self, *words: str, **how: Any) -> ProcessResult:
        """Run a command in the vault's own repository; without one it fails, so that no repository around it answers."""
        folder = self._find_git_folder() or Path(self.vault)
        if not (_has_valid_head(folder) and _is_whole(find_common_folder(folder))):
            return ProcessResult(_NOT_FOUND, b"", "there is no repository")
        return self._execute(self._make_command(), *words, **how)

    @staticmethod
    def _execute(
        git: GitCommand,
        command: str,
        *options: str,
        stdin: bytes = b"",
        limit_s: float | None = None,
        env: Mapping[str, str] | None = None,
        out: IO[bytes] | None = None,
    ) -> ProcessResult:
        """Run a command of Git through GitPython."""
        try:
            ended: ProcessResult = getattr(git, command.replace("-", "_"))(
                *options, istream=stdin, env=env, output_stream=out, kill_after_timeout=limit_s
            )
        except _import_commands().git.exc.GitError as failure:
            return ProcessResult(_NOT_FOUND, b"", str(failure))
        return replace(ended, said=f"no answer within {limit_s:g} s" if ended.late else ended.said.removesuffix("\n"))

    def _make_command(self, options: tuple[str, ...] = _OPTIONS) -> GitCommand:
        command: GitCommand = _import_commands().GitCommand()
        command.set_persistent_git_options(C=self.vault, c=list(options))  # with -C a "$" in the path is not expanded
        command.update_environment(**self._environ())
        return command

    def _environ(self) -> dict[str, str]:
        return {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_CEILING_DIRECTORIES": str(Path(os.path.realpath(self.vault)).parent),  # Git compares resolved folders
            "LC_ALL": "C.UTF-8",
        }

    def identity(self, author: str = "") -> dict[str, str]:
        """Return who commits: the person, or Memex if Git has no identity. `author`: who wrote, if somebody else."""
        if self.query("var", "GIT_COMMITTER_IDENT") is None:
            memex = {"GIT_COMMITTER_NAME": "Memex", "GIT_COMMITTER_EMAIL": _MAIL}
            return name_author(author or "Memex") | memex
        return name_author(author) if author else {}


def name_author(name: str) -> dict[str, str]:
    """Return the variables that name the author of a commit to Git, if it is not the person."""
    return {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": _MAIL}


def _import_commands() -> ModuleType:
    """Import GitPython on first use: it takes a tenth of a second, and a vault need not have a history."""
    from syncd.git import command  # noqa: PLC0415 - see above

    return command


def _is_whole(folder: Path) -> bool:
    """Return whether a Git folder has what Git takes one by, whatever its HEAD contains."""
    return os.path.lexists(folder / "HEAD") and all(os.path.isdir(folder / name) for name in ("objects", "refs"))  # noqa: PTH112 - Path.is_dir raises where a folder can't be read


def _has_valid_head(folder: Path) -> bool:
    """Return whether Git accepts the HEAD of its folder; otherwise it would look for a repository in the folders above."""
    head = folder / "HEAD"
    try:
        return head.readlink().parts[:1] == ("refs",) if head.is_symlink() else bool(_HEAD.match(head.read_bytes()))
    except OSError:
        return False


def _error_text(complaint: str) -> str:
    """Return Git's own error message on one line."""
    return " ".join(complaint.split())


def parse_index_changes(output: bytes) -> dict[str, IndexChange]:
    """Return the changes that `diff-index` lists, by path."""
    words = output.decode("utf-8", "surrogateescape").split("\0")
    heads = ((path, head.split(" ")) for head, path in zip(words[::2], words[1::2], strict=False))
    return {path: IndexChange(head[1], head[3], head[4] == "U") for path, head in heads}


def quote_path(path: str) -> bytes:
    """Return the line for a path in a list that Git reads with `--stdin-paths`; a path may begin with a quotation mark."""
    raw = path.encode("utf-8", "surrogateescape")
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"\n'


def split_batch(output: bytes) -> Iterator[tuple[str, str, bytes]]:
    """Yield the name, the kind and the bytes of each object in the output of `cat-file --batch`; empty ones for a missing object."""
    at = 0
    while at < len(output):
        end = output.index(b"\n", at) + 1
        if match := OBJECT.fullmatch(output, at, end):
            size = int(match[3])
            yield match[1].decode(), match[2].decode(), output[end : end + size]
            at = end + size + 1
        else:
            yield "", "", b""
            at = end
