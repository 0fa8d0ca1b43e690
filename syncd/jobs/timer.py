"""The timer begins the runs of jobs with APScheduler: every so often, or at the times of a cron expression.

Law: a clock that is set forward or back neither stops a job nor multiplies its runs. The library takes long to import,
so that only what serves does."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
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

CLOCK_S = 1.0  # a clock that differs by more from what went by was set
LOOK_S = 60.0  # the longest the timer sleeps: a clock set forward, or a sleep of the machine, is seen this soon


class Timer(BackgroundScheduler):  # type: ignore[misc]  # the library has no types
    """The library's, which reads the clock twice a turn: one set back in between would have it sleep for as long."""

    def __init__(self) -> None:
        """The library's own chatter about a run that takes longer than its interval is not logged."""
        super().__init__(
            executors={"default": _Threads()},
            jobstores={"default": _Store()},
            job_defaults={"misfire_grace_time": None, "coalesce": True},
            timezone=UTC,
        )
        for name in ("apscheduler.scheduler", "apscheduler.executors.default"):
            logging.getLogger(name).setLevel(logging.ERROR)

    def run_soon(self, name: str, moment: datetime, *, unless_sooner: bool = False) -> None:
        """Run a job at this moment; with `unless_sooner`, unless it is due before."""
        with suppress(JobLookupError):  # the timer stops just now
            due = getattr(self.get_job(name), "next_run_time", None)
            if not unless_sooner or (due is not None and due > moment):
                self.modify_job(name, next_run_time=moment)

    def _process_jobs(self) -> float:
        """Run what is due; the seconds to the next turn."""
        clock, ticked = time.time(), time.monotonic()
        seconds = super()._process_jobs()
        turned = (time.time() - clock) - (time.monotonic() - ticked)
        return 0.0 if abs(turned) > CLOCK_S else min(LOOK_S, LOOK_S if seconds is None else seconds)


class Every(BaseTrigger):  # type: ignore[misc]  # the library has no types
    """Each run a fixed time after the one before: after a sleep, or a clock set forward, one run is owed, not thousands."""

    def __init__(self, seconds: float) -> None:
        self.interval = timedelta(seconds=seconds)

    def get_next_fire_time(self, _previous: datetime | None, now: datetime) -> datetime:
        """When to run next."""
        return now + self.interval


class Cron(BaseTrigger):  # type: ignore[misc]  # the library has no types
    """At the local times of an expression, of which those that were missed are owed once.

    The library is asked about the wall clock alone: a time that a day has twice would be due again and again."""

    def __init__(self, expression: str) -> None:
        self._times = CronTrigger(**parse_cron(expression), timezone=UTC)

    def next_after(self, moment: datetime) -> datetime:
        """The first of the times after `moment`; one that a day lacks is as much later as the clock was set forward."""
        wall, due = moment.astimezone().replace(tzinfo=UTC), moment
        while due <= moment:
            wall = self._times.get_next_fire_time(None, wall + timedelta(microseconds=1))
            due = datetime.fromtimestamp(wall.replace(tzinfo=None).timestamp(), UTC)
        return due

    def get_next_fire_time(self, _previous: datetime | None, now: datetime) -> datetime:
        """When to run next."""
        return self.next_after(now)


class _Store(MemoryJobStore):  # type: ignore[misc]  # the library has no types
    """The jobs by when they are due, on a clock that may be set back: then they are due as much earlier."""

    def __init__(self) -> None:
        super().__init__()
        self._looked: tuple[datetime, float] | None = None

    def get_due_jobs(self, now: datetime) -> list[Any]:
        """The jobs that are due; the scheduler asks when, by the monotonic clock, the first of them should be."""
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
    """When a job is due on a clock that went back; one that runs by the clock at its times, a run that is owed at once."""
    if not isinstance(job.trigger, Cron):
        shifted: datetime = job.next_run_time - back
        return shifted
    due: datetime = min(job.next_run_time, job.trigger.next_after(now))
    return due


class _Threads(BaseExecutor):  # type: ignore[misc]  # the library has no types
    """A thread for each run: no job waits for another, and one that hangs does not keep the process from ending.

    The library lowers its own count of running jobs only after the waiting caller has its answer, and drops a run that is
    requested in between. So this executor keeps no count; `Scheduler._run` sees to it that no job runs twice at once."""

    def submit_job(self, job: Any, _times: list[datetime]) -> None:
        """Begin a run."""
        threading.Thread(target=job.func, args=job.args, name=f"job {job.id}", daemon=True).start()

    def _do_submit_job(self, job: Any, times: list[datetime]) -> None:
        self.submit_job(job, times)
