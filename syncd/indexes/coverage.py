"""Compute the coverage of the index: every file of a listing is indexed, waiting, or skipped for a reason.

Law, tested against a vault of every shape: indexed + waiting + skipped equals the number of files in the listing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any

from index.names import pluralize
from syncd.vault.listing import Listing
from syncd.vault.location import locate


def compute_coverage(
    listing: Listing, known: Mapping[str, Collection[str]], failed: Mapping[str, str], *, inbox: str
) -> dict[str, dict[str, Any]]:
    """Return for each scope `{"indexed": n, "of": m, "waiting": k, "skipped": [{"path", "reason"}]}`.

    `known`: scope → the paths in its index. `failed`: path → why it could not be read. "of" is None when unknown,
    because the vault's folder is missing."""
    files, skipped = defaultdict[str, set[str]](set), defaultdict[str, dict[str, str]](dict)
    for path in listing.files:
        files[locate(path, inbox).scope].add(path)
    hidden = _count_hidden(listing, known)
    for path, why in listing.skipped.items():
        count = hidden[path]
        more = f"; this hides {pluralize(count, 'indexed note')} from Memex" if count else ""
        skipped[locate(path, inbox).scope][path] = why + more
    return {
        scope: _compute_scope(files[scope], skipped[scope], set(held), listing, failed) for scope, held in known.items()
    }


def _count_hidden(listing: Listing, known: Mapping[str, Collection[str]]) -> Counter[str]:
    """Return for each folder that can't be read how many indexed notes are in it."""
    hidden = Counter[str]()
    for path in chain.from_iterable(known.values()) if listing.unread else ():
        while path := path.rpartition("/")[0]:
            if path in listing.unread:
                hidden[path] += 1
    return hidden


def _compute_scope(
    files: set[str], skipped: Mapping[str, str], held: set[str], listing: Listing, failed: Mapping[str, str]
) -> dict[str, Any]:
    if "" in listing.unread:  # the vault itself is missing: its indexed notes are kept
        return {"indexed": len(held), "of": None, "waiting": 0, "skipped": []}
    # Notes that can't be seen now are kept and searchable, so they count as indexed.
    indexed = {path for path in held if path in files or not listing.is_gone(path)}
    left = {path: why for path, why in skipped.items() if path not in indexed}
    left |= {path: failed[path] for path in files - indexed if path in failed}
    waiting = files - indexed - left.keys()
    return {
        "indexed": len(indexed),
        "of": len(indexed) + len(left) + len(waiting),
        "waiting": len(waiting),
        "skipped": [{"path": path, "reason": left[path]} for path in sorted(left)],
    }
