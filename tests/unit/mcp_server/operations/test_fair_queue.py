"""Places are given out in turn: no name waits behind all requests of another, and who gives up leaves nothing."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.operations import fair_queue
from mcp_server.operations.fair_queue import FairQueue, QueueFull


async def settle():
    """Let every task go on as far as it can."""
    for _ in range(5):
        await asyncio.sleep(0)


class Line:
    """A queue of one place, which is taken, and those who have come up since, in order."""

    def __init__(self, *, places=1, **options):
        self.queue = FairQueue(places, **{"waiting": 8} | options)
        self.came: list[str] = []
        self.tasks: list[asyncio.Task] = []

    async def ask(self, *names):
        for name in names:
            self.tasks.append(asyncio.create_task(self._come(name)))
            await settle()

    async def _come(self, name):
        await self.queue.take(name)
        self.came.append(name)


def test_names_take_turns_however_many_requests_one_of_them_has():
    async def work():
        line = Line()
        await line.ask("busy", "busy", "busy", "busy", "calm", "calm", "other")
        while len(line.came) < 7:
            line.queue.release(line.came[-1])
            await settle()
        return line.came

    assert asyncio.run(work()) == ["busy", "busy", "calm", "other", "busy", "calm", "busy"]


def test_one_name_never_has_the_last_places():
    async def work():
        line = Line(places=4, each=3)
        await line.ask("busy", "busy", "busy", "busy", "calm")
        held = list(line.came)
        line.queue.release("calm")
        await settle()
        kept = list(line.came)
        line.queue.release("busy")
        await settle()
        return held, kept, line.came

    held, kept, came = asyncio.run(work())
    assert held == kept == ["busy", "busy", "busy", "calm"]
    assert came[4:] == ["busy"]


def test_a_full_line_is_told_and_another_name_still_waits(monkeypatch):
    async def work():
        line = Line(waiting=2)
        await line.ask("busy", "busy", "busy")
        with pytest.raises(QueueFull):
            await line.queue.take("busy")
        await line.ask("calm")
        monkeypatch.setattr(fair_queue, "MOST", 3)
        with pytest.raises(QueueFull):
            await line.queue.take("third")
        return line.queue.waiting()

    assert asyncio.run(work()) == 3


def test_who_gives_up_leaves_the_line_even_when_its_turn_has_just_come():
    async def work():
        line = Line()
        await line.ask("first", "second", "third")
        line.tasks[1].cancel()
        await settle()
        assert line.queue.waiting() == 1
        line.queue.release("first")  # it is the turn of the third, who hears of it and is cancelled at once
        line.tasks[2].cancel()
        await settle()
        assert line.queue.waiting() == 0
        return line.queue.take_free("fourth"), line.queue.take_free("fifth")

    assert asyncio.run(work()) == (True, False)


@given(
    places=st.integers(1, 4),
    each=st.integers(1, 4),
    steps=st.lists(st.tuples(st.sampled_from(["ask", "release", "cancel"]), st.sampled_from("abc")), max_size=60),
)
def test_no_place_is_given_twice_and_none_is_lost(places, each, steps):
    async def work():
        queue, holders, tasks = FairQueue(places, each=each, waiting=100), [], []

        async def come(name):
            await queue.take(name)
            holders.append(name)

        for step, name in steps:
            if step == "ask":
                tasks.append(asyncio.create_task(come(name)))
            elif step == "release" and name in holders:
                holders.remove(name)
                queue.release(name)
            elif step == "cancel" and tasks:
                tasks.pop().cancel()
            await settle()
            assert len(holders) <= places
            assert all(holders.count(one) <= each for one in "abc")
        while holders:
            queue.release(holders.pop())
            await settle()
        assert queue.waiting() == 0
        assert [queue.take_free(f"new {number}") for number in range(places + 1)] == [True] * places + [False]

    asyncio.run(work())
