"""The worker runs the jobs of the queue on threads, each kind with the handler registered for it.

A handler gets a `RunningJob` and returns the id of the note that it made. After a crash it may be called again for a
job that is done or half done: the planned id of the note (`work.job.planned`) stays equal.

Laws, tested: a job that fails, hangs or ends the process affects no other job. A temporary failure (`retryable`) is
retried later, and not while no job could succeed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from index.errors import MemexError, Unavailable
from syncd.history.audit_log import acting_as
from syncd.jobs.queue import TRIES, Queue
from syncd.jobs.queued_job import STATUSES, Job, Kind

LOOK_S: Final = 5.0  # seconds between two checks while no job can succeed
STREAK: Final = 3  # tries in a row that failed through no fault of the job; then status reports it
LATE_MS: Final = 15 * 60_000  # a job that waits or runs longer is reported
LATE: Final = f"more than {LATE_MS // 60_000} minutes"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningJob:
    """Describes a running job for its handler."""

    job: Job
    staged: Path | None  # its staged file in the queue's folder; removed once the job is done
    progress: Callable[[int, int, str], None]  # done, total, stage
    remember: Callable[..., None]  # remember(path=…) adds values to `job.given` for the next try, on disk at once
    stopping: threading.Event  # once set, the handler raises Unavailable; the job starts again at the next start


Handler: TypeAlias = Callable[[RunningJob], str]


class Worker:
    """Works from `start` to `stop`, or during `drain`.

    `hindered` returns why no job of a kind could succeed now, or ""."""

    def __init__(self, queue: Queue, hindered: Callable[[Kind], str] = lambda _: "") -> None:
        self.stopping = threading.Event()
        self.tries = dict.fromkeys(("done", "failed", "put off"), 0)  # since the start, by outcome
        self.hindrance = ""
        self._queue, self._hindered = queue, hindered
        self._handlers: dict[Kind, tuple[Handler, int]] = {}
        self._threads: list[threading.Thread] = []
        self._under_way: dict[str, int] = {}  # id → start time
        self._streak = 0

    def register(self, kind: Kind, handler: Handler, *, threads: int = 1) -> None:
        """Register the handler for jobs of a kind, and its number of threads. Call it before the start."""
        self._handlers[kind] = (handler, threads)

    @property
    def running(self) -> bool:
        """Return whether jobs are carried out automatically."""
        return bool(self._threads)

    def start(self) -> None:
        """Start to carry out queued jobs and new ones."""
        for kind, (_, count) in self._handlers.items():
            for number in range(count):
                thread = threading.Thread(target=self._work, args=(kind,), name=f"{kind}s {number + 1}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def interrupt(self) -> None:
        """Start no more jobs, and signal running ones to stop."""
        self.stopping.set()
        self._queue.wake()

    def stop(self, grace_s: float = 10.0) -> int:
        """Wait at most `grace_s` for running jobs, and return how many did not end. Those are queued again."""
        self.interrupt()
        until = time.monotonic() + grace_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._threads = []
        left = tuple(self._under_way)
        for id in left:
            self._record(partial(self._queue.requeue, id))
        if left:
            log.warning("unfinished jobs: %d; they run again at the next start", len(left))
        return len(left)

    def drain(self, ids: Collection[str], progress: Callable[[dict[str, Any]], None]) -> None:
        """Carry out these jobs in the caller's thread until they end. Raises Unavailable when no job can succeed."""
        done = 0

        def report(_: int, __: int, stage: str) -> None:
            progress({"done": done, "total": len(ids), "stage": stage})

        for id in ids:
            while (job := self._queue.job(id)).status == "queued":
                if hindered := self._hindered(job.kind):
                    raise Unavailable(f"{hindered}; the jobs stay queued")
                self.stopping.wait(self._queue.seconds_until(job.due_at))
                if begun := self._queue.begin(id):
                    self._carry_out(begun, report)
            done += 1
            report(0, 0, job.title)

    def facts(self) -> dict[str, Any]:
        """Return the jobs in each status, when the first became due, and why no job can succeed now."""
        jobs, waiting = dict.fromkeys(STATUSES, 0), None
        with suppress(Unavailable):  # the ledger fails, which status reports
            jobs = self._queue.counts()
            waiting = self._queue.due_since()
        return {"jobs": jobs, "tries": dict(self.tries), "due_since": waiting, "hindrance": self.hindrance}

    def troubles(self, now: int) -> list[str]:
        """Return sentences about problems of the queue, without notes or files.

        They contain no count of jobs: it would show an agent when another workspace has one."""
        sentences = []
        counts = self._queue.counts() if self._streak >= STREAK else {}
        if counts.get("queued") or counts.get("failed"):  # otherwise no failed job is left
            sentences.append("queue: several jobs in a row have failed; memex job queue shows the reasons")
        waiting, running = self._queue.due_since(), min([*self._under_way.values()], default=None)
        if waiting is not None and now - waiting > LATE_MS:
            sentences.append(f"queue: a job has been waiting for {LATE}; memex job queue shows it")
        if running is not None and now - running > LATE_MS:
            sentences.append(f"queue: a job has been running for {LATE}; it may hang")
        return sentences

    def _work(self, kind: Kind) -> None:
        while not self.stopping.is_set():
            stamp = self._queue.stamp
            try:
                pause = self._run_next(kind)
            except Unavailable as error:
                log.warning("the queue is not working: %s", error.message)
                self.stopping.wait(LOOK_S)
            except Exception:  # top of the thread: the jobs of this kind must go on
                log.exception("the queue is not working")
                self.stopping.wait(LOOK_S)
            else:
                if pause != 0:
                    self._queue.wait(stamp, pause, self.stopping.is_set)

    def _run_next(self, kind: Kind) -> float | None:
        """Carry out a due job; return the seconds until the next check, None when only a new job requires one."""
        due_in = self._queue.due_in(kind)
        if due_in is None or due_in > 0:
            return due_in
        self.hindrance = self._hindered(kind)
        if self.hindrance:
            self.stopping.wait(LOOK_S)
        elif job := self._queue.take(kind):
            self._carry_out(job)
        return 0.0

    def _carry_out(self, job: Job, progress: Callable[[int, int, str], None] = lambda *_: None) -> None:
        def report(done: int, total: int, stage: str) -> None:
            self._queue.report(job.id, done, total, stage)
            progress(done, total, stage)

        self._under_way[job.id] = job.started_at or 0
        try:
            outcome = self._run_handler(job, report)
        except BaseException:
            self._queue.requeue(job.id)
            raise
        finally:
            self._under_way.pop(job.id, None)
        self._record(outcome)

    def _run_handler(self, job: Job, report: Callable[[int, int, str], None]) -> Callable[[], None]:
        """Run the handler of a job; return the function that records the outcome."""
        handler, _ = self._handlers[job.kind]
        work = RunningJob(
            job, self._queue.staged.find(job.id), report, partial(self._queue.remember, job), self.stopping
        )
        try:
            with acting_as(job.author):
                made = handler(work)
        except MemexError as failure:
            error = failure
        except Exception:  # top of the job: it fails alone
            log.exception("the job %s failed unexpectedly", job.id)
            error = Unavailable("an unexpected error; see the daemon's log", retryable=False)
        else:
            self._count("done", well=True)
            return partial(self._queue.finish, job.id, made)
        if error.retryable and self.stopping.is_set():
            return partial(self._queue.requeue, job.id)
        if error.retryable and job.tries < TRIES:
            log.info("the job %s is postponed: %s", job.id, error.code)
            self._count("put off", well=False)
            return partial(self._queue.postpone, job.id, error, job.tries)
        log.info("the job %s failed: %s", job.id, error.code)
        self._count("failed", well=None if error.code != Unavailable.code else False)
        return partial(self._queue.fail, job.id, error)

    def _count(self, outcome: str, *, well: bool | None) -> None:
        self.tries[outcome] += 1
        if well is not None:  # a job that fails through its own fault says nothing about the daemon
            self._streak = 0 if well else self._streak + 1

    def _record(self, outcome: Callable[[], None]) -> None:
        """Record the outcome of a job; while the ledger can't be written, wait, because no other job could go on either."""
        while True:
            try:
                return outcome()
            except Unavailable as error:
                log.warning("could not record the outcome of a job: %s", error.message)
                if self.stopping.wait(LOOK_S):
                    return None  # the next start settles it
