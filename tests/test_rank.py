"""index/search/fusion.py: what it promises, held on the real thing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.search.fusion import cue, fused, keywords, nearest, trust
from index.storage.chunk_rows import Match


def match(doc_id: str, value: float, passage: str = "some words", *, context: str = "Title", ord: int = 0) -> Match:
    text = f"{context}\n{passage}"
    return Match(doc_id, ord, "w", "", len(context) + 1, text, value)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        pytest.param("When did Ada meet her publisher?", "Ada meet publisher?", id="a question"),
        pytest.param("what is a vector index", "a vector index", id="a question without its mark"),
        pytest.param("How to deploy", "How to deploy", id="a title"),
        pytest.param("can opener", "can opener", id="a phrase"),
        pytest.param("Who did Will meet at the WHO?", "Will meet at the WHO?", id="names that look like scaffolding"),
        pytest.param("Who is it?", "Who is it?", id="scaffolding only"),
        pytest.param("日本で梅雨がないのは北海道とどこか。", "日本で梅雨がない 北海道と", id="Japanese"),
        pytest.param("どこでもドア", "どこでもドア", id="a Japanese title"),
        pytest.param("何ですか？", "何ですか？", id="Japanese scaffolding only"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_full_text_is_asked_for_what_an_answer_would_hold(asked, wanted):
    assert keywords(asked) == wanted


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        pytest.param("hybrid search engines", (" hybrid search", " search engine"), id="words"),
        pytest.param("東京の夜", ("東京", "京の", "の夜"), id="characters"),
        pytest.param("Python で検索", ("で検", "検索"), id="mixed"),
        pytest.param("word", (), id="one word"),
    ],
)
def test_neighbours_are_words_or_characters(text, pairs):
    assert cue(text).pairs == pairs


@pytest.mark.parametrize(
    ("tokens", "text", "wanted"),
    [
        pytest.param(4, "how do notes work", 1.0, id="known words"),
        pytest.param(6, "検索の設計書", 0.0, id="one token a character"),
        pytest.param(13, "abcdefghij0123456789", 0.5, id="between"),
        pytest.param(1, "", 0.0, id="nothing"),
    ],
)
def test_a_vector_is_trusted_where_the_encoder_knows_the_words(tokens, text, wanted):
    assert trust(tokens, text) == pytest.approx(wanted)


def test_both_legs_count():
    near = [match("a", 0.9), match("b", 0.1)]
    words = [match("b", 4.0), match("a", 3.9)]
    assert [one.doc_id for one in fused(cue("zebra"), near, words, 1.0)] == ["a", "b"]
    assert [one.doc_id for one in fused(cue("zebra"), near, words, 0.0)] == ["b", "a"]


def test_a_document_stands_once_by_its_best_passage():
    words = [match("a", 5.0, "five", ord=1), match("a", 9.0, "nine", ord=2), match("b", 7.0)]
    found = fused(cue("zebra"), [], words, 0.0)
    assert [(one.doc_id, one.ord, one.chunk) for one in found] == [("a", 2, "nine"), ("b", 0, "some words")]


def test_words_side_by_side_count_more_than_words_apart():
    words = [match("apart", 5.0, "search is not hybrid"), match("beside", 5.0, "a hybrid, search")]
    assert fused(cue("hybrid search"), [], words, 0.0)[0].doc_id == "beside"


def test_a_heading_that_the_query_names_counts():
    words = [
        match("a", 5.0, context="A > Other things"),
        match("z", 5.0, context="Z > Storage engine"),
        match("y", 5.0, "## Storage engine\nx"),
    ]
    assert {one.doc_id for one in fused(cue("storage engine"), [], words, 0.0)[:2]} == {"y", "z"}


@pytest.mark.parametrize("context", ["Ada Lovelace", "ada  lovelace > Life", "Notes on Ada · Ada Lovelace > Life"])
def test_a_note_whose_title_or_alias_is_the_query_stands_first(context):
    words = [
        match("best", 90.0, "Ada Lovelace Ada Lovelace", context="Ada Lovelace's house"),
        match("named", 0.5, context=context),
    ]
    assert fused(cue("Ada Lovelace"), [match("best", 0.99)], words, 1.0)[0].doc_id == "named"


def test_a_score_does_not_depend_on_the_other_hits():
    alone = fused(cue("one two"), [match("a", 0.5)], [match("a", 5.0)], 1.0)
    among = fused(cue("one two"), [match("b", 0.9), match("a", 0.5)], [match("b", 50.0), match("a", 5.0)], 1.0)
    assert alone[0].score == among[-1].score


def test_the_vector_leg_alone_scores_by_cosine():
    assert [(one.doc_id, one.score) for one in nearest([match("a", 0.25), match("b", 1.000001), match("c", -0.5)])] == [
        ("b", 1.0),
        ("a", 0.25),
        ("c", 0.0),
    ]


LEG = st.lists(
    st.builds(
        match,
        st.sampled_from("abcde"),
        st.floats(-1, 200),
        st.text(max_size=30),
        context=st.text(max_size=20),
        ord=st.integers(0, 2),
    ),
    max_size=12,
)


@given(st.text(), LEG, LEG, st.floats(0, 1))
def test_scores_fall_from_one_to_nought_and_no_document_is_lost_or_doubled(text, near, words, weight):
    found = fused(cue(text), near, words, weight)
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert sorted(one.doc_id for one in found) == sorted({one.doc_id for one in (*near, *words)})


@given(LEG, LEG, st.randoms())
def test_the_order_of_the_legs_does_not_matter(near, words, random):
    near = list({(one.doc_id, one.ord): one for one in near}.values())
    words = list(
        {
            (one.doc_id, one.ord): one
            for one in words
            if (one.doc_id, one.ord) not in {(n.doc_id, n.ord) for n in near}
        }.values()
    )
    before = fused(cue("one two"), near, words, 1.0)
    random.shuffle(near)
    random.shuffle(words)
    assert fused(cue("one two"), near, words, 1.0) == before
