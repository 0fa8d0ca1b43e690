"""Define the owner's operations on jobs: scheduled jobs and their runs, and the jobs of the queue."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from index.errors import InvalidArgument, NotFound
from index.names import did_you_mean
from syncd.daemon.control_socket import Arguments, Progress
from syncd.jobs.job_names import find_key, job_name, shell_word
from syncd.jobs.queue import Queue
from syncd.jobs.queued_job import STATUSES, Job
from syncd.jobs.scheduler import Scheduler
from syncd.jobs.worker import Worker

MOST: Final = 10_001  # jobs of one answer: one more than a command lists
SHORTEST: Final = 4  # characters of an id that can name a job
TURN_S: Final = 20.0  # most seconds of one wait for jobs; after that, the caller calls again
LOOK_S: Final = 0.5  # seconds between two checks of their progress


def queue_operations(queue: Queue, worker: Worker) -> dict[str, Callable[[Arguments, Progress], Any]]:
    """Return the owner's operations on the queue, by name."""

    def list_jobs(arguments: Arguments, _: Progress) -> dict[str, Any]:
        limit, status = arguments.get("limit") or 20, arguments.get("status")
        if not 1 <= limit <= MOST:
            raise InvalidArgument(f"limit must be between 1 and {MOST}")
        if status not in (None, *STATUSES):
            raise InvalidArgument(f"status must be one of {', '.join(STATUSES)}")
        workspace = arguments.get("workspace")
        jobs = queue.jobs(workspace=workspace, status=status, limit=limit, before=arguments.get("before"))
        rows = [job_fields(job) for job in jobs]
        return {"jobs": rows, "counts": queue.counts(workspace), "hindrance": worker.hindrance}

    def show(arguments: Arguments, _: Progress) -> dict[str, Any]:
        return job_fields(_find_job(queue, arguments["id"]))

    def retry(arguments: Arguments, _: Progress) -> dict[str, Any]:
        return job_fields(queue.retry(_find_job(queue, arguments["id"]).id))

    def cancel(arguments: Arguments, _: Progress) -> dict[str, Any]:
        return job_fields(queue.cancel(_find_job(queue, arguments["id"]).id))

    def wait(arguments: Arguments, progress: Progress) -> dict[str, Any]:
        ids = [_find_job(queue, id).id for id in arguments["ids"]]
        if not worker.running:
            worker.drain(ids, progress)
        jobs = _wait_for_jobs(queue, worker, ids, progress, seconds=0.0 if arguments.get("at_once") else TURN_S)
        ended = all(job.status in ("done", "failed") for job in jobs)
        return {"jobs": [job_fields(job) for job in jobs], "ended": ended}

    return {
        "queue.list": list_jobs,
        "queue.show": show,
        "queue.retry": retry,
        "queue.cancel": cancel,
        "queue.wait": wait,
    }


def job_fields(job: Job) -> dict[str, Any]:
    """Return the fields of a job that commands show."""
    names = ("id", "kind", "status", "stage", "progress", "workspace", "key", "title", "document_id", "tries")
    times = ("due_at", "created_at", "started_at", "finished_at")
    shown = {name: getattr(job, name) for name in (*names, *times)}
    return shown | {"by": job.author.name, "error": dict(job.error) if job.error else None}


def _find_job(queue: Queue, id: str) -> Job:
    """Find a job by its id, or by the beginning of exactly one id."""
    whole = queue.ids_beginning(id) if len(id) >= SHORTEST else [id]
    if len(whole) > 1:
        raise InvalidArgument(f"several job ids begin with {id!r}: give more characters")
    if not whole:
        raise NotFound(f"no job {id[:64]!r}; to list the jobs: memex job queue")
    return queue.job(whole[0])


def _wait_for_jobs(
    queue: Queue, worker: Worker, ids: Sequence[str], progress: Progress, *, seconds: float
) -> list[Job]:
    """Return these jobs once all have ended, or after a time limit."""
    end = time.monotonic() + seconds
    while True:
        stamp = queue.stamp
        jobs = [queue.job(id) for id in ids]
        going = [job for job in jobs if job.status in ("queued", "running")]
        at = next((job for job in going if job.status == "running"), None)
        progress(
            {"done": len(jobs) - len(going), "total": len(jobs), "stage": at.stage or at.title if at else "waiting"}
        )
        if not going or time.monotonic() >= end or worker.stopping.is_set():
            return jobs
        queue.wait(stamp, LOOK_S, worker.stopping.is_set)


def job_operations(jobs: Callable[[], Scheduler]) -> dict[str, Callable[[Mapping[str, Any], Any], Any]]:
    """Return the owner's operations on scheduled jobs, by name; `jobs` returns the current scheduler."""

    def list_jobs(_: Mapping[str, Any], __: Any) -> list[dict[str, Any]]:
        return [{"name": key, "title": job_name(key), **asdict(job)} for key, job in sorted(jobs().states().items())]

    def history(arguments: Arguments, _: Any) -> list[dict[str, Any]]:
        return [asdict(run) for run in jobs().history(_find_key(jobs(), arguments))]

    def run(arguments: Arguments, _: Any) -> dict[str, Any]:
        key = _find_key(jobs(), arguments)
        done = jobs().run(key, wait=bool(arguments.get("wait")))
        return {"name": key, "title": job_name(key), "ended": done is not None, **(asdict(done) if done else {})}

    return {"job.list": list_jobs, "job.history": history, "job.run": run}


def _find_key(jobs: Scheduler, arguments: Arguments) -> str:
    """Find the key of a job by its name or key. Raises NotFound with the nearest name."""
    text, keys = str(arguments["name"]), jobs.states().keys()
    if (key := find_key(text, keys)) is not None:
        return key
    near = did_you_mean(text[:64].replace(" ", "-"), [*map(shell_word, keys), *keys])
    raise NotFound(f"no job {text[:64]!r}{near or ';'} `memex job list` names them")
