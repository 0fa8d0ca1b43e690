"""A clock that is ahead for a while lets nothing be removed that is not old."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from syncd.state import trusted_time
from syncd.state.ledger import Ledger
from syncd.state.trusted_time import EARLIEST_MS, STEP_MS, advance, trusted_ms
from tests.support.world import World, promote

HOUR_S, DAY_S = 3600, 24 * 3600
NOTE = "---\nid: {id}\ntype: note\ncreated_at: 2026-01-01T00:00:00Z\nsource: agent\n---\nA heron stood there.\n"


class Clock:
    """Shows the real time plus `ahead_s`, to everything in this process that asks for the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead_s, now, now_ns = 0, time.time, time.time_ns
        monkeypatch.setattr(time, "time", lambda: now() + self.ahead_s)
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() + self.ahead_s * 10**9)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


def forget_old_versions(world: World) -> None:
    world.app.operations["job.run"]({"name": "old versions", "wait": True}, lambda _: None)


def kept(world: World) -> tuple[int, int]:
    """Return how many overwritten versions and how many texts of promotions are kept."""
    rows = world.app.opened.ledger.query("SELECT 1 FROM promoted_files WHERE before IS NOT NULL")
    return len(list(Path(world.state, "past").iterdir())), len(rows)


def test_a_clock_that_is_ahead_for_some_hours_removes_no_version(world, clock):
    forget_old_versions(world)
    world.write("Captures/default/A.md", NOTE.format(id="a"))
    world.run()
    promote(world, "a", to="Birds")
    world.app.opened.overwritten.keep(b"overwritten")
    before = kept(world)
    assert min(before) > 0
    clock.ahead_s = 40 * DAY_S
    for _ in range(5):
        forget_old_versions(world)
        clock.ahead_s += HOUR_S
    assert kept(world) == before
    clock.ahead_s = 0
    forget_old_versions(world)
    assert kept(world) == before


def test_versions_are_removed_after_a_long_pause_of_the_daemon(world, clock):
    forget_old_versions(world)
    world.app.opened.overwritten.keep(b"overwritten")
    clock.ahead_s = 40 * DAY_S
    for _ in range(40):
        forget_old_versions(world)
    assert kept(world) == (0, 0)


def test_everything_goes_at_once_if_nothing_is_to_be_kept(tmp_path, clock):
    from syncd.settings.settings import GitSettings

    world = World(tmp_path)
    forget_old_versions(world)
    clock.ahead_s = 40 * DAY_S
    world.app.opened.overwritten.keep(b"overwritten")
    world._sections["git"] = GitSettings(past_days=0)
    world.reopen()
    clock.ahead_s = 0
    forget_old_versions(world)
    assert kept(world) == (0, 0)
    world.close()


@pytest.mark.parametrize("first_times", [(), (3,), (3, 4)], ids=["", "1970 at first", "1970 twice"])
def test_the_trusted_time_is_never_later_than_the_clock_and_a_clock_at_its_start_does_not_delay_it(
    tmp_path, monkeypatch, first_times
):
    now = 0
    monkeypatch.setattr(trusted_time, "now_ms", lambda: now)
    tmp_path.chmod(0o700)
    ledger = Ledger.open(tmp_path / "ledger.db")
    for now in first_times:
        assert (trusted_ms(ledger), advance(ledger)) == (now, now)
    now = EARLIEST_MS + 50 * STEP_MS
    assert (trusted_ms(ledger), advance(ledger)) == (now, now)  # the first time is the only one there is
    now += 40 * STEP_MS
    expected = [EARLIEST_MS + days * STEP_MS for days in (51, 51, 52)]
    assert [trusted_ms(ledger), advance(ledger), advance(ledger)] == expected
    now = 3
    assert (trusted_ms(ledger), advance(ledger)) == (3, 3)
    now = EARLIEST_MS + 51 * STEP_MS
    assert advance(ledger) == now
    ledger.close()
