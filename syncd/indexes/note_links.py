"""Resolve the links of a note in both directions: to the notes that it links to, and from those that link to it.

Law, tested: a link leads here to the note that Obsidian opens for it, in either direction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from index.catalog.note_links import list_candidates, list_links
from index.scope.index import Index
from syncd.links.link_resolution import Paths, target_names


def find_links(indexes: Sequence[Index], path: str) -> dict[str, list[dict[str, Any]]]:
    """Return the links of the note at `path`, each with the path of its note or None, and the notes that link to it."""
    links = [link for index in indexes for link in list_links(index.catalog, path) if link.target]
    candidates = [pair for index in indexes for pair in list_candidates(index.catalog, path)]
    paths = find_paths(indexes, {link.target for link in links} | {target for _, target in candidates})
    resolved = {
        (link.target, link.subpath): {
            "target": link.target,
            "subpath": link.subpath,
            "kind": link.kind,
            "path": paths.resolve(link.target, path),
        }
        for link in links
    }
    sources = {source for source, target in candidates if source != path and paths.resolve(target, source) == path}
    records = (record for index in indexes for record in index.records_at(sorted(sources)).values())
    return {
        "links": list(resolved.values()),
        "backlinks": sorted(
            ({"path": record.path, "title": record.title} for record in records), key=lambda note: note["path"]
        ),
    }


def find_paths(indexes: Sequence[Index], targets: Iterable[str]) -> Paths:
    """Return the files that have a name of these targets: no others can be meant."""
    names = {name for target in targets for name in target_names(target)}
    return Paths(path for index in indexes for path in index.paths_named(names))
