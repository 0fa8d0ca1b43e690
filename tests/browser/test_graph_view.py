"""The graph view in a real browser: drawn from its lists, the same each time, with the keyboard, live, without violations."""

from __future__ import annotations

import pytest

READY = "#drawing[data-ready]"
CHOSEN = "document.querySelector('.graph-lists .chosen a').innerText"
PIXELS = "[...document.querySelectorAll('#drawing canvas')].map(layer => layer.toDataURL()).join()"


def draw(tab, path="/graph"):
    tab.goto(path)
    tab.wait(READY)


def picture(tab):
    """The pixels of the drawing, once it is at rest."""
    tab.call("waitForTimeout", 500)
    return tab.value(PIXELS)


def test_the_same_graph_is_drawn_the_same_each_time(tab):
    draw(tab)
    first = picture(tab)
    assert len(first) > 10_000
    draw(tab)
    assert picture(tab) == first


def test_the_keyboard_leads_from_entity_to_entity(tab):
    draw(tab)
    before = picture(tab)
    tab.press("j")
    assert tab.value(CHOSEN) == "Heron"
    assert picture(tab) != before
    tab.press("j")
    assert tab.value(CHOSEN) == "Autumn trial"
    tab.press("Enter")
    tab.wait('h1:has-text("Autumn trial")')
    tab.wait(READY)
    tab.press("/")
    tab.type("salt")
    tab.wait('#choices a:has-text("Salt pouch")')
    tab.press("ArrowDown", "Enter")
    tab.wait(READY)
    assert "Salt" in tab.value("document.querySelector('h1').innerText")


def test_the_drawing_is_made_larger_and_whole_by_keys(tab):
    draw(tab)
    whole = picture(tab)
    tab.press("+", "+")
    assert picture(tab) != whole
    tab.press("0")
    tab.press("+", "-")
    assert len(picture(tab)) > 10_000


def test_a_new_relation_shows_without_a_reload(demo, tab):
    draw(tab, "/graph?name=Inspector")
    demo.run("relation", "add", "Inspector", "guards", "Heron")
    tab.wait('#graph-lists [data-node] a:has-text("Heron")')
    tab.wait('#drawing[data-ready="2"]')


def test_the_path_between_two_is_drawn(tab):
    draw(tab)
    tab.fill("#from", "Hazel Ridge site")
    tab.fill("#to", "Dario Venn")
    tab.press("Enter")
    tab.wait('#drawing[data-ready="4"]')
    assert "3 steps" in tab.text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{"width": 360, "height": 700}, {"width": 1280, "height": 900}], ids=["phone", "wide"])
def test_the_graph_is_accessible_and_fits(browser, demo, scheme, size):
    tab = browser.open(demo.link()["url"], colorScheme=scheme, viewport=size, reducedMotion="reduce")
    for path in ("/graph", "/graph?name=Heron&depth=2", "/graph?workspace=work&q=gateway"):
        draw(tab, path)
        assert tab.axe == []
        assert tab.value("document.documentElement.scrollWidth") <= size["width"]
    assert tab.problems == {}


def test_without_javascript_the_lists_are_all_there(browser, demo):
    tab = browser.open(demo.link()["url"], javaScriptEnabled=False)
    tab.goto("/graph?name=Heron")
    assert "Autumn trial" in tab.call("textContent", "#graph-lists")
    assert not tab.call("isVisible", "#drawing")
