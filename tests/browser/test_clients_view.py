"""The clients view in a real browser: accessible, on a phone too, and a key revoked with the keyboard."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("size", [{"width": 360, "height": 700}, {"width": 1280, "height": 900}], ids=["phone", "wide"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_clients_are_accessible_and_fit(browser, demo, scheme, size):
    tab = browser.open(demo.link()["url"], colorScheme=scheme, viewport=size)
    tab.goto("/clients")
    tab.click(".settings summary >> nth=1")
    assert tab.axe == []
    assert tab.value("document.documentElement.scrollWidth") <= size["width"]
    assert tab.problems == {}


def test_a_key_is_revoked_with_the_keyboard(demo, tab):
    demo.json("key", "create", "--name", "robin@here", "--workspace", "default")
    tab.press("g", "c")
    tab.wait('#clients li:has-text("robin@here")')
    tab.press("j", "Enter")
    tab.wait('h1:has-text("Revoke the key robin@here?")')
    tab.call("focus", "button.danger")
    tab.press("Enter")
    tab.wait('main:has-text("Revoked the key robin@here")')
