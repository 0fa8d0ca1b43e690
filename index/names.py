"""How names compare: two that fold alike are one name on some file system."""

from __future__ import annotations

import unicodedata


def fold(name: str) -> str:
    """The form in which names are compared: two names that fold alike can't live side by side everywhere."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def stem(path: str) -> str:
    """The folded base name of a note: what a short `[[link]]` to it says."""
    return fold(path.rpartition("/")[2].removesuffix(".md"))
