"""List the paths that Git ignores in the work tree: ignored files, and tracked files marked as unchanged or left out.

Law: nothing is changed here; paths reach Git through standard input, and appear quoted in commands for a person."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from index.names import fold
from syncd.git.repository import GitFailed
from syncd.git.repository_folder import file_fingerprint

if TYPE_CHECKING:
    from syncd.git.repository import Repository

_FEW: Final = 5  # most names in a sentence


class SparseFiles:
    """Lists the tracked files that a sparse checkout leaves out of the work tree."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._seen: object = None  # the fingerprint of the index for which the rest holds
        self._names: frozenset[str] = frozenset()  # folded names of the files
        self._by_folder: dict[str, list[str]] = {}  # folded folder → names of its files

    def has_name(self, folded: str) -> bool:
        """Return whether one of these files, in any folder, has this folded name, as `names_in` does."""
        return self._read() and folded in self._names

    def names_in(self, folder: str) -> list[str]:
        """Return the names of these files in one folder.

        Costs two stats while Git's index is unchanged, or without a sparse checkout. Raises GitFailed if Git can't list them."""
        return self._by_folder.get(fold(folder), []) if self._read() else []

    def _read(self) -> bool:
        """Read the list if the index has changed; return whether there may be such files."""
        folder = self._repo.git_folder()
        seen = file_fingerprint(folder / "index") if (folder / "info/sparse-checkout").exists() else None
        if seen is not None and self._seen != seen:
            result = self._repo.run("ls-files", "-t", "-z")
            if result.code:
                raise GitFailed(f"git ls-files failed: {result.said or result.code}", retryable=True)
            by_folder = defaultdict[str, list[str]](list)
            for line in result.fields:
                if line.startswith("S "):
                    parent, _, name = line[2:].rpartition("/")
                    by_folder[fold(parent)].append(name)
            self._names = frozenset(fold(name) for names in by_folder.values() for name in names)
            self._seen, self._by_folder = seen, dict(by_folder)
        return seen is not None


def find_ignored(repo: Repository, paths: Iterable[str], environ: Mapping[str, str] | None = None) -> set[str]:
    """Return the paths that a `.gitignore` or similar file excludes and that are not in the index."""
    stdin = "".join(f"./{path}\0" for path in paths)  # "./" makes a leading ":" part of the name
    plain = {**(environ or {}), "GIT_LITERAL_PATHSPECS": "0"}  # check-ignore accepts no other pathspecs
    result = repo.run("check-ignore", "-z", "--stdin", stdin=stdin.encode("utf-8", "surrogateescape"), env=plain)
    if result.code not in (0, 1):
        raise GitFailed(f"git check-ignore failed: {result.said or result.code}")
    return {path.removeprefix("./") for path in result.fields if path}


def find_marked_unchanged(repo: Repository) -> set[str]:
    """Return the files of the index that are assumed unchanged or excluded from the work tree."""
    lines = repo.run("ls-files", "-v", "-z").fields
    return {line[2:] for line in lines if line[:1] == "S" or line[:1].islower()}


def explain_obstacle(repo: Repository, paths: Sequence[str]) -> str:
    """Explain which of these paths block a pull, and how a person can fix that."""
    git = f"git -C {shlex.quote(repo.vault)}"
    if left := _filter_paths(paths, find_ignored(repo, paths)):
        source = shlex.quote(f"{repo.vault}/{left[0]}")
        target = shlex.quote(f"{repo.vault}/{left[0]}.mine")
        return f"{format_paths(left)}, which Git ignores: move it away, for example with `mv {source} {target}`"
    if left := _filter_paths(paths, find_marked_unchanged(repo)):
        again = f"{git} update-index --no-assume-unchanged --no-skip-worktree -- {' '.join(map(shlex.quote, left))}"
        return f"{format_paths(left)}, whose changes Git is set to ignore: run `{again}`, and sync again"
    return f"{format_paths(paths)}; commit it, for example with `{git} add -A && {git} commit -m Edits`"


def format_paths(paths: Collection[str]) -> str:
    """Format some of these paths for a sentence."""
    shown = ", ".join(list(paths)[:_FEW])
    return f"{shown} and {len(paths) - _FEW} more" if len(paths) > _FEW else shown or "what they have"


def _filter_paths(paths: Sequence[str], some: Collection[str]) -> list[str]:
    return [path for path in paths if path in some]
