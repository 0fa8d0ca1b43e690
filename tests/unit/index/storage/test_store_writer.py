"""An event loop with a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from index.errors import EARLY_CLOCK, Unavailable
from index.storage.store_writer import EventLoopThread


@pytest.fixture
def loop():
    made = EventLoopThread()
    yield made
    made.close()


async def where():
    await asyncio.sleep(0)
    return threading.current_thread()


def test_all_work_runs_on_one_thread_that_is_not_the_caller_s(loop):
    threads = {loop.run(where()), loop.start(where()).result(60)}
    assert len(threads) == 1
    assert threading.current_thread() not in threads


@pytest.mark.filterwarnings("error")  # a coroutine that was never awaited
def test_nothing_is_started_once_it_is_closed(loop):
    thread = loop.run(where())
    loop.close()
    loop.close()
    assert not thread.is_alive()
    with pytest.raises(Unavailable, match="closed"):
        loop.run(where())


@pytest.mark.filterwarnings("error")  # as above
def test_nothing_is_started_before_1970(loop, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: -1.0)
    with pytest.raises(Unavailable) as refused:
        loop.run(where())
    assert refused.value.message == EARLY_CLOCK
