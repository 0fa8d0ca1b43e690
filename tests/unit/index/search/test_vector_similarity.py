"""index/search/vector_similarity.py: the pairs most alike, the nearest of each, and groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.search import vector_similarity
from index.search.vector_similarity import (
    find_clusters,
    most_similar_pairs,
    nearest,
    pairs_and_clusters,
    similarity_statistics,
)
from tests.support.example_counts import examples


def rows(n, seed=0, topics=None, width=32):
    """Rows of unit length about `topics` directions."""
    dice = np.random.default_rng(seed)
    about = dice.standard_normal((topics or max(1, n // 8), width))
    found = about[dice.integers(0, len(about), n)] + 0.7 * dice.standard_normal((n, width))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def naive(matrix, related, limit, least):
    """The cosines of the best pairs, without the pairs: of those that differ by less than a float's error either may be."""
    out = {frozenset(pair) for pair in related}
    pairs_of = ((a, b) for a in range(len(matrix)) for b in range(a + 1, len(matrix)) if frozenset((a, b)) not in out)
    return sorted((score for a, b in pairs_of if (score := float(matrix[a] @ matrix[b])) >= least), reverse=True)[
        :limit
    ]


sizes = st.integers(0, 40)
related = st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=60)


@given(sizes, st.integers(0, 9), related, st.integers(0, 30), st.sampled_from([-1.0, 0.0, 0.4]))
def test_pairs_are_those_of_a_comparison_of_all_with_all(n, seed, related, limit, least):
    matrix = rows(n, seed) if n else np.empty((0, 32), np.float32)
    related = [(a, b) for a, b in related if a < n and b < n]
    found = most_similar_pairs(matrix, related, limit, least)
    assert [score for _, _, score in found] == pytest.approx(naive(matrix, related, limit, least), abs=1e-5)
    assert all(score == pytest.approx(float(matrix[a] @ matrix[b]), abs=1e-5) for a, b, score in found)
    assert len({(a, b) for a, b, _ in found}) == len(found) and all(a < b for a, b, _ in found)
    assert not {frozenset(pair[:2]) for pair in found} & {frozenset(pair) for pair in related}


@examples(10)
@given(st.integers(0, 1_000))
def test_blocks_and_the_related_leave_no_pair_out(seed):
    n = 700  # more than a block
    matrix = rows(n, seed)
    near = most_similar_pairs(matrix, (), 200, 0.0)
    found = most_similar_pairs(matrix, [(b, a) for a, b, _ in near[::2]], 100, 0.0)
    assert [pair[:2] for pair in found] == [pair[:2] for pair in near[1::2]]


def test_of_equal_pairs_the_first_are_given():
    same = np.zeros((1_100, 4), np.float32)
    same[:, 0] = 1.0
    assert [(a, b) for a, b, _ in most_similar_pairs(same, [(0, 1)], 3, 0.5)] == [(0, 2), (0, 3), (0, 4)]
    assert most_similar_pairs(same, (), 2_000, 0.5)[-1] == (1, 902, 1.0)


def test_rows_without_a_direction_are_like_nothing():
    matrix = rows(6)
    matrix[2] = 0
    assert all(2 not in (a, b) for a, b, _ in most_similar_pairs(matrix, (), 20, 0.01))
    assert nearest(matrix, 2, 0.01)[0][2].tolist() == [-1, -1]


@given(st.integers(1, 40), st.integers(0, 9), st.integers(1, 8), st.sampled_from([-1.0, 0.2, 0.9]))
def test_the_nearest_are_those_of_a_comparison_with_all(n, seed, count, least):
    matrix = rows(n, seed)
    numbers, scores = nearest(matrix, count, least)
    for a in range(n):
        wanted = sorted(
            (score for b in range(n) if a != b and (score := float(matrix[a] @ matrix[b])) >= least), reverse=True
        )[:count]
        here = [b for b in numbers[a].tolist() if b >= 0]
        assert len(set(here)) == len(here) == len(wanted) and a not in here
        assert [float(matrix[a] @ matrix[b]) for b in here] == pytest.approx(wanted, abs=1e-5)
        assert scores[a][: len(here)].tolist() == pytest.approx(wanted, abs=1e-5)


def test_both_ways_of_finding_the_nearest_agree():
    matrix = rows(600, 3)
    some, all_of_them = nearest(matrix, 5, 0.5), nearest(matrix, 5)
    known = some[0] >= 0
    assert known.any() and (some[0][known] == all_of_them[0][known]).all()


