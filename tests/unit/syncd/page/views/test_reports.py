"""syncd/page/views/reports.py: messages about outcomes, and comparisons that are cut."""

from __future__ import annotations

from syncd.page.views.reports import ROWS, describe_answers, shorten
from syncd.page.web.text_comparison import compare_texts


def test_each_outcome_has_a_message():
    carried = [{"done": True, "said": "2 captures changed"}, {"done": False, "said": "Search has changed"}]
    assert describe_answers({"carried": carried, "dismissed": 1, "problem": "Git is busy"}) == [
        "Done: 2 captures changed.",
        "Not done: Search has changed.",
        "Dismissed 1 proposal; Memex does not ask again.",
        "Not done yet: Git is busy. Memex tries again by itself.",
    ]


def test_without_an_outcome_that_is_said():
    assert describe_answers({"carried": [], "dismissed": 0, "problem": ""}) == ["Nothing was carried out."]


def test_a_long_comparison_is_cut():
    left, right = ("\n".join(f"{side} {number}" for number in range(100)) for side in ("left", "right"))
    comparison = shorten(compare_texts(left, right))
    assert len(comparison.rows) == ROWS
    assert comparison.is_cut
    assert not shorten(compare_texts("a", "b")).is_cut
