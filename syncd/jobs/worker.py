"""The worker runs the jobs of the queue on threads, each kind with the handler registered for it.

A handler gets a `RunningJob` and returns the id of the document that it made. It may be called again for a job that it has
done, or half done, before a crash: the planned id of the document (`work.job.planned`) stays what it was.

Law, tested: a job that fails, hangs or ends the process fails alone; the others go on. A failure that may pass
(`retryable`) is retried later, and not at all while nothing could succeed."""

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

LOOK_S: Final = 5.0  # between two looks at whether anything can be done again
STREAK: Final = 3  # tries in a row that failed for no fault of their own: then it is told
LATE_MS: Final = 15 * 60_000  # a job that waits or runs for longer is told of
LATE: Final = f"more than {LATE_MS // 60_000} minutes"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningJob:
    """One job under way, as its handler sees it."""

    job: Job
    staged: Path | None  # its file, in the queue's own folder; removed once the job is done
    progress: Callable[[int, int, str], None]  # done, total, stage
    remember: Callable[..., None]  # remember(path=…): what `job.given` is to hold too at the next try, on disk at once
    stopping: threading.Event  # whoever sees it set raises Unavailable; the job is begun anew at the next start


Handler: TypeAlias = Callable[[RunningJob], str]


class Worker:
    """Works from `start` to `stop`; without, only `drain` does. `hindered` says why no job of a kind could succeed now, or ""."""

    def __init__(self, queue: Queue, hindered: Callable[[Kind], str] = lambda _: "") -> None:
        self.stopping = threading.Event()
        self.tries = dict.fromkeys(("done", "failed", "put off"), 0)  # since the start, by how they went
        self.hindrance = ""
        self._queue, self._hindered = queue, hindered
        self._handlers: dict[Kind, tuple[Handler, int]] = {}
        self._threads: list[threading.Thread] = []
        self._under_way: dict[str, int] = {}  # id → when it was begun
        self._streak = 0

    def register(self, kind: Kind, handler: Handler, *, threads: int = 1) -> None:
        """Have the jobs of a kind carried out by `handler`, so many at a time. Before the start."""
        self._handlers[kind] = (handler, threads)

    @property
    def running(self) -> bool:
        """Whether jobs are carried out by themselves."""
        return bool(self._threads)

    def start(self) -> None:
        """Begin to carry out what is queued, and whatever is added."""
        for kind, (_, count) in self._handlers.items():
            for number in range(count):
                thread = threading.Thread(target=self._work, args=(kind,), name=f"{kind}s {number + 1}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def interrupt(self) -> None:
        """Begin no more jobs, and let those under way know."""
        self.stopping.set()
        self._queue.wake()

    def stop(self, grace_s: float = 10.0) -> int:
        """Wait so long for the jobs under way; how many did not end. They are queued again."""
        self.interrupt()
        until = time.monotonic() + grace_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._threads = []
        left = tuple(self._under_way)
        for id in left:
            self._record(partial(self._queue.requeue, id))
        if left:
            log.warning("jobs left unfinished: %d; they are begun anew at the next start", len(left))
        return len(left)

    def drain(self, ids: Collection[str], progress: Callable[[dict[str, Any]], None]) -> None:
        """Carry out these jobs in the caller's own thread, to their end. Unavailable when nothing can be done."""
        done = 0

        def report(_: int, __: int, stage: str) -> None:
            progress({"done": done, "total": len(ids), "stage": stage})

        for id in ids:
            while (job := self._queue.job(id)).status == "queued":
                if hindered := self._hindered(job.kind):
                    raise Unavailable(f"{hindered}; the jobs stay queued")
                self.stopping.wait(max(0.0, (job.due_at - time.time_ns() // 1_000_000) / 1000))
                if begun := self._queue.begin(id):
                    self._carry_out(begun, report)
            done += 1
            report(0, 0, job.title)

    def facts(self) -> dict[str, Any]:
        """How many jobs there are in each status, since when the first has been due, and what keeps all from being done."""
        jobs, waiting = dict.fromkeys(STATUSES, 0), None
        with suppress(Unavailable):  # of the ledger, and status says so
            jobs = self._queue.counts()
            waiting = self._queue.due_since()
        return {"jobs": jobs, "tries": dict(self.tries), "due_since": waiting, "hindrance": self.hindrance}

    def troubles(self, now: int) -> list[str]:
        """What is not as it should be, in sentences that say nothing of notes or files.

        No number is in them that moves with each job: an agent would learn when another workspace has one."""
        sentences = []
        counts = self._queue.counts() if self._streak >= STREAK else {}
        if counts.get("queued") or counts.get("failed"):  # else nothing is left of what failed
            sentences.append("queue: job after job fails; memex job queue says why")
        waiting, running = self._queue.due_since(), min([*self._under_way.values()], default=None)
        if waiting is not None and now - waiting > LATE_MS:
            sentences.append(f"queue: a job has been waiting for {LATE}; memex job queue lists it")
        if running is not None and now - running > LATE_MS:
            sentences.append(f"queue: a job has been running for {LATE}; it may hang")
        return sentences

    def _work(self, kind: Kind) -> None:
        while not self.stopping.is_set():
            stamp = self._queue.stamp
            try:
                pause = self._run_next(kind)
            except Unavailable as error:
                log.warning("the queue can't be worked on: %s", error.message)
                self.stopping.wait(LOOK_S)
            except Exception:  # top of the thread: the jobs of this kind must go on
                log.exception("the queue can't be worked on")
                self.stopping.wait(LOOK_S)
            else:
                if pause != 0:
                    self._queue.wait(stamp, pause, self.stopping.is_set)

    def _run_next(self, kind: Kind) -> float | None:
        """Carry out a job that is due; the seconds until the next look, None when only a new job would call for one."""
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
        """Do the job; what is to be written down of how it went."""
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
            error = Unavailable("an unexpected error; the daemon's log has the details", retryable=False)
        else:
            self._count("done", well=True)
            return partial(self._queue.finish, job.id, made)
        if error.retryable and self.stopping.is_set():
            return partial(self._queue.requeue, job.id)
        if error.retryable and job.tries < TRIES:
            log.info("the job %s is put off: %s", job.id, error.code)
            self._count("put off", well=False)
            return partial(self._queue.postpone, job.id, error, job.tries)
        log.info("the job %s failed: %s", job.id, error.code)
        self._count("failed", well=None if error.code != Unavailable.code else False)
        return partial(self._queue.fail, job.id, error)

    def _count(self, outcome: str, *, well: bool | None) -> None:
        self.tries[outcome] += 1
        if well is not None:  # what fails by its own fault says nothing of us
            self._streak = 0 if well else self._streak + 1

    def _record(self, outcome: Callable[[], None]) -> None:
        """Write down how a job went; a ledger that can't be written is waited for, as nothing else could go on either."""
        while True:
            try:
                return outcome()
            except Unavailable as error:
                log.warning("how a job went can't be written down: %s", error.message)
                if self.stopping.wait(LOOK_S):
                    return None  # the start finds out
