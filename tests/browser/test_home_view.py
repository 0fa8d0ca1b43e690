"""The home view and the layout of the page in a real browser: live, with the keyboard, without violations."""

from __future__ import annotations

import signal

import pytest

PHONE = {"width": 360, "height": 700}


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, {"width": 1280, "height": 900}], ids=["phone", "wide"])
def test_the_page_is_accessible_and_fits(browser, demo, scheme, size):
    tab = browser.open(demo.link()["url"], colorScheme=scheme, viewport=size, reducedMotion="reduce")
    tab.wait("#today")
    assert tab.axe == []
    assert tab.value("document.documentElement.scrollWidth") <= size["width"]
    assert tab.problems == {}


def test_reading_works_without_javascript(browser, demo):
    tab = browser.open(demo.link()["url"], javaScriptEnabled=False)
    assert "Waits for you" in tab.call("textContent", "main")


def test_a_killed_daemon_is_reported_and_the_page_continues_with_the_next(browser, demo):
    tab = browser.open(demo.link()["url"])
    tab.wait("#today")
    demo.stop(signal.SIGKILL)
    tab.wait('#connection:has-text("The daemon does not run")')
    waiting = browser.open(demo.link()["url"])
    waiting.wait('h1:has-text("The daemon does not run")')
    assert waiting.axe == []
    demo.serve()
    waiting.wait("#today")
    tab.wait_gone("#connection")
    demo.capture("The daemon is back, and so is this page.")
    tab.wait('#today a.path:has-text("daemon is back")')
