"""Run promotions and their reversal in single steps, with a fault at a chosen write."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.support.world import World, promote

CALLS = ("write", "fsync", "fchmod", "rename", "exchange", "unlink", "mkdir", "rmdir")


@contextmanager
def failing(world: World, at: int, error: Callable[[], BaseException], *, dead: bool) -> Iterator[list[int]]:
    """Let the `at`-th call that changes the disk fail; with `dead`, also every later call. The list receives the numbers of the failed calls."""
    calls = itertools.count(1)
    failed: list[int] = []

    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            number = next(calls)
            if number == at or (dead and number > at):
                failed.append(number)
                raise error()
            return real(*given, **named)

        return call

    vault, ledger = world.app.opened.vault, world.app.opened.ledger
    whole, run = vault._calls, ledger.execute
    vault._calls = replace(whole, **{name: wrapped(getattr(whole, name)) for name in CALLS})
    if dead:
        ledger.execute = wrapped(run)
    try:
        yield failed
    finally:
        vault._calls, ledger.execute = whole, run


def steps(world: World) -> dict[str, Callable[[], object]]:
    own = world.app.services.promotions
    return {"promote": lambda: promote(world, "f1", to="Birds"), "unpromote": lambda: own.unpromote("f1")}
