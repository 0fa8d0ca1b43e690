"""Ask Git about the vault's work tree: which state it is in, where HEAD is, and whether somebody is in the midst of it.

Law: every command, option and revision is a constant of this file; a path or a message goes in by standard input, never
as an argument. Git's variables of the caller are dropped, so that a hook's GIT_DIR can't lead to another repository.
Works without Git, and imports GitPython only when there is a repository to ask."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from index.errors import Conflict, Unavailable

if TYPE_CHECKING:
    import git

STATES: Mapping[str, str] = {
    "ok": "",
    "no-git": "Git is not installed: install it to keep a history of the vault",
    "no-repo": "the vault has no history: run `git init` in it",
    "broken": "Git can't read the repository: run `git status` in the vault",
    "dubious": "the vault's folder belongs to another user: see what `git status` says in it",
    "bare": "the vault is a bare repository, which has no files: clone it and use the clone",
    "unborn": "nothing is committed yet: run `git add -A && git commit` in the vault",
    "detached": "no branch is checked out: run `git switch` in the vault",
    "conflict": "a merge left conflicts: mend the files that `git status` names, then commit",
    "mid-operation": "a merge, rebase or the like is not finished: see what `git status` offers",
    "locked": "another program works in the repository, or died in it: see whether .git/index.lock goes away",
}
_MIDST = ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG")
_OPTIONS = (
    "core.hooksPath=/dev/null",  # no code of the repository runs for a command of ours
    "core.fsmonitor=false",
    "core.quotePath=false",
    "gc.auto=0",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
)
_PATIENCE_S = 30


class Repo:
    """The Git side of a vault. Every method may be called whatever state it is in."""

    def __init__(self, vault: Path) -> None:
        self.vault = os.path.abspath(vault)  # noqa: PTH100 - Path.absolute() keeps ".."
        self._repo: git.Repo | None = None
        self._head: tuple[object, str | None] = (None, None)  # what was looked at, and what it was

    def state(self) -> str:  # noqa: PLR0911 - a state a line
        """One of the keys of `STATES`; the first that applies, the worst first."""
        if shutil.which("git") is None:
            return "no-git"
        if self._folder() is None:
            return "bare" if self._bare() else "no-repo"
        error = _git().exc.GitError
        try:
            ask = self._open().git
            ask.rev_parse("--show-toplevel", kill_after_timeout=_PATIENCE_S)
            if ask.ls_files("--unmerged", "-z", kill_after_timeout=_PATIENCE_S):
                return "conflict"
        except error as failure:
            return "dubious" if "dubious ownership" in str(failure) else "broken"
        if busy := self.busy():
            return "locked" if busy == "index.lock" else "mid-operation"
        if self.head() is None:
            return "unborn"
        try:
            ask.symbolic_ref("--quiet", "HEAD", kill_after_timeout=_PATIENCE_S)
        except error:
            return "detached"
        return "ok"

    def head(self) -> str | None:
        """The commit that is checked out, in hex; None without one. Costs a few stats while nothing has moved."""
        folder = self._folder()
        if folder is None or shutil.which("git") is None:
            return None
        looks = _looks(folder)
        if looks is None or self._head[0] != looks:
            self._head = (looks, self._ask_head())
        return self._head[1]

    def removed(self, since: str) -> set[str]:
        """The files that the commit `since`, in hex, has and HEAD has not; none when Git can't tell."""
        options = ("-r", "-z", "--name-only", "--no-renames", "--diff-filter=D", "--end-of-options")
        try:
            told = self._open().git.diff_tree(*options, since, "HEAD", kill_after_timeout=_PATIENCE_S)
        except _git().exc.GitError:
            return set()
        return set(filter(None, str(told).split("\0")))

    def busy(self) -> str:
        """What says that the files are not consistent just now, e.g. "index.lock" or "MERGE_HEAD"; "" = nothing."""
        folder = self._folder()
        if folder is None:
            return ""
        return next((name for name in ("index.lock", *_MIDST) if os.path.lexists(folder / name)), "")

    def init(self) -> None:
        """Make the vault a work tree; nothing happens if it is one."""
        if self.state() != "no-repo":
            return
        try:
            self._prepare(_git().Git(self.vault)).init("--quiet")
        except _git().exc.GitError as failure:
            raise Unavailable(f"git init failed: {_words(failure)}", retryable=False) from failure

    def commit_all(self, message: str) -> str | None:
        """Commit every file of the vault, for a vault that was just made; returns the commit, None if nothing changed.

        Never for a vault with a history of its own: there, only files that Memex wrote may be staged."""
        if (state := self.state()) not in ("ok", "unborn"):
            raise Conflict(f"can't commit in {self.vault}: {STATES[state]}", state=state)
        ask = self._open().git
        try:
            ask.add("--all")
            if not ask.status("--porcelain", kill_after_timeout=_PATIENCE_S):
                return None
            with tempfile.TemporaryFile() as text:
                text.write(message.encode())
                text.seek(0)
                with ask.custom_environment(**self._identity()):
                    ask.commit("--quiet", "--no-gpg-sign", "--cleanup=verbatim", "--file=-", istream=text)
        except _git().exc.GitError as failure:
            raise Unavailable(f"git could not commit: {_words(failure)}", retryable=False) from failure
        return self.head()

    def close(self) -> None:
        """End the processes that were kept for questions."""
        if self._repo is not None:
            self._repo.close()
            self._repo = None

    def _folder(self) -> Path | None:
        """The folder of Git's own files, without asking Git: `.git`, or what a `.git` file points to."""
        place = Path(self.vault, ".git")
        if place.is_dir():
            return place
        try:
            words = place.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
        return Path(self.vault, words.removeprefix("gitdir:").strip()) if words.startswith("gitdir:") else None

    def _bare(self) -> bool:
        return all(Path(self.vault, name).exists() for name in ("HEAD", "objects", "refs"))

    def _open(self) -> git.Repo:
        if self._repo is None:
            self._repo = _git().Repo(self.vault, search_parent_directories=False, expand_vars=False)
            self._prepare(self._repo.git)
        return self._repo

    def _prepare(self, ask: git.Git) -> git.Git:
        ask.set_persistent_git_options(C=self.vault, c=list(_OPTIONS))  # -C: a "$" in the path stays what it is
        ask.update_environment(
            GIT_TERMINAL_PROMPT="0",
            GIT_LITERAL_PATHSPECS="1",
            GIT_OPTIONAL_LOCKS="0",
            GIT_CEILING_DIRECTORIES=str(Path(self.vault).parent),
            LC_ALL="C.UTF-8",
        )
        return ask

    def _ask_head(self) -> str | None:
        try:
            ask = self._open().git
            arguments = ("--verify", "--quiet", "--end-of-options", "HEAD^{commit}")
            return str(ask.rev_parse(*arguments, kill_after_timeout=_PATIENCE_S))
        except _git().exc.GitError:
            return None

    def _identity(self) -> dict[str, str]:
        """Who commits, when the person has not told Git who they are."""
        try:
            self._open().git.var("GIT_COMMITTER_IDENT", kill_after_timeout=_PATIENCE_S)
        except _git().exc.GitError:
            who = {"NAME": "Memex", "EMAIL": "memex@localhost"}
            return {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
        return {}


def _git() -> ModuleType:
    """GitPython, imported on the first use: it takes a tenth of a second, and a vault need not have a history."""
    for name in [name for name in os.environ if name.startswith("GIT_") and name != "GIT_PYTHON_REFRESH"]:
        del os.environ[name]
    os.environ["GIT_PYTHON_REFRESH"] = "quiet"
    import git  # noqa: PLC0415 - see above

    return git


def _looks(folder: Path) -> object:
    """Stats that change whenever HEAD moves; None where its parts lie elsewhere (a linked work tree)."""
    if (folder / "commondir").exists():
        return None
    try:
        words = (folder / "HEAD").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    names = ["HEAD", "logs/HEAD", "packed-refs", "reftable/tables.list"]
    if words.startswith("ref: "):
        names.append(words.removeprefix("ref: ").strip())
    return words, tuple(_stat(folder / name) for name in names)


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _words(failure: Exception) -> str:
    """What Git itself said."""
    said = getattr(failure, "stderr", "") or str(failure)
    return " ".join(str(said).replace("stderr:", "").split()).strip("' ")
