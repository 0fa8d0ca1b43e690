"""Every view of the page in its other states: nothing to show, a daemon that was killed under it, and one that is back."""

from __future__ import annotations

import signal

import pytest

from tests.support.page_browser import paged_daemon
from tests.support.page_views import PLACES

GONE = "The daemon does not run"


@pytest.fixture(scope="module")
def empty(browser, tmp_path_factory, models):
    """A daemon on an empty vault."""
    with paged_daemon(tmp_path_factory.mktemp("empty"), models) as memex:
        yield memex


@pytest.mark.slow
@pytest.mark.parametrize("view", [view for view in PLACES if PLACES[view].empty])
def test_an_empty_view_says_so_and_is_accessible(browser, empty, view):
    tab = browser.open(empty.one_time_link())
    tab.goto(PLACES[view].address.replace("?name=Heron", ""))
    assert PLACES[view].empty in tab.text
    assert tab.axe == []
    assert tab.problems == {}


@pytest.mark.slow  # tests/integration/test_page.py kills the daemon under one page
def test_every_open_view_reports_a_killed_daemon_and_continues_with_the_next(browser, demo):
    tabs = {view: browser.open(demo.one_time_link()) for view in PLACES}
    for view, tab in tabs.items():
        tab.goto(PLACES[view].address)
        tab.value("window.isOld = true")
    fresh = browser.open(demo.one_time_link())
    demo.stop(signal.SIGKILL)
    for tab in tabs.values():
        tab.wait(f'#connection:has-text("{GONE}")')
    for view in PLACES:
        fresh.goto(PLACES[view].address)
        assert GONE in fresh.text
    assert fresh.axe == []
    demo.serve()
    fresh.wait_gone(f'h1:has-text("{GONE}")')
    for view, tab in tabs.items():
        tab.wait_gone("#connection")
        assert tab.value("window.isOld"), view  # no reload
    assert tabs["home"].axe == []
    demo.capture("The daemon is back, and so are the views.")
    tabs["home"].wait('#today a.path:has-text("daemon is back")')
