"""Names of notes, as they are compared."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.names import fold, note_name, pluralize, spaced_words, stem


@given(st.text(st.characters(max_codepoint=127)))
def test_a_name_of_plain_letters_folds_as_any_other_name(name):
    assert fold(name) == unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


@pytest.mark.parametrize("name", ["Größe", "Größe.md", "GRÖSSE.MD", "gro\u0308ße.Md"])
def test_the_name_of_a_note_has_one_stem_with_and_without_an_ending_of_any_case(name):
    assert stem(f"Folder/{name}") == "grösse"


@pytest.mark.parametrize("path", ["Plan.md", "a.b/Plan.md", "Plan.MD", "Work/Plan"])
def test_the_name_of_a_note_has_neither_folder_nor_ending(path):
    assert note_name(path) == "Plan"


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [(1, "entry", "1 entry"), (2, "entry", "2 entries"), (2, "key", "2 keys"), (1200, "note", "1,200 notes")],
)
def test_a_count_has_its_noun_in_the_plural(count, noun, text):
    assert pluralize(count, noun) == text


@pytest.mark.parametrize(
    ("title", "text", "inside"),
    [
        ("Kubernetes pods crash", "Kubernetes: pods crash after the upgrade.", True),
        ("API", "The map is old.", False),
        ("\u5b89\u9759", "\u6211\u559c\u6b22\u5b89\u9759\u7684\u5730\u65b9\u3002", True),
        ("\U0001f389", "a party", False),
    ],
)
def test_a_title_is_in_a_text_whatever_marks_stand_between_its_words(title, text, inside):
    assert (spaced_words(title) in spaced_words(text)) is inside
