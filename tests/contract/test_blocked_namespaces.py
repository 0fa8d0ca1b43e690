"""A namespace that can't be a folder is refused at once, by every way to write, and holds up nobody."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from tests.support.live_server import Rim, client, run, running
from tests.support.world import until

KEY = "work"
BLOCKED = (
    "Zed.md",
    "ZED.MD",
    "a/b.md/c",
    "file",
    "file/below",
    "file/böhm",
    "link",
    "link/below",
    "dangling",
    "loop",
    "pipe",
)


@pytest.fixture(scope="module")
def rim(tmp_path_factory) -> Iterator[Rim]:
    def fill(world):
        space = world.vault / "Captures/work"
        world.write("Captures/work/Zed.md", "# Zed\n")
        world.write("Private/Diary.md", "mine\n")
        (space / "file").write_bytes(b"no folder")
        (space / "link").symlink_to("../../Private")
        (space / "dangling").symlink_to("nowhere")
        (space / "loop").symlink_to("loop")
        os.mkfifo(space / "pipe")

    with running(tmp_path_factory.mktemp("rim"), fill=fill) as opened:
        yield opened


def job_ended(rim, answer):
    """The job that an answer names, once it has ended; the answer itself where it was refused."""
    if answer.status_code == 400:
        return answer.json()
    path = f"/api/v1/jobs/{answer.json()['job_id']}"
    until(lambda: rim.rest("GET", path, key=KEY).json()["status"] in ("done", "failed"), 20)
    return rim.rest("GET", path, key=KEY).json()


def saved(rim, **given):
    async def call():
        async with client(rim, key=KEY) as mcp:
            return (await mcp.call_tool("memory_save", given)).content

    return run(call())


WAYS = {
    "capture": lambda rim, space: rim.rest(
        "POST", "/capture", key=KEY, json={"content": "c", "namespace": space}
    ).json(),
    "memo": lambda rim, space: saved(rim, content="a memo", namespace=space),
    "file job": lambda rim, space: job_ended(
        rim,
        rim.rest("POST", "/api/v1/jobs", key=KEY, data={"namespace": space}, files={"file": ("a.csv", b"a,b\n1,2\n")}),
    ),
    "uploaded note": lambda rim, space: job_ended(
        rim, rim.rest("POST", "/api/v1/jobs", key=KEY, data={"namespace": space}, files={"file": ("a.md", b"# A\n")})
    ),
}


@pytest.mark.parametrize("namespace", BLOCKED)
@pytest.mark.parametrize("way", WAYS)
def test_it_is_refused_at_once(rim, way, namespace):
    before = rim.files()
    begun = time.monotonic()
    answer = WAYS[way](rim, namespace)
    assert time.monotonic() - begun < 20
    assert "INVALID_ARGUMENT" in str(answer), answer
    assert "blocks the path" in str(answer) or "end in .md" in str(answer), answer
    assert "Captures" not in str(answer)
    assert rim.files() == before


def test_nobody_s_work_is_held_up(rim):
    """Forty callers at once, more than a key has places, and another key's capture right behind them."""
    asked = [threading.Thread(target=WAYS["capture"], args=(rim, namespace)) for namespace in BLOCKED for _ in range(4)]
    for thread in asked:
        thread.start()
    assert rim.rest("POST", "/capture", key="full", json={"content": "mine"}).status_code == 200
    for thread in asked:
        thread.join(30)
        assert not thread.is_alive()
