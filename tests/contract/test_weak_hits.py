"""A hit that shares little with the query is marked as weak, over every way to search."""

from __future__ import annotations

import pytest

from tests.support.live_server import running
from tests.support.mcp_agent import member


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


def test_a_weak_hit_is_marked_and_a_good_one_has_no_mark(rim):
    space = rim.space()
    space.capture("The heron gauge listens on port 8123 at the weir")
    space.capture("Bread needs flour, water, salt and time")
    for query, is_weak in (("heron gauge at the weir", False), ("quantum chromodynamics", True)):
        with member(space, "2026-07-28") as one:
            answers = [one.good(tool, query=query)["results"] for tool in ("semantic_search", "kb_search")]
        answers += [
            rim.rest("POST", route, json={"query": query}, headers=rim.headers(space.name)).json()["results"]
            for route in ("/search", "/api/v1/search")
        ]
        for hits in answers:
            assert hits, query
            assert [hit.get("weak", False) for hit in hits[:1]] == [is_weak]
            assert all(hit.get("weak", True) for hit in hits), "the mark is left out where it is not true"
