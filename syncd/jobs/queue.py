"""The durable queue keeps accepted notes and files in the ledger until each of their jobs has ended.

Law, tested: an accepted job is carried out, whatever ends the process meanwhile, and makes one document, whose id is
chosen when the job is queued. A key sees its own jobs of its own workspace, and never waits for all jobs of another
key."""

from __future__ import annotations

import json
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from index.errors import Conflict, MemexError, NotFound, ResourceExhausted, Unavailable
from syncd.history.audit_log import AUTHOR
from syncd.jobs.queued_job import STATUSES, Job, Kind, Status, job_of_row
from syncd.jobs.staged_files import StagedFiles
from syncd.notes.secret_patterns import redact, redact_values
from syncd.settings.knowledge_base import KbSettings
from syncd.state.damage import STAGED
from syncd.state.ledger import Ledger

TRIES: Final = 10
BACKOFF_S: Final = 2.0, 300.0  # after the first try, doubling, and at most
ENDED: Final = 10_000  # jobs of one key that are remembered after they have ended
NOTES: Final = 64 << 20  # bytes of text that the waiting notes of one key may have

_SELECT: Final = (
    "SELECT seq, id, key, workspace, kind, given, document_id, status, stage, error, tries, due_at, created_at,"
    " started_at, finished_at FROM queue"
)


