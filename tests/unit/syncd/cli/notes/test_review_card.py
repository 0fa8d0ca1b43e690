"""syncd/cli/notes/review_card.py: what a person sees of a waiting capture."""

from __future__ import annotations

from typing import Any

from syncd.cli.notes.review_card import CHANGE_WIDTH, LINES, format_capture

CAPTURE: dict[str, Any] = {
    "title": "Roof door",
    "path": "Captures/default/Roof door.md",
    "source": "claude",
    "tags": ["roof", "door"],
    "problem": None,
    "suspicious": [],
    "runs": [],
    "unsafe_links": [],
    "content": "It sticks.\n",
    "goal": "Home",
    "by": "setting",
    "reason": "the setting promote.folder",
    "folders": [],
    "suggested_tags": None,
    "suggested_links": None,
    "similar": [{"kind": "extends", "path": "Home/Doors.md", "excerpt": "The doors of the house."}],
}


def test_a_card_has_the_text_and_what_is_suggested():
    assert format_capture(CAPTURE, "1 of 2").splitlines() == [
        "── 1 of 2: Roof door",
        "   Captures/default/Roof door.md",
        "   from: claude",
        "   tags: roof, door",
        "",
        "  It sticks.",
        "",
        "   folder: Home  (the setting promote.folder)",
        "   extends: Home/Doors.md",
        "      The doors of the house.",
    ]


def test_a_long_text_is_cut_and_nothing_in_it_steers_the_terminal():
    shown = format_capture({**CAPTURE, "content": "\x1b[2J\n" * (LINES + 5)}, "1 of 1")
    assert "\x1b" not in shown
    assert "… 5 more lines: e" in shown


def test_a_long_line_of_a_change_says_how_much_of_it_is_not_shown():
    lines = f"@@ -1 +1,2 @@\n one\n+{'x' * CHANGE_WIDTH}yz\n"
    change = {"target": "A.md", "reason": "r", "fit": "fits", "diff": lines, "view": ""}
    shown = format_capture({**CAPTURE, "change": change}, "1 of 1")
    assert f"  +{'x' * (CHANGE_WIDTH - 1)}… 3 more characters: e\n" in shown
