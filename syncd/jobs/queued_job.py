"""Define a queued job as a value: its row in the ledger, its status and its progress."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from syncd.history.audit_log import Author

Kind: TypeAlias = Literal["note", "file"]
Status: TypeAlias = Literal["queued", "running", "done", "failed"]
STATUSES: Final[tuple[Status, ...]] = ("queued", "running", "done", "failed")


@dataclass(frozen=True, slots=True)
class Job:
    """Describes one job. Times are epoch milliseconds; `progress` goes from 0 to 1."""

    id: str
    kind: Kind
    status: Status
    key: str  # the public id of the key that queued it; "" = the owner
    workspace: str
    title: str  # its title, in one line
    stage: str  # the current step
    progress: float
    document_id: str | None  # set once the note exists
    error: Mapping[str, Any] | None  # why it failed or is postponed, as `MemexError.as_dict` returns it
    tries: int
    due_at: int
    created_at: int
    started_at: int | None
    finished_at: int | None
    planned: str = field(repr=False)  # the id of the note it will create
    given: Mapping[str, Any] = field(repr=False)  # the request; the text of a note is removed once the job is done
    author: Author = field(repr=False)
    seq: int = field(repr=False)


def job_of_row(row: Sequence[Any], under_way: tuple[float, str] | None) -> Job:
    """Return the job of a row of the table `queue`; `under_way` is its progress and current step, if it runs."""
    seq, id, key, workspace, kind, request, planned, status, stage, error, tries, due_at, *times = row
    about = json.loads(request)
    progress, now = (under_way or (0.0, stage)) if status == "running" else (float(status == "done"), stage)
    return Job(
        id=id,
        kind=kind,
        status=status,
        key=key,
        workspace=workspace,
        title=about["title"],
        stage=now,
        progress=progress,
        document_id=planned if status == "done" else None,
        error=json.loads(error) if error else None,
        tries=tries,
        due_at=due_at,
        created_at=times[0],
        started_at=times[1],
        finished_at=times[2],
        planned=planned,
        given=about["given"],
        author=Author(**about["author"]),
        seq=seq,
    )


UNFINISHED: Final = "SELECT id, kind, status, given, status = 'failed' AND size = 0 FROM queue WHERE status != 'done'"


@dataclass(frozen=True, slots=True)
class UnfinishedJob:
    """Describes a job that has not created its note, as far as its row says."""

    id: str
    kind: Kind
    failed: bool
    needs_file: bool  # whether the job can't be tried without its staged file


def unfinished_of_rows(rows: Iterable[Sequence[Any]]) -> list[UnfinishedJob]:
    """Return the jobs of the rows that `UNFINISHED` selects; works without a daemon."""
    return [
        UnfinishedJob(
            id,
            kind,
            failed=status == "failed",
            needs_file=kind == "file" and not shed and not json.loads(request)["given"].get("path"),
        )
        for id, kind, status, request, shed in rows
    ]
