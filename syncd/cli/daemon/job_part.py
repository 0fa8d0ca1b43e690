"""The commands for jobs: how background work stands, and one run of it by hand."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Any

import click

from index.errors import Unavailable
from syncd.cli.framework.commands import Group, answer, ask, color, now
from syncd.cli.framework.completion import jobs
from syncd.cli.terminal import result_text

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@click.group(cls=Group)
def job() -> None:
    """Background work: what runs at intervals, how it went, and one run by hand."""


@job.command("list")
@click.argument("name", required=False, shell_complete=jobs)
def job_list(name: str | None) -> None:
    """List the jobs: how each last went, and when it runs next; with NAME, the last runs of that one."""
    if name is None:
        found = ask("job.list", {})
        answer(found, lambda: table(found, now(), None, color=color()))
    else:
        past = ask("job.history", {"name": name})
        answer(past, lambda: runs(past, None, color=color()))


@job.command("run")
@click.argument("name", shell_complete=jobs)
@click.option("--wait", is_flag=True, help="Come back when it has ended, with exit code 7 if it failed.")
def job_run(name: str, wait: bool) -> None:
    """Run the job NAME now, or take part in the run under way. Without a daemon it runs here, to its end."""
    done = ask("job.run", {"name": name, "wait": wait})
    if done.get("error"):
        raise Unavailable(f"the job {done['name']} failed after {span(done['seconds'])}: {done['error']}")
    told = f"{done['name']} took {span(done['seconds'])}" if done["ended"] else f"{done['name']} was started"
    answer(done, lambda: told)


def span(seconds: float) -> str:
    """A length of time as people say it: 0.4 s, 12 s, 10 min, 1.5 h."""
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= size), UNITS[-1])
    value = seconds / size
    return f"{value:.1f} {unit}" if value < 10 and round(value, 1) != int(value) else f"{value:.0f} {unit}"


def table(found: list[dict[str, Any]], now_ms: int, zone: tzinfo | None, *, color: bool) -> str:
    """One line for each job."""
    rows = [
        (
            one["name"],
            one.get("cron") or span(one["every_s"]),
            _state(one),
            result_text.day(one["started_at"], zone) if one["started_at"] else "never",
            span(one["seconds"]) if one["seconds"] is not None else "",
            f"in {span(max(0, one['next_run_at'] - now_ms) / 1000)}" if one["next_run_at"] else "when the daemon runs",
        )
        for one in found
    ]
    lines = [result_text.table(rows, ("job", "every", "state", "last began", "took", "next"), color=color)]
    return "\n".join(lines + [f"{one['name']}: {result_text.line(one['error'], 400)}" for one in found if one["error"]])


def runs(past: list[dict[str, Any]], zone: tzinfo | None, *, color: bool) -> str:
    """One line for each run, newest first."""
    rows = [
        (
            datetime.fromtimestamp(one["started_at"] / 1000, zone).strftime("%Y-%m-%d %H:%M:%S"),
            span(one["seconds"]),
            one["error"] or "well",
        )
        for one in past
    ]
    return result_text.table(rows, ("began", "took", "went"), color=color) if rows else "it has not run yet"


def _state(one: dict[str, Any]) -> str:
    if one["running"]:
        return "running too long" if one["too_long"] else "running"
    if one["error"]:
        return "failed"
    return "well" if one["started_at"] else ""
