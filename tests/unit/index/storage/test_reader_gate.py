"""index/storage/reader_gate.py: readers side by side, and nobody while it is drained."""

from __future__ import annotations

import threading
import time

import pytest

from index.storage.reader_gate import ReaderGate


def test_readers_are_inside_together():
    gate, both = ReaderGate(), threading.Barrier(2, timeout=5)

    def read():
        with gate.enter():
            both.wait()

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not both.broken


def test_nobody_is_inside_while_it_is_drained_and_all_get_in_afterwards():
    gate, inside, seen, stop = ReaderGate(), [0], [], threading.Event()
    lock = threading.Lock()

    def read():
        while not stop.is_set():
            with gate.enter():
                with lock:
                    inside[0] += 1
                time.sleep(0.001)
                with lock:
                    inside[0] -= 1

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    waits = []
    for _ in range(20):
        began = time.monotonic()
        with gate.drain(5) as alone:
            waits.append(time.monotonic() - began)
            seen.append((alone, inside[0]))
            time.sleep(0.002)
            seen.append((alone, inside[0]))
    stop.set()
    for thread in threads:
        thread.join(60)
    assert seen == [(True, 0)] * 40
    assert max(waits) < 2, "the busy readers do not keep it waiting"


def test_a_reader_that_stays_does_not_close_it_for_ever():
    gate = ReaderGate()
    with gate.enter():
        drained = []

        def drain():
            with gate.drain(0.05) as alone:
                drained.append(alone)

        thread = threading.Thread(target=drain)
        thread.start()
        thread.join(60)
        assert drained == [False]
    with gate.enter(), gate.enter():
        pass


def test_it_opens_again_when_the_one_who_drained_fails():
    gate = ReaderGate()
    with pytest.raises(ZeroDivisionError), gate.drain(1):
        1 / 0  # noqa: B018 - it is there to fail
    with gate.enter():
        pass
