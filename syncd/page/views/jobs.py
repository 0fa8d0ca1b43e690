"""Show files and jobs: add files to the inbox, the queue of notes and files with retry, and the scheduled jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from index.errors import MemexError, from_dict
from index.names import pluralize
from index.timings import now_ms
from syncd.jobs.job_names import job_name
from syncd.page.web.failures import describe_failure
from syncd.page.web.file_form import SentFile, post_files
from syncd.page.web.templates import link
from syncd.page.web.view import View, Visit, get, post
from syncd.uploads.local_files import StagedCopy

JOBS: Final = "/jobs"
QUEUED: Final = 25  # jobs of the queue on one page
RUNS: Final = 50
NAMED: Final = 5  # most files that a message names
STATUSES: Final = ("queued", "running", "failed", "done")
WORKSPACE: Final = "default"
_DAILY: Final = re.compile(r"(\d{1,2}) (\d{1,2}) \* \* \*")


# What is shown


def show_jobs(visit: Visit) -> Response:
    """Show the view."""
    status = visit.query("status")
    before, workspace = visit.query("before"), visit.query("workspace")
    queue = visit.ask("queue.list", status=status or None, before=before or None, limit=QUEUED + 1)
    workspaces = [row["name"] for row in visit.ask("workspace.list")]
    now = now_ms()
    jobs = queue["jobs"][:QUEUED]
    return visit.render(
        "jobs.html",
        workspaces=workspaces,
        workspace=workspace or (WORKSPACE if WORKSPACE in workspaces else next(iter(workspaces), "")),
        largest=visit.settings.kb.max_file,
        statuses=[(name, queue["counts"].get(name, 0)) for name in STATUSES],
        total=sum(queue["counts"].values()),
        chosen=status,
        queued=[describe_queued(job, now) for job in jobs],
        hindrance=queue.get("hindrance") or "",
        before=before,
        older=link(JOBS, status=status, before=jobs[-1]["id"]) if len(queue["jobs"]) > QUEUED else "",
        scheduled=describe_scheduled(visit.ask("job.list")),
        now=now,
    )


def describe_queued(job: Mapping[str, Any], now: int) -> dict[str, Any]:
    """Return a job of the queue as the list shows it, with its state: what it does now, or waits for."""
    state = {"queued": "waiting", "running": job["stage"] or "running", "done": "done", "failed": "failed"}[
        job["status"]
    ]
    waits = job["status"] == "queued" and job["due_at"] > now
    return {
        **job,
        "state": "tries again later" if waits else state,
        "percent": round(job["progress"] * 100) if job["status"] == "running" else None,
        "by": job["by"] or "you",
        "error": (job["error"] or {}).get("message", ""),
    }


def describe_scheduled(jobs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the scheduled jobs by title, each with its schedule and state; those that fail first."""
    rows = [
        {
            **job,
            "every": format_schedule(job["cron"]) if job["cron"] else format_interval(job["every_s"]),
            "state": _scheduled_state(job),
        }
        for job in jobs
    ]
    return sorted(rows, key=lambda row: (not row["error"], row["title"]))


def _scheduled_state(job: Mapping[str, Any]) -> str:
    """Return the state of a scheduled job; "" = it has not run yet."""
    if job["running"]:
        return "running too long" if job["too_long"] else "running"
    if job["error"]:
        return "failed"
    return "done" if job["started_at"] else ""


def format_interval(seconds: float) -> str:
    """Return an interval in its largest whole unit: every 30 s, every 5 min, every hour, every 2 days."""
    for size, unit, word in ((86_400, " days", "day"), (3_600, " hours", "hour"), (60, " min", "minute")):
        if seconds >= size and seconds % size == 0:
            return f"every {word}" if seconds == size else f"every {seconds / size:.0f}{unit}"
    return f"every {seconds:g} s"


def format_schedule(cron: str) -> str:
    """Return when a job with this cron expression runs: every day at 03:00; other expressions stay as they are."""
    daily = _DAILY.fullmatch(cron.strip())
    return f"every day at {int(daily[2]):02}:{int(daily[1]):02}" if daily else cron


