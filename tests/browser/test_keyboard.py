"""The first minutes of a user with the keyboard alone: three captures are promoted, one is dismissed and taken back, a note is found."""

from __future__ import annotations

import pytest


class Keys:
    """Presses keys in a tab, and counts them."""

    def __init__(self, tab):
        self._tab, self.count = tab, 0

    def press(self, *keys):
        self._tab.press(*keys)
        self.count += len(keys)

    def type(self, text):
        self._tab.type(text)
        self.count += len(text)


@pytest.mark.slow  # it starts a daemon of its own, because it counts on the queue
def test_captures_are_decided_and_a_note_is_found_without_a_mouse(browser, fresh_demo):
    tab = browser.open(fresh_demo.one_time_link())
    keys = Keys(tab)
    keys.press("g", "r")
    tab.wait("#card")
    for _ in range(3):
        tab.wait("body[data-settled]")
        title = tab.call("textContent", "#card-title")
        keys.press("p")
        tab.wait('.message:has-text("Promoted")')
        tab.wait_gone(f'#card-title:text-is("{title}")')
    tab.wait("body[data-settled]")
    title = tab.call("textContent", "#card-title")
    keys.press("d")
    tab.wait('.message:has-text("Dismissed")')
    tab.wait("body[data-settled]")
    keys.press("u")
    tab.wait(f'#queue a:has-text("{title}"), #card-title:has-text("{title}")')
    tab.wait("body[data-settled]")
    keys.press("/")
    tab.wait("input[type=search]")
    keys.type("west vent")
    tab.wait('#hits .title:has-text("West vent")')
    tab.wait("body[data-settled]")
    keys.press("ArrowDown", "Enter")
    tab.wait('h1:has-text("West vent")')
    assert "claude-code" in tab.call("textContent", "#history")
    assert keys.count == 19  # docs/guides/page.md states it
    assert tab.problems == {}
