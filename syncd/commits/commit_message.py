"""Compose the message of a commit by Memex: a subject, a line for each note, and trailers for programs.

Law, tested: no text in a message adds a line, a trailer or a control character; `git interpret-trailers` finds
exactly the trailers that were given."""

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
# Control characters, characters that hide text or change its direction, surrogates, line and paragraph separators.
_HARMFUL: Final = frozenset(["Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"])


def format_message(subject: str, lines: Iterable[str] = (), trailers: Iterable[tuple[str, str]] = ()) -> str:
    """Format the text of a commit. Each trailer is a name and a value; repeated and empty trailers are left out."""
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
    """Return `text` in one line, without secrets and control characters, cut to `most` characters."""
    text = redact(text)  # before cutting, because half a secret is not recognized
    shown = (char for char in text if char.isspace() or unicodedata.category(char) not in _HARMFUL)
    line = _BLANKS.sub(" ", "".join(shown)).strip()
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
