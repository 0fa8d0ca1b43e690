"""A note as a node: its name, its properties, its ordinals, what is wrong with it, and what its words may be."""

import pytest

from index.errors import InvalidArgument
from index.model import Observation
from syncd.documents.entity_node import (
    checked_content,
    checked_kind,
    checked_name,
    checked_type,
    format_link,
    read_node,
)
from tests.support.parsed_notes import parse

PATH = "Captures/default/Entities/Ada Lovelace.md"


def said(body="", path=PATH, **own):
    return read_node(own, body, path)[0]


def defects(body="", **own):
    return [defect.name for defect in read_node(own, body, PATH)[1]]


def ordinals(body, **own):
    found = said(body, **own)
    return [one.ordinal for one in found.observations], found.last_ordinal, found.unsettled


@pytest.mark.parametrize(
    ("body", "last", "found"),
    [
        pytest.param("", None, ([], 0, False), id="nothing"),
        pytest.param("", 4, ([], 4, False), id="all deleted"),
        pytest.param("- a ^o1\n- b ^o2\n", 2, ([1, 2], 2, False), id="settled"),
        pytest.param("- a ^o1\n- b ^o2\n", 5, ([1, 2], 5, False), id="some deleted"),
        pytest.param("- a ^o1\n- b ^o2\n", None, ([1, 2], 2, True), id="not on record"),
        pytest.param("- a ^o1\n- b\n- c\n", 3, ([1, 4, 5], 5, True), id="new ones"),
        pytest.param("- b\n- a ^o7\n- c\n", 3, ([7, 8, 9], 9, True), id="new ones, and one beyond the record"),
        pytest.param("- a ^o2\n- b ^o2\n- c ^o2\n", 2, ([2, 3, 4], 4, True), id="copies"),
        pytest.param("- ^o2\n- b ^o2\n", 2, ([2], 2, False), id="moved into a line of its own"),
        pytest.param("- ^o9\n- b\n", 2, ([10], 10, True), id="behind one that was emptied"),
    ],
)
def test_an_observation_has_the_ordinal_it_states_or_the_next(body, last, found):
    own = {} if last is None else {"last_ordinal": last}
    assert ordinals("## Observations\n" + body, **own) == found


def test_observations_are_in_the_order_of_their_ordinals():
    found = said("## Observations\n- c ^o3\n- a ^o1\n", last_ordinal=3)
    assert found.observations == (Observation(1, "a"), Observation(3, "c"))


@pytest.mark.parametrize(
    ("body", "own", "found"),
    [
        ("", {}, []),
        ("## Observations\n- a ^o2\n- b ^o2\n- c ^o3\n- d ^o3\n", {"last_ordinal": 3}, ["repeated-ordinal"]),
        ("## Facts\n- a ^o1\n- b ^o2\n", {"last_ordinal": 2}, ["stray-ordinals"]),
        ("## Observations\n\n## Archive\n- a ^o1\n", {"last_ordinal": 1}, []),  # taken out on purpose
        ("## Facts\n- a\n- see ^o1 there\n", {"last_ordinal": 2}, []),
        ("", {"last_ordinal": "many"}, ["bad-last-ordinal"]),
        ("", {"last_ordinal": -1}, ["bad-last-ordinal"]),
        ("", {"last_ordinal": True}, ["bad-last-ordinal"]),
        ("", {"last_ordinal": 10**12}, ["bad-last-ordinal"]),
        ("## Observations\n- a\n", {"last_ordinal": 10**12 - 1}, ["ordinals-spent"]),
        ("", {"name": ["a"]}, ["bad-name"]),
        ("", {"name": "a\nb"}, ["bad-name"]),
        ("", {"name": "x" * 257}, ["bad-name"]),
        ("", {"observed_at": "yesterday", "summary_updated_at": []}, ["bad-date", "bad-date"]),
    ],
)
def test_what_is_wrong_is_told(body, own, found):
    assert sorted(defects(body, **own)) == found


def test_properties_are_found_whatever_their_letter_case():
    found = said(Name=" Ada  Lovelace ", Entity_Type="person ", LAST_ORDINAL=3, observed_at="2026-09-21T14:13:20Z")
    assert (found.name, found.entity_type, found.last_ordinal) == ("Ada  Lovelace", "person", 3)
    assert (found.observed_at, found.summary_updated_at) == (1_790_000_000_000, None)


@pytest.mark.parametrize(
    ("path", "own", "name"),
    [
        (PATH, {}, "Ada Lovelace"),
        (PATH, {"name": "Ada: Countess"}, "Ada: Countess"),
        (PATH, {"name": 1815}, "1815"),
        (PATH, {"name": ""}, "Ada Lovelace"),
        (PATH, {"name": None}, "Ada Lovelace"),
        ("Captures/w/Entities/Cafe\u0301.MD", {}, "Caf\xe9"),
        ("Captures/w/Entities/v1.2.md", {}, "v1.2"),
    ],
)
def test_a_node_has_the_name_it_states_or_its_file_s(path, own, name):
    assert said(path=path, **own).name == name


