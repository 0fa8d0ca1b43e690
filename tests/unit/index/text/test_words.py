"""index/text/words.py: the units of a text that are tokenized separately."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.text.words import PIECE, find_pieces


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Node.js isn't C++, C#", ["Node.js", "isn't", "C++", "C#"]),
        ("a_b-c+d & R&D", ["a_b-c+d", "R&D"]),
        ("l’image über 東京タワー", ["l’image", "über", "東京タワー"]),
        ("-x- #tag a..b", ["x", "tag", "a", "b"]),
    ],
)
def test_a_piece_is_a_word_or_a_run_of_a_script_without_spaces(text, pieces):
    assert find_pieces(text) == pieces


@given(st.text(st.one_of(st.sampled_from("aZ9._-+#&'/: \n\t\x1c"), st.characters(max_codepoint=127)), max_size=40))
def test_ascii_has_the_pieces_that_other_text_has(text):
    assert find_pieces(text) == PIECE.findall(text)
