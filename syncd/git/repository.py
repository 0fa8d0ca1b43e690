"""Ask Git about the vault's repository: its state, its HEAD, and operations under way; and run Git commands in it.

Law: every command, option and revision is a constant of our code, or hex and names that Git told; a path or a message
reaches Git through standard input, never as an argument. Git and all that it starts get the variables that
`inherited_environment` names and no others, so that no filter or helper reads a key, and a hook's GIT_DIR cannot lead
to another repository. The module works without Git, and imports GitPython only when there is a repository to ask."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

from index.errors import Conflict, Unavailable
from syncd.git.child_process import ProcessResult, inherited_environment, run
from syncd.git.repository_folder import file_fingerprint, find_common_folder, find_git_folder, head_fingerprint
from syncd.git.repository_state import REWRITTEN, RepositoryState, advice, with_upstream_state
from syncd.git.stale_locks import is_stale

if TYPE_CHECKING:
    from syncd.git.command import GitCommand, GitRepo

_LOCKS = ("index.lock", "HEAD.lock")
_MIDST: Mapping[str, str] = {  # what is there while an operation is not finished → the operation
    "rebase-merge": "rebase",
    "rebase-apply/applying": "am",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
_OPTIONS = (
    "core.hooksPath=/dev/null",  # no code of the repository runs for a command of ours
    "core.fsmonitor=false",
    "core.quotePath=false",
    "gc.auto=0",
    "protocol.ext.allow=never",
    "core.protectHFS=true",  # the vault may go on to another system, where such a name is .git
    "core.protectNTFS=true",
    "submodule.recurse=false",
)
_PATIENCE_S = 30
_NOT_FOUND = 127  # the status by which a shell says that there is no such program
_LOG = "logs/HEAD"


@dataclass(frozen=True, slots=True)
class GitPosition:
    """Where Git stands: the commit that is checked out and the newest stash, in hex, and how long HEAD's log is."""

    head: str | None = None
    stash: str | None = None
    log: int = 0  # bytes


@dataclass(frozen=True, slots=True)
class GitResult:
    """How a command of Git ended, what it wrote and what it complained of."""

    status: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """What it wrote, where that is one line."""
        return self.out.decode("utf-8", "surrogateescape").strip()