def show_runs(visit: Visit) -> Response:
    """Show the last runs of a scheduled job."""
    name = visit.query("name")
    runs = visit.ask("job.history", name=name)
    return visit.render("job_runs.html", title=job_name(name), name=name, runs=runs[:RUNS])


# Changes of jobs


def run_job(visit: Visit) -> Response:
    """Start a scheduled job now, or join its current run."""
    done = visit.ask("job.run", name=visit.field("name"))
    return visit.redirect(f"{JOBS}#scheduled", f"`{done['title']}` was started.")


def retry_job(visit: Visit) -> Response:
    """Queue a failed job again."""
    job = visit.ask("queue.retry", id=visit.field("id"))
    return visit.redirect(_queue_address(visit), f"`{job['title']}` is queued again.")


def cancel_job(visit: Visit) -> Response:
    """Cancel a waiting job."""
    job = visit.ask("queue.cancel", id=visit.field("id"))
    return visit.redirect(_queue_address(visit), f"`{job['title']}` was cancelled. To queue it again, retry it.")


def _queue_address(visit: Visit) -> str:
    """Return the address of the part of the queue from which a form was sent."""
    return f"{link(JOBS, status=visit.field('status'), before=visit.field('before'))}#queue"


# Files


def begin_files(visit: Visit, fields: Mapping[str, str]) -> int:
    """Return the most bytes of a file for a workspace, which must exist."""
    return int(visit.ask("file.check", workspace=fields.get("workspace") or WORKSPACE)["largest"])


def take_file(visit: Visit, fields: Mapping[str, str], name: str, copy: StagedCopy) -> dict[str, str]:
    """Queue a received file as `memex addfile` does, unless the inbox has one with the same bytes."""
    workspace = fields.get("workspace") or WORKSPACE
    checked = visit.ask("file.check", workspace=workspace, sha256=copy.digest, size=copy.size)
    if checked["document"]:
        return {"status": "same", "path": checked["document"]["path"]}
    job = checked["job"] or visit.ask(
        "file.add", workspace=workspace, staged=copy.name, name=name, sha256=copy.digest, source="page"
    )
    return {"status": "queued", "path": "", "job": job["id"]}


def answer_files(visit: Visit, fields: Mapping[str, str], files: list[SentFile]) -> Response:
    """Answer a form with files: its script gets what became of each, a browser without it a message."""
    errors = [file.error for file in files if file.error is not None]
    status = describe_failure(errors[0]).status if errors and len(errors) == len(files) else 200
    if visit.accepts_json:
        rows = [
            {"name": file.name, "status": "failed", "reason": file.error.message}
            if file.error
            else {"name": file.name, **file.result}
            for file in files
        ]
        return JSONResponse({"files": rows}, status)
    if errors and len(errors) == len(files):
        raise _join_errors(files)
    return visit.redirect(link(JOBS, workspace=fields.get("workspace", "")), describe_files(files))


def _join_errors(files: Sequence[SentFile]) -> MemexError:
    """Return the error of files of which none was taken, with all their names."""
    first = next(file.error for file in files if file.error is not None)
    return from_dict(first.as_dict() | {"message": describe_files(files)})


def describe_files(files: Sequence[SentFile]) -> str:
    """Return what became of the files as a message, which names those that were not taken, with the reasons."""
    if not files:
        return "No file was chosen."
    queued = [file for file in files if file.result and file.result["status"] == "queued"]
    same = [
        f"`{file.name}` is already there as `{file.result['path']}`"
        for file in files
        if file.result and file not in queued
    ]
    failed = [f"`{file.name}` was not added: {file.error.message}" for file in files if file.error]
    sentences = [f"{pluralize(len(queued), 'file')} {'is' if len(queued) == 1 else 'are'} queued"] if queued else []
    named = [*failed, *same]
    more = [f"And {len(named) - NAMED:,} more"] if len(named) > NAMED else []
    return ". ".join([*sentences, *named[:NAMED], *more]) + "."


VIEW: Final = View(
    "jobs",
    "Files and jobs",
    JOBS,
    "f",
    (
        get(JOBS, show_jobs),
        get("/jobs/runs", show_runs),
        post("/jobs/run", run_job),
        post("/jobs/retry", retry_job),
        post("/jobs/cancel", cancel_job),
        post_files("/jobs/files", begin_files, take_file, answer_files),
    ),
)
