"""The home view and the layout of the page in a real browser: live, and with the keyboard."""

from __future__ import annotations


def test_a_capture_shows_without_a_reload(demo, tab):
    tab.wait("#today")
    demo.capture("The wind gauge at the weir sticks below two knots.")
    tab.wait('#today a.path:has-text("wind gauge")')
    assert "owner" in tab.text


def test_the_keyboard_leads_through_the_page(tab):
    tab.press("?")
    tab.wait("#help[open]")
    assert "Keyboard shortcuts" in tab.value("document.querySelector('#help').innerText")
    tab.press("Escape")
    tab.press("g", "h")
    tab.wait('nav a[aria-current="page"]:has-text("Home")')
    tab.press("Tab")
    assert tab.value("document.activeElement.className") == "skip"
