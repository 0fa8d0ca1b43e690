"""index/storage/maintenance_policy.py: when maintenance pays, and which vector index."""

from __future__ import annotations

import pytest

from index.storage.maintenance_policy import (
    WrittenRows,
    choose_vector_index,
    is_due,
    is_large_write,
    may_be_held,
    refine_factor,
)

FRESH = WrittenRows(rows=10_000, commits=0, dirty=0, written=0.0, kept=0.0)


@pytest.mark.parametrize(
    ("commits", "rows", "last", "now", "expected"),
    [
        pytest.param(0, 0, 0, 10_000, False, id="nothing was written"),
        pytest.param(39, 39, 25, 30, False, id="a few commits while it is busy"),
        pytest.param(40, 40, 25, 30, True, id="many commits"),
        pytest.param(400, 400, 15, 19, False, id="many commits, soon after the last pass"),
        pytest.param(1, 499, 25, 30, False, id="few rows"),
        pytest.param(1, 600, 25, 30, True, id="a twentieth of all rows"),
        pytest.param(10, 10, 25, 39, False, id="a few commits and a short rest"),
        pytest.param(10, 10, 25, 40, True, id="a few commits and a rest"),
        pytest.param(9, 9, 25, 500, False, id="fewer commits and a rest"),
        pytest.param(1, 1, 25, 625, True, id="one commit and a long rest"),
    ],
)
def test_maintenance_waits_until_it_pays(commits, rows, last, now, expected):
    work = FRESH
    for n in range(commits):
        work = work.add_commit(added=rows // commits + (n < rows % commits), removed=0, now=last)
    assert is_due(work, now) is expected


def test_maintenance_takes_a_twentieth_of_the_time_at_most():
    slow = WrittenRows(rows=100_000, commits=100, dirty=0, written=0.0, kept=0.0, took=5.0)
    assert not is_due(slow, 99.0)
    assert is_due(slow, 100.0)


def test_under_steady_writing_the_work_that_waits_levels_off():
    """A pass takes the longer the more there is to merge; were it to rest in proportion, the next would take longer still."""
    work, merged = FRESH, []
    for now in range(3_600):
        for _ in range(10):
            work = work.add_commit(added=1, removed=0, now=now)
        if is_due(work, now):
            merged.append(work.commits)
            work = WrittenRows(rows=work.rows, commits=0, dirty=0, written=now, kept=now, took=0.02 * work.commits)
    assert max(merged) <= 300
    assert len(merged) > 100


@pytest.mark.parametrize(
    ("added", "rows", "expected"),
    [(2_000, 0, False), (2_001, 0, True), (5_000, 100_000, False), (5_001, 100_000, True)],
)
def test_a_write_is_large_beside_the_rows_that_would_be_loaded_again(added, rows, expected):
    assert is_large_write(added, rows) is expected


@pytest.mark.parametrize(
    ("rows", "too_many", "expected"),
    [(120_000, 0, True), (120_001, 0, False), (1_000, 1_000, False), (901, 1_000, False), (900, 1_000, True)],
)
def test_rows_that_did_not_fit_are_tried_again_once_they_are_fewer(rows, too_many, expected):
    assert may_be_held(rows, too_many) is expected


def test_removed_rows_count_as_work():
    assert FRESH.add_commit(added=1, removed=3, now=5.0) == WrittenRows(
        rows=9_998, commits=1, dirty=4, written=5.0, kept=0.0
    )


def test_the_vector_index_grows_with_the_store():
    kinds = [choose_vector_index(vectors) for vectors in (0, 39_999, 40_000, 599_999, 600_000)]
    assert kinds == ["none", "none", "sq", "sq", "rq"]


@pytest.mark.parametrize("pool", [1, 10, 50, 200, 1_000])
def test_enough_candidates_are_compared_exactly(pool):
    assert refine_factor("sq", pool) * pool >= 40
    assert refine_factor("rq", pool) * pool >= 120
