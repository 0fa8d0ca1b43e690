"""Progress and cancellation over real HTTP, in both eras: signs of life, and no place held for who left."""

import asyncio

import pytest

from mcp_server.operations.operation import ABANDONED, READERS
from mcp_server.protocol import mcp_protocol
from tests.support.live_server import SLOW, client, run, running
from tests.support.world import until

MODES = ("legacy", "2026-07-28")
WAYS = [(way, mode) for way in ("http", "sse", "stdio") for mode in MODES]


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim") / "state") as served:
        yield served


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(mcp_protocol, "BEAT_SECONDS", 0.1)


async def reported(mcp, rim, tool, arguments, *, beats):
    """What is told while a call waits for the encoder, and what it answers at last."""
    told = []
    enough = asyncio.Event()

    async def heard(done, total, message):
        told.append((done, total, message))
        if len(told) >= beats:
            enough.set()

    with rim.encoder.held():
        call = asyncio.create_task(mcp.call_tool(tool, arguments, progress_callback=heard))
        await asyncio.wait_for(enough.wait(), 20)
    return told, await call


@pytest.mark.parametrize(("way", "mode"), WAYS)
def test_a_call_that_takes_its_time_says_that_it_lives(rim, way, mode):
    space = rim.space()

    async def work():
        async with client(rim, key=space.name, mode=mode, way=way) as mcp:
            return await reported(mcp, rim, "semantic_search", {"query": f"where is the {SLOW}"}, beats=3)

    told, answer = run(work())
    assert not answer.is_error
    seconds = [done for done, _, _ in told]
    assert seconds == sorted(set(seconds))
    assert all(total is None and message.startswith("running for") for _, total, message in told)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_large_capture_says_how_many_passages_are_embedded(rim, mode):
    space = rim.space()
    parts = [f"## Part {n} of {mode}\n\n" + f"word{n} " * 150 for n in range(100)]
    content = "\n\n".join([*parts, f"## End\n\n{SLOW}\n"])

    async def work():
        async with client(rim, key=space.name, mode=mode) as mcp:
            return await reported(mcp, rim, "capture_thought", {"content": content}, beats=3)

    told, answer = run(work())
    assert answer.structured_content["created"] is True
    assert "passages embedded" in told[-1][2]


@pytest.mark.parametrize("mode", MODES)
def test_a_read_that_is_cancelled_gives_its_place_free(rim, mode):
    space = rim.space()
    space.capture("the heron stands")

    async def work():
        async with client(rim, key=space.name, mode=mode) as mcp:
            calls = [
                asyncio.create_task(mcp.call_tool("semantic_search", {"query": f"{SLOW} {n}"})) for n in range(READERS)
            ]
            for _ in calls:
                assert await asyncio.to_thread(rim.encoder.waiting.acquire, timeout=20)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            return await asyncio.wait_for(mcp.call_tool("semantic_search", {"query": "heron"}), 10)

    with rim.encoder.held():
        answer = run(work())
    assert answer.structured_content["results"][0]["chunk_content"] == "the heron stands"


@pytest.mark.slow
def test_reads_that_nobody_waits_for_do_not_pile_up_without_end(rim):
    space = rim.space()

    async def work():
        async with client(rim, key=space.name, mode=MODES[1]) as mcp:
            for _ in range((READERS + ABANDONED) // READERS):
                calls = [asyncio.create_task(mcp.call_tool("semantic_search", {"query": SLOW})) for _ in range(READERS)]
                for _ in calls:
                    assert await asyncio.to_thread(rim.encoder.waiting.acquire, timeout=20)
                for call in calls:
                    call.cancel()
                await asyncio.gather(*calls, return_exceptions=True)
            refused = await mcp.call_tool("list_recent", {})
            rim.encoder.gate.set()
            while (answer := await mcp.call_tool("list_recent", {})).is_error:  # noqa: ASYNC110 - threads say no event
                await asyncio.sleep(0.05)
            return refused, answer

    with rim.encoder.held():
        refused, answer = run(work())
    told = refused.meta["dev.memex/error"]
    assert (told["code"], told["retryable"]) == ("UNAVAILABLE", True)
    assert answer.structured_content["results"] == []


@pytest.mark.parametrize("mode", MODES)
def test_a_write_that_is_cancelled_is_completed(rim, mode):
    space = rim.space()

    async def work():
        async with client(rim, key=space.name, mode=mode) as mcp:
            call = asyncio.create_task(mcp.call_tool("capture_thought", {"content": f"cancelled {SLOW} {mode}"}))
            assert await asyncio.to_thread(rim.encoder.waiting.acquire, timeout=20)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    with rim.encoder.held():
        run(work())
    until(lambda: [record.title for record in space.tools.recent()] == [f"cancelled {SLOW} {mode}"])
