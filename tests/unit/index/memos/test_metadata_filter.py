"""index/memos/metadata_filter.py: what a filter lets pass, and what it lets be looked for first."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.memos.metadata_filter import count_nested, matches, passes, required_properties, required_substrings

TEXTS = st.text(max_size=8) | st.sampled_from(["é", "e\u0301", "\u212b", "Å", "A\u030a", "\u212a", "K"])
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "wanted", "passes"),
    [
        (1, 1, True), (1, 1.0, True), (1, True, False), (0, False, False), (True, True, True), (None, None, True),
        ("a", "a", True), ("a", "A", False), ("1", 1, False), ({}, {}, True), ({"a": 1}, {}, True), ([], {}, False),
        ([1, 2], [2, 1], True), ([1], [1, 1], True), ([1], 1, False), ([[1, 2]], [[2]], True), ({"a": 1}, {"b": 1}, False),
        ({"a": None}, {"a": None}, True), ({}, {"a": None}, False), ("Straße", {"contains": "STRASSE"}, True),
        ("é", {"contains": "e\u0301"}, True), ("abc", {"contains": ""}, True), (5, {"contains": "5"}, False),
        (["x", "abc"], {"contains": "B"}, True), ([["abc"]], {"contains": "b"}, False), ({"contains": "b"}, {"contains": "b"}, True),
        ({"contains": "abc"}, {"contains": "b"}, False), ("x", {"contains": 1}, False), ({"contains": 1}, {"contains": 1}, True),
        ([{"a": 1, "b": 2}], [{"a": 1}], True), ("x", {"contains": "x", "b": 1}, False),
        ("é", "e\u0301", True), ("e\u0301", "é", True), (["é"], ["e\u0301"], True), ("é", "e", False), ("\u212a", "K", False), ("K", "\u212a", False),
        ({"é": {"ö": 1}}, {"e\u0301": {"o\u0308": 1}}, True), ({"é": 1, "e\u0301": 2}, {"e\u0301": 1}, True), ({"é": 1}, {"e": 1}, False),
    ],
)  # fmt: skip
def test_a_filter_is_a_part_of_what_it_lets_pass(value, wanted, passes):
    assert matches(value, wanted) is passes


@given(st.lists(VALUES, max_size=6), st.lists(VALUES, max_size=3))
def test_a_list_passes_if_each_wanted_item_is_a_part_of_one_of_its_items(value, wanted):
    assert matches(value, wanted) is all(any(matches(item, expected) for item in value) for expected in wanted)


def test_thousands_of_texts_are_compared_with_thousands_in_a_moment():
    texts = [f"é{n}" for n in range(20_000)]
    began = time.process_time()
    assert matches(texts, texts[::-1])
    assert not matches(texts, [*texts, "more"])
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("wanted", "nested"),
    [
        ({}, 0),
        ({"a": {"b": {}}}, 0),
        ({"a": [1, "x", None]}, 0),
        ({"a": [{"b": 1}, [], 1], "c": {"d": [{}]}}, 3),
        ({"a": [[[1]]]}, 2),
    ],
)
def test_the_objects_and_lists_inside_lists_of_a_filter_are_counted(wanted, nested):
    assert count_nested(wanted) == nested


@given(VALUES)
def test_all_is_a_part_of_itself(value):
    assert matches(value, value)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.data())
def test_what_passes_holds_every_needle(value, data):
    wanted = data.draw(st.one_of(st.just(value), st.dictionaries(TEXTS, VALUES, max_size=2), parts(value)))
    stored = json.dumps(value, separators=(",", ":"))
    if matches(value, wanted):
        assert all(needle in stored for needle in required_substrings(wanted))


def parts(value):
    """Filters that `value` passes."""
    if isinstance(value, dict):
        return (
            st.dictionaries(st.sampled_from(sorted(value)), st.none(), max_size=3).flatmap(
                lambda keys: st.fixed_dictionaries({key: parts(value[key]) for key in keys})
            )
            if value
            else st.just({})
        )
    if isinstance(value, str) and value:
        return st.one_of(st.just(value), st.just({"contains": value[: len(value) // 2 + 1]}))
    return st.just(value)


@pytest.mark.parametrize(
    ("metadata", "wanted", "expected"),
    [
        ({"project": 1}, {"Project": 1}, True), ({"PROJECT": 1}, {"project": 1}, True), ({"a": 1, "A": 2}, {"a": 2}, True),
        ({"É": 1}, {"e\u0301": 1}, True), ({"\u212a": 1}, {"k": 1}, False), ({"a": {"B": 1}}, {"A": {"b": 1}}, False),
        ({"a": "X"}, {"A": "x"}, False), ({"a": 1}, {"a": 1, "b": 1}, False), ({"a": 1}, {}, True), ({"Contains": "x"}, {"contains": "x"}, True),
    ],
)  # fmt: skip
def test_a_property_has_one_name_in_any_letter_case(metadata, wanted, expected):
    assert passes(metadata, wanted) is expected


@given(st.dictionaries(TEXTS, VALUES, max_size=3), st.data())
def test_metadata_that_passes_has_the_required_properties(metadata, data):
    wanted = {key.swapcase(): value for key, value in data.draw(parts(metadata)).items()}
    if passes(metadata, wanted):
        stored = json.dumps(metadata, separators=(",", ":"))
        assert all(piece in stored.lower() for piece in required_properties(wanted))
        assert all(piece in stored for value in wanted.values() for piece in required_substrings(value))


@given(VALUES.filter(lambda value: isinstance(value, dict)), st.data())
def test_a_part_passes(value, data):
    assert matches(value, data.draw(parts(value)))
