"""Resolve the links of a note in both directions: to the notes that it links to, and from those that link to it.

Law, tested: a link leads here to the note that Obsidian opens for it, in either direction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from index.scope.index import Index
from syncd.links.link_resolution import Paths


def find_links(indexes: Sequence[Index], path: str) -> dict[str, list[dict[str, Any]]]:
    """Return the links of the note at `path`, each with the path of its note or None, and the notes that link to it."""
    paths = Paths(chain.from_iterable(index.manifest.copy() for index in indexes))
    links = {
        (link.target, link.subpath): {
            "target": link.target,
            "subpath": link.subpath,
            "kind": link.kind,
            "path": paths.resolve(link.target, path),
        }
        for index in indexes
        for link in index.links_of(path)
        if link.target
    }
    sources = {
        source
        for index in indexes
        for source, target in index.link_candidates(path)
        if source != path and paths.resolve(target, source) == path
    }
    records = (record for index in indexes for record in index.records_at(sorted(sources)).values())
    return {
        "links": list(links.values()),
        "backlinks": sorted(
            ({"path": record.path, "title": record.title} for record in records), key=lambda note: note["path"]
        ),
    }
