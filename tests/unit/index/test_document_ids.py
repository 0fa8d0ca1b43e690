"""index/document_ids.py: ids are a function of the files."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.document_ids import ID, choose_owner, path_id
from index.names import append_advice, did_you_mean, fold, nearest_name, stem


def test_the_original_owns_its_id_before_its_copies():
    assert choose_owner(["Captures/w/A copy.md", "Captures/w/A.md", "Captures/w/A 1.md"]) == "Captures/w/A.md"


@given(st.lists(st.text(min_size=1), min_size=1, unique=True), st.randoms())
def test_the_owner_does_not_depend_on_the_order(paths, random):
    shuffled = paths.copy()
    random.shuffle(shuffled)
    assert choose_owner(shuffled) == choose_owner(paths)


@given(st.text())
def test_the_id_of_a_path_is_its_uuid(path):
    assert path_id(path) == str(uuid.uuid5(uuid.UUID("5b0c9d7e-52f4-4f5c-8d4a-6d1f0e8c7a31"), path))


@given(st.text())
def test_a_path_has_a_valid_id_of_its_own(path):
    assert ID.match(path_id(path))
    assert path_id(path) == path_id(path) != path_id(path + "x")


def test_an_id_ends_where_it_ends():
    assert not ID.match("abc\n")


def test_names_that_can_not_live_side_by_side_fold_alike():
    assert fold("Cafe\u0301") == fold("CAFÉ")
    assert stem("a/b/Straße.md") == fold("STRASSE")


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("serach", "search"),
        ("SEARCH", "search"),
        ("pump", "Heat pump filter of the cellar"),
        ("Heat pmup filter", "Heat pump filter of the cellar"),
        ("zzz", ""),
        ("", ""),
    ],
)
def test_the_nearest_name_is_spelled_alike_begins_alike_or_contains_it(wanted, near):
    assert nearest_name(wanted, ["search", "status", "Heat pump filter of the cellar"]) == near


def test_a_question_names_the_nearest_name():
    assert did_you_mean("serach", ["search"]) == '. Did you mean "search"?'
    assert did_you_mean("serach", []) == ""


def test_advice_follows_a_question_as_a_sentence_of_its_own():
    assert append_advice(did_you_mean("serach", ["search"]), "to list: x") == '. Did you mean "search"? To list: x'
    assert append_advice("", "to list: x") == "; to list: x"
