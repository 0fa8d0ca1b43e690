"""syncd/page/web/view.py: paths in an address, and the addresses that a redirect may lead to."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from starlette.requests import Request

from syncd.page.web.view import Visit, find_midnight, local_path, parse_number


def visit(query):
    """A visit of an address with this query."""
    app = SimpleNamespace(state=SimpleNamespace(settings=None, daemon=None))
    return Visit(Request({"type": "http", "query_string": query.encode(), "headers": [], "app": app, "session": None}))


@pytest.mark.parametrize(
    ("now", "days_ago", "midnight"),
    [
        (datetime(2026, 3, 29, 12), 0, datetime(2026, 3, 28, 23, tzinfo=UTC)),  # noqa: DTZ001 - a local time
        (datetime(2026, 3, 29, 1), 0, datetime(2026, 3, 28, 23, tzinfo=UTC)),  # noqa: DTZ001 - as above
        (datetime(2026, 10, 25, 12), 0, datetime(2026, 10, 24, 22, tzinfo=UTC)),  # noqa: DTZ001 - as above
        (datetime(2026, 3, 30, 12), 1, datetime(2026, 3, 28, 23, tzinfo=UTC)),  # noqa: DTZ001 - as above
    ],
)
def test_a_day_of_a_time_change_begins_at_its_own_midnight(monkeypatch, now, days_ago, midnight):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert find_midnight(now, days_ago) == midnight.timestamp() * 1000
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("address", ["//[", "/\\[", "//host/a", "https://host/", "a", "/a\n", ""])
def test_a_redirect_stays_on_the_page(address):
    assert local_path(address) == "/"


def test_a_redirect_keeps_path_and_query():
    assert local_path("/note?path=a%20b.md") == "/note?path=a%20b.md"


def test_a_path_keeps_its_spaces_and_its_bytes():
    shown = visit("path=%20a%20%20b.md%20&name=%20x%20&old=%E9.md")
    assert (shown.query_path("path"), shown.query("name")) == (" a  b.md ", "x")
    assert shown.query_path("old") == "\udce9.md"
    assert shown.query_path("missing") == ""


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), ("", None), ("-7", None), ("\u00b2", None), ("9" * 5_000, None)]
)
def test_a_number_has_few_digits(text, number):
    assert parse_number(text) == number
