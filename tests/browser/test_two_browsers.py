"""Two browsers on one page: each shows what was decided in the other, and one can be signed out."""

from __future__ import annotations

import pytest


def test_a_decision_in_one_browser_shows_in_the_other(browser, demo):
    first, second = browser.open(demo.one_time_link()), browser.open(demo.one_time_link())
    demo.capture("Two browsers look at this note.")
    demo.capture("A second note, so that the queue stays.")
    first.goto("/review")
    first.wait("#card-title")
    title = first.call("textContent", "#card-title")
    second.goto("/review")
    second.wait(f'#queue a:text-is("{title}")')
    first.wait("body[data-settled]")
    first.press("d")
    first.wait('.message:has-text("Dismissed")')
    second.wait_gone(f'#queue a:text-is("{title}")')
    second.wait('#card:has-text("It no longer waits for a decision")')
    first.wait("body[data-settled]")
    first.press("u")
    second.wait(f'#queue a:text-is("{title}")')
    assert first.problems == second.problems == {}


@pytest.mark.slow
def test_one_browser_is_signed_out_and_the_other_stays(browser, demo):
    def sessions():
        return {session["id"] for session in demo.json("open", "--sessions")}

    first = browser.open(demo.one_time_link())
    known = sessions()
    second = browser.open(demo.one_time_link())
    (newest,) = sessions() - known
    demo.run("open", "--revoke", newest)
    second.wait('h1:has-text("no session")')
    demo.capture("Only one browser sees this note.")
    first.wait('#today a.path:has-text("Only one browser")')
