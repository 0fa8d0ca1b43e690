"""Both families with the real model: what is said in other words is found."""

from __future__ import annotations

import pytest

from index.encoders.bundled_model import BundledEncoder
from index.encoders.settings import BundledSettings
from tests.support.live_server import running
from tests.support.mcp_agent import agent

NODES = {
    "Harbour pilot": ["Guides large ships through the narrow channel at low tide", "Was certified in 2019"],
    "Bakery": ["Sells rye bread and buns before sunrise", "The oven is fired with beech wood"],
    "Database": [
        "Stores sensor readings in a table with an index on time",
        "A nightly backup copies it to another machine",
    ],
    "Bread oven": ["Loaves of rye are baked in it over burning logs", "Opens at five in the morning"],
    "庭": ["トマトは雨に弱い", "朝に水をやる"],
}


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    encoder = BundledEncoder(BundledSettings(), threads=2)
    with running(tmp_path_factory.mktemp("meaning"), encoder=encoder) as rim, agent(rim, workspace="work") as made:
        made.good(
            "create_entities",
            entities=[{"name": name, "entity_type": "x", "observations": facts} for name, facts in NODES.items()],
        )
        yield made


@pytest.mark.parametrize(
    ("query", "name", "fact"),
    [
        ("who steers vessels into port", "Harbour pilot", 0),
        ("recovery copies of the data", "Database", 1),
        ("when did the guide get a licence", "Harbour pilot", 1),
    ],
)
def test_a_search_finds_what_is_said_in_other_words(one, query, name, fact):
    best = one.listed("search_nodes", query=query)[0]
    assert (best["name"], best["matched_observation"]) == (name, NODES[name][fact])
    assert best["matched_perspective"] in ("general", "technical", "relational", "temporal", "project")
    assert 0 < best["score"] <= 1


def test_words_alone_find_words_alone(one):
    assert [hit["name"] for hit in one.listed("search_nodes", query="beech", mode="text")] == ["Bakery"]
    assert one.listed("search_nodes", query="vessels", mode="text") == []
    assert one.listed("search_nodes", query="トマト", mode="text")[0]["name"] == "庭"


def test_the_most_alike_are_the_most_similar(one):
    pairs = one.listed("find_similar_nodes", min_score=0.0)
    assert {pairs[0]["node_a"], pairs[0]["node_b"]} == {"Bakery", "Bread oven"}
    scores = [pair["similarity"] for pair in pairs]
    assert scores == sorted(scores, reverse=True)


def test_a_memo_is_found_by_its_meaning_and_by_its_likes(one):
    texts = ["The ferry leaves at noon", "Ships depart at midday", "Leeks like deep soil"]
    ids = [one.good("memory.save", namespace="default", content=text)["memo_id"] for text in texts]
    found = one.good("memory.search", namespace="default", query="boat departure time")["items"]
    assert found[-1]["content"] == texts[2]
    likes = one.good("memory.search", namespace="default", pivot_memo_id=ids[0])["items"]
    assert likes[0]["memo_id"] == ids[1]
    assert likes[0]["score"] > likes[-1]["score"]
    near = one.good("memory.search", namespace="default", query="boat departure time", minimum_similarity=0.999)[
        "items"
    ]
    assert near == []
