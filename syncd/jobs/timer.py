"""The timer starts the runs of jobs with APScheduler: at an interval, or at the times of a cron expression.

Law: a clock that is set forward or back neither stops a job nor multiplies its runs. The library takes long to
import, so only a serving process imports this module."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.executors.base import BaseExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger

from syncd.settings.cron_schedule import parse_cron

log = logging.getLogger(__name__)

CLOCK_S = 1.0  # a clock that differs from the elapsed time by more than this was set
LOOK_S = 60.0  # longest sleep of the timer: it notices a changed clock, or a sleep of the machine, this soon
SPARE = 4  # most threads that wait for a run
COMMON_S = 3.0  # jobs with intervals of at least this start together, at multiples of it
REST_S = 30.0  # the least interval of a job that rests, and what resting jobs start at multiples of


class Timer(BackgroundScheduler):  # type: ignore[misc]  # the library has no types
    """Extends the library's scheduler, which would oversleep if the clock is set back while it plans its next turn."""

    def __init__(self) -> None:
        """Configure the scheduler, and silence its messages about runs that take longer than their interval."""
        super().__init__(
            executors={"default": _Threads()},
            jobstores={"default": _Store()},
            job_defaults={"misfire_grace_time": None, "coalesce": True},
            timezone=UTC,
        )
        self._moving = threading.Lock()  # a retry's later time must not replace one that is set as it is chosen
        for name in ("apscheduler.scheduler", "apscheduler.executors.default"):
            logging.getLogger(name).setLevel(logging.ERROR)

    def run_soon(self, name: str, moment: datetime, *, unless_sooner: bool = False) -> None:
        """Run a job at this moment; with `unless_sooner`, keep an earlier time."""
        with self._moving, suppress(JobLookupError):  # no such job: the timer is stopping
            due = getattr(self.get_job(name), "next_run_time", None)
            if not unless_sooner or (due is not None and due > moment):
                self.modify_job(name, next_run_time=moment)

    def end_rest(self) -> None:
        """Return the jobs that rest to their intervals."""
        now = datetime.now(UTC)
        for job in self.get_jobs():
            if isinstance(job.trigger, Every):
                self.run_soon(job.id, job.trigger.get_next_fire_time(None, now), unless_sooner=True)

    def _process_jobs(self) -> float:
        """Run the due jobs; return the seconds to the next turn."""
        clock, ticked = time.time(), time.monotonic()
        seconds = super()._process_jobs()
        turned = (time.time() - clock) - (time.monotonic() - ticked)
        return 0.0 if abs(turned) > CLOCK_S else min(LOOK_S, LOOK_S if seconds is None else seconds)


class Every(BaseTrigger):  # type: ignore[misc]  # the library has no types
    """Fires a fixed time after the previous run: after a sleep or a clock set forward, one run is due, not thousands.

    The time is rounded to the nearest multiple of COMMON_S, so that an idle daemon wakes once for all jobs that are due:
    most of what such a short run costs is the waking. While `rests` returns True, the interval is at least REST_S."""

    def __init__(self, seconds: float, rests: Callable[[], bool] = lambda: False) -> None:
        self._seconds, self._rests = seconds, rests

    def get_next_fire_time(self, _previous: datetime | None, now: datetime) -> datetime:
        """Return the time of the next run."""
        seconds, common = self._seconds, COMMON_S
        if seconds < REST_S and self._rests():
            seconds = common = REST_S
        due = now + timedelta(seconds=seconds)
        return due if seconds < common else datetime.fromtimestamp(round(due.timestamp() / common) * common, UTC)


class Cron(BaseTrigger):  # type: ignore[misc]  # the library has no types
    """Fires at the local times of an expression; missed times are made up once.

    The library gets wall-clock times only: with a time zone, a time that a day has twice would fire again and again."""

    def __init__(self, expression: str) -> None:
        self._times = CronTrigger(**parse_cron(expression), timezone=UTC)

    def next_after(self, moment: datetime) -> datetime:
        """Return the first time after `moment`; a time that a day lacks moves by as much as the clock was set forward."""
        wall, due = moment.astimezone().replace(tzinfo=UTC), moment
        while due <= moment:
            wall = self._times.get_next_fire_time(None, wall + timedelta(microseconds=1))
            due = datetime.fromtimestamp(wall.replace(tzinfo=None).timestamp(), UTC)
        return due

    def get_next_fire_time(self, _previous: datetime | None, now: datetime) -> datetime:
        """Return the time of the next run."""
        return self.next_after(now)


class _Store(MemoryJobStore):  # type: ignore[misc]  # the library has no types
    """Holds the jobs by due time; if the clock is set back, due times move back too."""

    def __init__(self) -> None:
        super().__init__()
        self._looked: tuple[datetime, float] | None = None

    def get_due_jobs(self, now: datetime) -> list[Any]:
        """Return the due jobs, after correcting due times if the clock was set back."""
        ticked = time.monotonic()
        if self._looked is not None:
            back = self._looked[0] + timedelta(seconds=ticked - self._looked[1]) - now
            if back > timedelta(seconds=CLOCK_S):
                log.warning("the clock was set back by %s", back)
                for job in self.get_all_jobs():
                    job.modify(next_run_time=_set_back(job, now, back))
        self._looked = now, ticked
        return list(super().get_due_jobs(now))


def _set_back(job: Any, now: datetime, back: timedelta) -> datetime:
    """Return the new due time after the clock went back; a cron job keeps its local times, and an overdue run stays due."""
    if not isinstance(job.trigger, Cron):
        shifted: datetime = job.next_run_time - back
        return shifted
    due: datetime = min(job.next_run_time, job.trigger.next_after(now))
    return due


class _Threads(BaseExecutor):  # type: ignore[misc]  # the library has no types
    """Runs each job at once on a thread of its own: no job waits for another, and a hanging job does not keep the process alive.

    A few threads that have nothing to run wait for the next run, because short runs cost less than starting a thread.

    The library decreases its count of running jobs only after the waiting caller has its answer, and drops a run
    requested in between. This executor therefore keeps no count; `Scheduler._run` prevents parallel runs of a job."""

    def __init__(self) -> None:
        super().__init__()
        self._counting = threading.Lock()
        self._spare = 0  # threads that wait for a run and have not been given one
        self._ended = False
        self._runs: queue.SimpleQueue[Any] = queue.SimpleQueue()  # None ends a thread

    def submit_job(self, job: Any, _times: list[datetime]) -> None:
        """Start a run."""
        with self._counting:
            is_spare = self._spare > 0
            self._spare -= is_spare
        if is_spare:
            self._runs.put(job)
        else:
            threading.Thread(target=self._serve, args=(job,), daemon=True).start()

    _do_submit_job = submit_job  # the base class requires it

    def shutdown(self, wait: bool = True) -> None:  # noqa: ARG002 - the library's signature
        """End the threads that wait."""
        with self._counting:
            self._ended, waiting, self._spare = True, self._spare, 0
        for _ in range(waiting):
            self._runs.put(None)

    def _serve(self, job: Any) -> None:
        while job is not None:
            threading.current_thread().name = f"job {job.id}"
            Context().run(job.func, *job.args)
            with self._counting:
                if self._ended or self._spare >= SPARE:
                    return
                self._spare += 1
            threading.current_thread().name = "spare job thread"
            job = self._runs.get()
