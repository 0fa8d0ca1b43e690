"""How long a client whose request is refused is listened to."""

from __future__ import annotations

import asyncio

import pytest

from mcp_server.http import refusals
from mcp_server.http.refusals import Refusal, refuse

REFUSAL = Refusal(415, "INVALID_ARGUMENT", "no")


def listened_to(piece, pause, *, drain=True):
    """The messages of an answer to a client that goes on sending, and how many pieces were taken, within two seconds."""
    taken, sent = 0, []

    async def receive():
        nonlocal taken
        await asyncio.sleep(pause)
        taken += 1
        return {"type": "http.request", "body": piece, "more_body": taken < 40}

    async def send(message):
        sent.append(message)

    async def story():
        await asyncio.wait_for(refuse(REFUSAL, receive, send, keyed=True, drain=drain), 2)

    asyncio.run(story())
    assert sent[0]["status"] == 415
    assert sent[-1]["more_body"] is False
    return taken


@pytest.mark.parametrize(("piece", "all_of_it"), [(b"x", False), (bytes(16_384), True)], ids=["drip", "steady"])
def test_who_keeps_no_pace_is_not_listened_to(monkeypatch, piece, all_of_it):
    monkeypatch.setattr(refusals, "PACE_SECONDS", 0.1)
    assert (listened_to(piece, 0.01) == 40) is all_of_it


def test_without_a_drain_nothing_more_is_taken():
    assert listened_to(b"x", 0.01, drain=False) == 0
