"""Named work at intervals, with its outcomes."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from contextvars import ContextVar
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest

from index.errors import NotFound, Unavailable
from syncd.jobs import scheduler, timer
from syncd.jobs.run_history import Run, RunHistory
from syncd.jobs.scheduler import FIRST_S, LATE_S, Scheduler, _first_delay
from syncd.jobs.timer import SPARE
from tests.support.world import until

DAY = 86_400.0
NOW = 1_800_000_000.0


class Beat:
    """Work that counts its runs, may fail, and tells when enough have been made."""

    def __init__(self, enough, failure=None):
        self.runs, self.beside, self.most = 0, 0, 0
        self.enough, self.failure, self.done = enough, failure, threading.Event()

    def __call__(self):
        self.beside += 1
        self.most = max(self.most, self.beside)
        self.runs += 1
        if self.runs >= self.enough:
            self.done.set()
        self.beside -= 1
        if self.failure:
            raise self.failure


class Slow:
    """Work that takes until it is let go."""

    def __init__(self):
        self.runs, self.begun, self.go = 0, threading.Event(), threading.Event()

    def __call__(self):
        self.runs += 1
        self.begun.set()
        assert self.go.wait(60)


@pytest.fixture
def kept(ledger):
    return RunHistory(ledger)


@pytest.fixture
def jobs(kept):
    made = Scheduler(kept)
    yield made
    made.stop(0)


def test_a_job_runs_again_and_again_and_its_outcome_is_kept(jobs):
    work = Beat(3)
    jobs.every("beat", 0.02, work)
    before = jobs.states()["beat"]
    assert (before.runs, before.started_at, before.seconds, before.next_run_at) == (0, None, None, None)
    jobs.start()
    assert work.done.wait(60)
    assert jobs.states()["beat"].next_run_at >= time.time() * 1000 - 10_000
    jobs.stop()
    after = jobs.states()["beat"]
    assert (after.error, after.failures, after.running, after.too_long) == ("", 0, False, False)
    assert (after.runs, after.every_s) == (work.runs, 0.02)
    assert 0 <= after.seconds < 60
    assert after.started_at > 1_700_000_000_000


def test_the_facts_are_the_same_in_plain_values(jobs):
    jobs.every("beat", 60.0, Beat(1))
    jobs.every("late", 90.0, Beat(1))
    facts = jobs.facts()
    assert facts == {name: asdict(state) for name, state in jobs.states().items()}
    assert {name: job["every_s"] for name, job in facts.items()} == {"beat": 60.0, "late": 90.0}


def test_a_job_that_raises_stays_scheduled_and_is_logged(jobs, caplog):
    work = Beat(3, ValueError("no disk"))
    with caplog.at_level(logging.ERROR):
        jobs.every("beat", 0.02, work, soon=True)
        jobs.start()
        assert work.done.wait(60)
        jobs.stop()
    after = jobs.states()["beat"]
    assert after.error == "no disk"
    assert after.failures == after.runs >= 3
    assert "the job 'beat' failed" in caplog.text
    (told,) = jobs.troubles()
    assert "beat" in told
    assert "no disk" not in told, "agents read it too"


def test_a_job_that_blocks_delays_no_other_and_never_piles_up(jobs, caplog):
    slow, quick = [Slow() for _ in range(5)], Beat(20)
    for number, one in enumerate(slow):
        jobs.every(f"slow {number}", 0.01, one, soon=True)
    jobs.start()
    assert all(one.begun.wait(60) for one in slow)
    jobs.every("quick", 0.01, quick)
    assert quick.done.wait(30)
    assert [one.runs for one in slow] == [1] * 5
    assert quick.most == 1
    assert jobs.states()["slow 0"].running
    for one in slow:
        one.go.set()
    until(lambda: all(one.runs > 1 for one in slow))
    jobs.stop()
    assert "maximum number" not in caplog.text


def test_one_that_is_due_soon_does_not_wait_for_its_interval(jobs):
    work = Beat(1)
    jobs.every("beat", 3600, work, soon=True)
    jobs.start()
    assert work.done.wait(60)
    jobs.stop()
    jobs.stop()


def test_a_run_by_hand_is_told_how_it_went(jobs):
    work = Beat(1, Unavailable("the disk is full"))
    jobs.every("deep", DAY, work)
    jobs.start()
    assert jobs.run("deep").error == "the disk is full"
    assert jobs.run("deep", wait=False) is None
    until(lambda: work.runs == 2)
    with pytest.raises(NotFound, match="there are: deep"):
        jobs.run("shallow")
    with pytest.raises(NotFound, match="there are: deep"):
        jobs.history("nope")


def test_a_run_that_is_asked_for_as_another_ends_is_made(jobs, monkeypatch):
    work, told = Beat(2), jobs._changed.notify_all

    def ask_again():
        """The first run has ended, and its thread has not yet."""
        monkeypatch.setattr(jobs._changed, "notify_all", told)
        jobs.run("deep", wait=False)
        time.sleep(0.5)  # the scheduler begins the second run meanwhile, or drops it
        told()

    jobs.every("deep", DAY, work)
    jobs.start()
    monkeypatch.setattr(jobs._changed, "notify_all", ask_again)
    jobs.run("deep")
    assert work.done.wait(30)


def test_a_run_that_is_asked_for_as_a_failed_one_is_planned_again_is_made(jobs, monkeypatch):
    """The retry's time is chosen while somebody sets an earlier one."""
    work = Beat(2, Unavailable("the disk is full"))
    jobs.every("deep", DAY, work)
    jobs.start()
    modify = jobs._timer.modify_job

    def ask_meanwhile(name, **changes):
        monkeypatch.setattr(jobs._timer, "modify_job", modify)
        asker = threading.Thread(target=jobs.run, args=("deep",), kwargs={"wait": False})
        asker.start()
        asker.join(0.5)  # it ends, or waits until the retry's time is set
        return modify(name, **changes)

    jobs.run("deep")
    until(lambda: jobs.states()["deep"].next_run_at < (time.time() + DAY / 2) * 1000)  # the first retry is planned
    monkeypatch.setattr(jobs._timer, "modify_job", ask_meanwhile)
    jobs._timer.pause()  # the run that is asked for does not begin meanwhile
    jobs._timer.run_soon("deep", datetime.now(UTC) + timedelta(minutes=1), unless_sooner=True)
    jobs._timer.resume()
    assert work.done.wait(30)


