"""index/query.py: what it promises, held on the real thing."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidArgument
from index.model import Filter, Query
from index.query import make_filter, make_query, tag_key, tag_keys, tag_of


@pytest.mark.parametrize(
    ("tag", "key"),
    [
        pytest.param("#A/B", "a/b", id="sign and case"),
        pytest.param(" Straße ", "strasse", id="full case folding"),
        pytest.param("e\u0301", "é", id="composed"),
        pytest.param("a//b/", "a/b", id="empty levels"),
        pytest.param("# R & D,\tc#1 / x -", "r-&-d-c-1/x", id="as it is stored"),
        pytest.param("日本/旅", "日本/旅", id="another script"),
        pytest.param("#", "", id="nothing"),
    ],
)
def test_tags_compare_without_sign_case_and_form(tag, key):
    assert tag_key(tag) == key


@given(st.text())
def test_a_tag_key_is_its_own_key(tag):
    assert tag_key(tag_key(tag)) == tag_key(tag)
    assert tag_key(unicodedata.normalize("NFD", tag)) == tag_key(unicodedata.normalize("NFC", tag))


@pytest.mark.parametrize(
    "tag", ["machine learning x", "R & D", "c, sharp", "#a #b", "long words " * 15, "collection: memory"]
)
def test_a_filter_finds_a_tag_by_the_text_that_was_stored(tag):
    restriction = make_filter(tags=[tag])
    assert set(restriction.tags) <= set(tag_keys([tag_of(tag)])) and (restriction.tags or restriction.collection)
    assert set(make_filter(tags=[tag_of(tag)]).tags) == set(restriction.tags)


def test_a_tag_of_any_length_is_found_by_its_text():
    for tag in ("x" * 101, "level/" * 25 + "end", "ß" * 120):
        assert set(make_filter(tags=[tag]).tags) <= set(tag_keys([tag]))


def test_tag_keys_hold_each_tag_and_those_above_it():
    assert tag_keys(["A/b", "a", "#c/d/e", ""]) == ("a", "a/b", "c", "c/d", "c/d/e")


def test_a_request_of_words_alone_has_the_defaults():
    assert make_query("  hybrid search ") == Query("hybrid search", 10, "hybrid", Filter())


def test_a_request_keeps_what_it_restricts():
    found = make_query(
        "x",
        limit=50,
        mode="text",
        workspace="work",
        namespace="alpha",
        collection="memory",
        tags=["#A/B", "a/b"],
        type="entity",
        source="codex",
        since="2026-01-01",
        until=1_800_000_000_000,
        any_tags=["C", "#d"],
    )
    where = Filter(
        "work", "alpha", "memory", ("a/b",), "entity", "codex", 1_767_225_600_000, 1_800_000_000_000, ("c", "d")
    )
    assert found == Query("x", 50, "text", where)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (0, 0),
        (-1, -1),
        ("0", 0),
        ("1700000000000", 1_700_000_000_000),
        ("2026-11-20", 1_795_132_800_000),
        ("20261120", 1_795_132_800_000),
        ("-100000000", -100_000_000),
        ("2026-11-20T10:00:00Z", 1_795_168_800_000),
        ("2026-11-20T12:00:00.5+02:00", 1_795_168_800_500),
        ("1969-12-31T23:59:59.999", -1),
    ],
)
def test_a_time_is_milliseconds_or_iso_text(given, wanted):
    assert make_query("x", since=given).filter.since == wanted


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        pytest.param("query", {"text": " "}, id="no words"),
        pytest.param("query", {"text": " \u200b\u2060"}, id="no visible words"),
        pytest.param("query", {"text": "\u3164"}, id="a filler alone"),
        pytest.param("tags", {"tags": ["\u200b"]}, id="an invisible tag"),
        pytest.param("workspace", {"workspace": "\ufeff"}, id="an invisible workspace"),
        pytest.param("query", {"text": "x" * 2_001}, id="too many words"),
        pytest.param("query", {"text": 7}, id="not words"),
        pytest.param("query", {"text": "a\ud800"}, id="half a character"),
        pytest.param("limit", {"limit": 0}, id="no hits"),
        pytest.param("limit", {"limit": 51}, id="too many hits"),
        pytest.param("limit", {"limit": True}, id="a truth is no number"),
        pytest.param("limit", {"limit": 2.0}, id="a fraction"),
        pytest.param("mode", {"mode": "fuzzy"}, id="unknown mode"),
        pytest.param("mode", {"mode": []}, id="a list is no mode"),
        pytest.param("collection", {"collection": "docs"}, id="unknown collection"),
        pytest.param("type", {"type": "memo"}, id="unknown type"),
        pytest.param("tags", {"tags": "a"}, id="tags as text"),
        pytest.param("tags", {"tags": ["#"]}, id="an empty tag"),
        pytest.param("tags", {"tags": ["a"] * 33}, id="too many tags"),
        pytest.param("any_tags", {"any_tags": ["a", "#"]}, id="an empty tag of any"),
        pytest.param("workspace", {"workspace": ""}, id="empty workspace"),
        pytest.param("since", {"since": "yesterday"}, id="no time"),
        pytest.param("since", {"since": True}, id="a truth is no time"),
        pytest.param("since", {"since": "2024"}, id="a year is no time"),
        pytest.param("since", {"since": "20241301"}, id="no such day"),
        pytest.param("until", {"until": 2**60}, id="beyond all time"),
        pytest.param("until", {"until": "9" * 20}, id="beyond all time as text"),
        pytest.param("since", {"since": 2, "until": 2}, id="nothing between"),
    ],
)
def test_a_mistake_is_named_by_its_field(field, fields):
    with pytest.raises(InvalidArgument) as caught:
        make_query(**{"text": "x"} | fields)
    assert caught.value.details["field"] == field
    assert field in caught.value.message


def test_an_unknown_collection_is_answered_with_the_known_ones():
    for asked in ({"collection": "notes"}, {"tags": ["collection:notes"]}):
        with pytest.raises(InvalidArgument, match="documents, memory, workspace") as refused:
            make_query("x", **asked)
        assert refused.value.details == {"field": "collection", "collections": ["documents", "memory", "workspace"]}
    assert make_query("x", collection="Notes", collections=("documents", "notes")).filter.collection == "notes"


def test_a_tag_names_a_collection_too():
    assert make_query("x", tags=["a", "#Collection:Memory"]).filter == Filter(collection="memory", tags=("a",))
    assert make_query("x", tags=["collection:memory"], collection="memory").filter == Filter(collection="memory")
    with pytest.raises(InvalidArgument, match="in one collection"):
        make_query("x", tags=["collection:memory"], collection="workspace")
    with pytest.raises(InvalidArgument, match="give it as collection"):
        make_query("x", any_tags=["a", "collection:memory"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda one: st.lists(one) | st.dictionaries(st.text(), one),
)
FIELDS = (
    "limit",
    "mode",
    "workspace",
    "namespace",
    "collection",
    "tags",
    "any_tags",
    "type",
    "source",
    "since",
    "until",
)


@pytest.mark.slow
@given(JSON, st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_whatever_is_asked_gives_a_query_or_invalid_argument(text, fields):
    try:
        found = make_query(text, **fields)
    except InvalidArgument:
        return
    assert 1 <= len(found.text) <= 2_000
    assert 1 <= found.limit <= 50
