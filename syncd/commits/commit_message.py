"""Compose the message of a commit by Memex: a subject, a line for each note, and trailers for programs.

Law, tested: no text in a message adds a line, a trailer or a character that a terminal obeys; `git
interpret-trailers` finds exactly the trailers that were given."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from syncd.notes.secret_patterns import redact

SUBJECT: Final = 72  # characters
LINE: Final = 200
MOST: Final = 100  # lines, and trailers of one name
_BLANKS: Final = re.compile(r"\s+")
# Control characters, those that turn the direction of text or hide it, halves of characters, line and paragraph ends.
_HARMFUL: Final = frozenset(["Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"])


def format_message(subject: str, lines: Iterable[str] = (), trailers: Iterable[tuple[str, str]] = ()) -> str:
    """The text of a commit. A trailer is a name of ours and a value; the same one twice is told once, an empty one not."""
    all_lines = list(lines)
    body = [f"- {clean_line(line, LINE)}" for line in all_lines[:MOST]]
    body += [f"- and {len(all_lines) - MOST:,} more"] if len(all_lines) > MOST else []
    ends = dict.fromkeys((name, clean_line(value, LINE)) for name, value in trailers)
    counted: dict[str, int] = {}
    tail = []
    for name, value in ends:
        counted[name] = counted.get(name, 0) + 1
        if value and counted[name] <= MOST:
            tail.append(f"{name}: {value}")
    parts = [clean_line(subject, SUBJECT) or "Change notes", "\n".join(body), "\n".join(tail)]
    return "\n\n".join(part for part in parts if part) + "\n"


def clean_line(text: str, most: int) -> str:
    """`text` in one line, without secrets and what a terminal would obey, cut to `most` characters."""
    text = redact(text)  # before it is cut: half a secret is not known for one
    shown = "".join(" " if char.isspace() else char for char in text if char.isspace() or not _is_harmful(char))
    line = _BLANKS.sub(" ", shown).strip()
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _is_harmful(char: str) -> bool:
    return unicodedata.category(char) in _HARMFUL
