"""syncd/measurement/rank_figures.py: figures of ranks, their intervals, and what a difference decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.measurement.rank_figures import compare_ranks, compute_figures, estimate, judge

RANKS = st.lists(st.one_of(st.none(), st.integers(1, 20)), min_size=1, max_size=30)


def test_figures_of_ranks():
    figures = compute_figures([1, 2, 10, None])
    assert {name: figure.mean for name, figure in figures.items()} == {
        "R@1": 0.25,
        "R@5": 0.5,
        "MRR": pytest.approx((1 + 1 / 2 + 1 / 10) / 4),
    }


@given(RANKS)
def test_a_mean_lies_within_its_interval_and_the_interval_within_the_values(ranks):
    for figure in compute_figures(ranks).values():
        assert 0 <= figure.low <= figure.high <= 1
        assert figure.low - 1e-9 <= figure.mean <= figure.high + 1e-9 or len(ranks) < 20


@given(RANKS)
def test_equal_ranks_have_no_difference(ranks):
    assert all(figure.low == figure.high == 0 for figure in compare_ranks(ranks, ranks).values())


def test_an_interval_covers_what_the_theory_says():
    interval = estimate([0.0, 1.0] * 200)
    assert interval.low == pytest.approx(0.5 - 1.96 * 0.5 / 20, abs=0.01)
    assert interval.high == pytest.approx(0.5 + 1.96 * 0.5 / 20, abs=0.01)


@pytest.mark.parametrize(
    ("ranks", "base", "verdict"),
    [
        ([1] * 40, [2] * 40, "better"),
        ([None] * 40, [1] * 40, "worse"),
        ([1, 2] * 20, [2, 1] * 20, "no difference"),
        ([1] * 19, [2] * 19, "too few questions"),
    ],
)
def test_a_difference_decides_only_if_its_interval_excludes_zero(ranks, base, verdict):
    assert judge([compare_ranks(ranks, base)], len(ranks)) == verdict


def test_a_loss_of_one_kind_of_search_outweighs_a_gain_of_another():
    gain, loss, equal = (compare_ranks(ranks, [2] * 40) for ranks in ([1] * 40, [3] * 40, [2] * 40))
    assert judge([gain, loss], 40) == "worse"
    assert judge([gain, equal], 40) == "better"
    assert judge([equal, equal], 40) == "no difference"
