"""Names of notes, as they are compared."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.names import fold, pluralize


@given(st.text(st.characters(max_codepoint=127)))
def test_a_name_of_plain_letters_folds_as_any_other_name(name):
    assert fold(name) == unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [(1, "entry", "1 entry"), (2, "entry", "2 entries"), (2, "key", "2 keys"), (1200, "note", "1,200 notes")],
)
def test_a_count_has_its_noun_in_the_plural(count, noun, text):
    assert pluralize(count, noun) == text
