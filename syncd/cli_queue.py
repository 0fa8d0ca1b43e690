"""The commands for the queue: notes and files that wait to become documents, and those that could not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

import click

from index.errors import Unavailable, from_dict
from syncd import render
from syncd.cli_arguments import waited
from syncd.cli_complete import queued, workspaces
from syncd.cli_frame import Command, answer, ask, asking, color, now
from syncd.cli_job import span

STATUSES = ("queued", "running", "done", "failed")
SHOWN = 12  # characters of an id, which stand for all of it


@click.command("queue", cls=Command)
@click.option("--status", type=click.Choice(STATUSES), help="Only those that are so.")
@click.option("--workspace", shell_complete=workspaces, help="Only those of this workspace.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="How many, the newest first."
)
def queue(status: str | None, workspace: str | None, limit: int) -> None:
    """List the notes and files that were queued: those that wait or run, and what became of the others."""
    found = ask("queue.list", {"status": status, "workspace": workspace, "limit": limit})
    answer(found, lambda: table(found, now(), color=color()))


@click.command("show", cls=Command)
@click.argument("id", shell_complete=queued)
def show(id: str) -> None:
    """Show one job of the queue: what it is about, how far it is, and why it failed."""
    found = ask("queue.show", {"id": id})
    answer(found, lambda: page(found, None))


@click.command("retry", cls=Command)
@click.argument("id", shell_complete=queued)
@click.option("--wait", is_flag=True, help="Come back when it has ended.")
def retry(id: str, wait: bool) -> None:
    """Queue a failed job again. Without a daemon it is done here, to its end."""
    with asking() as one:
        again = one("queue.retry", {"id": id})
        ended = waited(one, [again["id"]], once=not wait)[0]
    failed([ended])
    answer(ended, lambda: _sentence(ended))


@click.command("cancel", cls=Command)
@click.argument("id", shell_complete=queued)
def cancel(id: str) -> None:
    """Let a job that waits fail, so that it is not done. `memex job retry` queues it again."""
    done = ask("queue.cancel", {"id": id})
    answer(done, lambda: f"{render.line(done['title'], 60)} was cancelled")


@click.command("wait", cls=Command)
@click.argument("ids", nargs=-1, required=True, shell_complete=queued)
def wait(ids: tuple[str, ...]) -> None:
    """Wait until these jobs have ended; the exit code is that of the first that failed. Without a daemon they are done here."""
    with asking() as one:
        ended = waited(one, ids)
    failed(ended)
    answer({"jobs": ended}, lambda: "\n".join(map(_sentence, ended)))


def failed(ended: Sequence[Mapping[str, Any]]) -> None:
    """Raise the error of the first job that failed; of several, with their number."""
    wrong = [one for one in ended if one["status"] == "failed"]
    if len(wrong) == 1:
        raise from_dict(wrong[0]["error"])
    if wrong:
        first = f"{render.line(wrong[0]['title'], 60)}: {wrong[0]['error']['message']}"
        raise Unavailable(f"{len(wrong)} of {len(ended)} jobs failed, the first {first}", retryable=False)


def table(found: Mapping[str, Any], now_ms: int, *, color: bool) -> str:
    """One line for each job, why those that failed did, and how many there are."""
    rows = [
        (
            one["id"][:SHOWN],
            one["kind"],
            _state(one, now_ms),
            one["workspace"],
            one["by"] or "you",
            _age(one, now_ms),
            one["title"],
        )
        for one in found["jobs"]
    ]
    counts = ", ".join(f"{count:,} {status}" for status, count in found["counts"].items() if count)
    lines = (
        [render.table(rows, ("id", "kind", "state", "workspace", "by", "age", "about"), color=color)] if rows else []
    )
    lines += [
        f"{one['id'][:SHOWN]}: {render.line(one['error']['message'], 400)}" for one in found["jobs"] if one["error"]
    ]
    lines += [f"nothing can be done just now: {render.line(found['hindrance'], 400)}"] if found.get("hindrance") else []
    return "\n".join([*lines, counts or "nothing has been queued"])


def page(one: Mapping[str, Any], zone: tzinfo | None) -> str:
    """All that is known of one job."""
    moments = (("queued", "created_at"), ("begun", "started_at"), ("ended", "finished_at"))
    rows = [("id", one["id"]), ("about", one["title"]), ("kind", one["kind"]), ("status", one["status"])]
    rows += [("progress", f"{one['progress']:.0%} {one['stage']}".rstrip())] if one["status"] == "running" else []
    rows += [("workspace", one["workspace"]), ("by", one["by"] or "you")]
    rows += [(name, render.day(one[key], zone)) for name, key in moments if one[key]]
    rows += [("tries", str(one["tries"]))] if one["tries"] > 1 else []
    rows += [("document", one["document_id"])] if one["document_id"] else []
    rows += [("error", f"{one['error']['code']}: {one['error']['message']}")] if one["error"] else []
    return "\n".join(f"{name:<10}{render.line(str(value), 1_000)}" for name, value in rows)


def _state(one: Mapping[str, Any], now_ms: int) -> str:
    if one["status"] == "running":
        return f"{one['progress']:.0%} {one['stage']}".rstrip() if one["progress"] else one["stage"] or "running"
    if one["status"] == "queued" and one["due_at"] > now_ms:
        return f"again in {span((one['due_at'] - now_ms) / 1000)}"
    return str(one["status"])


def _age(one: Mapping[str, Any], now_ms: int) -> str:
    return span(max(0, now_ms - one["created_at"]) / 1000)


def _sentence(one: Mapping[str, Any]) -> str:
    became = f" is the document {one['document_id']}" if one["document_id"] else f" is {one['status']}"
    return f"{render.line(one['title'], 60)}{became}"
