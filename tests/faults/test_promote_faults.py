"""Promotion and its way back when the disk fails or the process dies: before or after, never two notes and never none."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from index.errors import MemexError
from syncd.notes.front_matter import read_properties, split
from tests.support.paths import ROOT
from tests.support.promotion_steps import failing, steps
from tests.support.world import World

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

NOTES = {
    "Areas/Pond.md": "see [heron](../Captures/default/Files/heron.pdf.md) and [[Captures/default/Files/heron.pdf]]\n",
    "Daily/Today.md": "[[Captures/default/Files/heron.pdf.md|one]]\n",
    "Captures/default/Other.md": "---\nid: o1\ncreated_at: 2026-11-20\n---\n[[Captures/default/Files/heron.pdf.md]]\n",
    "Captures/default/Files/heron.pdf": "%PDF the bytes",
    "Captures/default/Files/heron.pdf.md": (
        '---\nid: f1\ncreated_at: 2026-11-20\ntype: file\nfile: "[[Captures/default/Files/heron.pdf]]"\n'
        "promote: false\n---\nThe text, see [[Pond]].\n"
    ),
}


class Killed(BaseException):
    """In place of a process that dies."""


def files(folder: Path) -> dict[str, bytes]:
    found = (file for file in folder.rglob("*") if file.is_file() and ".git" not in file.parts)
    return {str(file.relative_to(folder)): file.read_bytes() for file in found}


def prepared(folder: Path) -> World:
    world = World(folder)
    for path, text in NOTES.items():
        world.write(path, text)
    world.run()
    world.app.opened.sync.ready.set()
    return world


def normal(found: dict[str, bytes]) -> dict[str, bytes]:
    """The files, without the time of the promotion."""
    lines = (
        b"".join(line for line in raw.splitlines(True) if not line.startswith(b"promoted_at:"))
        for raw in found.values()
    )
    return dict(zip(found, lines, strict=True))


@pytest.mark.parametrize("what", ["promote", "unpromote"])
@pytest.mark.parametrize("errno", [28, 5], ids=["disk full", "broken"])
def test_a_call_that_fails_leaves_all_as_it_was(tmp_path, what, errno):
    world = prepared(tmp_path)
    before, after = outcomes(world)
    start, end, back = (before, after, "unpromote") if what == "promote" else (after, before, "promote")
    if what == "promote":
        steps(world)[back]()
    refused = 0
    for at in itertools.count(1):
        with failing(world, at, lambda: OSError(errno, os.strerror(errno)), dead=False) as failed:
            try:
                steps(world)[what]()
                done = True
            except MemexError:
                done = False
        if not failed:
            assert done
            break
        world.app.opened.vault.remove_leftovers()  # what could not be taken away at the very end
        assert normal(files(world.vault)) == (end if done else start), at
        if done:
            steps(world)[back]()
        refused += not done
    assert refused > 10
    world.run()
    assert world.dump() == world.rebuilt(tmp_path / "other")
    world.close()


def outcomes(world: World) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The files before the promotion and after it."""
    before = normal(files(world.vault))
    steps(world)["promote"]()
    after = normal(files(world.vault))
    return before, after


@pytest.mark.parametrize("what", ["promote", "unpromote"])
def test_a_process_that_dies_leaves_one_of_the_two(tmp_path, what):
    world = prepared(tmp_path)
    before, after = outcomes(world)
    if what == "promote":
        steps(world)["unpromote"]()
    seen = {"before": 0, "after": 0}
    for at in itertools.count(1):
        died = True
        with failing(world, at, Killed, dead=True):
            try:
                steps(world)[what]()
                died = False
            except Killed:
                pass
        if not died:
            break
        world.reopen()
        world.app.services.promotions.finish_pending()
        now = normal(files(world.vault))
        assert now in (before, after), at
        world.run()
        ids = [read_properties(split(raw.decode())[0]).get("id") for path, raw in now.items() if path.endswith(".md")]
        assert ids.count("f1") == 1
        assert not list(world.vault.rglob(".memex-*"))
        seen["before" if now == before else "after"] += 1
        if now != (before if what == "promote" else after):
            steps(world)["unpromote" if what == "promote" else "promote"]()
    assert min(seen.values()) > 3, seen
    world.run()
    assert world.dump() == world.rebuilt(tmp_path / "other")
    world.close()


PROCESS = """
import os, signal, sys
from pathlib import Path
from tests.support.promotion_steps import failing, steps
from tests.support.world import World

class Dead(BaseException):
    def __init__(self):
        os.kill(os.getpid(), signal.SIGKILL)

world = World(Path(sys.argv[1]))
world.app.opened.sync.ready.set()
with failing(world, int(sys.argv[3]), Dead, dead=True):
    steps(world)[sys.argv[2]]()
"""


@pytest.mark.slow
def test_kill_9_leaves_one_of_the_two(tmp_path):
    world = prepared(tmp_path)
    before, after = outcomes(world)
    there = after
    world.close()
    for at in range(3, 75, 12):
        for what in ("promote", "unpromote"):
            process = [sys.executable, "-c", PROCESS, str(tmp_path), what, str(at)]
            died = subprocess.run(process, check=False, cwd=ROOT, env=os.environ | {"PYTHONPATH": "."})
            assert died.returncode in (0, -signal.SIGKILL, 1), died
            world = World(tmp_path)
            world.app.services.promotions.finish_pending()
            world.run()
            there = normal(files(world.vault))
            assert there in (before, after), (at, what)
            world.close()
