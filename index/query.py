"""Fold what a search is restricted to into the form that rows are stored in.

Law, tested: a document's tag keys hold the key of each of its tags and of each tag above it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def tag_key(tag: str) -> str:
    """The form in which tags are compared: composed, without letter case, without the sign in front."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", tag).casefold())
    return folded.lstrip("#").strip("/")


def tag_keys(tags: Iterable[str]) -> tuple[str, ...]:
    """The keys of `tags` and of the tags above them ("a/b" gives "a" and "a/b"), sorted, each once."""
    keys: set[str] = set()
    for tag in tags:
        parts = tag_key(tag).split("/")
        keys.update("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    return tuple(sorted(keys - {""}))
