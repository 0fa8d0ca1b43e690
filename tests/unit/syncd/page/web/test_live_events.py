"""syncd/page/web/live_events.py: open pages follow the daemon, also after this machine was short of something."""

from __future__ import annotations

import asyncio
import errno
import os
import time

import pytest
from starlette.requests import Request

from syncd.page.web import live_events
from syncd.page.web.live_events import LiveEvents
from syncd.page.web.sessions import Sessions

GONE = 'data: {"answers": false, "stamp": ""}\n\n'
BACK = 'data: {"answers": true, "stamp": "1"}\n\n'
ERRORS = [
    OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
    RuntimeError("can't start new thread"),
]


class Daemon:
    """Answers each question with the next of these stamps, and then with the last one; an error is raised."""

    def __init__(self, *stamps):
        self.stamps = list(stamps)

    def __call__(self):
        stamp = self.stamps.pop(0) if len(self.stamps) > 1 else self.stamps[0]
        if isinstance(stamp, Exception):
            raise stamp
        return stamp


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(live_events, "LOOK_S", 0.01)
    sessions = Sessions(time.time)
    return sessions, sessions.find(sessions.redeem(sessions.make_link(), "Firefox"))


def stream(session, daemon):
    sessions, mine = session
    events = LiveEvents(daemon, sessions, lambda: None)
    return events, events._stream(Request({"type": "http", "session": mine}))


async def take(lines, count):
    async with asyncio.timeout(10):
        return [await anext(lines) for _ in range(count)]


@pytest.mark.parametrize("error", ERRORS, ids=["no descriptor", "no thread"])
def test_a_page_follows_the_daemon_again_after_no_connection_could_be_made(session, caplog, error):
    async def work():
        events, lines = stream(session, Daemon(error, error, error, 1))
        shown = await take(lines, 2)
        await lines.aclose()
        assert events._follower is None
        return shown

    assert asyncio.run(work()) == [GONE, BACK]
    assert len([record for record in caplog.records if str(error) in record.getMessage()]) == 1


def test_a_page_that_opens_after_the_follower_ended_starts_a_new_one(session):
    """One open page must not keep a follower that a fault of Memex itself has ended."""

    async def work():
        events, first = stream(session, Daemon(ValueError("a fault of Memex"), 1))
        waiting = asyncio.create_task(anext(first))
        await asyncio.sleep(0)  # until the stream has started its follower
        await asyncio.wait({events._follower}, timeout=10)
        second = events._stream(Request({"type": "http", "session": session[1]}))
        shown = await take(second, 1), await waiting
        await second.aclose()
        await first.aclose()
        return shown

    assert asyncio.run(work()) == ([BACK], BACK)
