"""Shorten passages of notes around the words of a search, and mark these words.

Law, tested: the passage is text of the note, and only the marks are markup."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from markupsafe import Markup

from index.text.hidden_characters import escape_hidden

LONGEST: Final = 320  # characters of a passage
LEAD: Final = 60  # characters before the first word
SHORTEST: Final = 3  # letters of a word that also marks longer words that begin with it
_WORD: Final = re.compile(r"[^\W_]+")
# Scripts without spaces between words: every two characters count as a word.
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{2,}")


def mark_passage(chunk: str, query: str, longest: int = LONGEST) -> Markup:
    """Return the part of `chunk` around the first words of `query`, on one line, with these words in mark elements."""
    text = " ".join(escape_hidden(unicodedata.normalize("NFC", chunk)).split())
    pattern = words_pattern(query)
    first = pattern.search(text) if pattern else None
    start = max(0, first.start() - LEAD) if first and first.end() > longest else 0
    if first and start:
        start = text.find(" ", start, first.start()) + 1 or start
    shown = text[start : start + longest]
    pieces = ["… " if start else ""]
    at = 0
    for match in pattern.finditer(shown) if pattern else ():
        pieces += [Markup("{}<mark>{}</mark>").format(shown[at : match.start()], match[0])]
        at = match.end()
    pieces += [shown[at:], " …" if start + longest < len(text) else ""]
    return Markup().join(pieces)


def words_pattern(query: str) -> re.Pattern[str] | None:
    """Return a pattern for the words of a query, and for words that begin with them; None for a query without words."""
    words: dict[str, None] = {}
    for match in _WORD.finditer(unicodedata.normalize("NFC", query)):
        if run := _UNSPACED.fullmatch(match[0]):
            words |= dict.fromkeys(run[0][place : place + 2] for place in range(len(run[0]) - 1))
        else:
            words[match[0]] = None
    parts = [
        re.escape(word)
        if _UNSPACED.match(word)
        else rf"(?<![^\W_]){re.escape(word)}" + (r"[^\W_]*" if len(word) >= SHORTEST else r"(?![^\W_])")
        for word in sorted(words, key=len, reverse=True)
    ]
    return re.compile("|".join(parts), re.IGNORECASE) if parts else None
