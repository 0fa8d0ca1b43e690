"""Token buckets: bursts, rates, and how much memory strangers can make them take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.guard.token_bucket import TokenBuckets


def test_a_burst_is_taken_at_once_and_then_one_has_to_wait():
    buckets = TokenBuckets(20, 40)
    assert [buckets.take("a", 100.0) for _ in range(40)] == [0.0] * 40
    assert buckets.take("a", 100.0) == pytest.approx(0.05)
    assert buckets.take("b", 100.0) == 0.0
    assert buckets.take("a", 100.04) == pytest.approx(0.01)
    assert buckets.take("a", 100.06) == 0.0


def test_who_has_the_patience_has_taken_one_and_comes_before_those_after():
    buckets = TokenBuckets(10, 1)
    assert [buckets.take("a", 0.0, patience=0.25) for _ in range(4)] == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert buckets.take("a", 0.1, patience=0.25) == pytest.approx(0.2)  # who was told 0.3 has taken none
    assert buckets.take("a", 0.2) == pytest.approx(0.2)


def test_who_was_away_has_a_full_bucket_and_no_more():
    buckets = TokenBuckets(20, 3)
    assert [buckets.take("a", 1e6) > 0 for _ in range(5)] == [False, False, False, True, True]
    assert [buckets.take("a", 2e6) > 0 for _ in range(5)] == [False, False, False, True, True]


def test_a_rate_of_nothing_is_no_limit():
    buckets = TokenBuckets(0, 1)
    assert not any(buckets.take("a", 0.0) for _ in range(1000))
    assert len(buckets) == 0


def test_strangers_cost_bounded_memory_and_the_one_longest_away_is_forgotten():
    buckets = TokenBuckets(1, 1, most=100)
    for number in range(10_000):
        buckets.take(str(number), float(number) / 1e6)
        assert buckets.take("busy", float(number) / 1e6) == 0.0 or number
    assert len(buckets) == 100
    assert buckets.take("busy", 0.01) > 0
    assert buckets.take("9999", 0.01) > 0


@given(
    rate=st.floats(0.1, 100),
    burst=st.integers(1, 50),
    pauses=st.lists(st.floats(0, 2), max_size=200),
)
def test_nobody_takes_more_than_burst_and_rate_allow(rate, burst, pauses):
    buckets, now, taken, since = TokenBuckets(rate, burst), 0.0, 0, 0.0
    for pause in pauses:
        now += pause
        wait = buckets.take("a", now)
        taken += wait == 0
        assert taken <= burst + (now - since) * rate + 1e-6
        if wait:  # and whoever waits as told is served
            now += wait + 1e-6
            assert buckets.take("a", now) == 0
            taken += 1