def test_runs_by_hand_take_part_in_the_one_under_way(jobs):
    work, told = Slow(), []
    jobs.every("slow", DAY, work)
    jobs.start()
    threads = [threading.Thread(target=lambda: told.append(jobs.run("slow"))) for _ in range(4)]
    threads[0].start()
    assert work.begun.wait(60)
    for thread in threads[1:]:
        thread.start()
    until(lambda: len(jobs._changed._waiters) == 4)  # they wait, and none has started a run of its own
    work.go.set()
    for thread in threads:
        thread.join(60)
    assert len(told) == 4
    assert len(set(told)) == 1
    assert work.runs == 1


def test_where_nothing_is_scheduled_a_run_by_hand_is_made_at_once(jobs, kept):
    here = []
    jobs.every("beat", DAY, lambda: here.append(threading.current_thread()))
    assert jobs.run("beat", wait=False).error == ""
    assert here == [threading.current_thread()]
    assert len(kept.runs_of("beat")) == 1


def test_short_runs_one_after_the_other_share_a_thread_and_nothing_else(jobs):
    left, threads, was = ContextVar("left", default=""), [], []

    def work():
        was.append(left.get())
        left.set("of an earlier run")
        threads.append(threading.current_thread())

    jobs.every("beat", 0.01, work, soon=True)
    jobs.start()
    until(lambda: len(threads) >= 20)
    assert len(set(threads)) <= SPARE
    assert set(was) == {""}
    jobs.stop()
    until(lambda: not any(thread.is_alive() for thread in threads))


def test_a_run_that_takes_longer_than_it_should_is_shown(jobs, monkeypatch):
    monkeypatch.setattr(scheduler, "LIMIT_S", 0.01)
    work = Slow()
    jobs.every("slow", DAY, work, soon=True)
    jobs.start()
    assert work.begun.wait(60)
    until(lambda: jobs.states()["slow"].too_long)
    assert "may hang" in jobs.troubles()[0]
    work.go.set()
    until(lambda: not jobs.troubles())


def test_a_stop_waits_for_a_run_and_leaves_one_that_hangs_behind(jobs, kept):
    polite, hung = threading.Event(), Slow()

    def work():
        polite.set()
        assert jobs.stopping.wait(60)

    jobs.every("polite", DAY, work, soon=True)
    jobs.every("hung", DAY, hung, soon=True)
    jobs.start()
    assert polite.wait(60)
    assert hung.begun.wait(60)
    waiting = []

    def wait():
        with pytest.raises(Unavailable, match="stopping"):
            jobs.run("hung")
        waiting.append(True)

    thread = threading.Thread(target=wait)
    thread.start()
    assert jobs.stop(1.0) == ["hung"]
    thread.join(30)
    assert waiting
    assert len(kept.runs_of("polite")) == 1
    with pytest.raises(Unavailable, match="stopping"):
        jobs.run("polite")
    hung.go.set()


