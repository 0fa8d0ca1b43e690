"""Background work waits while calls are under way, and not for ever."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import nullcontext

import pytest

from index.foreground import CALM_S, SHORT_S, TURN_S, Foreground, count_cores, shorten_turns

LONE = pytest.mark.skipif(count_cores() == 1, reason="a second thread needs a second core")


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


@LONE
@pytest.mark.parametrize("calls", [0, 1])
def test_a_lone_call_has_a_second_thread(calls):
    foreground, begun, gone_on = Foreground(), threading.Event(), threading.Event()

    def work():
        begun.set()
        assert gone_on.wait(60)
        return threading.get_ident()

    with foreground.call() if calls else nullcontext():
        result = foreground.begin(work)
        assert begun.wait(60), "until then, this thread would do the work itself"
        gone_on.set()
        assert result() != threading.get_ident()


def test_calls_beside_each_other_work_in_their_own_threads():
    foreground = Foreground()
    with foreground.call(), foreground.call():
        assert foreground.begin(threading.get_ident)() == threading.get_ident()


def test_a_failure_in_the_second_thread_is_raised():
    with pytest.raises(ZeroDivisionError):
        Foreground().begin(lambda: 1 // 0)()


def test_without_another_thread_the_work_is_done_in_this_one_alone(monkeypatch):
    foreground, done = Foreground(), []

    def start(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        foreground.begin(lambda: done.append(threading.get_ident()))()
    foreground.begin(lambda: None)()
    foreground._second.shutdown()  # all that was left has run
    assert done == [threading.get_ident()]


@LONE
def test_no_call_waits_for_what_another_one_left_behind():
    foreground, ended = Foreground(), threading.Event()
    left = foreground.begin(lambda: ended.wait(60))  # the caller failed, and does not ask for the result
    try:
        assert foreground.begin(threading.get_ident)() == threading.get_ident()
    finally:
        ended.set()
    assert left()


@LONE
def test_of_two_works_both_have_ended_when_one_fails():
    foreground, ended = Foreground(), []

    def work_slowly() -> None:
        begun.set()
        time.sleep(0.1)
        ended.append(True)
        raise ValueError

    def fail() -> None:
        assert begun.wait(10)
        raise KeyError("the first one")

    begun = threading.Event()
    with foreground.call(), pytest.raises(KeyError, match="the first one"):
        foreground.run_both(fail, work_slowly)
    assert ended
    with foreground.call():
        assert foreground.run_both(lambda: 1, lambda: 2) == (1, 2)
        with pytest.raises(ZeroDivisionError):
            foreground.run_both(lambda: 1, lambda: 1 // 0)


@pytest.mark.parametrize("bulk", [True, False])
def test_a_work_is_not_begun_after_the_other_one_has_failed(bulk):
    foreground, done = Foreground(), []
    with foreground.bulk(bulk), foreground.call(), foreground.call(), pytest.raises(KeyError):
        foreground.run_both(lambda: {}["none"], lambda: done.append(True))
    assert not done
