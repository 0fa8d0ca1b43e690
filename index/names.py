"""Fold names of notes to the form in which they are compared, form base names and plurals, and replace lone surrogates."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from typing import Final

_WIDE: Final = r"\u2e80-\u9fff\uf900-\ufaff"  # Chinese and Japanese, in which no blank separates words
_WORD: Final = re.compile(rf"[{_WIDE}]|[^\W_{_WIDE}]+")
BEGUN: Final = 6  # minimum characters of a prefix from which a name is guessed


def fold(name: str) -> str:
    """Return the form in which names are compared: two names that fold alike can't live side by side everywhere."""
    if name.isascii():  # the same, in a fraction of the time: a vault has tens of thousands of names
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def spaced_words(text: str) -> str:
    """Return the folded words of `text` between blanks, to look for a title in it: titles lack the marks that a file name can't have.

    Of scripts without blanks, each character counts as a word."""
    return f" {' '.join(_WORD.findall(fold(text)))} "


def base_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]


def note_name(path: str) -> str:
    """Return the name of a note, as people know it: the last part of its path without `.md`."""
    name = base_name(path)
    return name[:-3] if name[-3:].lower() == ".md" else name


def pluralize(count: int, noun: str) -> str:
    """Return a count with its noun: "1 note", "1,200 notes", "2 entries", "2 keys"."""
    ends_in_ies = noun.endswith("y") and noun[-2:-1] not in "aeiou"
    plural = f"{noun[:-1]}ies" if ends_in_ies else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def stem(path: str) -> str:
    """Return the folded base name of a note, which a short `[[link]]` to it contains."""
    return fold(base_name(path)).removesuffix(".md")


def nearest_name(wanted: str, names: Iterable[str]) -> str:
    """Return the known name that `wanted` probably means: one with a similar spelling, or one that contains it; "" = none."""
    folded = {fold(name): name for name in names}
    key = fold(wanted)
    if near := difflib.get_close_matches(key, folded, n=1, cutoff=0.7):
        return folded[near[0]]
    begun = {
        name[: len(key)]: name for name in reversed(folded) if len(key) >= BEGUN
    }  # of a long title only the beginning
    if near := difflib.get_close_matches(key, begun, n=1, cutoff=0.8):
        return folded[begun[near[0]]]
    return next((folded[name] for name in folded if key and key in name), "")


def append_advice(near: str, advice: str) -> str:
    """Return the end of a message: `near`, a question of `did_you_mean`, before the advice, or the advice alone."""
    return f"{near} {advice[0].upper()}{advice[1:]}" if near else f"; {advice}"


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates in `text`, which no tokenizer and no protocol accepts."""
    return text.encode("utf-8", "replace").decode()


def did_you_mean(wanted: str, names: Iterable[str]) -> str:
    """Return a question with the nearest name, to append to a message about an unknown name; "" if no name is near."""
    near = nearest_name(wanted, names)
    return f'. Did you mean "{near}"?' if near else ""
