"""The queue keeps accepted notes and files durably in the ledger until their jobs have ended.

Laws, tested: an accepted job is carried out even if the process ends meanwhile, and creates one note, whose id is
chosen when the job is queued. A key sees only its own jobs of its own workspace, and never waits for all jobs of
another key."""

from __future__ import annotations

import json
import secrets
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from index.errors import Conflict, MemexError, NotFound, ResourceExhausted, Unavailable
from index.timings import now_ms
from syncd.history.audit_log import AUTHOR, Author
from syncd.jobs.queued_job import STATUSES, Job, Kind, Status, job_of_row
from syncd.jobs.staged_files import StagedFiles
from syncd.notes.secret_patterns import redact, redact_values
from syncd.settings.knowledge_base import KbSettings
from syncd.state.damage import STAGED
from syncd.state.ledger import Ledger

TRIES: Final = 10
BACKOFF_S: Final = 2.0, 300.0  # wait after the first try, doubled each time, and the longest wait
ENDED: Final = 10_000  # ended jobs kept for each key
NOTES: Final = 64 << 20  # most bytes of text in the waiting notes of one key

_SELECT: Final = (
    "SELECT seq, id, key, workspace, kind, given, document_id, status, stage, error, tries, due_at, created_at,"
    " started_at, finished_at FROM queue"
)


