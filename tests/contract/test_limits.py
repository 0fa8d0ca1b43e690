"""The daemon's own limits: honest clients never meet them, and a key that asks without end delays itself alone."""

import asyncio

import httpx2
import psutil
import pytest

from syncd.settings.access import LimitsSettings
from tests.support.honest_load import Answers, agents_at_once, search_at_each_key, seconds_of, walk_over_pages
from tests.support.live_server import running

NOTES = 130
SLOWEST = 10.0  # seconds that 95 of 100 requests stay below, on a busy machine too


def fill(world):
    for number in range(NOTES):
        world.write(f"Captures/work/Tide {number}.md", f"The harbour pilot keeps licence {number}.\n")


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim") / "state", limits=LimitsSettings(), fill=fill) as served:
        yield served


@pytest.mark.parametrize(
    ("ask", "options", "asked"),
    [
        (agents_at_once, {"notes": 1}, 80),
        (walk_over_pages, {}, 120),
        (search_at_each_key, {"times": 60, "pause": 0.015}, 60),
    ],
    ids=["agents", "walk", "search box"],
)
def test_an_honest_client_meets_no_limit(rim, ask, options, asked):
    answers, _ = seconds_of(ask(rim, **options))
    assert (answers.asked, answers.refused, answers.failed) == (asked, 0, [])
    assert answers.p95 < SLOWEST


async def flood(rim, answers, connections):
    """One key asks on so many connections until it is stopped."""

    async def one():
        async with httpx2.AsyncClient(base_url=rim.url, headers=rim.headers("two"), timeout=60) as http:
            while True:
                answers.asked += 1
                answer = await http.post("/search", json={"query": "harbour " * 200})
                answers.refused += answer.status_code == 429

    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(one())


@pytest.mark.slow
@pytest.mark.parametrize("ask", [agents_at_once, walk_over_pages, search_at_each_key])
def test_an_honest_client_meets_no_limit_beside_a_key_that_floods(rim, ask):
    before, abuse = psutil.Process().memory_info().rss, Answers()

    async def work():
        flooding = asyncio.create_task(flood(rim, abuse, 120))
        await asyncio.sleep(2.0)
        try:
            return await ask(rim)
        finally:
            flooding.cancel()
            await asyncio.gather(flooding, return_exceptions=True)

    answers, _ = seconds_of(work())
    assert (answers.refused, answers.failed) == (0, [])
    assert abuse.refused > 0, abuse
    assert answers.p95 < SLOWEST
    assert psutil.Process().memory_info().rss - before < 128 * 2**20
