"""Who is admitted at once, who waits, and what a request that waits holds and hears."""

from __future__ import annotations

import asyncio

import pytest

from mcp_server.guard import admission
from mcp_server.guard.admission import Admission, ClientLeft, TooBusy
from mcp_server.guard.token_bucket import TokenBuckets
from mcp_server.operations import fair_queue
from syncd.settings.access import LimitsSettings

BODY = {"type": "http.request", "body": b"all of it", "more_body": False}
PIECE = {"type": "http.request", "body": b"the first piece", "more_body": True}
LEFT = {"type": "http.disconnect"}


class Connection:
    """What a client sends, as a server hands it on; `taken` is what has been asked for."""

    def __init__(self, *messages):
        self._messages: asyncio.Queue = asyncio.Queue()
        self.taken: list[dict] = []
        for message in messages:
            self.send(message)

    def send(self, message):
        self._messages.put_nowait(message)

    async def receive(self):
        self.taken.append(await self._messages.get())
        return self.taken[-1]


def make(**limits):
    settings = LimitsSettings(**{"rate": 0.0, "queue": 3, "wait_s": 5.0} | limits)
    return Admission(settings, TokenBuckets(settings.rate, settings.burst))


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def one_place(monkeypatch):
    monkeypatch.setattr(admission, "PLACES", 1)
    monkeypatch.setattr(admission, "EACH", 1)


@pytest.mark.usefixtures("one_place")
@pytest.mark.parametrize(("sent", "taken"), [([BODY], [BODY]), ([PIECE, BODY], [PIECE])], ids=["whole", "piece"])
def test_who_waits_holds_no_more_than_the_server_had_and_loses_none_of_it(sent, taken):
    async def work():
        gate, link = make(), Connection(*sent)
        first, _ = await gate.admit("a", Connection().receive, is_stream=False)
        second = asyncio.create_task(gate.admit("b", link.receive, is_stream=False))
        await settle()
        assert link.taken == taken
        first.close()
        first.close()  # a second time does nothing
        place, receive = await second
        assert [await receive() for _ in sent] == sent
        assert not gate._places.take_free("c")
        place.close()
        assert gate._places.take_free("c")
        assert not gate._places.take_free("c")

    asyncio.run(work())


@pytest.mark.usefixtures("one_place")
def test_who_hangs_up_leaves_the_queue():
    async def work():
        gate, link = make(), Connection(BODY)
        first, _ = await gate.admit("a", Connection().receive, is_stream=False)
        second = asyncio.create_task(gate.admit("a", link.receive, is_stream=False))
        third = asyncio.create_task(gate.admit("a", Connection(BODY).receive, is_stream=False))
        await settle()
        assert gate._places.waiting() == 2
        link.send(LEFT)
        with pytest.raises(ClientLeft):
            await second
        assert gate._places.waiting() == 1
        first.close()
        await third

    asyncio.run(work())


@pytest.mark.usefixtures("one_place")
def test_a_key_with_too_many_waiting_is_refused_alone_and_nobody_waits_for_ever():
    async def work():
        gate = make(queue=2, wait_s=0.2)
        await gate.admit("a", Connection().receive, is_stream=False)
        waiting = [asyncio.create_task(gate.admit("a", Connection(BODY).receive, is_stream=False)) for _ in range(2)]
        await settle()
        with pytest.raises(TooBusy) as refused:
            await gate.admit("a", Connection(BODY).receive, is_stream=False)
        assert refused.value.wait > 0
        other = asyncio.create_task(gate.admit("b", Connection(BODY).receive, is_stream=False))
        ended = await asyncio.gather(*waiting, other, return_exceptions=True)
        assert [type(one) for one in ended] == [TooBusy] * 3
        assert [await one.receive() for one in ended] == [BODY] * 3
        await gate.admit("a", Connection().receive, is_stream=True)  # a stream takes no place

    asyncio.run(work())


@pytest.mark.usefixtures("one_place")
def test_a_stream_leaves_a_free_place_to_the_requests():
    async def work():
        gate = make()
        await gate.admit("a", Connection().receive, is_stream=True)
        assert gate._places.take_free("a")

    asyncio.run(work())


@pytest.mark.usefixtures("one_place")
def test_a_request_for_which_the_whole_queue_is_full_is_refused_and_loses_nothing(monkeypatch):
    monkeypatch.setattr(fair_queue, "MOST", 1)

    async def work():
        gate = make()
        first, _ = await gate.admit("a", Connection().receive, is_stream=False)
        second = asyncio.create_task(gate.admit("b", Connection(BODY).receive, is_stream=False))
        await settle()
        with pytest.raises(TooBusy) as refused:
            await gate.admit("c", Connection(BODY).receive, is_stream=False)
        assert await refused.value.receive() == BODY
        first.close()
        await second

    asyncio.run(work())


def test_requests_that_come_too_fast_follow_each_other_at_the_rate():
    async def work():
        gate = make(rate=50.0, burst=2, queue=4)
        begun = asyncio.get_running_loop().time()

        async def ask():
            await gate.admit("a", Connection(BODY).receive, is_stream=False)
            return asyncio.get_running_loop().time() - begun

        return await asyncio.gather(*(ask() for _ in range(7)), return_exceptions=True)

    came = asyncio.run(work())
    assert [type(one) for one in came] == [float] * 6 + [TooBusy]
    assert all(at >= number * 0.02 - 0.005 for number, at in enumerate(came[2:6], 1))
    assert came[:6] == sorted(came[:6])


def test_a_key_holds_so_many_streams_and_others_are_not_touched():
    async def work():
        gate = make(rate=0.001, burst=admission.STREAMS, wait_s=0.1)
        held = [await gate.admit("a", Connection().receive, is_stream=True) for _ in range(admission.STREAMS - 1)]
        first = held[0][0]
        await gate.admit("a", Connection().receive, is_stream=False)  # a request is no stream
        with pytest.raises(TooBusy):  # too fast: leaves nothing behind
            await gate.admit("a", Connection(BODY).receive, is_stream=True)
        gate._rates = TokenBuckets(0, 1)
        last, _ = await gate.admit("a", Connection().receive, is_stream=True)
        with pytest.raises(TooBusy, match="32 open streams"):
            await gate.admit("a", Connection().receive, is_stream=True)
        await gate.admit("b", Connection().receive, is_stream=True)
        for ended in (first, first, last):
            ended.close()
        for _ in range(2):
            await gate.admit("a", Connection().receive, is_stream=True)
        with pytest.raises(TooBusy, match="32 open streams"):
            await gate.admit("a", Connection().receive, is_stream=True)

    asyncio.run(work())