@pytest.mark.parametrize("topics", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_cells_find_nearly_all_that_a_comparison_of_all_finds(topics, monkeypatch):
    matrix = rows(4_000, 5, topics, width=64)
    exact = {pair[:2] for pair in most_similar_pairs(matrix, (), 300, 0.0)}
    near = nearest(matrix, 6)[0]
    monkeypatch.setattr(vector_similarity, "EXACT", 0)
    found = {pair[:2] for pair in most_similar_pairs(matrix, (), 300, 0.0)}
    assert len(exact & found) >= 0.95 * len(exact)
    likely = nearest(matrix, 6)[0]
    assert np.mean([len(set(a) & set(b)) / 6 for a, b in zip(near.tolist(), likely.tolist(), strict=True)]) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("exact", [0, 10_000])
@pytest.mark.parametrize("n", [0, 1, 2, 600, 1_200])
def test_one_comparison_gives_the_pairs_and_the_groups_of_two(n, exact, monkeypatch):
    monkeypatch.setattr(vector_similarity, "EXACT", exact)
    matrix = rows(n, 6) if n else np.empty((0, 32), np.float32)
    related = [(a + 1, a) for a in range(n - 1)]
    pairs, groups = pairs_and_clusters(matrix, related, 50, 0.3, near=0.5, most=9)
    assert pairs == most_similar_pairs(matrix, related, 50, 0.3)
    assert groups == find_clusters(matrix, near=0.5, most=9)


@pytest.mark.parametrize("least", [-1.0, 0.3])
def test_the_nearest_of_many_blocks_are_those_of_a_comparison_with_all(least):
    matrix = rows(1_300, 8, topics=3)  # three blocks; most rows are alike
    numbers, scores = nearest(matrix, 6, least)
    products = matrix @ matrix.T
    np.fill_diagonal(products, -2)
    wanted = -np.sort(-products, axis=1)[:, :6]
    wanted[wanted < least] = -2
    assert scores == pytest.approx(wanted, abs=1e-5)
    assert np.take_along_axis(products, np.maximum(numbers, 0), 1)[numbers >= 0] == pytest.approx(
        scores[numbers >= 0], abs=1e-5
    )


def test_the_same_matrix_gives_the_same_answer(monkeypatch):
    matrix = rows(2_000, 5)
    assert find_clusters(matrix, near=0.5, most=9) == find_clusters(matrix.copy(), near=0.5, most=9)
    monkeypatch.setattr(vector_similarity, "EXACT", 0)
    assert most_similar_pairs(matrix, (), 50, 0.0) == most_similar_pairs(matrix.copy(), (), 50, 0.0)


def test_what_is_alike_is_a_group_and_what_is_not_is_none():
    matrix = np.eye(8, dtype=np.float32)
    matrix[1] = matrix[2] = [0.9, 0.1, 0.1, 0, 0, 0, 0, 0]
    matrix[5] = [0, 0, 0, 0, 0.8, 0.3, 0, 0]
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    assert find_clusters(matrix, near=0.6, most=10) == [(0, 1, 2), (4, 5)]


def test_a_chain_of_likenesses_is_no_group():
    turn = np.linspace(0, np.pi, 13)  # neighbours are alike by .97, the ends opposite
    chain = np.stack([np.cos(turn), np.sin(turn)], axis=1).astype(np.float32)
    found = find_clusters(chain, near=0.9, most=13)
    assert found and all(turn[max(group)] - turn[min(group)] < 1.4 for group in found)


@examples(40)
@given(st.integers(2, 60), st.integers(0, 9), st.integers(2, 12), st.randoms())
def test_groups_are_bounded_apart_and_the_same_in_any_order(n, seed, most, dice):
    matrix = rows(n, seed)
    found = find_clusters(matrix, near=0.4, most=most)
    members = [row for group in found for row in group]
    assert len(members) == len(set(members)) and all(2 <= len(group) <= most for group in found)
    for group in found:
        inner = matrix[list(group)] @ matrix[list(group)].T
        # Joined step by step at .4 on average, a group is never much looser than that.
        assert (inner.sum() - len(group)) / (len(group) * (len(group) - 1)) >= 0.4 - 1e-3
    order = list(range(n))
    dice.shuffle(order)
    again = find_clusters(matrix[order], near=0.4, most=most)
    assert {frozenset(order[row] for row in group) for group in again} == {frozenset(group) for group in found}


def test_what_is_typical_is_the_mean_of_all_pairs():
    matrix = rows(150, 2)
    products = (matrix @ matrix.T)[np.triu_indices(150, 1)]
    mean, spread = similarity_statistics(matrix)
    assert mean == pytest.approx(float(products.mean()), abs=1e-4)
    assert spread == pytest.approx(float(products.std()), abs=1e-3)
    assert similarity_statistics(matrix[:1]) == (0.0, 0.0)