class Repository:
    """The Git side of a vault. Every method may be called whatever state it is in."""

    def __init__(self, vault: Path) -> None:
        self.vault = os.path.abspath(vault)  # noqa: PTH100 - Path.absolute() keeps ".."
        self._repo: GitRepo | None = None
        self._opening = threading.Lock()
        self._marks: tuple[object, GitPosition] = (None, GitPosition())  # what was looked at, and what it was

    # How it stands

    def read_state(self) -> RepositoryState:
        """Which of the known states the repository is in: the first that applies, the worst first."""
        state = self._read_local_state()
        return with_upstream_state(self._add_upstream_state(state)) if state.state == "ok" else state

    def local_state(self) -> str:
        """The state of the repository itself, whatever it is tied to."""
        return self._read_local_state().state

    def advice(self, state: RepositoryState) -> str:
        """What its owner does about it."""
        install = "xcode-select --install" if sys.platform == "darwin" else "apt install git"
        return advice(state, self.vault, install=install)

    def facts(self) -> dict[str, Any]:
        """How the repository stands and what its owner does about it; for the owner only, as the advice names paths."""
        standing = self.read_state()
        return asdict(standing) | {"advice": self.advice(standing)}

    def _read_local_state(self) -> RepositoryState:
        if shutil.which("git") is None:
            return RepositoryState("no-git")
        folder = self._find_git_folder()
        if folder is None:
            return RepositoryState("bare" if self._is_bare() else "no-repo")
        state = RepositoryState("ok", head=None, operation=self._find_operation(folder))
        result = self._ask("rev-parse", "--show-toplevel")
        result = result if result.status else self._ask("ls-files", "--unmerged", "-z")
        if result.status:
            if "dubious ownership" in result.err:
                return replace(state, state="dubious")
            whole = all((find_common_folder(folder) / name).exists() for name in ("HEAD", "objects", "refs"))
            return replace(state, state="broken" if whole else "unmade")
        state = replace(state, head=self.head(), branch=self.query("symbolic-ref", "--short", "--quiet", "HEAD"))
        return self._read_work_tree_state(state, folder, unmerged=bool(result.out))

    def _read_work_tree_state(self, state: RepositoryState, folder: Path, *, unmerged: bool) -> RepositoryState:
        """The state of a work tree that Git can read."""
        if lock := next((folder / name for name in _LOCKS if os.path.lexists(folder / name)), None):
            gone = is_stale(lock, Path(self.vault))
            return replace(state, state="stale-lock" if gone else "locked", lock=str(lock))
        if unmerged:
            return replace(state, state="conflict")
        if state.operation:
            return replace(state, state="mid-operation")
        if state.head is None:
            return replace(state, state="unborn")
        if state.branch is None:
            contains = ("--contains", "HEAD", "--count=1", "--format=%(refname:short)", "refs/heads")
            return replace(state, state="detached", branch=self.query("for-each-ref", *contains) or None)
        return state

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

    # Where it is

    def head(self) -> str | None:
        """The commit that is checked out, in hex; None without one. Costs a few stats while nothing has moved."""
        return self.position().head

    def position(self) -> GitPosition:
        """Where Git stands. Costs a few stats while nothing has moved."""
        folder = self._find_git_folder()
        if folder is None or shutil.which("git") is None:
            return GitPosition()
        seen = head_fingerprint(folder)
        if seen is None or self._marks[0] != seen:
            verify = ("--verify", "--quiet", "--end-of-options")
            length = file_fingerprint(
                folder / _LOG
            )  # first: a move that comes in between is then seen twice, not missed
            head, stash = (self.query("rev-parse", *verify, name) for name in ("HEAD^{commit}", "refs/stash"))
            marks = GitPosition(head, stash, length[1] if length else 0)
            self._marks = (seen, marks)
        return self._marks[1]

    def state_fingerprint(self, upstream: str = "") -> object:
        """Something that changes when the state of the repository may have: a few stats."""
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

    def read_reflog(self, since: int) -> list[bytes] | None:
        """What HEAD's log has had added since it was so many bytes long; None when none is kept, or it was cut."""
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
        """What Git answers to a question, without the last line end; None when it can't."""
        result = self._ask(command, *options, stdin=stdin.encode("utf-8", "surrogateescape"))
        return None if result.status else result.out.decode("utf-8", "surrogateescape").removesuffix("\n")

    def run_in_session(self, *words: str, environ: Mapping[str, str] | None = None, **how: Any) -> ProcessResult:
        """Run Git with its output in files, with or without a time limit; `how` is of `child_process.run`."""
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
    ) -> GitResult:
        """Run a command that may change something, however long it takes: a write that is cut short leaves locks.

        What it writes goes to `out`, if there is one."""
        return self._execute(self._repo_command, command, *options, stdin=stdin, env=env, out=out)

    def read_blob(self, name: str) -> bytes | None:
        """What is in a file that Git holds under this name, in hex; None when it has none."""
        result = self._ask("cat-file", "blob", name)
        return None if result.status else result.out

    def hooks_folder(self) -> Path:
        """Where Git looks for hooks. Raises Conflict when there is no repository that Git can read."""
        # Not with our own options, which switch the person's hooks off.
        words = ("rev-parse", "--path-format=absolute", "--git-path", "hooks")
        result = self._execute(lambda: self._new_command(()), *words, limit_s=_PATIENCE_S)
        if result.status:
            state = self.read_state()
            raise Conflict(
                self.advice(state) or f"Git can't tell where hooks lie: {_error_text(result.err)}", state=state.state
            )
        return Path(result.out.decode("utf-8", "surrogateescape").removesuffix("\n"))

    def common_folder(self) -> Path:
        """The folder of Git's own files that all work trees of the repository share."""
        folder = self._find_git_folder()
        return Path(self.vault) if folder is None else find_common_folder(folder)

    def git_folder(self) -> Path:
        """The folder of Git's own files that belongs to this work tree alone."""
        return self._find_git_folder() or Path(self.vault)

    def busy_reason(self) -> str:
        """What says that the files are not consistent just now, e.g. "index.lock" or "MERGE_HEAD"; "" = nothing."""
        folder = self._find_git_folder()
        if folder is None:
            return ""
        return next((name for name in (*_LOCKS, *_MIDST) if os.path.lexists(folder / name)), "")

    def init(self) -> None:
        """Make the vault a work tree; nothing happens if it is one."""
        if self.local_state() != "no-repo":
            return
        result = self._execute(self._new_command, "init", "--quiet")
        if result.status:
            raise Unavailable(f"git init failed: {_error_text(result.err)}", retryable=False)

    def commit_all(self, message: str) -> str | None:
        """Commit every file of the vault, for a vault that was just made; returns the commit, None if nothing changed.

        Never for a vault with a history of its own: there, only files that Memex wrote may be staged."""
        state = self._read_local_state()
        if state.state not in ("ok", "unborn"):
            raise Conflict(f"can't commit in {self.vault}: {self.advice(state)}", state=state.state)
        self._run_checked("add", "--all")
        if not self._run_checked("status", "--porcelain").out:
            return None
        options = ("--quiet", "--no-gpg-sign", "--cleanup=verbatim", "--file=-")
        self._run_checked("commit", *options, stdin=message.encode(), env=self.identity())
        return self.head()

    def close(self) -> None:
        """End the processes that GitPython keeps for questions."""
        if self._repo is not None:
            self._repo.close()
            self._repo = None

    def _find_git_folder(self) -> Path | None:
        return find_git_folder(Path(self.vault))

    def _is_bare(self) -> bool:
        return all(Path(self.vault, name).exists() for name in ("HEAD", "objects", "refs"))

    def _run_checked(self, command: str, *options: str, **how: Any) -> GitResult:
        result = self.run(command, *options, **how)
        if result.status:
            raise Unavailable(f"git could not commit: {_error_text(result.err)}", retryable=False)
        return result

    def _ask(self, command: str, *options: str, stdin: bytes = b"") -> GitResult:
        """The answer to a question, which changes nothing and so may be ended."""
        return self._execute(self._repo_command, command, *options, stdin=stdin, limit_s=_PATIENCE_S)

    def _execute(
        self,
        open_command: Callable[[], GitCommand],
        command: str,
        *options: str,
        stdin: bytes = b"",
        limit_s: float | None = None,
        env: Mapping[str, str] | None = None,
        out: IO[bytes] | None = None,
    ) -> GitResult:
        """Run a command of Git through GitPython; `open_command` gives what it is called on."""
        try:
            ended: ProcessResult = getattr(open_command(), command.replace("-", "_"))(
                *options, istream=stdin, env=env, output_stream=out, kill_after_timeout=limit_s
            )
        except _import_commands().git.exc.GitError as failure:
            return GitResult(_NOT_FOUND, b"", str(failure))
        return GitResult(
            ended.code, ended.out, f"no answer within {limit_s:g} s" if ended.late else ended.said.removesuffix("\n")
        )

    def _repo_command(self) -> GitCommand:
        with self._opening:  # the pipe, the thread that follows Git and the owner's commands all ask
            if self._repo is None:
                repo = _import_commands().GitRepo(self.vault, search_parent_directories=False, expand_vars=False)
                self._configure(repo.git)
                self._repo = repo
            return self._repo.git

    def _new_command(self, options: tuple[str, ...] = _OPTIONS) -> GitCommand:
        return self._configure(_import_commands().GitCommand(self.vault), options)

    def _configure(self, command: GitCommand, options: tuple[str, ...] = _OPTIONS) -> GitCommand:
        command.set_persistent_git_options(C=self.vault, c=list(options))  # -C: a "$" in the path stays what it is
        command.update_environment(**dict.fromkeys(command.environment()))  # `Repo` takes GIT_DIR and others from ours
        command.update_environment(**self._environ())
        return command

    def _environ(self) -> dict[str, str]:
        return {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_CEILING_DIRECTORIES": str(Path(self.vault).parent),
            "LC_ALL": "C.UTF-8",
        }

    def identity(self, author: str = "") -> dict[str, str]:
        """Who commits: the person, or Memex when they have not told Git who they are. `author`: who wrote, if not they."""
        roles = {"AUTHOR": author} if author else {}
        if self.query("var", "GIT_COMMITTER_IDENT") is None:
            roles = {"AUTHOR": author or "Memex", "COMMITTER": "Memex"}
        names = {f"GIT_{role}_NAME": name for role, name in roles.items()}
        return names | {f"GIT_{role}_EMAIL": "memex@localhost" for role in roles}


def _import_commands() -> ModuleType:
    """GitPython, imported on the first use: it takes a tenth of a second, and a vault need not have a history."""
    from syncd.git import command  # noqa: PLC0415 - see above

    return command


def _error_text(complaint: str) -> str:
    """What Git itself complained of, on one line."""
    return " ".join(complaint.split())
