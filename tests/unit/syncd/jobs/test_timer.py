"""When jobs are due: by intervals, by cron times, and when the clock is changed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from syncd.jobs.timer import COMMON_S, REST_S, Cron, Every
from tests.support.paths import ROOT
from tests.support.shifted_clock import Clock


def test_a_machine_that_slept_for_years_owes_one_run():
    trigger, woken = Every(9), datetime(2026, 11, 21, tzinfo=UTC)
    owed = datetime(1970, 1, 1, tzinfo=UTC)
    assert trigger.get_next_fire_time(owed, woken) == woken + timedelta(seconds=9)
    assert trigger.get_next_fire_time(None, woken) == woken + timedelta(seconds=9)


@pytest.mark.parametrize("seconds", [3.0, 5.0, 9.0, 10.0, 30.0, 60.0, 3600.0])
@pytest.mark.parametrize("late", [0.0, 0.004, 1.2, 1.7, 2.9])
def test_jobs_with_different_intervals_wake_the_daemon_together(seconds, late):
    now = datetime(2026, 11, 21, tzinfo=UTC) + timedelta(seconds=late)
    due = Every(seconds).get_next_fire_time(None, now)
    assert due.timestamp() % COMMON_S == 0
    assert abs((due - now).total_seconds() - seconds) <= COMMON_S / 2


@pytest.mark.parametrize("seconds", [0.5, 3.0, 9.0, 29.0])
def test_jobs_that_rest_wake_the_daemon_twice_a_minute(seconds):
    now = datetime(2026, 11, 21, 0, 2, 11, tzinfo=UTC)
    resting = True
    trigger = Every(seconds, lambda: resting)
    due = trigger.get_next_fire_time(None, now)
    assert due.timestamp() % REST_S == 0
    assert abs((due - now).total_seconds() - REST_S) <= REST_S / 2
    resting = False
    assert trigger.get_next_fire_time(None, now) == Every(seconds).get_next_fire_time(None, now)


@pytest.mark.parametrize("seconds", [REST_S, 60.0, 3600.0])
def test_a_job_that_is_rarer_than_a_rest_keeps_its_interval(seconds):
    now = datetime(2026, 11, 21, 0, 2, 11, tzinfo=UTC)
    assert Every(seconds, lambda: True).get_next_fire_time(None, now) == Every(seconds).get_next_fire_time(None, now)


@pytest.fixture
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield ZoneInfo("Europe/Berlin")
    monkeypatch.undo()
    time.tzset()


def test_a_time_of_day_is_that_of_the_place_summer_and_winter(berlin):
    trigger = Cron("30 3 * * *")
    moment, days = datetime(2026, 3, 27, 12, tzinfo=UTC), []
    for _ in range(4):
        moment = trigger.get_next_fire_time(None, moment)
        days.append((moment.astimezone(berlin).strftime("%d %H:%M"), moment.astimezone(UTC).hour))
    assert days == [("28 03:30", 2), ("29 03:30", 1), ("30 03:30", 1), ("31 03:30", 1)]


@pytest.mark.parametrize(("month", "day", "local"), [(3, 29, "03:30"), (10, 25, "02:30")])
def test_an_hour_that_a_day_lacks_or_has_twice_owes_one_run(berlin, month, day, local):
    trigger, moment, runs = Cron("30 2 * * *"), datetime(2026, month, day - 1, 12, tzinfo=UTC), []
    while (moment := trigger.next_after(moment)) < datetime(2026, month, day + 1, 12, tzinfo=UTC):
        runs.append(moment.astimezone(berlin).strftime("%d %H:%M"))
    assert runs == [f"{day} {local}", f"{day + 1} 02:30"]


def test_of_the_times_that_were_slept_through_one_is_owed():
    trigger, woken = Cron("* * * * *"), datetime(2026, 11, 21, 10, 0, 30, tzinfo=UTC)
    assert trigger.get_next_fire_time(datetime(1970, 1, 1, tzinfo=UTC), woken) == woken + timedelta(seconds=30)
    on_time = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
    assert trigger.get_next_fire_time(None, on_time) == on_time + timedelta(minutes=1)


def run_with_clock(script, folder):
    """Run a script whose clock it can set; return what it prints."""
    environ = os.environ | Clock(folder).environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=120).stdout


CLOCK = """
import os, threading, time
from pathlib import Path
from syncd.jobs.scheduler import Scheduler
clock, runs, turned = Path(os.environ["CLOCK_SET"]), {"tick": 0, "daily": 0, "nightly": 0}, threading.Event()
jobs = Scheduler()
def count(name):
    runs[name] += 1
jobs.every("tick", 0.1, lambda: count("tick"))
jobs.every("daily", 86400.0, lambda: count("daily"))
at = time.localtime(time.time() - 7200)
jobs.cron("nightly", f"{at.tm_min} {at.tm_hour} * * *", lambda: count("nightly"))
jobs.start()
for days in (0, -1, 0, 1, -1, 20000):
    before, was = dict(runs), time.time()
    fresh = clock.with_name("fresh")
    fresh.write_text(str(days * 86400))
    fresh.replace(clock)
    turned.wait(1.5)
    print(days, round((time.time() - was) / 86400), *(runs[name] - before[name] for name in runs), flush=True)
jobs.stop()
"""


@pytest.mark.slow
@pytest.mark.skipif(not Clock.possible, reason="needs a C compiler to set a process's clock")
def test_a_clock_that_jumps_neither_stops_nor_floods_jobs(tmp_path):
    said = run_with_clock(CLOCK, tmp_path)
    turns = [tuple(map(int, line.split())) for line in said.splitlines()]
    assert [(days, shift) for days, shift, *_ in turns] == [
        (0, 0),
        (-1, -1),
        (0, 1),
        (1, 1),
        (-1, -2),
        (20000, 20001),
    ]
    assert all(2 <= ticks <= 17 for _, _, ticks, *_ in turns), f"a tick each 0.1 s for 1.5 s\n{said}"
    # Each jump ahead owes one run, however far it is; a jump back owes none and stops none.
    assert [daily for *_, daily, _ in turns] == [0, 0, 1, 1, 0, 1], said
    assert [nightly for *_, nightly in turns] == [0, 0, 1, 1, 0, 1], said


MIDST = """
import os, threading, time
from pathlib import Path
from syncd.jobs import scheduler, timer
clock, ticks, turns = Path(os.environ["CLOCK_SET"]), [], iter((-86400,))
class Turned(timer.Every):
    def get_next_fire_time(self, previous, now):
        for seconds in turns if len(ticks) > 2 else ():
            fresh = clock.with_name("fresh")
            fresh.write_text(str(seconds))
            fresh.replace(clock)
        return super().get_next_fire_time(previous, now)
timer.Every = Turned
one = scheduler.Scheduler()
enough = threading.Event()
one.every("tick", 0.05, lambda: ticks.append(time.time()) or len(ticks) < 9 or enough.set())
one.start()
print(enough.wait(30), max(before - after for before, after in zip(ticks, ticks[1:])) > 80000)
one.stop()
"""


@pytest.mark.skipif(not Clock.possible, reason="needs a C compiler to set a process's clock")
def test_a_clock_set_back_in_the_midst_of_a_turn_stops_no_job(tmp_path):
    assert run_with_clock(MIDST, tmp_path).split() == ["True", "True"]
