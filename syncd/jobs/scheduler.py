"""The scheduler runs named background jobs at intervals or at cron times, and records how each run went.

Laws: a job never runs twice at the same time and never waits for another job; a missed run is made up once; a
failing job stays scheduled; a clock that is set forward or back neither stops a job nor multiplies its runs. A cron
job runs at its local time, even after the clock was changed. While the vault does not change, frequent jobs rest: they
run every half minute, until it does."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from index.errors import MemexError, NotFound, Unavailable
from index.process_memory import GrowthWatch
from index.timings import now_ms
from syncd.jobs.job_names import job_name
from syncd.jobs.run_history import Run, RunHistory
from syncd.settings.cron_schedule import parse_cron
from syncd.vault.path_rules import to_printable

if TYPE_CHECKING:
    from syncd.jobs.timer import Timer

log = logging.getLogger(__name__)

OFTEN_S = 300.0  # a job that runs more often records only changed outcomes, so that a run costs no fsync
LATE_S = 60.0  # a missed run is made up this long after the start, which is busy enough
FIRST_S = 3600.0  # the longest wait for a job that never ran
LIMIT_S = 3600.0  # a longer run is reported as too long
STILL_S = 120.0  # seconds without a change in the vault after which jobs rest
AGAIN_S = 3600.0  # a failed job is tried again after this time, even if it runs rarely


@dataclass(frozen=True, slots=True)
class JobState:
    """Describes the state of a job. `started_at` and `seconds` are of the current run, else of the last one."""

    every_s: float
    running: bool
    started_at: int | None  # epoch milliseconds
    seconds: float | None
    error: str  # of the last finished run; "" = success
    runs: int  # since the start, like `failures`
    failures: int
    cpu_s: float  # CPU seconds of its thread since the start
    next_run_at: int | None  # None while nothing is scheduled
    too_long: bool  # it has been running longer than LIMIT_S
    cron: str = ""  # the cron expression, if it has one


@dataclass(slots=True)
class _Job:
    name: str
    every_s: float
    work: Callable[[], object]
    last: Run | None
    kept: Run | None  # the newest run in the ledger
    began: float | None = None  # start of the current run: monotonic time,
    started_at: int = 0  # and epoch milliseconds
    asked: bool = False  # started manually
    runs: int = 0
    failures: int = 0
    cpu_s: float = 0.0
    cron: str = ""


class Scheduler:
    """Holds the jobs of one process; scheduled from `start` to `stop`. No two runs share a thread at the same time.

    Long work checks `stopping` regularly, and ends when it is set."""

    def __init__(self, kept: RunHistory | None = None) -> None:
        self.stopping = threading.Event()
        self._kept = kept
        self._jobs: dict[str, _Job] = {}
        self._changed = threading.Condition()
        self._keeping = threading.Lock()  # separate, so that reading job states does not wait for the disk
        self._planned: dict[str, Callable[[Timer], None]] = {}  # by name: the function that adds a job to the timer
        self._timer: Timer | None = None  # set by `start`
        self._growth = GrowthWatch()
        self._waking = threading.Lock()  # no other lock is taken while it is held
        self._may_rest = False
        self._woken, self._resting = time.monotonic(), False

    def every(
        self,
        name: str,
        seconds: float,
        work: Callable[[], object],
        *,
        soon: bool = False,
        after: float | None = None,
        rests: bool = True,
    ) -> None:
        """Run `work` every `seconds` after its last run, which may be before this start; with `soon`, run it now.

        `after` sets the delay of the first run instead. Unless it `rests`, it keeps its interval while nothing
        changes. A second job with the same name replaces the first."""
        last = self._last_run(name)
        now = datetime.now(UTC)
        wait = _first_delay(last, seconds, now.timestamp()) if after is None else after
        first = now if soon else now + timedelta(seconds=wait)

        def plan(timer: Timer) -> None:
            from syncd.jobs.timer import Every  # noqa: PLC0415 - imported only where jobs are scheduled

            self._schedule(timer, name, Every(seconds, self._rests) if rests else Every(seconds), first)

        self._add(_Job(name, seconds, work, last, last), plan)

    def cron(self, name: str, expression: str, work: Callable[[], object]) -> None:
        """Run `work` at the local times of a cron expression (five fields). Raises ValueError if it is not valid.

        A missed run is made up once, a while after the start. Runs count as missed from when the job was first
        known."""
        parse_cron(expression)
        last = self._last_run(name)
        job = _Job(name, 0.0, work, last, last, cron=expression)

        def plan(timer: Timer) -> None:
            from syncd.jobs.timer import Cron  # noqa: PLC0415 - as above

            now, trigger = datetime.now(UTC), Cron(expression)
            due, then = trigger.next_after(now), trigger.next_after(trigger.next_after(now))
            since = _believable_time(last.started_at if last else self._known_since(name, now), now)
            missed = trigger.next_after(since) <= now
            job.every_s = (then - due).total_seconds()
            self._schedule(timer, name, trigger, min(due, now + timedelta(seconds=LATE_S)) if missed else due)

        self._add(job, plan)

    def _last_run(self, name: str) -> Run | None:
        return next(iter(self._kept.runs_of(name, 1)), None) if self._kept else None

    def _known_since(self, name: str, now: datetime) -> int:
        moment = int(now.timestamp() * 1000)
        with suppress(Unavailable):  # the next start tries again
            return self._kept.known_since(name, moment) if self._kept else moment
        return moment

    def _add(self, job: _Job, plan: Callable[[Timer], None]) -> None:
        with self._changed:
            self._jobs[job.name] = job
        self._planned[job.name] = plan
        if self._timer is not None:
            plan(self._timer)

    def _schedule(self, timer: Timer, name: str, trigger: Any, first: datetime) -> None:
        timer.add_job(self._run, trigger, args=(name,), id=name, replace_existing=True, next_run_time=first)

    def start(self, *, may_rest: bool = False) -> None:
        """Start the timer. With `may_rest`, frequent jobs rest while nobody calls `wake`."""
        from syncd.jobs.timer import Timer  # noqa: PLC0415 - a command that only reads job states does not need the library

        timer = Timer()
        for plan in self._planned.values():
            plan(timer)
        self._timer, self._may_rest = timer, may_rest
        timer.start()

    def wake(self) -> None:
        """Note a change: jobs that rest return to their intervals."""
        with self._waking:
            self._woken, rested, self._resting = time.monotonic(), self._resting, False
        if rested and (timer := self._running_timer):
            timer.end_rest()

    @property
    def _running_timer(self) -> Timer | None:
        return self._timer if self._timer is not None and self._timer.running else None

    def _rests(self) -> bool:
        """Return whether frequent jobs rest now, and remember it for `wake`."""
        with self._waking:
            self._resting = self._may_rest and time.monotonic() - self._woken >= STILL_S
            return self._resting

    def stop(self, grace_s: float = 10.0) -> list[str]:
        """Start no more runs, wait for the current ones, and return the names of those that did not end."""
        self.stopping.set()
        if timer := self._running_timer:
            timer.shutdown(wait=False)
        with self._changed:
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._running_jobs(), grace_s)
            left, ended = self._running_jobs(), list(self._jobs.values())
        for job in ended:
            if job.last is not None:
                self._keep_run(job, job.last)
        with self._keeping:
            self._kept = None  # the ledger is closed after this
        if left:
            log.warning("jobs still running at the stop: %s", ", ".join(map(job_name, left)))
        return left

    def run(self, name: str, *, wait: bool = True) -> Run | None:
        """Run a job now, or join its current run; return the run, or None without `wait`.

        Without a running timer it runs in the caller's thread. Raises NotFound for an unknown name."""
        with self._changed:
            job = self._require_job(name)
            if self.stopping.is_set():
                raise Unavailable(f"the daemon is stopping, so the job {job_name(name)!r} was not run")
            ended, job.asked = job.runs, True
        timer = self._running_timer
        if timer is None:
            self._run(name)
            return job.last
        if job.began is None:
            timer.run_soon(name, datetime.now(UTC))
        if not wait:
            return None
        with self._changed:
            self._changed.wait_for(lambda: job.runs > ended or self.stopping.is_set())
            if job.runs == ended:
                raise Unavailable(f"the daemon is stopping, so the job {job_name(name)!r} was not run")
            return job.last

    def run_in(self, name: str, seconds: float) -> None:
        """Schedule the next run of a job in this many seconds; without a running timer, do nothing."""
        if timer := self._running_timer:
            timer.run_soon(name, datetime.now(UTC) + timedelta(seconds=seconds))

    def record_run(self, name: str, run: Run) -> None:
        """Record a run of a job's work that happened outside the job; ignores unknown names."""
        with self._changed:
            job = self._jobs.get(name)
            if job is None:
                return
            job.last = run
        self._keep_run(job, run)

    def states(self) -> dict[str, JobState]:
        """Return the state of each job, by name."""
        timer = self._running_timer
        due = {job.id: job.next_run_time for job in timer.get_jobs()} if timer else {}
        with self._changed:
            return {name: _job_state(job, due.get(name)) for name, job in self._jobs.items()}

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return the state of each job as plain values."""
        return {name: asdict(job) for name, job in self.states().items()}

    def history(self, name: str) -> list[Run]:
        """Return the stored runs of a job, newest first; for frequent jobs, only runs with a changed outcome.

        Raises NotFound for an unknown name."""
        self._require_job(name)
        with self._keeping:
            return self._kept.runs_of(name) if self._kept else []

    def _require_job(self, name: str) -> _Job:
        if name not in self._jobs:
            raise NotFound(f"no job {name[:64]!r}; there are: {', '.join(sorted(map(job_name, self._jobs)))}")
        return self._jobs[name]

    def troubles(self) -> list[str]:
        """Return sentences about jobs that fail or take too long, without notes or paths."""
        with self._changed:
            standing = [(name, _job_state(job, None)) for name, job in self._jobs.items()]
        sentences = [
            f"jobs: {job_name(name)!r} failed in its last run; memex job list shows the reason"
            for name, state in standing
            if state.error
        ]
        return sentences + [
            f"jobs: {job_name(name)!r} has been running for {(state.seconds or 0) / 60:.0f} minutes; it may hang"
            for name, state in standing
            if state.too_long
        ]

    def _running_jobs(self) -> list[str]:
        return sorted(job.name for job in self._jobs.values() if job.began is not None)

    def _run(self, name: str) -> None:
        with self._changed:
            job = self._jobs[name]
            if self.stopping.is_set() or job.began is not None:
                return
            job.started_at, job.began = now_ms(), time.monotonic()
        used, run = time.thread_time(), Run(job.started_at, 0.0, "the run ended unexpectedly")
        try:
            error = _run_work(job)
            self._growth.release_after_growth()
            with self._changed:
                run = Run(job.started_at, time.monotonic() - job.began, error)
                asked, before = job.asked, job.last
            if asked or job.every_s >= OFTEN_S or before is None or before.error != error:
                self._keep_run(job, run)
        finally:  # otherwise the job would count as running for ever
            with self._changed:
                job.last, job.began, job.asked = run, None, False
                job.runs, job.failures = job.runs + 1, job.failures + bool(run.error)
                job.cpu_s += time.thread_time() - used
                self._changed.notify_all()
        if error and job.every_s > AGAIN_S and (timer := self._running_timer):
            # A reported problem must not outlive its cause by days.
            timer.run_soon(name, datetime.now(UTC) + timedelta(seconds=AGAIN_S), unless_sooner=True)

    def _keep_run(self, job: _Job, run: Run) -> None:
        with self._keeping:
            if self._kept is None or job.kept is run:
                return
            try:
                self._kept.add(job.name, run)
                job.kept = run
            except Unavailable as error:
                log.warning("could not record a run of the job %r: %s", job_name(job.name), error.message)


def _run_work(job: _Job) -> str:
    """Run the work of a job; return the error as printable text, "" = success."""
    try:
        job.work()
    except MemexError as failure:
        log.warning("the job %r failed: %s", job_name(job.name), failure.message)
        return to_printable(failure.message)
    except Exception as failure:  # top of the job's thread: it must stay scheduled
        log.exception("the job %r failed", job_name(job.name))
        return to_printable(str(failure)) or type(failure).__name__
    return ""


def _first_delay(last: Run | None, seconds: float, now: float) -> float:
    """Return the seconds to the first run: the rest of the interval since the last run, if its time is plausible.

    A job that never ran must not wait for a whole day: a laptop may never be on that long."""
    left = last.started_at / 1000 + seconds - now if last else min(seconds, FIRST_S)
    return min(max(left, min(seconds, LATE_S)), seconds)


def _believable_time(at: int, now: datetime) -> datetime:
    """Return a time from epoch milliseconds, limited to the past."""
    return datetime.fromtimestamp(min(max(0, at / 1000), now.timestamp()), UTC)


def _job_state(job: _Job, due: datetime | None) -> JobState:
    so_far = None if job.began is None else time.monotonic() - job.began
    began, took = (job.last.started_at, job.last.seconds) if job.last else (None, None)
    if so_far is not None:
        began, took = job.started_at, so_far
    return JobState(
        every_s=job.every_s,
        running=so_far is not None,
        started_at=began,
        seconds=None if took is None else round(took, 3),
        error=job.last.error if job.last else "",
        runs=job.runs,
        failures=job.failures,
        cpu_s=round(job.cpu_s, 4),
        next_run_at=int(due.timestamp() * 1000) if due else None,
        too_long=so_far is not None and so_far > LIMIT_S,
        cron=job.cron,
    )
