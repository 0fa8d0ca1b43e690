"""Fold what a search is restricted to into the form that rows are stored in.

Law, tested: a document's tag keys hold the key of each of its tags and of each tag above it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def tag_key(tag: str) -> str:
    """A tag as tags are compared: no "#", no letter case, one form of each accented letter."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", tag).casefold())
    return "/".join(part for part in (piece.strip() for piece in folded.strip().lstrip("#").split("/")) if part)


def tag_keys(tags: Iterable[str]) -> tuple[str, ...]:
    """The keys that documents with `tags` are found by: `a/b` is found as `a/b` and as `a`; sorted, without repeats."""
    keys = set()
    for tag in tags:
        parts = tag_key(tag).split("/")
        keys |= {"/".join(parts[: n + 1]) for n in range(len(parts))}
    return tuple(sorted(keys - {""}))
