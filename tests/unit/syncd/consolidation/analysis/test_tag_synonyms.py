"""Which tags are one: sure variants are, near ones are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.encoders.word_frequency import word_ranks
from syncd.consolidation.analysis.tag_synonyms import find_synonyms
from tests.support.example_counts import examples


def uses(**counts):
    """Tags with so many documents each, none of which has two."""
    found, at = {}, 0
    for tag, count in counts.items():
        found[tag] = list(range(at, at := at + count))
    return found


def merged(tags):
    return [(one.kept, one.merged) for one in find_synonyms(tags, word_ranks())]


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        pytest.param({"kubernetes": 9, "k8s": 2}, ("kubernetes", "k8s"), id="a numeronym"),
        pytest.param({"reciprocal-rank-fusion": 2, "rrf": 9}, ("rrf", "reciprocal-rank-fusion"), id="first letters"),
        pytest.param({"recipe": 2, "recipes": 9}, ("recipes", "recipe"), id="a plural that is used more"),
        pytest.param({"hybrid-search": 3, "hybrid_search": 2}, ("hybrid-search", "hybrid_search"), id="an underscore"),
        pytest.param({"project/heron": 3, "Project/Heron": 1}, ("project/heron", "Project/Heron"), id="capitals"),
        pytest.param({"calibration": 9, "calibraton": 1}, ("calibration", "calibraton"), id="a letter left out"),
        pytest.param({"search-hybrid": 1, "hybrid-search": 2}, ("hybrid-search", "search-hybrid"), id="another order"),
        pytest.param({"reisen": 2, "reise": 4}, ("reise", "reisen"), id="a German plural"),
        pytest.param({"café": 2, "cafe": 1}, ("café", "cafe"), id="an accent"),
    ],
)
def test_two_spellings_of_a_tag_are_one(tags, wanted):
    assert merged(uses(**tags)) == [wanted]


@pytest.mark.parametrize(
    ("tag", "other", "reason"),
    [
        ("db-note", "database-note", "db is short for database"),
        ("app_docs", "app-documentation", "docs is short for documentation"),
        ("db-note", "db-notes", "they are forms of the same words"),
        ("AI-tools", "ai-tools", "they differ only in capitals, accents or hyphens"),
    ],
)
def test_an_abbreviation_is_a_reason_only_if_one_of_the_tags_lacks_it(tag, other, reason):
    (synonym,) = find_synonyms(uses(**{tag: 1, other: 3}), word_ranks())
    assert synonym.reason.startswith(f"{reason};")


@pytest.mark.parametrize(
    "tags",
    [
        {"python-2": 1, "python-3": 9}, {"java": 2, "javascript": 9}, {"planning": 9, "planting": 1}, {"release/2.3": 1, "release/2.4": 9},
        {"calibration": 3, "calibraton": 3}, {"heron": 3, "project/heron": 3}, {"db2": 1, "db": 4}, {"work": 4, "workout": 1}, {"form": 3, "former": 1},
    ],
    ids=lambda tags: " ".join(tags),
)  # fmt: skip
def test_two_tags_that_are_near_are_two(tags):
    assert merged(uses(**tags)) == []


def test_the_loose_end_of_a_nested_tag_is_one_with_it_where_they_go_together():
    assert merged({"project/heron": range(8), "heron": range(3)}) == [("project/heron", "heron")]
    assert merged({"project/heron": range(8), "heron": range(6, 12)}) == []


def test_tags_that_share_a_word_and_are_always_given_together_are_one():
    assert merged({"rain-gauge": range(6), "gauge": range(6)}) == [("rain-gauge", "gauge")]
    assert merged({"rain": range(6), "gauge": range(6)}) == []


@given(
    st.permutations(["k8s", "kubernetes", "Kubernetes", "kubernets", "recipe", "recipes", "rezept", "reise", "reisen"])
)
@examples(20)
def test_any_order_gives_the_same_and_a_tag_becomes_one_other(order):
    whole = uses(**{tag: n % 5 + 1 for n, tag in enumerate(sorted(order))})
    at = {tag: n for n, tag in enumerate(order)}
    found = merged({tag: whole[tag] for tag in sorted(order, key=at.get)})
    assert found == merged(whole)
    assert len({tag for _, tag in found}) == len(found)
    assert not {tag for _, tag in found} & {kept for kept, _ in found}
