"""Compose the URL at which Obsidian opens a note, as its help page "Obsidian URI" describes: every value percent-encoded."""

from __future__ import annotations

from urllib.parse import quote


def obsidian_url(vault: str, path: str) -> str:
    """Return the URL of the file at `path` in the vault that Obsidian knows by this name.

    The extension stays, so that a note named `report.pdf.md` is not confused with the file `report.pdf` beside it."""
    return f"obsidian://open?vault={_encode(vault)}&file={_encode(path)}"


def _encode(text: str) -> str:
    """Percent-encode a value, including `/` and blanks: Obsidian accepts them only encoded."""
    return quote(text.encode("utf-8", "surrogatepass"), safe="")
