"""Where a link leads, as Obsidian decides it: a pure function of the paths of all files of the vault.

Law: letter case and the form of Unicode never count, an alias is no target, and of several candidates the same one
always wins, whatever the order in which the files were listed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from index.identity import fold


class Paths:
    """The paths of all files, by the names that links call them."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._named: dict[str, list[tuple[str, str]]] = defaultdict(list)  # folded base name -> folded path, path
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """Learn of one more file."""
        folded = fold(path)
        self._named[_base(folded)].append((folded, path))

    def remove(self, path: str) -> None:
        """Forget a file."""
        folded = fold(path)
        self._named[_base(folded)].remove((folded, path))

    def resolve(self, target: str, source: str) -> str | None:
        """The file that a link in the note `source` leads to; None when there is none. An empty target is the note itself."""
        if not target:
            return source
        wanted, here = fold(target), fold(source).rpartition("/")[0]
        if wanted.startswith("/"):
            return self._exact(wanted[1:])
        if wanted.startswith(("./", "../")):
            joined = _joined(here, wanted)
            if joined is not None and (found := self._exact(joined)):
                return found
            wanted = "/".join(part for part in wanted.split("/") if part not in (".", ".."))
        if found := self._exact(wanted):
            return found
        for name in (wanted, f"{wanted}.md"):
            if found := self._nearest(name, here):
                return found
        return None

    def _exact(self, wanted: str) -> str | None:
        for name in (wanted, f"{wanted}.md"):
            if found := sorted(path for folded, path in self._named.get(_base(name), ()) if folded == name):
                return found[0]
        return None

    def _nearest(self, wanted: str, here: str) -> str | None:
        """Of the files whose path ends so: those below the source's folder first, then the shortest, then by name."""
        ending = f"/{wanted}"
        found = [pair for pair in self._named.get(_base(wanted), ()) if f"/{pair[0]}".endswith(ending)]
        below = f"{here}/" if here else ""
        return min(found, key=lambda pair: (not pair[0].startswith(below), len(pair[0]), pair))[1] if found else None


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _joined(folder: str, relative: str) -> str | None:
    """`relative` from `folder`; None when it leads out of the vault."""
    parts = folder.split("/") if folder else []
    for part in relative.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
