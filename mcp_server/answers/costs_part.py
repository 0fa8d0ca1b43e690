"""About how many tokens a text costs the model that reads it, whichever model that is.

Pure. Law, tested: for JSON, prose and code the estimate is near what a tokenizer counts, and rather above it."""

from __future__ import annotations

import re
from typing import Final

_PIECE: Final = re.compile(r"[A-Za-z]+|[0-9]+|[^\S\n]+|\n+|[!-/:-@\[-`{-~]+|[^\x00-\x7f]+|.", re.DOTALL)
_WIDE: Final = "\u2e7f"  # from here on scripts have a token a letter; before it, one for two


def tokens(text: str) -> int:
    """The tokens of `text`."""
    return sum(map(_cost, _PIECE.findall(text)))


def _cost(piece: str) -> int:
    first = piece[0]
    if first > "\x7f":
        return sum(2 if letter > _WIDE else 1 for letter in piece) // 2 + 1
    if first.isalpha():
        return -(-len(piece) // 6)
    if first.isdigit():
        return -(-len(piece) // 3)
    if first == "\n":
        return 1
    return -(-len(piece) // 4) if not first.isspace() else len(piece) > 1