@pytest.mark.parametrize(
    ("path", "text", "there"),
    [
        (PATH, "", True),
        ("Captures/default/Ada.md", "---\ntype: entity\n---\n", True),
        ("Captures/default/deep/er/Entities/Ada.md", "", True),
        (PATH, "---\ntype: note\n---\n", False),
        ("Captures/default/Ada.md", "", False),
        ("People/Entities/Ada.md", "---\ntype: entity\n---\n", False),
        ("Captures/Reports/Entities/Ada.md", "---\ntype: entity\n---\n", False),
    ],
)
def test_only_a_capture_of_type_entity_is_a_node(path, text, there):
    assert (parse(text.encode(), path, mtime_ms=0).node is not None) is there


def test_a_document_of_a_node_keeps_the_node_s_own_properties_out_of_its_metadata():
    text = "---\nname: A\nEntity_type: b\nlast_ordinal: 1\nobserved_at: 2026\nsummary_updated_at: x\nborn: 1815\n---\n"
    document = parse(text.encode(), PATH, mtime_ms=0)
    assert document.metadata == {"born": 1815}
    assert [defect.name for defect in document.defects] == ["bad-date", "bad-date"]
    assert "name" in parse(text.encode(), "Captures/default/A.md", mtime_ms=0).metadata


def test_what_is_searched_of_a_node_has_no_ordinals():
    text = "## Observations\n- a fact ^o1\n- two\n  lines\n  ^o2\n- linked ^o3 ^abc\n\n## Sources\n- page ^o3\n"
    document = parse(text.encode(), PATH, mtime_ms=0)
    assert document.text == "## Observations\n- a fact\n- two\n  lines\n \n- linked\n\n## Sources\n- page ^o3\n"
    assert document.content == text


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (" Ada  Lovelace\t", "Ada  Lovelace"),
        ("Cafe\u0301", "Caf\xe9"),
        ("x" * 256, "x" * 256),
        ('/:#^[]|%%?*"<>', '/:#^[]|%%?*"<>'),
        ("👩🏽‍🚀 \u200fעברית", "👩🏽‍🚀 \u200fעברית"),
    ],
)
def test_a_name_may_be_almost_anything_on_one_line(given, kept):
    assert checked_name(given) == kept


@pytest.mark.parametrize(
    "given",
    [
        "",
        " ",
        "\u3000",
        "\u200b \u2060",
        "\u3164",
        "x" * 257,
        "a\nb",
        "a\rb",
        "a\0b",
        "a\u2028b",
        "a\x85b",
        "\ud800",
        None,
        7,
    ],
)
def test_a_name_that_is_no_line_of_text_is_refused(given):
    with pytest.raises(InvalidArgument, match="name must be one line of 1 to 256 visible characters"):
        checked_name(given)


@pytest.mark.parametrize(
    "given",
    [
        *("", " ", "\u200b", "x" * 101, "a\nb", "a::b", "a:", "[a", "a]", "`a`", "a %% b", "a <!-- b", "\ud800", None),
        *("~~~", "~~~~ a", "- ~~~a", "> 1. ~~~"),  # the line would begin a code block
    ],
)
def test_a_type_that_would_be_read_as_something_else_is_refused(given):
    with pytest.raises(InvalidArgument):
        checked_type(given)


def test_types_and_kinds_are_kept_in_normal_form():
    assert checked_type(" cafe\u0301: of | - # ") == "caf\xe9: of | - #"
    assert [checked_type(text) for text in ("a ~~~", "~~a~~", "- a", "> a")] == ["a ~~~", "~~a~~", "- a", "> a"]
    assert checked_kind(" cafe\u0301 ") == "caf\xe9"
    with pytest.raises(InvalidArgument, match="entity_type"):
        checked_kind("x" * 101)


@pytest.mark.parametrize("given", ["", " \n\u3000", "\u200b\n\u200d", "x" * 10_001, "a\0b", "\ud800", None, 3])
def test_an_observation_that_is_no_text_of_its_length_is_refused(given):
    with pytest.raises(InvalidArgument):
        checked_content(given)


def test_an_observation_is_kept_as_it_is_given_but_for_its_edges_and_line_ends():
    assert checked_content(" \r\na \r\n\r\n\tb\rc\u2028\u3000d\n ") == "a \n\n\tb\nc\u2028\u3000d"
    assert checked_content(" " + "x" * 10_000) == "x" * 10_000


@pytest.mark.parametrize(
    ("stem", "name", "text"),
    [
        ("Ada", "Ada", "Ada"),
        ("Ada 2", "Ada", "Ada 2|Ada"),
        ("a b", "a/b", "a b|a/b"),
        ("a b", "[[a|b]]", "a b|a b"),
        ("Entity", "[[]]", "Entity"),
    ],
)
def test_a_link_shows_the_name_where_the_file_has_another(stem, name, text):
    assert format_link(stem, name) == text


def test_of_several_spellings_the_exact_one_counts_and_then_the_first():
    def read(values):
        return read_node(values, "", "x.md")[0].name

    assert read({"Name": "a", "name": "b", "NAME": "c"}) == "b"
    assert read({"Name": "a", "NAME": "c"}) == "a"
