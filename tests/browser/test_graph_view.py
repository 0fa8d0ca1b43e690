"""The graph view in a real browser: drawn from its lists, the same each time, with the keyboard, live, without violations."""

from __future__ import annotations

import pytest

READY = "#drawing[data-ready]"
CHOSEN = "document.querySelector('.graph-lists .chosen a').innerText"
DRAWING = "document.querySelector('#drawing .canvas')._cyreg.cy"
PLACES = f"{DRAWING}.nodes().map(node => [node.id(), node.position().x, node.position().y])"
PAINTED = "() => document.querySelector('#drawing canvas')?.width > 0"


def draw(tab, path="/graph"):
    tab.goto(path)
    tab.wait(READY)


def test_the_same_graph_is_drawn_the_same_each_time(tab):
    draw(tab)
    tab.call("waitForFunction", PAINTED)
    first = tab.value(PLACES)
    assert len(first) > 5
    draw(tab)
    assert tab.value(PLACES) == first


def test_the_keyboard_leads_from_entity_to_entity(tab):
    draw(tab)
    tab.press("j")
    assert tab.value(CHOSEN) == "Heron"
    tab.press("j")
    assert tab.value(CHOSEN) == "Autumn trial"
    assert tab.value(f"{DRAWING}.nodes('.chosen').map(node => node.data('name'))") == ["Autumn trial"]
    tab.press("Enter")
    tab.wait('h1:has-text("Autumn trial")')
    tab.wait(READY)
    tab.press("/")
    tab.type("salt")
    tab.wait('#choices a:has-text("Salt pouch")')
    assert tab.value("document.getElementById('choices-status').role") == "status"
    listed = tab.value("document.querySelectorAll('#choices li').length")
    assert tab.call("textContent", "#choices-status") == f"{listed} entities"
    tab.press("ArrowDown", "Enter")
    tab.wait('h1:has-text("Salt")')


def test_the_drawing_is_made_larger_and_whole_by_keys(tab):
    draw(tab)
    tab.press("0")
    whole = tab.value(f"{DRAWING}.zoom()")
    tab.press("+")
    assert tab.value(f"{DRAWING}.zoom()") > whole
    tab.press("-", "-")
    assert tab.value(f"{DRAWING}.zoom()") < whole
    tab.press("0")
    assert tab.value(f"{DRAWING}.zoom()") == pytest.approx(whole)


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


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{"width": 360, "height": 700}, {"width": 1280, "height": 900}], ids=["phone", "wide"])
def test_the_graph_is_accessible_and_fits(browser, demo, scheme, size):
    tab = browser.open(demo.one_time_link(), colorScheme=scheme, viewport=size, reducedMotion="reduce")
    for path in ("/graph", "/graph?name=Heron&depth=2", "/graph?workspace=work&q=gateway"):
        draw(tab, path)
        assert tab.axe == []
        assert tab.value("document.documentElement.scrollWidth") <= size["width"]
    assert tab.problems == {}


def test_without_javascript_the_lists_are_all_there(browser, demo):
    tab = browser.open(demo.one_time_link(), javaScriptEnabled=False)
    tab.goto("/graph?name=Heron")
    assert "Autumn trial" in tab.call("textContent", "#graph-lists")
    assert not tab.call("isVisible", "#drawing")
