"""Convert texts of the program to Markdown, with characters escaped that a page would read as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def prose(text: str) -> str:
    """Paragraphs as a page has them: no HTML, no emphasis, no link that was not meant."""
    with_code = re.sub(r"(?<=: )\{.*\}(?=\.?$)", lambda match: f"`{match[0]}`", text)  # the shape of an answer
    escaped = re.sub(
        r"`[^`\n]*`|[<\[*]|\b_|_\b(?!\w)",
        lambda match: match[0] if match[0].startswith("`") else "\\" + match[0],
        with_code,
    )
    return re.sub(r"(?m)^(#|\d+\.|[-+]) ", r"\\\g<0>", escaped)


def cell(text: str) -> str:
    """Return a text in a table: one line, and no border."""
    return prose(" ".join(text.split())).replace("|", "\\|")


def code(text: str) -> str:
    """Code in a table."""
    return f"`{text}`".replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already; nothing if there is no row."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *lines, "", ""]) if lines else ""
