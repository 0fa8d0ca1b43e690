"""The search view in a real browser: as one types, with the keyboard, with filters, and without JavaScript."""

from __future__ import annotations

import pytest

from tests.support.chromium import Tab
from tests.support.world import until

STAMP = """fetch("/").then((answer) => answer.text())
    .then((text) => new DOMParser().parseFromString(text, "text/html").body.dataset.stamp)"""


def hits(tab: Tab) -> list[str]:
    return list(tab.value("[...document.querySelectorAll('#hits .title')].map(link => link.textContent)"))


def test_hits_follow_what_is_typed_and_the_keyboard_leads_to_them(tab):
    tab.press("/")
    tab.wait("input[type=search]")
    tab.type("battery box cool")
    tab.wait('#hits .title:has-text("Passive cooling")')
    tab.wait("body[data-settled]")
    assert "q=battery+box+cool" in tab.path
    assert tab.call("textContent", "#hits-status").startswith(str(len(hits(tab))))
    tab.press("ArrowDown")
    assert tab.value("document.activeElement.textContent") == hits(tab)[0]
    tab.press("ArrowDown")
    assert tab.value("document.activeElement.textContent") == hits(tab)[1]
    tab.press("ArrowUp", "ArrowUp")
    assert tab.value("document.activeElement.id") == "q"


def test_letters_that_follow_the_slash_are_in_the_field_when_the_search_view_is_there(tab):
    tab.goto("/review")  # it has no search field, and letters that decide
    tab.wait("body[data-settled]")
    tab.call("hold", "**/search*")
    tab.press("/")
    tab.type("battery ")
    tab.call("holds")
    tab.type("box")
    tab.call("release")
    tab.wait('#hits .title:has-text("Battery")')
    assert tab.value("[document.activeElement.id, document.activeElement.value]") == ["q", "battery box"]


def test_the_search_box_closes_without_a_search(tab):
    tab.goto("/review")
    tab.wait("body[data-settled]")
    tab.press("/")
    tab.wait("#search-box")
    assert tab.axe == []
    tab.press("w", "Escape")
    tab.wait_gone("#search-box")
    tab.press("/", "Enter")
    tab.wait("#q")
    assert tab.path == "/search?q=w"


@pytest.mark.parametrize("status", [0, 200, 503])
def test_a_search_that_fails_leaves_no_hits_of_another_text(browser, demo, status):
    tab = browser.open(demo.one_time_link())
    tab.goto("/search?q=battery")
    tab.wait("#hits .title")
    tab.call("fail", "**/search*", status)
    tab.fill("#q", "battery box")
    tab.wait('#hits [role=alert]:has-text("The page did not answer")')
    assert (hits(tab), tab.call("textContent", "#hits-status")) == ([], "")
    tab.call("release")
    tab.fill("#q", "battery boxes")
    tab.wait("#hits .title")


def test_a_refresh_that_keeps_failing_is_tried_ever_less_often_and_says_why(browser, demo):
    tab = browser.open(demo.one_time_link())
    tab.goto("/search?q=anchor")
    tab.wait("body[data-settled]")
    tab.value("window.waits = []")
    tab.value(
        "(window.setTimeout = ((real) => (work, wait, ...rest) => (wait >= 2000 && window.waits.push(wait), real(work, wait / 20, ...rest)))(setTimeout), 0)"
    )
    tab.call("fail", "**/search*", 503)
    demo.capture("# Anchor of the ferry\n\nThe anchor is worn.")
    until(lambda: tab.value("window.waits.slice(-2)") == [60000, 60000])
    assert tab.value("window.waits.slice(-7)") == [2000, 4000, 8000, 16000, 32000, 60000, 60000]
    assert "out of date" in tab.call("textContent", "#connection")
    tab.call("release")
    tab.wait('#hits .title:has-text("Anchor of the ferry")')
    tab.wait_gone("#connection")


def test_hits_follow_the_notes_after_a_refresh_that_failed(browser, demo):
    tab = browser.open(demo.one_time_link())
    tab.goto("/search?q=mooring")
    tab.wait("body[data-settled]")
    tab.call("fail", "**/search*", 503)
    demo.capture("# Mooring of the ferry\n\nThe mooring line is worn.")
    demo.settled()
    tab.call("waitForTimeout", 1500)
    assert "Mooring of the ferry" not in hits(tab)
    stamp = tab.value(STAMP)
    tab.call("release")
    tab.wait('#hits .title:has-text("Mooring of the ferry")')
    assert tab.value(STAMP) == stamp, "the page was refreshed by another change, not by a further try"


def test_a_filter_restricts_the_hits(tab):
    tab.goto("/search?q=heron&folder=Projects/Heron")
    tab.wait("#hits .title")
    paths = tab.value("[...document.querySelectorAll('#hits .path')].map(path => path.textContent)")
    assert paths
    assert all(path.startswith("Projects/Heron/") for path in paths)
    tab.goto("/search?q=heron&source=claude-code&scope=captures")
    tab.wait("#hits .title")
    assert "from claude-code" in tab.text


def test_the_link_that_clears_the_filters_follows_the_form(browser, demo):
    tab = browser.open(demo.one_time_link())
    tab.goto("/search?q=heron")
    tab.click("summary")
    tab.fill("#tag", "home")
    tab.fill("#q", "battery")
    tab.wait('#clear-filters a[href="/search?q=battery"]')
    tab.fill("#tag", "")
    tab.wait_gone("#clear-filters")


def test_a_hit_leads_to_obsidian(tab):
    tab.goto("/search?q=battery")
    tab.wait("#hits .title")
    assert str(tab.value("document.querySelector('[data-obsidian]').href")).startswith(
        "obsidian://open?vault=vault&file="
    )


@pytest.fixture(scope="module")
def other(browser, demo):
    """A tab that several tests lead to other addresses."""
    return browser.open(demo.one_time_link())


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/search", "Type what you are looking for"),
        ("/search?q=zzqx&folder=Missing", "Nothing matches with these filters"),
        ("/search?q=a&since=yesterday", "is not a day"),
        ("/search?q=" + "x" * 2100, "query must be text"),
    ],
)
def test_empty_answers_and_mistakes_say_what_to_do(other, path, text):
    other.goto(path)
    assert text in other.text
    assert other.axe == []


def test_searching_works_without_javascript(browser, demo):
    tab = browser.open(demo.one_time_link(), javaScriptEnabled=False)
    tab.goto("/search")
    tab.fill("#q", "battery")
    tab.click("noscript button, form button")
    assert "Battery thermal sums" in tab.call("textContent", "#hits")