def test_what_outlives_the_daemon_is_how_the_last_runs_went(kept):
    first = Scheduler(kept)
    first.every("deep", DAY, Beat(1, ValueError("broken")))
    first.run("deep")
    again = Scheduler(kept)
    again.every("deep", DAY, Beat(1))
    standing = again.states()["deep"]
    assert (standing.error, standing.runs) == ("broken", 0)
    assert [run.error for run in again.history("deep")] == ["broken"]


def test_messages_name_a_job_as_people_do(kept, caplog):
    jobs = Scheduler(kept)
    jobs.every("old versions", 3600, Beat(1, Unavailable("disk full")))
    jobs.run("old versions")
    assert "the job 'forget old versions' failed: disk full" in caplog.text
    with pytest.raises(NotFound, match="there are: forget old versions"):
        jobs.run("nope")
    jobs.stop()
    with pytest.raises(Unavailable, match="so the job 'forget old versions' was not run"):
        jobs.run("old versions")


def test_a_tick_that_goes_as_before_is_not_written_down_each_time(jobs, kept):
    work = Beat(30)
    jobs.every("tick", 0.01, work, soon=True)
    jobs.start()
    assert work.done.wait(60)
    assert len(kept.runs_of("tick")) == 1
    work.failure = ValueError("no disk")
    until(lambda: len(kept.runs_of("tick")) == 2)
    work.failure = None
    until(lambda: len(kept.runs_of("tick")) == 3)
    runs = work.runs
    until(lambda: work.runs > runs + 1)
    jobs.stop()
    assert [run.error for run in kept.runs_of("tick")] == ["", "", "no disk", ""], "the stop keeps the last"


def test_a_ledger_that_can_not_be_written_stops_no_job(jobs, ledger, caplog):
    ledger.execute("PRAGMA query_only = 1")
    work = Beat(3)
    jobs.every("beat", 0.01, work, soon=True)
    jobs.start()
    assert work.done.wait(60)
    jobs.stop()
    assert "could not record a run" in caplog.text


@pytest.mark.parametrize(
    ("last", "seconds", "wait"),
    [
        pytest.param(None, DAY, FIRST_S, id="never ran"),
        pytest.param(None, 30.0, 30.0, id="never ran and runs often"),
        pytest.param(NOW - 1000, DAY, DAY - 1000, id="ran a while ago"),
        pytest.param(NOW - 3 * DAY, DAY, LATE_S, id="is overdue: made up once the start is over"),
        pytest.param(NOW - 3 * DAY, 30.0, 30.0, id="is overdue and runs often"),
        pytest.param(NOW + 3 * DAY, DAY, DAY, id="ran in the future: the clock was set back"),
    ],
)
def test_the_first_run_is_counted_from_the_last_one_before_the_start(last, seconds, wait):
    run = None if last is None else Run(int(last * 1000), 1.0, "")
    assert _first_delay(run, seconds, NOW) == pytest.approx(wait)


def due_in(kept, last, expression="0 3 * * *"):
    """Seconds until a job that runs by the clock is due after a start, its last run having begun at `last`."""
    if last is not None:
        kept.add("night", Run(int(last * 1000), 1.0, ""))
    jobs = Scheduler(kept)
    jobs.cron("night", expression, Beat(1))
    jobs.start()
    due = jobs.states()["night"].next_run_at / 1000 - time.time()
    jobs.stop()
    return due


@pytest.mark.parametrize("last", [pytest.param(3 * DAY, id="days ago"), pytest.param(40 * 365 * DAY, id="decades ago")])
def test_a_time_that_was_missed_is_made_up_once_the_start_is_over(kept, last):
    assert 0 <= due_in(kept, time.time() - last) <= LATE_S


def test_one_that_never_ran_runs_first_at_its_own_time(kept):
    hence = datetime.now().astimezone() + timedelta(hours=5)
    assert due_in(kept, None, f"{hence.minute} {hence.hour} * * *") == pytest.approx(5 * 3600, abs=3700)


