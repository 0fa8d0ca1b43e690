"""A proposed change is applied, and undone, when the process dies at any write: the note and the proposal are before or after."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from syncd.changes.proposed_text import ChangeRequest
from tests.support.promotion_steps import failing
from tests.support.promotion_vault import files
from tests.support.world import World

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]
PATH, NOTE = "References/Plan.md", "# Plan\n\none\n"


class Killed(BaseException):
    """In place of a process that dies."""


def prepared(folder: Path) -> tuple[World, str]:
    """A world with a proposal, and the path of the proposal."""
    world = World(folder)
    world.write(PATH, NOTE)
    world.run()
    world.app.operations["share.add"]({"paths": ["References"]}, lambda _: None)
    world.run()
    world.app.opened.sync.ready.set()
    default = world.app.agent_access.workspace("default")
    return world, default.propose_change(PATH, ChangeRequest(text="# Plan\n\n1\n"), "A number.").record.path


def acts(world: World, path: str) -> dict[str, Callable[[], object]]:
    promotions = world.app.services.promotions
    return {"apply": lambda: promotions.apply_change(path), "undo": lambda: promotions.unpromote(PATH)}


@pytest.mark.parametrize("what", ["apply", "undo"])
def test_a_process_that_dies_leaves_one_of_the_two(tmp_path, what):
    world, path = prepared(tmp_path)
    waiting = files(world)
    acts(world, path)["apply"]()
    applied = files(world)
    assert applied == {PATH: b"# Plan\n\n1\n"}
    back = {"apply": "undo", "undo": "apply"}[what]
    start, end = (waiting, applied) if what == "apply" else (applied, waiting)
    if what == "apply":
        acts(world, path)["undo"]()
    seen = {"before": 0, "after": 0}
    for at in itertools.count(1):
        died = True
        with failing(world, at, Killed, dead=True):
            try:
                acts(world, path)[what]()
                died = False
            except Killed:
                pass
        if not died:
            break
        world.reopen()
        world.app.services.promotions.finish_pending()
        now = files(world)
        assert now in (start, end), at
        seen["before" if now == start else "after"] += 1
        world.run()
        if now == end:
            acts(world, path)[back]()
        assert files(world) == start
    assert min(seen.values()) > 2, seen
    world.run()
    assert world.dump() == world.rebuilt(tmp_path / "other")
    world.close()
