"""The review view in a real browser: a decision applies to what was read, and to nothing that nobody saw."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.support.change_notes import change_note


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


def test_a_proposed_change_is_applied_with_a_key_and_taken_back(demo, tab):
    before = "# Weir\n\nopen\n"
    note = demo.write("Projects/Weir.md", before)
    path = "Captures/default/Change of Weir.md"
    demo.write(path, change_note("c1", "Projects/Weir.md", before, before.replace("open", "shut")))
    demo.ask("index")
    tab.goto(f"/review?capture={quote(path)}")
    tab.wait("body[data-settled]")
    assert "-open\n+shut" in tab.call("textContent", "#card .text")
    tab.press("p")
    tab.wait('.message:has-text("Weir.md")')
    assert "shut" in note.read_text()
    assert "Weir.md" in tab.value("document.activeElement.textContent")  # so a screen reader reads the outcome
    assert tab.value("document.activeElement.className") == "message"
    tab.wait("body[data-settled]")
    tab.press("u")
    tab.wait('.message:has-text("Undone")')
    assert note.read_text() == before


def test_a_held_key_decides_on_one_capture(demo, tab):
    open_capture(demo, tab, "The first of two notes about the sluice.")
    open_capture(demo, tab, "The second of two notes about the sluice.")
    tab.wait("body[data-settled]")
    before = demo.ask("review.list")["total"]
    for _ in range(6):
        tab.call("keyboard.down", "d")  # the second and further ones are repeats
    tab.wait('.message:has-text("Dismissed")')
    tab.wait("body[data-settled]")
    tab.call("keyboard.down", "d")
    tab.call("keyboard.up", "d")
    assert demo.ask("review.list")["total"] == before - 1


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_enter_on_a_tick_decides_nothing(browser, demo, script):
    demo.capture("A note about the weir that stays in the queue.")
    tab = browser.open(demo.one_time_link(), javaScriptEnabled=script)
    tab.goto("/review")
    before = demo.ask("review.list")["total"]
    tab.call("check", "#queue input[type=checkbox] >> nth=0")
    tab.call("focus", "#queue input[type=checkbox] >> nth=0")
    tab.press("Enter")
    tab.call("waitForTimeout", 500)
    assert demo.ask("review.list")["total"] == before
    assert tab.call("isChecked", "#queue input[type=checkbox] >> nth=0")


SUGGESTIONS = 'suggested_tags:\n  - pond\n  - marsh\nsuggested_links:\n  - "[[Home]]"\n---\n'


def open_suggesting(demo, tab, text):
    """Capture a text, and open its card with suggestions; return the note's file."""
    demo.capture(text)
    note = next(file for file in (demo.vault / "Captures").rglob("*.md") if text in file.read_text())
    head, _, body = note.read_text().rpartition("---\n")
    note.write_text(f"{head}{SUGGESTIONS}{body}")
    demo.ask("index")
    tab.goto(f"/review?capture={quote(str(note.relative_to(demo.vault)))}")
    tab.wait("#decide .take")
    return note


def test_suggestions_are_taken_with_keys(demo, tab):
    open_suggesting(demo, tab, "The reed bed needs a second sluice.")
    assert tab.axe == []
    tab.wait("body[data-settled]")
    tab.press("a", "c", "a", "b")
    demo.capture("Another capture changes the queue.")
    tab.wait('#queue:has-text("Another capture")')
    assert tab.value("[...document.querySelectorAll('[name=take]')].map((box) => box.checked)") == [False, True, True]
    tab.fill("#to", "Areas")
    tab.call("focus", "#card h2 ~ p a")
    tab.press("p")
    tab.wait('.message:has-text("Promoted")')
    note = next(file for file in (demo.vault / "Areas").glob("*.md") if "second sluice" in file.read_text())
    assert "marsh" in note.read_text()
    assert "pond" not in note.read_text()
    assert note.read_text().endswith("\n[[Home]]\n")
    tab.wait("body[data-settled]")
    tab.press("u")
    tab.wait('.message:has-text("Undone")')
    assert not note.exists()


def test_suggestions_are_taken_with_ticks_alone(browser, demo):
    tab = browser.open(demo.one_time_link(), javaScriptEnabled=False)
    open_suggesting(demo, tab, "The otter holt is dry again.")
    tab.call("check", '[name=take][value="pond"]')
    tab.fill("#to", "Areas")
    tab.click("#decide button.primary")
    tab.wait('.message:has-text("Promoted")')
    note = next(file for file in (demo.vault / "Areas").glob("*.md") if "otter holt" in file.read_text())
    assert "pond" in note.read_text()
    assert "marsh" not in note.read_text()
