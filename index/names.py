"""Fold names of notes to the form in which they are compared, and form base names and plurals."""

from __future__ import annotations

import unicodedata


def fold(name: str) -> str:
    """The form in which names are compared: two names that fold alike can't live side by side everywhere."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def base_name(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]


def pluralize(count: int, noun: str) -> str:
    """A count with its noun: "1 note", "1,200 notes"."""
    return f"{count:,} {noun if count == 1 else noun + 's'}"


def stem(path: str) -> str:
    """The folded base name of a note: what a short `[[link]]` to it says."""
    return fold(base_name(path).removesuffix(".md"))
