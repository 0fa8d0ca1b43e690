"""mcp_server/answers/list_page.py: the pages of a list, also of one that changes meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidArgument
from mcp_server.answers.list_page import cut_page
from tests.support.example_counts import examples

NAMES = st.lists(st.text(max_size=3), unique=True, max_size=30)


def walk(items, limit):
    found, cursor = [], None
    while True:
        page, cursor = cut_page(items, limit, cursor, str)
        found += page
        assert len(page) == limit or cursor is None
        if cursor is None:
            return found


@examples(30)
@given(NAMES, st.integers(1, 7))
def test_the_pages_hold_each_item_once_in_order(items, limit):
    assert walk(items, limit) == items


@examples(30)
@given(NAMES, NAMES, st.integers(1, 7))
def test_a_page_goes_on_behind_the_item_that_was_last_wherever_it_is_now(before, new, limit):
    page, cursor = cut_page(before, limit, None, str)
    if cursor is None:
        return
    after = [name for name in new if name not in before] + before
    assert cut_page(after, len(after), cursor, str) == (before[limit:], None)
    gone = [name for name in before if name != page[-1]]
    assert cut_page(gone, len(gone) + 1, cursor, str)[0] == before[limit:]


@pytest.mark.parametrize(
    "cursor", ["", "x", "1", "1-", "-1-0123456789abcdef", "1-0123456789abcdeg", "1-0123456789abcdef\n"]
)
def test_a_cursor_that_no_page_gave_is_refused(cursor):
    with pytest.raises(InvalidArgument, match="next_cursor"):
        cut_page(["a"], 1, cursor, str)


def test_a_cursor_of_a_list_that_is_gone_gives_nothing_and_no_error():
    assert cut_page([], 5, "999999999-0123456789abcdef", str) == ([], None)
    assert cut_page(["a"], 5, "0-0123456789abcdef", str) == (["a"], None)