class Queue:
    """Manages the jobs of one ledger.

    Safe from any thread; only the process that holds the state folder's lock writes."""

    def __init__(
        self,
        ledger: Ledger,
        state: Path,
        settings: KbSettings,
        now: Callable[[], int] = now_ms,
    ) -> None:
        self.staged = StagedFiles(state / STAGED)
        self._ledger, self._settings, self._now = ledger, settings, now
        self._changed = threading.Condition()
        self.stamp = 0  # increases whenever a job changes
        self._served: dict[str, str] = {}  # kind → the key that was served last
        self._stages: dict[str, tuple[float, str]] = {}  # id of a running job → its progress and stage

    # Adding

    def add_note(self, key: str, workspace: str, arguments: Mapping[str, Any], *, title: str) -> Job:
        """Queue a note; `arguments` is a checked request of `queued_note`.

        Raises ResourceExhausted while too much waits."""
        size = len(str(arguments["text"]).encode())
        waiting = self.pending_size(key, "note")[1]
        if key and waiting + size > NOTES:
            raise ResourceExhausted(
                f"{waiting:,} bytes of notes are already waiting; try again when some are done",
                limit=NOTES,
                retryable=True,
            )
        ids = secrets.token_hex(16), str(uuid.uuid4())
        return self._add((*ids, "note", key, workspace, size), arguments, title)

    def add_file(
        self, key: str, workspace: str, arguments: Mapping[str, Any], staged: Path | None, *, id: str | None = None
    ) -> Job:
        """Queue a file: a `staged` file, which moves to the queue's own folder, or a file of the vault (`arguments.path`).

        With an `id` chosen before (`secrets.token_hex(16)`), the same call again returns the same job."""
        job_id = id or secrets.token_hex(16)
        if id and (again := self._find_job(id)):
            if (again.key, again.workspace) != (key, workspace):
                raise Conflict("another job has this id")
            return again
        self._check_share(key)
        if staged is not None:
            self.staged.take(staged, job_id)
        size = int(arguments.get("size") or 0) if staged else 0
        row = job_id, str(uuid.uuid4()), "file", key, workspace, size
        try:
            return self._add(row, arguments, str(arguments.get("title") or arguments["name"]))
        except MemexError:
            if staged is not None:
                self.staged.put_back(job_id, staged)
            raise

    def _add(self, row: tuple[str, str, str, str, str, int], arguments: Mapping[str, Any], title: str) -> Job:
        """Insert a row: id, id of the note, kind, key, workspace, size."""
        self._check_share(row[3])
        now = self._now()
        request = _format_request(AUTHOR.get(), redact(title)[:200], arguments)
        with self._ledger.transaction():
            self._ledger.execute(
                "INSERT INTO queue (id, document_id, kind, key, workspace, size, given, status, stage, error, tries,"
                " due_at, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', '', '', 0, ?, ?)",
                (*row, request, now, now),
            )
        self.wake()
        return self._require_job(row[0])

    def _check_share(self, key: str) -> None:
        """Raise ResourceExhausted when too many jobs of the key wait; the owner has no limit."""
        if key and self.pending_size(key)[0] >= self._settings.queued:
            raise ResourceExhausted(
                f"{self._settings.queued:,} jobs are already waiting; try again when some are done",
                limit=self._settings.queued,
                retryable=True,
            )

    def pending_size(self, key: str, kind: Kind | None = None) -> tuple[int, int]:
        """Return the number of a key's jobs that have not ended, and the bytes of their texts and staged files."""
        rows = self._ledger.query(
            "SELECT count(*), coalesce(sum(size), 0) FROM queue"
            " WHERE key = ? AND kind IN (?, ?) AND status IN ('queued', 'running')",
            (key, kind or "note", kind or "file"),
        )
        return rows[0][0], rows[0][1]

    # Reading

    def job(self, id: str, *, key: str | None = None, workspace: str | None = None) -> Job:
        """Return one job of this key and workspace (None: any).

        Raises NotFound, with equal text, for hidden and missing jobs."""
        job = self._find_job(id)
        if job is None or key not in (None, job.key) or workspace not in (None, job.workspace):
            raise NotFound(f"no job {id[:64]!r}; finished jobs are removed after some time")
        return job

    def jobs(
        self,
        *,
        key: str | None = None,
        workspace: str | None = None,
        status: Status | None = None,
        limit: int = 20,
        before: str | None = None,
    ) -> list[Job]:
        """Return the newest jobs, newest first; with `before`, those older than the job with that id."""
        asked = {"key": key, "workspace": workspace, "status": status}
        terms = [f"{name} = :{name}" for name, value in asked.items() if value is not None]
        if before is not None:
            terms.append("seq < (SELECT seq FROM queue WHERE id = :before)")
        which = f" WHERE {' AND '.join(terms)}" if terms else ""
        rows = self._ledger.query(
            f"{_SELECT}{which} ORDER BY seq DESC LIMIT :limit", asked | {"before": before, "limit": limit}
        )
        return [self._job_of_row(row) for row in rows]

    def job_for_file(self, workspace: str, digest: str, size: int) -> Job | None:
        """Return the owner's waiting or running job for a file with these bytes, if there is one."""
        rows = self._ledger.query(
            f"{_SELECT} WHERE key = '' AND kind = 'file' AND status IN ('queued', 'running') AND size = ?"
            " AND workspace = ? AND json_extract(given, '$.given.sha256') = ? ORDER BY seq LIMIT 1",
            (size, workspace, digest),
        )
        return self._job_of_row(rows[0]) if rows else None

    def documents_of_file(self, workspace: str, digest: str) -> list[str]:
        """Return the ids of the notes that the owner's jobs made from files with these bytes."""
        rows = self._ledger.query(
            "SELECT document_id FROM queue WHERE key = '' AND workspace = ? AND kind = 'file' AND status = 'done'"
            " AND instr(given, ?) AND json_extract(given, '$.given.sha256') = ?",  # the first condition is fast
            (workspace, digest, digest),
        )
        return [id for (id,) in rows]

    def ids_beginning(self, id: str) -> list[str]:
        """Return at most two ids of jobs that begin with `id`."""
        return [
            job_id
            for (job_id,) in self._ledger.query("SELECT id FROM queue WHERE id BETWEEN ? AND ? LIMIT 2", (id, f"{id}g"))
        ]

    def counts(self, workspace: str | None = None, key: str | None = None) -> dict[Status, int]:
        """Return the number of jobs in each status: all jobs, or those of a workspace or a key."""
        rows = self._ledger.query(
            "SELECT status, count(*) FROM queue WHERE workspace = coalesce(?, workspace) AND key = coalesce(?, key)"
            " GROUP BY status",
            (workspace, key),
        )
        return dict.fromkeys(STATUSES, 0) | dict(rows)

    def due_since(self) -> int | None:
        """Return when the longest waiting job became due; None when none waits. A postponed job is due later."""
        first = "(SELECT min(due_at) FROM queue WHERE status = 'queued' AND kind = ?)"
        ((note, file),) = self._ledger.query(f"SELECT {first}, {first}", ("note", "file"))
        return min((due for due in (note, file) if due is not None), default=None)

    # The owner's commands

    def retry(self, id: str) -> Job:
        """Queue a failed job again. Raises Conflict if it has not failed."""
        if not self._update(id, "failed", status="queued", error="", tries=0, due_at=self._now(), finished_at=None):
            raise Conflict(f"the job is {self.job(id).status}; only failed jobs can be retried")
        return self._require_job(id)

    def cancel(self, id: str) -> Job:
        """Cancel a waiting job. Raises Conflict if it does not wait."""
        error = Unavailable("the job was cancelled before it ran", retryable=False)
        if not self._update(id, "queued", status="failed", error=_error_json(error), finished_at=self._now()):
            raise Conflict(f"the job is {self.job(id).status}; only waiting jobs can be cancelled")
        return self._require_job(id)

    # Working

    def due_in(self, kind: Kind) -> float | None:
        """Return the seconds until a job of this kind is due; None when none waits."""
        ((due,),) = self._ledger.query("SELECT min(due_at) FROM queue WHERE status = 'queued' AND kind = ?", (kind,))
        if due is None:
            return None
        return self.seconds_until(due)

    def seconds_until(self, due_at: int) -> float:
        """Return the seconds until a waiting job is due; 0 if that is further away than any wait: then the clock was set back."""
        left = (due_at - self._now()) / 1000
        return 0.0 if left > BACKOFF_S[1] else max(0.0, left)

    def take(self, kind: Kind) -> Job | None:
        """Start the next due job: the oldest one of the key whose turn it is. None when there is none."""
        now, last = self._now(), self._served.get(kind, "")
        due = "status = 'queued' AND kind = ? AND (due_at <= ? OR due_at > ?)"
        values = (kind, now, now + int(BACKOFF_S[1] * 1000), last)
        for turn in ("key > ?", "key <= ?"):
            rows = self._ledger.query(
                f"SELECT id, key FROM queue WHERE {due} AND {turn} ORDER BY key, seq LIMIT 1",  # noqa: S608 - words of ours
                values,
            )
            if rows:
                self._served[kind] = rows[0][1]
                return self.begin(rows[0][0])
        return None

    def begin(self, id: str) -> Job | None:
        """Start this job, if it waits. The try is recorded on disk first."""
        with self._ledger.transaction():
            begun = self._ledger.execute(
                "UPDATE queue SET status = 'running', started_at = ?, tries = tries + 1 WHERE id = ? AND status = 'queued'",
                (self._now(), id),
            )
        self.wake()
        return self._require_job(id) if begun else None

    def report(self, id: str, done: int, total: int, stage: str) -> None:
        """Set the progress of a running job; kept in memory."""
        self._stages[id] = (min(1.0, done / total) if total else 0.0, stage)

    def remember(self, job: Job, **more: Any) -> None:
        """Add values to a running job's request, so that a try after a crash has them too."""
        self._update(job.id, "running", given=_format_request(job.author, job.title, {**job.given, **more}))

    def finish(self, id: str, document_id: str) -> None:
        """Mark a job as done, and remove its text and staged file."""
        job = self._find_job(id)
        assert job is not None, "the worker got the job from this queue"
        left = {name: value for name, value in job.given.items() if name != "text"}
        request = _format_request(job.author, job.title, left)
        fields = {"document_id": document_id, "given": request, "finished_at": self._now(), "size": 0}
        if self._update(id, "running", status="done", stage="", error="", **fields):
            self.staged.drop(id)

    def fail(self, id: str, error: MemexError) -> None:
        """Mark a job as failed. Its staged file stays for a retry, as long as the key has room for it."""
        stage = self._stages.get(id, (0.0, ""))[1]
        self._update(id, "running", status="failed", stage=stage, error=_error_json(error), finished_at=self._now())

    def postpone(self, id: str, error: MemexError, tries: int) -> None:
        """Queue a job again with its error, to be tried after a wait that grows with each try."""
        self._update(
            id, "running", status="queued", error=_error_json(error), due_at=self._now() + int(backoff(tries) * 1000)
        )

    def requeue(self, id: str) -> None:
        """Queue an interrupted job again; the interrupted try does not count."""
        with self._ledger.transaction():
            self._ledger.execute(
                "UPDATE queue SET status = 'queued', tries = max(0, tries - 1) WHERE id = ? AND status = 'running'",
                (id,),
            )
        self._announce_end(id)

    def recover(self, made: Callable[[str], bool]) -> None:
        """Settle running jobs after a crash: done if their note exists, else tried again after a while.

        A job during which the process has ended too often fails, so that it blocks no other job."""
        rows = self._ledger.query(f"{_SELECT} WHERE status = 'running' ORDER BY seq")
        ended = Unavailable("the daemon stopped while the job was running")
        for job in map(self._job_of_row, rows):
            if made(job.planned):
                self.finish(job.id, job.planned)
            elif job.tries >= TRIES:
                self.fail(job.id, Unavailable(f"{ended.message}, {job.tries} times", retryable=False))
            else:
                self.postpone(job.id, ended, job.tries)

    def wait(self, stamp: int, seconds: float | None, until: Callable[[], bool] = lambda: False) -> None:
        """Wait for a change since `stamp`, at most `seconds`, or until `until` holds when `wake` is called."""
        with self._changed:
            self._changed.wait_for(lambda: self.stamp != stamp or until(), seconds)

    def wake(self) -> None:
        """Wake all waiting threads."""
        with self._changed:
            self.stamp += 1
            self._changed.notify_all()

    # Removing

    def prune(self, before: int, *, most: int = ENDED) -> int:
        """Remove jobs that ended before then, and all but the newest `most` of each key, with their staged files."""
        ended = "status IN ('done', 'failed')"
        many = self._ledger.query(f"SELECT key FROM queue WHERE {ended} GROUP BY key HAVING count(*) > ?", (most,))  # noqa: S608 - words of ours
        asked: list[tuple[str, Sequence[Any]]] = [(f"{ended} AND finished_at < ?", (before,))]
        newest = f"SELECT seq FROM queue WHERE {ended} AND key = ? ORDER BY seq DESC LIMIT 1 OFFSET ?"  # noqa: S608 - words of ours
        asked += [(f"{ended} AND key = ? AND seq <= ({newest})", (key, key, most)) for (key,) in many]
        gone = 0
        for which, values in asked:
            with self._ledger.transaction():
                rows = self._ledger.query(f"SELECT id FROM queue WHERE {which}", values)  # noqa: S608 - words of ours
                self._ledger.execute(f"DELETE FROM queue WHERE {which}", values)  # noqa: S608 - words of ours
            for (id,) in rows:
                self.staged.drop(id)
            gone += len(rows)
        return gone

    def sweep(self, *, older_s: float) -> list[str]:
        """Remove staged files of this age that no job needs; return their names."""
        rows = self._ledger.query("SELECT id FROM queue WHERE kind = 'file' AND status != 'done'")
        return self.staged.sweep([id for (id,) in rows], older_s=older_s)

    # Rows

    def _update(self, id: str, was: Status, /, **columns: Any) -> bool:
        """Change a job if it has this status; return whether it had."""
        names = ", ".join(f"{name} = ?" for name in columns)
        with self._ledger.transaction():
            changed = self._ledger.execute(
                f"UPDATE queue SET {names} WHERE id = ? AND status = ?",  # noqa: S608 - names of ours
                (*columns.values(), id, was),
            )
        if columns.get("status"):
            self._announce_end(id)
        if changed and columns.get("status") == "failed":
            self._drop_excess_files(id)
        return bool(changed)

    def _drop_excess_files(self, id: str) -> None:
        """Remove the oldest staged files of a key's failed jobs beyond its share; the owner has no limit."""
        for (old,) in self._ledger.query(
            "SELECT id FROM (SELECT id, sum(size) OVER (ORDER BY seq DESC) AS held FROM queue WHERE kind = 'file'"
            " AND status = 'failed' AND size > 0 AND key != '' AND key = (SELECT key FROM queue WHERE id = ?)) WHERE held > ?",
            (id, self._settings.staged),
        ):
            if self._update(old, "failed", size=0):
                self.staged.drop(old)

    def _announce_end(self, id: str) -> None:
        self._stages.pop(id, None)
        self.wake()

    def _find_job(self, id: str) -> Job | None:
        rows = self._ledger.query(f"{_SELECT} WHERE id = ?", (id,))
        return self._job_of_row(rows[0]) if rows else None

    def _require_job(self, id: str) -> Job:
        job = self._find_job(id)
        assert job is not None, "jobs are removed only long after they have ended"
        return job

    def _job_of_row(self, row: Sequence[Any]) -> Job:
        return job_of_row(row, self._stages.get(row[1]))


def backoff(tries: int) -> float:
    """Return the seconds to wait after this number of tries."""
    first, most = BACKOFF_S
    return min(most, first * 2.0 ** (max(1, tries) - 1))


def _error_json(error: MemexError) -> str:
    return json.dumps(redact_values(error.as_dict()), default=str)


def _format_request(author: Author, title: str, arguments: Mapping[str, Any]) -> str:
    """Return the JSON from which `job_of_row` reads the request of a job."""
    return json.dumps({"author": asdict(author), "title": title, "given": dict(arguments)})
