"""Compose the URL at which Obsidian opens a note, as its help page "Obsidian URI" has it: every value percent-encoded."""

from __future__ import annotations

from urllib.parse import quote


def obsidian_url(vault: str, path: str) -> str:
    """The URL of the file at `path` of the vault that Obsidian knows by this name.

    The ending stays, so that a note named `report.pdf.md` is not taken for the file `report.pdf` beside it."""
    return f"obsidian://open?vault={_encode(vault)}&file={_encode(path)}"


def _encode(text: str) -> str:
    """`/` and blanks too, which Obsidian takes in no other form."""
    return quote(text.encode("utf-8", "surrogatepass"), safe="")
