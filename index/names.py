"""Fold names of notes to the form in which they are compared, and form base names and plurals."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from typing import Final

BEGUN: Final = 6  # characters of a beginning by which a name is guessed


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


def nearest_name(wanted: str, names: Iterable[str]) -> str:
    """The name that somebody may have meant who wrote `wanted`: one that is spelled alike, or contains it; "" = none."""
    folded = {fold(name): name for name in names}
    key = fold(wanted)
    if near := difflib.get_close_matches(key, folded, n=1, cutoff=0.6):
        return folded[near[0]]
    begun = {
        name[: len(key)]: name for name in reversed(folded) if len(key) >= BEGUN
    }  # of a long title only the beginning
    if near := difflib.get_close_matches(key, begun, n=1, cutoff=0.8):
        return folded[begun[near[0]]]
    return next((folded[name] for name in folded if key and key in name), "")


def did_you_mean(wanted: str, names: Iterable[str]) -> str:
    """A question that names the nearest name, to follow a sentence that a name is unknown; "" where none is near."""
    near = nearest_name(wanted, names)
    return f'. Did you mean "{near}"?' if near else ""
