"""Many who ask how the daemon is cost one computation, and nobody gets an answer that is not theirs or is old."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace

import pytest

from index.errors import Unavailable
from mcp_server.operations import health_cache
from mcp_server.operations.health_cache import FRESH_S, MOST, HealthCache

MINE, THEIRS = frozenset({"mine"}), frozenset({"theirs"})


class Health:
    """Counts how often it is asked about each workspace; it waits while `gate` is closed."""

    def __init__(self):
        self.asked, self.gate, self.fails = [], threading.Event(), False
        self.gate.set()

    def __call__(self, visible):
        assert self.gate.wait(30)
        self.asked.append(visible)
        if self.fails:
            raise Unavailable("the ledger can't be read")
        return {"asked": len(self.asked), "of": visible}


def test_those_who_ask_at_once_share_one_computation():
    health = Health()

    async def work():
        cache = HealthCache(health)
        health.gate.clear()
        for visible in (MINE, None):
            waiting = [asyncio.create_task(cache.read(visible)) for _ in range(50)]
            await asyncio.sleep(0)
            waiting[0].cancel()  # the first of them leaves
            health.gate.set()
            answers = await asyncio.gather(*waiting[1:])
            assert all(answer is answers[0] for answer in answers)

    asyncio.run(work())
    assert health.asked == [MINE, None]


def test_an_answer_is_given_for_a_second_but_to_the_owner(monkeypatch):
    health, clock = Health(), [100.0]
    monkeypatch.setattr(health_cache, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    async def work():
        cache = HealthCache(health)
        first = await cache.read(MINE)
        clock[0] += FRESH_S - 0.01
        assert await cache.read(MINE) is first
        assert (await cache.read(THEIRS))["of"] == THEIRS
        assert (await cache.read(frozenset()))["of"] == frozenset()
        clock[0] += 0.02
        assert (await cache.read(MINE))["asked"] == 4
        assert [(await cache.read(None))["asked"] for _ in range(3)] == [5, 6, 7]

    asyncio.run(work())


def test_a_failure_is_told_to_who_asked_and_not_kept():
    health = Health()

    async def work():
        cache = HealthCache(health)
        health.fails = True
        with pytest.raises(Unavailable):
            await cache.read(MINE)
        health.fails = False
        assert (await cache.read(MINE))["asked"] == 2

    asyncio.run(work())


def test_sets_of_workspaces_cost_bounded_memory():
    health = Health()

    async def work():
        cache = HealthCache(health)
        for number in range(MOST + 20):
            await cache.read(frozenset({f"space {number}"}))
        assert len(cache._answers) == MOST

    asyncio.run(work())