def test_one_that_never_ran_need_not_wait_for_a_night_that_a_laptop_is_never_on_for(kept):
    kept.known_since("night", int((time.time() - 2 * DAY) * 1000))
    assert 0 <= due_in(kept, None) <= LATE_S


@pytest.mark.parametrize(
    "ahead", [pytest.param(0, id="a moment ago"), pytest.param(9 * DAY, id="on a clock that was ahead")]
)
def test_one_that_has_run_since_its_last_time_waits_for_the_next(kept, ahead):
    minute = datetime.now(UTC) - timedelta(hours=2)
    expression = f"{minute.astimezone().minute} {minute.astimezone().hour} * * *"
    due = due_in(kept, time.time() + ahead, expression)
    assert due == pytest.approx(22 * 3600, abs=3700)


def test_how_a_job_that_runs_by_the_clock_stands_says_when(jobs):
    jobs.cron("night", "0 3 * * *", Beat(1))
    assert jobs.states()["night"].cron == "0 3 * * *"
    assert jobs.run("night").error == ""
    assert len(jobs.history("night")) == 1
    with pytest.raises(ValueError, match="five words"):
        jobs.cron("night", "nightly", Beat(1))


def test_one_that_is_due_each_minute_runs(jobs):
    work = Beat(1)
    jobs.cron("minute", "* * * * *", work)
    jobs.start()
    jobs._timer.get_job("minute").modify(next_run_time=datetime.now(UTC))
    assert work.done.wait(60)
    until(lambda: jobs.states()["minute"].next_run_at > time.time() * 1000 - 60_000)
    jobs.stop()
    assert work.runs == 1


def test_work_that_knows_when_it_was_last_done_says_when_it_is_due(jobs):
    sooner, later = Beat(1), Beat(1)
    jobs.every("sooner", 3600, sooner, after=0.05)
    jobs.every("later", 0.01, later, after=3600)
    jobs.start()
    assert sooner.done.wait(60)
    jobs.stop()
    assert later.runs == 0


@pytest.fixture
def quick_rests(monkeypatch):
    """Let jobs rest after a tenth of a second, and for longer than any test."""
    monkeypatch.setattr(scheduler, "STILL_S", 0.1)
    monkeypatch.setattr(timer, "REST_S", 1e7)


def test_while_nothing_changes_frequent_jobs_rest_until_something_does(jobs, quick_rests):
    beats = {"beat": Beat(10**9), "steady": Beat(10**9)}
    jobs.every("beat", 0.02, beats["beat"])
    jobs.every("steady", 0.02, beats["steady"], rests=False)
    jobs.start(may_rest=True)
    for _ in range(3):
        until(lambda: (state := jobs.states()["beat"]).next_run_at > (time.time() + 3600) * 1000 and not state.running)
        time.sleep(0.05)  # a run that was submitted begins
        rested, steady = (beat.runs for beat in beats.values())
        until(lambda steady=steady: beats["steady"].runs > steady + 5)
        assert beats["beat"].runs == rested
        jobs.wake()
        until(lambda rested=rested: beats["beat"].runs > rested)


def test_nothing_rests_where_nobody_reports_changes(jobs, quick_rests):
    work = Beat(10**9)
    jobs.every("beat", 0.02, work)
    jobs.start()
    time.sleep(0.3)
    so_far = work.runs
    until(lambda: work.runs > so_far + 5)


HANDLES = """
import resource
from syncd.jobs.scheduler import Scheduler
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
jobs = Scheduler()
jobs.every("work", 60, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1])))
jobs.run("work")
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
print(jobs._running_jobs())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_job_ends_although_no_file_can_be_opened():
    done = subprocess.run([sys.executable, "-c", HANDLES], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


MEMORY = """
import ctypes, psutil
from index.process_memory import limit_arenas
from syncd.jobs.scheduler import Scheduler
limit_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
sizes = []
def work():
    blocks = [libc.malloc(60_000) for _ in range(2_000)]
    for block in blocks:
        ctypes.memset(block, 1, 60_000)
    libc.malloc(60_000)  # above them: the heap's end can't be cut
    sizes.append(psutil.Process().memory_info().rss)
    for block in blocks:
        libc.free(block)
jobs = Scheduler()
jobs.every("work", 60, work)
for _ in range(2):
    jobs.run("work")
    sizes.append(psutil.Process().memory_info().rss)
print(sizes[0] - sizes[1], sizes[2] - sizes[3])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux is the one that holds memory")
def test_memory_that_a_job_freed_is_returned_when_it_ends():
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert min(map(int, done.stdout.split())) > 60_000_000
