"""Format a waiting capture as a card with its text and its suggestions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from syncd.cli.terminal import result_text

LINES: Final = 30  # most lines of a capture that are shown
CHANGE_LINES: Final = 200  # most lines of a proposed change: its owner approves them all
CHANGE_WIDTH: Final = 400  # most characters of one of these lines
FITS: Final[Mapping[str, str]] = {
    "fits": "approve applies it to the note",
    "merges": "the note has changed since; the change still fits, as shown",
    "conflict": "the note has changed in the same lines: edit the note or the proposal, or dismiss it",
    "none": "it can't be applied: edit the proposal, or dismiss it",
}


def format_capture(capture: Mapping[str, Any], where: str) -> str:
    """Format a capture with its suggestions; `where`: its position in the queue."""
    lines = [f"── {where}: {result_text.line(capture['title'], 100)}", f"   {result_text.line(capture['path'], 200)}"]
    named = (
        *(("from", "source"), ("tags", "tags"), ("problem", "problem")),
        *(("hidden characters", "suspicious"), ("holds code that Obsidian may run", "runs")),
        ("links that may open files or programs", "unsafe_links"),
    )
    for name, key in named:
        if capture.get(key):
            lines.append(f"   {name}: {result_text.line(_join_values(capture[key]), 200)}")
    if capture.get("change"):
        return "\n".join([*lines, *_change_lines(capture["change"])])
    content = capture["content"].strip("\n").split("\n")
    lines += ["", *(f"  {result_text.line(line, 400)}" for line in content[:LINES])]
    lines += [f"  … {len(content) - LINES} more lines: e"] if len(content) > LINES else []
    lines.append("")
    if capture["goal"] is not None:
        goal = result_text.line(capture["goal"] or "the root of the vault", 100)
        lines.append(f"   folder: {goal}  ({capture['reason']})")
    for name, key in (("tags to add", "suggested_tags"), ("links to add", "suggested_links")):
        if capture[key]:
            lines.append(f"   {name}: {result_text.line(_join_values(capture[key]), 300)}")
    for note in capture["similar"]:
        lines.append(f"   {note['kind']}: {result_text.line(note['path'], 150)}")
        lines.append(f"      {result_text.line(note['excerpt'], 150)}")
    return "\n".join(lines)


def _change_lines(change: Mapping[str, Any]) -> list[str]:
    """Return the lines about the proposed change of a note: how it fits, and what approving it does, or both versions."""
    lines = [f"   change of: {result_text.line(change['target'] or '', 200)}", f"   {FITS[change['fit']]}"]
    if change.get("reason"):
        lines.insert(1, f"   reason: {result_text.line(change['reason'], 500)}")
    shown = (change.get("view") or change.get("diff") or "").removesuffix("\n")
    content = shown.split("\n") if shown else []
    lines += ["", *(f"  {_format_whole(line)}" for line in content[:CHANGE_LINES])]
    lines += [f"  … {len(content) - CHANGE_LINES} more lines: e"] if len(content) > CHANGE_LINES else []
    return [*lines, ""]


def _format_whole(line: str) -> str:
    """Format a line of a diff for the terminal; a longer one says how much of it is not shown."""
    shown = result_text.sanitize(line)
    more = len(shown) - CHANGE_WIDTH
    return f"{shown[:CHANGE_WIDTH]}… {more:,} more characters: e" if more > 0 else shown


def _join_values(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
