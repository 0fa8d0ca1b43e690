"""index/observations/observation_search.py: nodes are ranked by their best fact, however many facts the others have."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.document_ids import path_id
from index.observations.observation_rows import facet_rows, make_facets
from index.observations.observation_search import rank_nodes
from index.observations.observation_store import Observations
from index.observations.perspectives import Perspective
from index.observations.similarity_baseline import Point
from tests.support.example_counts import examples
from tests.support.graph_samples import entity

LOOKS = (Perspective("general", ""), Perspective("technical", "technical"))
DIMENSIONS = 64
POINT = np.eye(DIMENSIONS, dtype=np.float32)[0]
POINTS: tuple[Point, ...] = ((LOOKS[0], POINT, 0.0), (LOOKS[1], POINT, 0.21))


def near(similarity):
    """A vector with this cosine similarity to POINT."""
    vector = np.zeros(DIMENSIONS, np.float32)
    vector[:2] = similarity, math.sqrt(1 - similarity * similarity)
    return vector


def fill(store, nodes):
    """Replace all nodes; each has its facts as pairs of their similarities under both perspectives."""
    rows = dict.fromkeys(store.row_counts(), ())
    for name, facts in nodes.items():
        node = entity(f"Captures/w/Entities/{name}.md", *(f"fact {n}" for n in range(len(facts))))
        vectors = [near(similarity) for pair in facts for similarity in pair]
        rows[path_id(node.path)] = list(facet_rows(node, make_facets(node, LOOKS), vectors))
    store.replace(rows)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = Observations(str(tmp_path_factory.mktemp("rows")), dimensions=DIMENSIONS, options={})
    yield store
    store.close()


def test_a_node_with_many_facts_hides_neither_another_nor_its_best_score(store):
    fill(store, {"A": [(0.7, 0.1)] * 30, "X": [(0.69, 0.6)], "Y": [(0.1, 0.7)]})
    wanted = [("A", 0.7), ("X", 0.69), ("Y", 0.49)]
    names = {path_id(f"Captures/w/Entities/{name}.md"): name for name in "AXY"}
    for limit in (1, 2, 3, 20):
        best = rank_nodes("w", POINTS, limit, store)[:limit]
        assert [(names[node.key], round(node.score, 2)) for node in best] == wanted[:limit]


SIMILAR = st.sampled_from([0.1, 0.3, 0.5, 0.55, 0.6, 0.7, 0.75, 0.9])
FACTS = st.tuples(st.tuples(SIMILAR, SIMILAR), st.sampled_from([1, 1, 2, 31, 70])).map(
    lambda drawn: [drawn[0]] * drawn[1]
)


@pytest.mark.slow
@examples(50)
@given(st.lists(FACTS, min_size=2, max_size=7))
def test_the_answer_to_a_smaller_limit_begins_the_one_to_a_larger(store, drawn):
    fill(store, {f"N{n}": facts for n, facts in enumerate(drawn)})
    whole = rank_nodes("w", POINTS, 100, store)
    for limit in range(1, len(drawn) + 1):
        best = rank_nodes("w", POINTS, limit, store)[:limit]
        assert [node.key for node in best] == [node.key for node in whole[:limit]]
        assert [node.score for node in best] == pytest.approx([node.score for node in whole[:limit]], abs=0.005)
