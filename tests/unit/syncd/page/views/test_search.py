"""syncd/page/views/search.py: what was entered becomes the arguments of the operation."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from index.errors import InvalidArgument
from syncd.page.views.search import LIMIT, MORE, SearchForm, parse_day

EMPTY = SearchForm("heron", "all", "", "", "", "", "", "", "")


def given(**values):
    return {name: value for name, value in replace(EMPTY, **values).arguments().items() if value is not None}


def test_an_empty_field_restricts_nothing():
    assert given() == {"query": "heron", "scope": "all", "limit": LIMIT}
    assert not EMPTY.is_filtered


def test_fields_become_arguments():
    shown = given(scope="vault", folder="Projects", tag="a, b,", source="claude-code", type="note", all="1")
    assert shown == {
        "query": "heron", "scope": "vault", "folder": "Projects", "tags": ["a", "b"], "source": "claude-code", "type": "note", "limit": MORE,
    }  # fmt: skip


def test_both_days_are_included_in_the_time_of_this_machine():
    shown = given(since="2026-11-20", until="2026-11-20")
    first = datetime(2026, 11, 20).astimezone()
    assert shown["since"] == first.timestamp() * 1000
    assert shown["until"] == (first + timedelta(days=1)).timestamp() * 1000


@pytest.mark.parametrize("text", ["tomorrow", "2026-13-01", "9999-12-31", "2026-11-20T10:00"])
def test_another_text_is_no_day(text):
    with pytest.raises(InvalidArgument, match="is not a day"):
        parse_day(text, end=True)
