"""Resolve a link to the file it leads to, as Obsidian does: a pure function of the paths of all files of the vault.

Law: letter case and the form of Unicode never count, an alias is not a target, and of several candidates the same
one always wins, whatever the order in which the files were listed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from index.names import base_name, fold


class Paths:
    """Holds the paths of all files by the names that links use."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._named: dict[str, list[tuple[str, str]]] = defaultdict(list)  # folded base name -> folded path, path
        self._whole: dict[str, list[str]] = defaultdict(list)  # folded path -> paths; more than one: case twins
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """Add a file."""
        folded = fold(path)
        self._named[base_name(folded)].append((folded, path))
        self._whole[folded].append(path)

    def remove(self, path: str) -> None:
        """Remove a file."""
        folded = fold(path)
        self._named[base_name(folded)].remove((folded, path))
        self._whole[folded].remove(path)

    def exact_path(self, path: str) -> str | None:
        """Return the file exactly at `path` from the root, as a canvas names it."""
        twins = self._whole.get(fold(path), ())
        return path if path in twins else min(twins, default=None)

    def resolve(self, target: str, source: str) -> str | None:
        """Return the file that a link in the note `source` leads to; None if there is none.

        An empty target is the note itself."""
        if not target:
            return source
        wanted, here = fold(target), fold(source).rpartition("/")[0]
        if wanted.startswith("/"):
            return self._find_exact(wanted[1:])
        if wanted.startswith(("./", "../")):
            if path := self.resolve_relative(target, source):
                return path
            wanted = "/".join(part for part in wanted.split("/") if part not in (".", ".."))
        if path := self._find_exact(wanted):
            return path
        return next((path for name in _candidate_names(wanted) if (path := self._find_nearest(name, here))), None)

    def resolve_relative(self, target: str, source: str) -> str | None:
        """Return the file that `target`, which begins with a dot, names relative to the folder of `source`."""
        joined = _join_relative(fold(source).rpartition("/")[0], fold(target))
        return None if joined is None else self._find_exact(joined)

    def _find_exact(self, wanted: str) -> str | None:
        return next((min(paths) for name in _candidate_names(wanted) if (paths := self._whole.get(name))), None)

    def _find_nearest(self, wanted: str, here: str) -> str | None:
        """Return the best file whose path ends in `wanted`: below the source's folder first, then the shortest, then by name."""
        ending = f"/{wanted}"
        pairs = [pair for pair in self._named.get(base_name(wanted), ()) if f"/{pair[0]}".endswith(ending)]
        below = f"{here}/" if here else ""
        return min(pairs, key=lambda pair: (not pair[0].startswith(below), len(pair[0]), pair))[1] if pairs else None


def target_names(target: str) -> set[str]:
    """Return the folded base names of the files to which a link to `target` can lead."""
    return {base_name(name) for name in _candidate_names(fold(target))}


def _candidate_names(wanted: str) -> tuple[str, ...]:
    """Return the possible file names for `wanted`: only `.md` may be omitted, and is then tried last."""
    return (wanted, f"{wanted}.md") if "." in base_name(wanted) else (f"{wanted}.md",)


def _join_relative(folder: str, relative: str) -> str | None:
    """Return the path of `relative` from `folder`; None when it leads out of the vault."""
    parts = folder.split("/") if folder else []
    for part in relative.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
