"""Unit tests of `fact_choice`: which facts fit, in which order, and why."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.context.fact_choice import choose_facts
from syncd.context.fact_reader import words_of
from tests.support.context_facts import fact, weigh

FILTER = fact("The filter of the heat pump is due in May")
LANCEDB = fact("LanceDB was chosen because it needs no server")
MAKEFILE = fact("Ada prefers tabs in every Makefile")


def texts(*facts, tokens=1_000, uses=None, **more):
    return [choice.fact.text for choice in choose_facts(weigh(*facts), tokens, uses=uses or {}, **more)]


def test_lines_fit_into_the_tokens():
    assert len(texts(FILTER, LANCEDB, MAKEFILE)) == 3
    (size,) = {weighed.tokens for weighed in weigh(FILTER)}
    assert len(texts(FILTER, LANCEDB, MAKEFILE, tokens=size)) == 1
    assert texts(FILTER, LANCEDB, MAKEFILE, tokens=1) == []
    assert texts() == []


@pytest.mark.parametrize(
    ("better", "worse", "more"),
    [
        pytest.param(FILTER, fact("The filter of the oil boiler is due in June", days=200), {}, id="newer"),
        pytest.param(
            fact("The filter of the oil boiler is due in June", days=10), FILTER, {"uses": 5}, id="used in answers"
        ),
        pytest.param(
            fact("The filter of the oil boiler is due in June", days=30, promoted=True), FILTER, {}, id="promoted"
        ),
        pytest.param(
            fact("The filter of the oil boiler is due in June", days=60, projects=frozenset({"home"})),
            FILTER,
            {"project": "home"},
            id="of the project",
        ),
        pytest.param(
            FILTER,
            fact("The filter of the oil boiler is due in June", projects=frozenset({"work"}), filed=True),
            {"project": "home"},
            id="not of another project",
        ),
        pytest.param(FILTER, fact("The filter of the oil boiler is due in June", stale=True), {}, id="not replaced"),
        pytest.param(FILTER, fact("Is the filter of the oil boiler due in June?"), {}, id="no question"),
    ],
)
def test_the_better_fact_comes_first(better, worse, more):
    uses = {better.id: more["uses"]} if "uses" in more else {}
    assert texts(better, worse, uses=uses, project=more.get("project", "")) == [better.text, worse.text]


def test_a_fact_that_a_chosen_line_says_already_is_left_out():
    again = fact("The heat pump's filter is due in May", days=1)
    assert len(texts(FILTER, again, LANCEDB)) == 2
    kept = [weigh(again)[0].words]
    assert texts(FILTER, LANCEDB, kept=kept) == [LANCEDB.text]


def test_words_that_two_lines_share_are_in_memory_once():
    first, second = words_of("The lighthouse warns the harbour"), words_of("A harbour without a lighthouse")
    for one, other in ((first.worth, second.worth), (first.stems, second.stems)):
        assert {*one} & {*other}
        assert {*map(id, one)} & {*map(id, other)} == {id(word) for word in one if word in other}
    assert len(second.stems) == len({*second.stems})


def test_lines_cover_topics_before_they_repeat_words():
    more = fact("The filter of the heat pump was cleaned")
    assert texts(FILTER, more, MAKEFILE)[-1] in {FILTER.text, more.text}


def test_a_choice_says_why():
    chosen = choose_facts(
        weigh(
            fact("The filter is due", projects=frozenset({"home"}), promoted=True), fact("Ada prefers tabs", days=300)
        ),
        100,
        uses={fact("The filter is due").id: 3.2},
        project="home",
    )
    assert {choice.fact.text: choice.reasons for choice in chosen} == {
        "The filter is due": (
            "it belongs to the project home",
            "you promoted its note",
            "3 answers used its note",
            "it is among the newest",
            "no line above speaks of filter",
        ),
        "Ada prefers tabs": ("no line above speaks of tab, ada",),
    }


WORDS = st.sampled_from(["filter", "pump", "Ada", "tabs", "LanceDB", "server", "May", "boiler", "letter", "tax"])
FACTS = st.lists(
    st.builds(
        lambda words, days, stale: fact(" ".join(words), days=days, stale=stale),
        st.lists(WORDS, min_size=1, max_size=6),
        st.integers(0, 400),
        st.booleans(),
    ),
    max_size=12,
    unique_by=lambda one: one.text,
)


@given(FACTS, st.integers(0, 60), st.randoms(use_true_random=False))
def test_the_order_of_the_facts_does_not_matter_and_the_lines_fit(facts, tokens, order: random.Random):
    chosen = texts(*facts, tokens=tokens)
    assert sum(weighed.tokens for weighed in weigh(*facts) if weighed.fact.text in chosen) <= tokens
    shuffled = list(facts)
    order.shuffle(shuffled)
    assert texts(*shuffled, tokens=tokens) == chosen
