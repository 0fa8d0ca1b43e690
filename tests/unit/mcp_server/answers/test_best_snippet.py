"""The piece of a passage that answers best."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.answers.best_snippet import cut_snippet

LONG = " ".join(f"word{n}" for n in range(200))


@given(st.text(max_size=400), st.text(max_size=40), st.integers(3, 200))
def test_a_piece_is_a_slice_of_its_passage_no_longer_than_asked_for(passage, query, size):
    told = cut_snippet(passage, query, size)
    assert len(told) <= size or told == passage.strip()
    inner = told.removeprefix("…") if told.startswith("…") and not passage.strip().startswith("…") else told
    inner = inner.removesuffix("…") if inner not in passage else inner
    assert inner in passage


def test_a_passage_that_fits_is_whole():
    assert cut_snippet("  as it is\n", "is", 8) == "as it is"


@pytest.mark.parametrize(
    ("query", "word"),
    [
        pytest.param("word0", "word0 ", id="at its begin"),
        pytest.param("where is WORD150?", " word150 ", id="in the midst, letter case aside"),
        pytest.param("word199", " word199", id="at its end"),
        pytest.param("word7 nothing word120 word121 word122", " word121 ", id="where the most words stand together"),
    ],
)
def test_it_is_cut_around_the_words_of_the_query(query, word):
    told = cut_snippet(LONG, query, 80)
    assert word in f" {told} "
    assert told.startswith("…") == ("word0 " not in told)
    assert told.endswith("…") == (not told.endswith("word199"))
    assert all(part in LONG.split() for part in told.strip("…").split())


def test_it_is_found_in_a_script_without_blanks():
    passage = "これは長い前書きで、何も言いません。" * 10 + "重要なのは検索の速度です。" + "これは後書きです。" * 10
    assert "検索の速度" in cut_snippet(passage, "検索の速度", 40)


def test_a_passage_without_the_words_is_told_from_its_begin():
    assert cut_snippet(LONG, "zebra", 30).startswith("word0 word1")
