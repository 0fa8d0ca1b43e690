"""Background work waits while calls are under way, and not for ever."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from index.foreground import CALM_S, SHORT_S, TURN_S, Foreground, shorten_turns


def test_where_nobody_calls_nothing_waits():
    begun = time.monotonic()
    for _ in range(1000):
        Foreground().give_way(60.0)
    assert time.monotonic() - begun < 30


def test_work_waits_until_the_last_call_has_ended_and_no_other_follows():
    foreground, order = Foreground(), []
    first, second = foreground.call(), foreground.call()
    first.__enter__()
    second.__enter__()

    def work():
        foreground.give_way(60.0)
        order.append("work")

    worker = threading.Thread(target=work)
    worker.start()
    first.__exit__(None, None, None)
    time.sleep(2 * CALM_S)
    order.append("call")
    second.__exit__(None, None, None)
    worker.join(60)
    assert order == ["call", "work"]


def test_work_goes_on_however_long_a_call_takes():
    foreground = Foreground()
    with foreground.call():
        begun = time.monotonic()
        foreground.give_way(0.05)
        assert 0.05 <= time.monotonic() - begun < 30


def test_a_call_that_fails_is_over():
    foreground = Foreground()
    with pytest.raises(ValueError, match="no"), foreground.call():
        int("no")
    begun = time.monotonic()
    foreground.give_way(60.0)
    assert time.monotonic() - begun < 30


def test_only_a_bulk_of_work_is_paced():
    foreground, waits = Foreground(), []
    foreground.give_way = waits.append
    with foreground.call():
        foreground.pace()
        with foreground.bulk(True):
            foreground.pace()
            with foreground.bulk(False):
                foreground.pace()
            foreground.pace()
            other = threading.Thread(target=foreground.pace)
            other.start()
            other.join(60)
        foreground.pace()
    assert waits == [SHORT_S, SHORT_S]


def test_turns_become_short():
    before = sys.getswitchinterval()
    try:
        shorten_turns()
        assert sys.getswitchinterval() == pytest.approx(TURN_S)
    finally:
        sys.setswitchinterval(before)
