"""The review view in a real browser: a decision applies to what was read, and to nothing that nobody saw."""

from __future__ import annotations

from urllib.parse import quote


def open_capture(demo, tab, text):
    """Capture a text, and open its card; return the note's file."""
    demo.capture(text)
    note = next(file for file in (demo.vault / "Captures").rglob("*.md") if text in file.read_text())
    tab.goto(f"/review?capture={quote(str(note.relative_to(demo.vault)))}")
    tab.wait("#decide")
    return note


def test_a_capture_that_changed_stays_as_it_was_read_and_says_so(demo, tab):
    note = open_capture(demo, tab, "The lock of the north shed is oiled in May.")
    note.write_text(note.read_text().replace("May", "June"))
    tab.wait("#card [data-changed]")
    assert "oiled in May" in tab.call("textContent", "#card .text")
    tab.click("#card [data-changed] a")
    tab.wait('#card .text:has-text("oiled in June")')
