"""syncd/page/web/view.py: paths in an address, and the addresses that a redirect may lead to."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from starlette.requests import Request

from syncd.page.web.view import Visit, local_path, parse_number


def visit(query):
    """A visit of an address with this query."""
    app = SimpleNamespace(state=SimpleNamespace(settings=None, daemon=None))
    return Visit(Request({"type": "http", "query_string": query.encode(), "headers": [], "app": app, "session": None}))


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
