"""index/search/fusion.py: what it promises, held on the real thing."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.model import Hit, Record
from index.search.fusion import (
    choose_linked,
    fuse,
    keywords,
    make_cue,
    place_below_successors,
    rank_by_vector,
    vector_trust,
)
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
        pytest.param("can it open", "open", id="a question of three words without its mark"),
        pytest.param(
            "birds where were they seen", "birds where were they seen", id="no question: the second word asks"
        ),
        pytest.param("birds fly over what", "birds fly over what", id="no question: the last word asks"),
        pytest.param("the birds were seen", "the birds were seen", id="no question: a verb later on"),
        pytest.param("birds are seen", "birds are seen", id="no question: a verb in the second place"),
        pytest.param("why birds are seen", "why birds are seen", id="no question: its second word is no verb"),
        pytest.param("Ada met her publisher?", "Ada met publisher?", id="a question by its mark alone"),
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
        pytest.param(
            "東京 Python tutorials", (" python tutorial", "東京"), id="a word after characters is no neighbour"
        ),
        pytest.param(
            "bus gas class notes", (" bus gas", " gas class", " class note"), id="what ends in s is not always many"
        ),
        pytest.param("word", (), id="one word"),
    ],
)
def test_neighbours_are_words_or_characters(text, pairs):
    assert make_cue(text).pairs == pairs


@pytest.mark.parametrize(
    ("tokens", "text", "wanted"),
    [
        pytest.param(4, "how do notes work", 1.0, id="known words"),
        pytest.param(6, "検索の設計書", 0.0, id="one token a character"),
        pytest.param(10, "abcdefghij0123456789", 1.0, id="half a token a letter"),
        pytest.param(11, "abcdefghij0123456789", 5 / 6, id="a little more"),
        pytest.param(13, "abcdefghij 0123456789", 0.5, id="between, and blanks are no letters"),
        pytest.param(15, "abcdefghij0123456789", 1 / 6, id="hardly"),
        pytest.param(16, "abcdefghij0123456789", 0.0, id="four fifths of a token a letter"),
        pytest.param(1, "", 0.0, id="nothing"),
    ],
)
def test_a_vector_is_trusted_where_the_encoder_knows_the_words(tokens, text, wanted):
    assert vector_trust(tokens, text) == pytest.approx(wanted)


# Each score is counted out by hand: the band below 0.9, the sum of the evidence, the sum of the weights at hand.
ONE_WORD = 1.0 + 0.2  # BM25 and names
BOTH_LEGS = ONE_WORD + 0.5
SEVERAL = 0.15 + 0.1  # pairs and the share of the words, for a query of several words
# The share of two words, one of which the only passage has: each weighs log(1 + (passages - n + .5) / (n + .5)), n have it.
ONE_OF_TWO = math.log(4 / 3) / (math.log(4 / 3) + math.log(4))
SCORES = [
    pytest.param("zebra", [], [match("a", 10)], 1.0, 0.9 * 0.5 / ONE_WORD, id="a BM25 score of 10 counts half"),
    pytest.param(
        "zebra", [], [match("a", 30)], 1.0, 0.9 * 0.75 / ONE_WORD, id="three times as much counts three quarters"
    ),
    pytest.param("zebra", [], [match("a", -3)], 1.0, 0.0, id="less than none counts nothing"),
    pytest.param("zebra", [match("a", 0.8)], [], 1.0, 0.9 * 0.5 * 0.8 / BOTH_LEGS, id="a vector alone"),
    pytest.param("zebra", [match("a", 1.5)], [], 1.0, 0.9 * 0.5 / BOTH_LEGS, id="a cosine over 1 is 1"),
    pytest.param("zebra", [match("a", -0.5)], [], 1.0, 0.0, id="a vector that points away counts nothing"),
    pytest.param("zebra", [match("a", 0.8)], [], 0.5, 0.9 * 0.25 * 0.8 / (ONE_WORD + 0.25), id="a vector half trusted"),
    pytest.param("zebra", [match("a", 0.8)], [match("a", 10)], 0.0, 0.9 * 0.5 / ONE_WORD, id="a vector not trusted"),
    pytest.param("zebra", [match("a", 0.8)], [match("a", 10)], 1.0, 0.9 * (0.5 + 0.4) / BOTH_LEGS, id="both legs"),
    pytest.param(
        "hybrid search engines",
        [],
        [match("a", 10, "a hybrid search, for engines")],
        1.0,
        0.9 * (0.5 + 0.15 * 1 / 2 + 0.1) / (ONE_WORD + SEVERAL),
        id="one pair of two, and all words",
    ),
    pytest.param(
        "hybrid search engines",
        [match("a", 0.8, "a hybrid-search engine")],
        [match("a", 10, "a hybrid-search engine")],
        1.0,
        0.9 * (0.5 + 0.4 + 0.15 + 0.1) / (BOTH_LEGS + SEVERAL),
        id="all pairs, all words, and both legs",
    ),
    pytest.param(
        "hybrid engines",
        [],
        [match("a", 10, "an engine is not anhybrid")],
        1.0,
        0.9 * (0.5 + 0.1 * ONE_OF_TWO) / (ONE_WORD + SEVERAL),
        id="one word of two; a word begins where a word begins",
    ),
    pytest.param(
        "hybrid engines",
        [],
        [match("a", 10, "engines\nhybrid")],
        1.0,
        0.9 * (0.5 + 0.1) / (ONE_WORD + SEVERAL),
        id="a line begins with a word",
    ),
    pytest.param(
        "engine",
        [],
        [match("a", 10, context="Z > Storage engines")],
        1.0,
        0.9 * (0.5 + 0.2 * 1 / 2) / ONE_WORD,
        id="half of a heading of the trail",
    ),
    pytest.param(
        "engine",
        [],
        [match("a", 0, "text\n## The storage engine ##\nmore")],
        1.0,
        0.9 * 0.2 * 1 / 3 / ONE_WORD,
        id="a third of a heading of the text",
    ),
    pytest.param(
        "engine",
        [],
        [match("a", 0, context="Old · Steam engine > Engine room door")],
        1.0,
        0.9 * 0.2 * 1 / 2 / ONE_WORD,
        id="the name that shares most counts",
    ),
    pytest.param(
        "bikes",
        [],
        [match("a", 0, context="Bike room")],
        1.0,
        0.9 * 0.2 * 1 / 2 / ONE_WORD,
        id="one and many are a word",
    ),
    pytest.param(
        "cats", [], [match("a", 0, context="Cat room")], 1.0, 0.9 * 0.2 * 1 / 2 / ONE_WORD, id="four letters and many"
    ),
    pytest.param("東京", [], [match("a", 0, context="東大")], 1.0, 0.0, id="one character is not enough of two"),
    pytest.param("gas", [], [match("a", 0, context="Ga room")], 1.0, 0.0, id="three letters are not many"),
    pytest.param("class", [], [match("a", 0, context="Clas room")], 1.0, 0.0, id="two s are not many"),
    pytest.param(
        "東京都",
        [],
        [match("a", 0, context="東京")],
        1.0,
        0.9 * (0.2 * 1 / 2 + 0.15 * 1 / 2 + 0.1 * ONE_OF_TWO) / (ONE_WORD + SEVERAL),
        id="characters by twos",
    ),
    pytest.param("京", [], [match("a", 0, context="京 東")], 1.0, 0.9 * 0.2 * 1 / 2 / ONE_WORD, id="a character alone"),
    pytest.param(
        "café", [], [match("a", 0, context="Cafés > 東 x")], 1.0, 0.9 * 0.2 / ONE_WORD, id="a word with an accent"
    ),
    pytest.param(
        "engine",
        [],
        [match("a", 0, "# Engine\nx", context="Title")],
        1.0,
        0.9 * 0.2 / ONE_WORD,
        id="a heading begins the text",
    ),
    pytest.param(
        "engine",
        [],
        [Match("a", 0, "w", "", 0, "# Engine\nx", 0)],
        1.0,
        0.9 * 0.2 / ONE_WORD,
        id="and where nothing stands before the text",
    ),
    pytest.param("zebra", [], [match("a", 0, context="Zebra")], 1.0, 0.9 + 0.1 * 0.2 / ONE_WORD, id="the title itself"),
    pytest.param(
        "zebra",
        [match("a", 1.0, context="Zebras")],
        [match("a", 0, context="Zebras")],
        1.0,
        0.9 * (0.2 + 0.5) / BOTH_LEGS,
        id="the title in another form is a name, and not the title itself",
    ),
]


@pytest.mark.parametrize(("query", "near", "words", "trust", "wanted"), SCORES)
def test_a_score_is_the_weighted_mean_of_its_evidence(query, near, words, trust, wanted):
    assert fuse(make_cue(query), near, words, trust)[0].score == pytest.approx(wanted, abs=1e-12)


def test_a_passage_that_only_words_found_is_as_near_as_the_farthest_that_is_near():
    ranked = fuse(make_cue("zebra"), [match("a", 0.8), match("b", 0.4)], [match("c", 10)], 1.0)
    scores = {document.doc_id: document.score for document in ranked}
    assert scores == {
        "a": pytest.approx(0.9 * 0.4 / BOTH_LEGS),
        "b": pytest.approx(0.9 * 0.2 / BOTH_LEGS),
        "c": pytest.approx(0.9 * (0.5 + 0.2) / BOTH_LEGS),
    }


def test_a_time_that_the_query_names_counts_as_much_as_it_is_given():
    words = [match("then", 10), match("later", 10)]
    ranked = fuse(make_cue("zebra"), [], words, 0.0, dated={"then"}, date_weight=0.1)
    assert {document.doc_id: document.score for document in ranked} == {
        "then": pytest.approx(0.9 * (0.5 + 0.1) / (ONE_WORD + 0.1)),
        "later": pytest.approx(0.9 * 0.5 / (ONE_WORD + 0.1)),
    }


def test_the_worst_note_that_the_query_is_the_title_of_stands_before_the_best_other():
    words = [
        match("best", 1e9, "Ada Lovelace", context="Ada Lovelaces"),
        match("named", 0, "x", context="Ada Lovelace"),
    ]
    ranked = fuse(make_cue("ada lovelace"), [match("best", 1.0, "Ada Lovelace", context="Ada Lovelaces")], words, 1.0)
    assert [document.doc_id for document in ranked] == ["named", "best"]
    assert ranked[1].score < 0.9 <= ranked[0].score


@pytest.mark.parametrize(
    ("query", "context", "is_named"),
    [
        pytest.param("settings > general", "Settings > General", True, id="a title"),
        pytest.param("settings > general", "Settings > General > Part", True, id="a title with a heading"),
        pytest.param("Settings  >  General", "Settings > General · Options", True, id="a title with an alias"),
        pytest.param("cats · dogs", "Pets · Cats · Dogs · Mice > Part", True, id="an alias"),
        pytest.param("general > part", "Settings > General > Part", False, id="headings"),
        pytest.param("settings > gen", "Settings > General", False, id="a beginning"),
    ],
)
def test_a_note_whose_name_contains_a_separator_comes_first_too(query, context, is_named):
    words = [match("best", 1e9, f"{query}, {query}", context="Menu"), match("named", 0, "x", context=context)]
    ranked = fuse(make_cue(query), [], words, 0.0)
    assert (ranked[0].doc_id == "named") == is_named


def test_equals_stand_in_the_order_of_their_ids_and_passages():
    words = [match("b", 5.0, ord=2), match("a", 5.0, ord=1), match("b", 5.0, ord=1), match("a", 5.0, ord=0)]
    assert [(item.doc_id, item.ord) for item in fuse(make_cue("zebra"), [], words, 0.0)] == [("a", 0), ("b", 1)]


def test_both_legs_count():
    near = [match("a", 0.9), match("b", 0.1)]
    words = [match("b", 4.0), match("a", 3.9)]
    assert [one.doc_id for one in fuse(make_cue("zebra"), near, words, 1.0)] == ["a", "b"]
    assert [one.doc_id for one in fuse(make_cue("zebra"), near, words, 0.0)] == ["b", "a"]


def test_a_document_stands_once_by_its_best_passage():
    words = [match("a", 5.0, "five", ord=1), match("a", 9.0, "nine", ord=2), match("b", 7.0)]
    found = fuse(make_cue("zebra"), [], words, 0.0)
    assert [(one.doc_id, one.ord, one.chunk) for one in found] == [("a", 2, "nine"), ("b", 0, "some words")]


def test_words_side_by_side_count_more_than_words_apart():
    words = [match("apart", 5.0, "search is not hybrid"), match("beside", 5.0, "a hybrid, search")]
    assert fuse(make_cue("hybrid search"), [], words, 0.0)[0].doc_id == "beside"


@pytest.mark.parametrize("blank", ["\n\n", "\t", "\r", "\u00a0", "\u3000", " \u2009 "])
def test_any_white_space_is_before_and_between_neighbours(blank):
    for text in (f"a hybrid{blank}search", f"a{blank}hybrid search", f"hybrids{blank}hybrid{blank}searches"):
        words = [match("apart", 5.0, "search is not hybrid"), match("beside", 5.0, text)]
        assert fuse(make_cue("hybrid search"), [], words, 0.0)[0].doc_id == "beside"
    for text in ("a hybrid research", "a hybridsearch", f"a hybrids{blank}search"):
        words = [match("apart", 5.0, "search is not hybrid"), match("beside", 5.0, text)]
        assert fuse(make_cue("hybrid search"), [], words, 0.0)[0].doc_id == "apart"


def test_a_heading_that_the_query_names_counts():
    words = [
        match("a", 5.0, context="A > Other things"),
        match("z", 5.0, context="Z > Storage engine"),
        match("y", 5.0, "## Storage engine\nx"),
    ]
    assert {one.doc_id for one in fuse(make_cue("storage engine"), [], words, 0.0)[:2]} == {"y", "z"}


@pytest.mark.parametrize("context", ["Ada Lovelace", "ada  lovelace > Life", "Notes on Ada · Ada Lovelace > Life"])
def test_a_note_whose_title_or_alias_is_the_query_stands_first(context):
    words = [
        match("best", 90.0, "Ada Lovelace Ada Lovelace", context="Ada Lovelace's house"),
        match("named", 0.5, context=context),
    ]
    assert fuse(make_cue("Ada Lovelace"), [match("best", 0.99)], words, 1.0)[0].doc_id == "named"


@pytest.mark.parametrize("text", ["neither", "one and two"])
def test_the_score_of_a_passage_with_all_words_or_none_does_not_depend_on_the_other_hits(text):
    near, words = match("a", 0.5, text), match("a", 5.0, text)
    alone = fuse(make_cue("one two"), [near], [words], 1.0)
    among = fuse(make_cue("one two"), [match("b", 0.9, "two"), near], [match("b", 50.0, "two"), words], 1.0)
    assert [item.score for item in among if item.doc_id == "a"] == [pytest.approx(alone[0].score)]


def test_a_word_that_few_passages_have_counts_more_than_a_word_that_many_have():
    words = [match("common", 5.0, "the ship"), match("rare", 5.0, "the anchor"), match("other", 4.0, "a ship")]
    assert [item.doc_id for item in fuse(make_cue("ship anchor"), [], words, 0.0)] == ["rare", "common", "other"]


def test_different_words_count_more_than_one_word_many_times():
    words = [match("many", 5.0, "ship ship ship"), match("once", 5.0, "the ship has an anchor")]
    assert fuse(make_cue("ship anchor"), [], words, 0.0)[0].doc_id == "once"


def test_the_vector_leg_alone_scores_by_cosine():
    assert [
        (one.doc_id, one.score) for one in rank_by_vector([match("a", 0.25), match("b", 1.000001), match("c", -0.5)])
    ] == [
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
    found = fuse(make_cue(text), near, words, weight)
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
    before = fuse(make_cue("one two"), near, words, 1.0)
    random.shuffle(near)
    random.shuffle(words)
    assert fuse(make_cue("one two"), near, words, 1.0) == before


def test_of_two_notes_of_one_name_the_one_with_the_shorter_path_replaces_another():
    record = Record(**dict.fromkeys(Record.__dataclass_fields__))

    def hit(path, score, superseded_by=None):
        return Hit(replace(record, path=path, workspace="w", superseded_by=superseded_by), 0, "", "", score)

    old = hit("Captures/w/Old.md", 0.8, "Plan")
    hits = [hit("Captures/w/folder/Plan.md", 0.9), old, hit("Captures/w/Plan.md", 0.3)]
    placed = [(placed.record.path, placed.score) for placed in place_below_successors(hits)]
    assert placed == [("Captures/w/folder/Plan.md", 0.9), ("Captures/w/Plan.md", 0.3), (old.record.path, 0.3)]


@pytest.mark.parametrize(
    ("link", "path"),
    [("Plan", "Captures/w/Plan.md"), ("B/plan.md", "Captures/w/b/Plan.md"), ("c/Plan", "Captures/w/Plan.md")],
)
def test_a_link_means_the_note_in_its_folder_or_else_the_one_with_the_shortest_path(link, path):
    assert choose_linked(link, ["Captures/w/b/Plan.md", "Captures/w/Plan.md"]) == path
    assert choose_linked(link, []) is None
