"""Run named pieces of background work at intervals, and remember how each one went.

Law: a job never runs beside itself, a run that was missed is made up once, and a job that fails stays scheduled."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job last went; `error` is "" when it went well."""

    started_at: int  # epoch milliseconds
    seconds: float
    error: str
    runs: int
    failures: int


class Jobs:
    """The scheduled jobs of one process; they run in a few threads of their own from `start` to `stop`."""

    def __init__(self, *, threads: int = 3) -> None:
        self._scheduler = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(threads)},
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
            timezone=UTC,
        )
        self._outcomes: dict[str, Outcome] = {}
        self._lock = threading.Lock()

    def every(
        self, name: str, seconds: float, work: Callable[[], object], *, soon: bool = False, after: float | None = None
    ) -> None:
        """Run `work` every `seconds`, for the first time that long from now, or `after` so many seconds, or `soon`: at once.

        A second job of the same name replaces the first."""
        wait = 0.0 if soon else after
        first = {} if wait is None else {"next_run_time": datetime.now(UTC) + timedelta(seconds=wait)}
        trigger = IntervalTrigger(seconds=seconds, timezone=UTC)
        self._scheduler.add_job(self._run, trigger, args=(name, work), id=name, replace_existing=True, **first)

    def start(self) -> None:
        """Begin; the scheduler's own chatter about a run that takes longer than its interval is not logged."""
        for name in ("apscheduler.scheduler", "apscheduler.executors.default"):
            logging.getLogger(name).setLevel(logging.ERROR)
        self._scheduler.start()

    def stop(self, *, wait: bool = True) -> None:
        """Begin no more runs; with `wait`, return when those under way have ended."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=wait)

    def outcomes(self) -> dict[str, Outcome]:
        """How each job that has run last went."""
        with self._lock:
            return dict(self._outcomes)

    def _run(self, name: str, work: Callable[[], object]) -> None:
        started_at, begun, error = int(time.time() * 1000), time.monotonic(), ""
        try:
            work()
        except Exception as failure:  # top of the job's thread: it must stay scheduled
            log.exception("the job %s failed", name)
            error = str(failure) or type(failure).__name__
        seconds = time.monotonic() - begun
        with self._lock:
            last = self._outcomes.get(name)
            runs, failures = (last.runs, last.failures) if last else (0, 0)
            self._outcomes[name] = Outcome(started_at, seconds, error, runs + 1, failures + bool(error))
