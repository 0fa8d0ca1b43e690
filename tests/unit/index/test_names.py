"""Names of notes, as they are compared."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from index.names import fold


@given(st.text(st.characters(max_codepoint=127)))
def test_a_name_of_plain_letters_folds_as_any_other_name(name):
    assert fold(name) == unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
