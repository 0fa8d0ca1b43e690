"""Define the commands for jobs: scheduled jobs (`job list`, `job run`) and queued jobs (`job queue` ...)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

import click

from index.errors import Unavailable, from_dict
from index.names import pluralize
from index.timings import now_ms
from syncd.cli.framework.arguments import LISTED, cut_rows, wait_for_jobs
from syncd.cli.framework.commands import Group, ask, has_color, open_session, print_answer, show_elapsed
from syncd.cli.framework.completion import jobs, queued_jobs, workspaces
from syncd.cli.terminal import result_text
from syncd.jobs.job_names import shell_word

STATUSES = ("queued", "running", "done", "failed")
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
SHOWN = 12  # characters of an id that are enough to name the job


@click.group(cls=Group)
def job() -> None:
    """Manage background jobs: scheduled jobs, queued jobs, and manual runs."""


@job.command("list")
@click.argument("name", required=False, shell_complete=jobs)
def job_list(name: str | None) -> None:
    """List the scheduled jobs, each with its last result and its next run; with NAME, list the last runs of one job."""
    if name is None:
        listing = ask("job.list", {})
        print_answer(listing, lambda: jobs_table(listing, now_ms(), None, color=has_color()))
    else:
        past = ask("job.history", {"name": name})
        print_answer(past, lambda: runs_table(past, None, color=has_color()))


@job.command("run")
@click.argument("name", shell_complete=jobs)
@click.option("--wait", is_flag=True, help="Wait until the job ends; exit with 7 if it fails.")
def job_run(name: str, wait: bool) -> None:
    """Run the job NAME now, or join the run in progress. Without a daemon, the command runs the job itself."""
    with show_elapsed(f"running {name}"):
        done = ask("job.run", {"name": name, "wait": wait})
    if done.get("error"):
        raise Unavailable(
            f"the job {shell_word(done['name'])} failed after {format_duration(done['seconds'])}: {done['error']}"
        )
    sentence = (
        f"{shell_word(done['name'])} took {format_duration(done['seconds'])}"
        if done["ended"]
        else f"{shell_word(done['name'])} was started"
    )
    print_answer(done, lambda: sentence)


@job.command("queue")
@click.option("--status", type=click.Choice(STATUSES), help="Only jobs with this status.")
@click.option("--workspace", shell_complete=workspaces, help="Only jobs of this workspace.")
@click.option(
    "--limit", type=click.IntRange(1, LISTED), default=20, show_default=True, help="How many, the newest first."
)
def queue(status: str | None, workspace: str | None, limit: int) -> None:
    """List the queued notes and files: waiting, running, done and failed."""
    listing = ask("queue.list", {"status": status, "workspace": workspace, "limit": limit + 1})
    listing["jobs"] = cut_rows(listing["jobs"], limit, "jobs")
    print_answer(listing, lambda: queue_table(listing, now_ms(), color=has_color()))


@job.command("show")
@click.argument("id", shell_complete=queued_jobs)
def show(id: str) -> None:
    """Show one queued job: its note or file, its progress, and why it failed."""
    job = ask("queue.show", {"id": id})
    print_answer(job, lambda: format_job(job, None))


@job.command("retry")
@click.argument("id", shell_complete=queued_jobs)
@click.option("--wait", is_flag=True, help="Wait until the job ends.")
def retry(id: str, wait: bool) -> None:
    """Queue a failed job again. Without a daemon, the command runs the job itself."""
    with open_session() as ask:
        again = ask("queue.retry", {"id": id})
        ended = wait_for_jobs(ask, [again["id"]], once=not wait)[0]
    raise_failure([ended])
    print_answer(ended, lambda: _format_outcome(ended))


@job.command("cancel")
@click.argument("id", shell_complete=queued_jobs)
def cancel(id: str) -> None:
    """Cancel a waiting job: it counts as failed. `memex job retry` queues it again."""
    done = ask("queue.cancel", {"id": id})
    print_answer(done, lambda: f"{result_text.line(done['title'], 60)} was cancelled")


@job.command("wait")
@click.argument("ids", metavar="ID...", nargs=-1, required=True, shell_complete=queued_jobs)
def wait(ids: tuple[str, ...]) -> None:
    """Wait until these jobs end. The exit code is that of the first failed job. Without a daemon, the command runs them itself."""
    with open_session() as ask:
        ended = wait_for_jobs(ask, ids)
    raise_failure(ended)
    print_answer({"jobs": ended}, lambda: "\n".join(map(_format_outcome, ended)))


def raise_failure(ended: Sequence[Mapping[str, Any]]) -> None:
    """Raise the error of the failed job; if several failed, name their number and the first error."""
    wrong = [job for job in ended if job["status"] == "failed"]
    if len(wrong) == 1:
        raise from_dict(wrong[0]["error"])
    if wrong:
        first = f"{result_text.line(wrong[0]['title'], 60)}: {wrong[0]['error']['message']}"
        raise Unavailable(
            f"{len(wrong):,} of {pluralize(len(ended), 'job')} failed, the first {first}", retryable=False
        )


def queue_table(queue: Mapping[str, Any], now_ms: int, *, color: bool) -> str:
    """Format one line for each job, the errors of failed jobs, and the counts."""
    rows = [
        (
            job["id"][:SHOWN],
            job["kind"],
            _queue_state(job, now_ms),
            job["workspace"],
            job["by"] or "you",
            format_duration(max(0, now_ms - job["created_at"]) / 1000),
            job["title"],
        )
        for job in queue["jobs"]
    ]
    counts = ", ".join(f"{count:,} {status}" for status, count in queue["counts"].items() if count)
    lines = (
        [result_text.table(rows, ("id", "kind", "state", "workspace", "by", "age", "about"), color=color)]
        if rows
        else []
    )
    lines += [
        f"{job['id'][:SHOWN]}: {result_text.line(job['error']['message'], 400)}"
        for job in queue["jobs"]
        if job["error"]
    ]
    lines += [f"the queue is paused: {result_text.line(queue['hindrance'], 400)}"] if queue.get("hindrance") else []
    return "\n".join([*lines, counts or "no jobs are queued"])


def format_job(job: Mapping[str, Any], zone: tzinfo | None) -> str:
    """Format all fields of one job."""
    moments = (("queued", "created_at"), ("started", "started_at"), ("ended", "finished_at"))
    rows = [("id", job["id"]), ("about", job["title"]), ("kind", job["kind"]), ("status", job["status"])]
    rows += [("progress", f"{job['progress']:.0%} {job['stage']}".rstrip())] if job["status"] == "running" else []
    rows += [("workspace", job["workspace"]), ("by", job["by"] or "you")]
    rows += [(name, result_text.format_time(job[key], zone)) for name, key in moments if job[key]]
    rows += [("tries", str(job["tries"]))] if job["tries"] > 1 else []
    rows += [("document", job["document_id"])] if job["document_id"] else []
    rows += [("error", job["error"]["message"])] if job["error"] else []
    return "\n".join(f"{name:<10}{result_text.line(str(value), 1_000)}" for name, value in rows)


def _queue_state(job: Mapping[str, Any], now_ms: int) -> str:
    if job["status"] == "running":
        return f"{job['progress']:.0%} {job['stage']}".rstrip() if job["progress"] else job["stage"] or "running"
    if job["status"] == "queued" and job["due_at"] > now_ms:
        return f"again in {format_duration((job['due_at'] - now_ms) / 1000)}"
    return str(job["status"])


def _format_outcome(job: Mapping[str, Any]) -> str:
    became = f" is the document {job['document_id']}" if job["document_id"] else f" is {job['status']}"
    return f"{result_text.line(job['title'], 60)}{became}"


def format_duration(seconds: float) -> str:
    """Format a duration: 0.4 s, 12 s, 10 min, 1.5 h."""
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= size), UNITS[-1])
    value = seconds / size
    return f"{value:.1f} {unit}" if value < 10 and round(value, 1) != int(value) else f"{value:.0f} {unit}"


def jobs_table(jobs: list[dict[str, Any]], now_ms: int, zone: tzinfo | None, *, color: bool) -> str:
    """Format one line for each scheduled job."""
    rows = [
        (
            shell_word(job["name"]),
            job.get("cron") or format_duration(job["every_s"]),
            _job_state(job),
            result_text.format_time(job["started_at"], zone) if job["started_at"] else "never",
            format_duration(job["seconds"]) if job["seconds"] is not None else "",
            f"in {format_duration(max(0, job['next_run_at'] - now_ms) / 1000)}"
            if job["next_run_at"]
            else "when the daemon runs",
        )
        for job in sorted(jobs, key=lambda job: shell_word(job["name"]))
    ]
    lines = [result_text.table(rows, ("job", "every", "state", "last run", "took", "next"), color=color)]
    return "\n".join(
        lines + [f"{shell_word(job['name'])}: {result_text.line(job['error'], 400)}" for job in jobs if job["error"]]
    )


def runs_table(past: list[dict[str, Any]], zone: tzinfo | None, *, color: bool) -> str:
    """Format one line for each run, newest first."""
    rows = [
        (
            result_text.format_time(run["started_at"], zone, timespec="seconds"),
            format_duration(run["seconds"]),
            run["error"] or "ok",
        )
        for run in past
    ]
    return result_text.table(rows, ("started", "took", "result"), color=color) if rows else "the job has not run yet"


def _job_state(job: dict[str, Any]) -> str:
    if job["running"]:
        return "running too long" if job["too_long"] else "running"
    if job["error"]:
        return "failed"
    return "ok" if job["started_at"] else ""