class Queue:
    """The jobs of one ledger. Safe from any thread; one process writes it, the one that holds the state folder's lock."""

    def __init__(
        self,
        ledger: Ledger,
        state: Path,
        settings: KbSettings,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.staged = StagedFiles(state / STAGED)
        self._ledger, self._settings, self._now = ledger, settings, now
        self._changed = threading.Condition()
        self.stamp = 0  # grows whenever a job changes
        self._served: dict[str, str] = {}  # kind → the key whose turn it was last
        self._stages: dict[str, tuple[float, str]] = {}  # id of a running job → its progress and stage

    # Adding

    def add_note(self, key: str, workspace: str, arguments: Mapping[str, Any], *, title: str) -> Job:
        """Queue a note; `arguments` is what `newnote` reads, checked. ResourceExhausted while too much of the key's waits."""
        size = len(str(arguments["text"]).encode())
        waiting = self.pending_size(key, "note")[1]
        if key and waiting + size > NOTES:
            raise ResourceExhausted(
                f"notes of {waiting:,} bytes wait already; try again when some are done", limit=NOTES, retryable=True
            )
        ids = secrets.token_hex(16), str(uuid.uuid4())
        return self._add((*ids, "note", key, workspace, size), arguments, title)

    def add_file(
        self, key: str, workspace: str, arguments: Mapping[str, Any], staged: Path | None, *, id: str | None = None
    ) -> Job:
        """Queue a file: one that lies `staged` and is moved to the queue's own folder, or one of the vault (`arguments.path`).

        With an `id` that was chosen before (`secrets.token_hex(16)`) the same call again is the same job."""
        job_id = id or secrets.token_hex(16)
        if id and (again := self._find_job(id)):
            if (again.key, again.workspace) != (key, workspace):
                raise Conflict("there is another job of this id")
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
        """Put in a row: id, id of the document, kind, key, workspace, size."""
        self._check_share(row[3])
        now = self._now()
        request = {"author": asdict(AUTHOR.get()), "title": redact(title)[:200], "given": dict(arguments)}
        with self._ledger.transaction():
            self._ledger.execute(
                "INSERT INTO queue (id, document_id, kind, key, workspace, size, given, status, stage, error, tries,"
                " due_at, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', '', '', 0, ?, ?)",
                (*row, json.dumps(request), now, now),
            )
        self.wake()
        return self._require_job(row[0])

    def _check_share(self, key: str) -> None:
        """Raises ResourceExhausted when too many jobs of the key wait; its owner's may."""
        if key and self.pending_size(key)[0] >= self._settings.queued:
            raise ResourceExhausted(
                f"{self._settings.queued:,} jobs wait already; try again when some are done",
                limit=self._settings.queued,
                retryable=True,
            )

    def pending_size(self, key: str, kind: Kind | None = None) -> tuple[int, int]:
        """How many jobs of a key have not ended, and the bytes of their texts and staged files."""
        rows = self._ledger.query(
            "SELECT count(*), coalesce(sum(size), 0) FROM queue"
            " WHERE key = ? AND kind IN (?, ?) AND status IN ('queued', 'running')",
            (key, kind or "note", kind or "file"),
        )
        return rows[0][0], rows[0][1]

    # Looking

    def job(self, id: str, *, key: str | None = None, workspace: str | None = None) -> Job:
        """One job, of this key and workspace (None: of any). NotFound, in the same words, for another's and for none."""
        job = self._find_job(id)
        if job is None or key not in (None, job.key) or workspace not in (None, job.workspace):
            raise NotFound(f"no job {id[:64]!r}: they are forgotten some time after they have ended")
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
        """The newest jobs, the newest first; with `before`, those older than the job of that id."""
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
        """The owner's job that is to make the document of a file with these bytes, if one waits or runs."""
        rows = self._ledger.query(
            f"{_SELECT} WHERE key = '' AND kind = 'file' AND status IN ('queued', 'running') AND size = ?"
            " AND workspace = ? AND json_extract(given, '$.given.sha256') = ? ORDER BY seq LIMIT 1",
            (size, workspace, digest),
        )
        return self._job_of_row(rows[0]) if rows else None

    def documents_of_file(self, workspace: str, digest: str) -> list[str]:
        """The ids of the documents that the owner's jobs have made of files with these bytes."""
        rows = self._ledger.query(
            "SELECT document_id FROM queue WHERE key = '' AND workspace = ? AND kind = 'file' AND status = 'done'"
            " AND instr(given, ?) AND json_extract(given, '$.given.sha256') = ?",  # the first is quick
            (workspace, digest, digest),
        )
        return [id for (id,) in rows]

    def ids_beginning(self, id: str) -> list[str]:
        """At most two ids of jobs that begin so."""
        return [
            job_id
            for (job_id,) in self._ledger.query("SELECT id FROM queue WHERE id BETWEEN ? AND ? LIMIT 2", (id, f"{id}g"))
        ]

    def counts(self, workspace: str | None = None, key: str | None = None) -> dict[Status, int]:
        """How many jobs there are in each status; all of them, or those of a workspace, of a key."""
        rows = self._ledger.query(
            "SELECT status, count(*) FROM queue WHERE workspace = coalesce(?, workspace) AND key = coalesce(?, key)"
            " GROUP BY status",
            (workspace, key),
        )
        return dict.fromkeys(STATUSES, 0) | dict(rows)

    def due_since(self) -> int | None:
        """Since when the job that waits longest has been due; None when none waits. One that is put off is due later."""
        first = "(SELECT min(due_at) FROM queue WHERE status = 'queued' AND kind = ?)"
        ((note, file),) = self._ledger.query(f"SELECT {first}, {first}", ("note", "file"))
        return min((due for due in (note, file) if due is not None), default=None)

    # By hand

    def retry(self, id: str) -> Job:
        """Queue a failed job again. Conflict for one that has not failed."""
        if not self._update(id, "failed", status="queued", error="", tries=0, due_at=self._now(), finished_at=None):
            raise Conflict(f"the job is {self.job(id).status}, and only one that failed can be tried again")
        return self._require_job(id)

    def cancel(self, id: str) -> Job:
        """Let a job that waits fail. Conflict for one that does not wait."""
        error = Unavailable("it was cancelled before it was done", retryable=False)
        if not self._update(id, "queued", status="failed", error=_error_json(error), finished_at=self._now()):
            raise Conflict(f"the job is {self.job(id).status}, and only one that waits can be cancelled")
        return self._require_job(id)

    # Working

    def due_in(self, kind: Kind) -> float | None:
        """Seconds until a job of this kind is due; None when none waits."""
        ((due,),) = self._ledger.query("SELECT min(due_at) FROM queue WHERE status = 'queued' AND kind = ?", (kind,))
        if due is None:
            return None
        left = (due - self._now()) / 1000
        return 0.0 if left > BACKOFF_S[1] else max(0.0, left)  # the clock was set back

    def take(self, kind: Kind) -> Job | None:
        """Begin the next job that is due: the oldest of the key whose turn it is. None when there is none."""
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
        """Begin this job, if it waits. That it was tried is on disk before it is."""
        with self._ledger.transaction():
            begun = self._ledger.execute(
                "UPDATE queue SET status = 'running', started_at = ?, tries = tries + 1 WHERE id = ? AND status = 'queued'",
                (self._now(), id),
            )
        self.wake()
        return self._require_job(id) if begun else None

    def report(self, id: str, done: int, total: int, stage: str) -> None:
        """How far a running job is; kept in memory."""
        self._stages[id] = (min(1.0, done / total) if total else 0.0, stage)

    def remember(self, job: Job, **more: Any) -> None:
        """Add to what is known of a running job, so that a try after a crash knows it too."""
        request = {"author": asdict(job.author), "title": job.title, "given": {**job.given, **more}}
        self._update(job.id, "running", given=json.dumps(request))

    def finish(self, id: str, document_id: str) -> None:
        """The job has its document; what was kept for it goes."""
        job = self._find_job(id)
        assert job is not None, "who does a job has it from here"
        left = {name: value for name, value in job.given.items() if name != "text"}
        request = {"author": asdict(job.author), "title": job.title, "given": left}
        fields = {"document_id": document_id, "given": json.dumps(request), "finished_at": self._now(), "size": 0}
        if self._update(id, "running", status="done", stage="", error="", **fields):
            self.staged.drop(id)

    def fail(self, id: str, error: MemexError) -> None:
        """The job came to nothing. Its staged file stays, for whoever tries again, while its key's have room."""
        stage = self._stages.get(id, (0.0, ""))[1]
        self._update(id, "running", status="failed", stage=stage, error=_error_json(error), finished_at=self._now())

    def postpone(self, id: str, error: MemexError, tries: int) -> None:
        """Let a job be tried again after a while, longer each time, and tell why."""
        self._update(
            id, "running", status="queued", error=_error_json(error), due_at=self._now() + int(backoff(tries) * 1000)
        )

    def requeue(self, id: str) -> None:
        """Let a job that was broken off be begun anew; this was no try."""
        with self._ledger.transaction():
            self._ledger.execute(
                "UPDATE queue SET status = 'queued', tries = max(0, tries - 1) WHERE id = ? AND status = 'running'",
                (id,),
            )
        self._announce_end(id)

    def recover(self, made: Callable[[str], bool]) -> None:
        """After a crash: what was under way has been done, if its document was made, or is tried again after a while.

        A job at which the process has ended again and again is given up, so that it stalls nobody."""
        rows = self._ledger.query(f"{_SELECT} WHERE status = 'running' ORDER BY seq")
        ended = Unavailable("the daemon ended while this was being done")
        for job in map(self._job_of_row, rows):
            if made(job.planned):
                self.finish(job.id, job.planned)
            elif job.tries >= TRIES:
                self.fail(job.id, Unavailable(f"{ended.message}, {job.tries} times", retryable=False))
            else:
                self.postpone(job.id, ended, job.tries)

    def wait(self, stamp: int, seconds: float | None, until: Callable[[], bool] = lambda: False) -> None:
        """Wait for a change since `stamp`, for so long at most, or until `until` holds once `wake` is called."""
        with self._changed:
            self._changed.wait_for(lambda: self.stamp != stamp or until(), seconds)

    def wake(self) -> None:
        """Have all who wait look again."""
        with self._changed:
            self.stamp += 1
            self._changed.notify_all()

    # Forgetting

    def prune(self, before: int, *, most: int = ENDED) -> int:
        """Forget the jobs that ended before then, and of each key all but the newest `most`, with what is staged for them."""
        ended = "status IN ('done', 'failed')"
        many = self._ledger.query(f"SELECT key FROM queue WHERE {ended} GROUP BY key HAVING count(*) > ?", (most,))  # noqa: S608 - words of ours
        asked: list[tuple[str, Sequence[Any]]] = [(f"{ended} AND finished_at < ?", (before,))]
        newest = f"SELECT seq FROM queue WHERE {ended} AND key = ? ORDER BY seq DESC LIMIT 1 OFFSET ?"  # noqa: S608 - words of ours
        asked += [(f"{ended} AND key = ? AND seq <= ({newest})", (key, key, most)) for (key,) in many]
        gone = 0
        for which, values in asked:
            rows = self._ledger.query(f"SELECT id FROM queue WHERE {which}", values)  # noqa: S608 - words of ours
            with self._ledger.transaction():
                self._ledger.execute(f"DELETE FROM queue WHERE {which}", values)  # noqa: S608 - words of ours
            for (id,) in rows:
                self.staged.drop(id)
            gone += len(rows)
        return gone

    def sweep(self, *, older_s: float) -> list[str]:
        """Remove staged files that no job needs, once they are so old; their names."""
        rows = self._ledger.query("SELECT id FROM queue WHERE kind = 'file' AND status != 'done'")
        return self.staged.sweep([id for (id,) in rows], older_s=older_s)

    # Rows

    def _update(self, id: str, was: Status, /, **columns: Any) -> bool:
        """Change a job that has this status; whether it had."""
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
        """Of a key's failed jobs, the owner's aside, remove the oldest staged files that are more than its share."""
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
        assert job is not None, "jobs are forgotten only long after they have ended"
        return job

    def _job_of_row(self, row: Sequence[Any]) -> Job:
        return job_of_row(row, self._stages.get(row[1]))


def backoff(tries: int) -> float:
    """Seconds to wait after so many tries."""
    first, most = BACKOFF_S
    return min(most, first * 2.0 ** (max(1, tries) - 1))


def _error_json(error: MemexError) -> str:
    return json.dumps(redact_values(error.as_dict()), default=str)
