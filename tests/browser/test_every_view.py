"""What every view of the page promises, in a real browser: accessible, light, loaded from this machine alone, readable without scripts."""

from __future__ import annotations

import json

import pytest

from tests.support.page_views import PLACES

PHONE = {"width": 360, "height": 700}
NARROW = {"width": 320, "height": 640}
WIDE = {"width": 1280, "height": 900}
MOST = 200 * 1024  # bytes of a view without the library that draws the graph
LIBRARIES = "/static/vendor/"
RIGHT = "getBoundingClientRect().right"
SIGHT = f"""(() => {{
  const nav = document.querySelector(".top nav"), present = nav.querySelector("[aria-current]");
  return present && present.{RIGHT} <= nav.{RIGHT} + 1;
}})()"""  # whether the entry of the present view is in sight; null for a view without one

WHOLE = """(() => {
  const [bar, link] = [document.querySelector(".top nav"), document.activeElement].map((e) => e.getBoundingClientRect());
  return link.left >= bar.left - 1 && link.right <= bar.right + 1;
})()"""  # whether no part of the focused entry is cut off


@pytest.fixture(scope="module")
def tab_with(browser, demo):
    """Return the tab with these options of a context, opened once."""
    tabs = {}

    def find(**options):
        name = json.dumps(options, sort_keys=True)
        if name not in tabs:
            tabs[name] = browser.open(demo.one_time_link(), reducedMotion="reduce", **options)
        return tabs[name]

    return find


@pytest.mark.parametrize("view", PLACES)
@pytest.mark.parametrize(
    ("scheme", "size"),
    [
        ("light", PHONE),
        pytest.param("light", WIDE, marks=pytest.mark.slow),
        pytest.param("dark", PHONE, marks=pytest.mark.slow),
        pytest.param("dark", WIDE, marks=pytest.mark.slow),
    ],
    ids=["light phone", "light wide", "dark phone", "dark wide"],
)
def test_a_view_is_accessible_small_and_fits(tab_with, view, scheme, size):
    tab = tab_with(colorScheme=scheme, viewport=size)
    files = tab.call("weight", tab.page + PLACES[view].address)["files"]
    assert sum(weight for address, weight in files.items() if LIBRARIES not in address) <= MOST
    assert PLACES[view].text in tab.text
    assert tab.axe == []
    assert tab.value("document.documentElement.scrollWidth") <= size["width"]
    assert tab.value(SIGHT) in (None, True)
    assert tab.problems == {}


def test_on_a_phone_the_whole_of_a_focused_entry_is_in_sight(tab_with):
    tab = tab_with(colorScheme="light", viewport=NARROW)
    tab.goto("/")
    entries = tab.value('document.querySelectorAll(".top nav a").length')
    tab.press("Tab", "Tab")  # the link that skips to the content, and the name of the vault
    for _ in range(entries):
        tab.press("Tab")
        assert tab.value(WHOLE), tab.value("document.activeElement.textContent")


@pytest.mark.parametrize("view", PLACES)
def test_a_view_can_be_read_without_javascript(tab_with, view):
    plain = tab_with(javaScriptEnabled=False)
    plain.goto(PLACES[view].address)
    assert PLACES[view].text in plain.call("textContent", "main")
    assert plain.problems == {}
