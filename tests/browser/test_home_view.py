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
    tab.goto("/review")
    tab.press("g", "h")
    tab.wait('nav a[aria-current="page"]:has-text("Home")')
    tab.press("Tab")
    assert tab.value("document.activeElement.className") == "skip"


def test_single_letter_keys_can_be_turned_off_and_a_text_being_typed_stays(demo, tab):
    tab.goto("/search")
    tab.fill("#q", "weir")
    tab.call("focus", ".foot button")
    tab.press("Enter")
    tab.wait('.foot button:has-text("Turn on")')
    assert tab.value("document.querySelector('#q').value") == "weir"
    tab.press("g", "h", "?", "/")
    assert tab.path.startswith("/search")
    assert not tab.call("isVisible", "#help")
    assert tab.value("document.activeElement.id") != "q"
    tab.goto("/")
    tab.press("g", "s")
    assert tab.path == "/"
    tab.click(".foot button")
    tab.wait('.foot button:has-text("Turn off")')
    tab.press("g", "s")
    tab.wait("#q")


def test_single_letter_keys_can_be_turned_off_without_javascript(browser, demo):
    tab = browser.open(demo.one_time_link(), javaScriptEnabled=False)
    tab.goto("/search?q=battery")
    tab.click(".foot button")
    tab.wait('.message:has-text("Single-letter keys are off.")')
    assert tab.call("inputValue", "#q") == "battery"
    tab.click('.foot button:has-text("Turn on")')
    tab.wait('.message:has-text("Single-letter keys are on.")')
