"""The ledger is the small SQLite file for state that is not in the notes: keys, runs of jobs, the audit log.

Law: the ledger is truth, not a cache. A commit is on disk when it returns, a newer schema is never opened, and only
the owner can read the file."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import sqlite3
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from index.catalog.sqlite_connection import SafeConnection
from index.errors import Unavailable

SQLITE_HERE = sqlite3.sqlite_version_info  # version of Python's SQLite library
WAYS_OUT = (
    "restore a backup with `memex restore BACKUP --force`, or start with an empty ledger and a new owner's key with "
    "`memex key reset --yes`"
)
NEWER = "it was written by a newer Memex"
CACHE = 512  # KiB of pages that each connection keeps, of 2,000 by default: the system keeps the file in memory anyway
CLOSED = "Memex is stopping: its ledger is closed"  # for a thread that asks after the end
log = logging.getLogger(__name__)

# One entry per schema version, in order; `PRAGMA user_version` counts those that were applied. Never edit an entry
# that was released: append.
SCHEMA: tuple[str, ...] = (
    """
    CREATE TABLE keys (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        digest BLOB NOT NULL,
        scopes TEXT NOT NULL,
        workspaces TEXT,
        surfaces TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER,
        revoked_at INTEGER,
        last_used_at INTEGER
    ) STRICT;
    CREATE UNIQUE INDEX keys_live_name ON keys (name) WHERE revoked_at IS NULL;
    """,
    """
    CREATE TABLE job_runs (
        id INTEGER PRIMARY KEY,
        job TEXT NOT NULL,
        started_at INTEGER NOT NULL,
        seconds REAL NOT NULL,
        error TEXT NOT NULL
    ) STRICT;
    CREATE INDEX job_runs_of ON job_runs (job, id);
    """,
    """
    ALTER TABLE keys ADD COLUMN serial INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE keys ADD COLUMN old_digest BLOB;
    ALTER TABLE keys ADD COLUMN old_until INTEGER;
    CREATE TABLE key_events (
        at INTEGER NOT NULL,
        event TEXT NOT NULL,
        key_id TEXT NOT NULL,
        name TEXT NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE deliveries (id TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT;
    """,
    """
    CREATE TABLE enrichment (id TEXT PRIMARY KEY, failures INTEGER NOT NULL, due_at INTEGER NOT NULL) STRICT;
    """,
    """
    CREATE TABLE audit (
        seq INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        surface TEXT NOT NULL,
        tool TEXT NOT NULL,
        request TEXT NOT NULL,
        key TEXT NOT NULL,
        name TEXT NOT NULL,
        workspace TEXT NOT NULL,
        type TEXT NOT NULL,
        id TEXT NOT NULL,
        path TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        before TEXT NOT NULL,
        after TEXT NOT NULL,
        outcome TEXT NOT NULL,
        undoes INTEGER NOT NULL,
        seal TEXT NOT NULL
    ) STRICT;
    CREATE INDEX audit_path ON audit (path, seq);
    CREATE INDEX audit_nodes ON audit (workspace, at) WHERE type = 'entity';
    CREATE INDEX audit_pruned ON audit (seq) WHERE kind = 'pruned';
    """,
    """
    CREATE TABLE perspectives (
        workspace TEXT NOT NULL,
        place INTEGER NOT NULL,
        name TEXT NOT NULL,
        prompt TEXT NOT NULL,
        PRIMARY KEY (workspace, place)
    ) STRICT;
    """,
    """
    CREATE TABLE queue (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        key TEXT NOT NULL,
        workspace TEXT NOT NULL,
        kind TEXT NOT NULL,
        given TEXT NOT NULL,
        document_id TEXT NOT NULL,
        status TEXT NOT NULL,
        stage TEXT NOT NULL,
        error TEXT NOT NULL,
        tries INTEGER NOT NULL,
        due_at INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        started_at INTEGER,
        finished_at INTEGER,
        size INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX queue_next ON queue (kind, key, seq) WHERE status = 'queued';
    CREATE INDEX queue_due ON queue (kind, due_at) WHERE status = 'queued';
    CREATE INDEX queue_held ON queue (key, kind, size) WHERE status IN ('queued', 'running');
    CREATE INDEX queue_of ON queue (key, workspace, seq);
    CREATE INDEX queue_counts ON queue (workspace, status);
    CREATE INDEX queue_document ON queue (document_id);
    CREATE TABLE handled (
        path TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        document_id TEXT NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE edits (
        path TEXT PRIMARY KEY,
        id TEXT NOT NULL,
        was TEXT NOT NULL,
        version INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER,
        edited_at INTEGER NOT NULL
    ) STRICT;
    """,
    """
    CREATE INDEX queue_failed ON queue (key, seq) WHERE kind = 'file' AND status = 'failed' AND size > 0;
    """,
    """
    CREATE TABLE promotions (
        seq INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        document_id TEXT NOT NULL,
        state TEXT NOT NULL,
        source TEXT NOT NULL,
        target TEXT NOT NULL,
        by TEXT NOT NULL,
        at INTEGER NOT NULL,
        commit_id TEXT NOT NULL,
        about TEXT NOT NULL
    ) STRICT;
    CREATE INDEX promotions_of ON promotions (document_id, seq);
    CREATE INDEX promotions_begun ON promotions (seq) WHERE state = 'begun';
    CREATE INDEX promotions_uncommitted ON promotions (at) WHERE state = 'done' AND commit_id = '';
    CREATE TABLE promoted_files (
        promotion INTEGER NOT NULL,
        place INTEGER NOT NULL,
        path TEXT NOT NULL,
        before BLOB,
        after BLOB,
        was TEXT NOT NULL,
        now TEXT NOT NULL,
        twin TEXT NOT NULL,
        PRIMARY KEY (promotion, place)
    ) STRICT;
    CREATE TABLE proposals (
        key TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,
        about TEXT NOT NULL,
        state TEXT NOT NULL,
        said TEXT NOT NULL,
        report TEXT NOT NULL,
        at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX proposals_of ON proposals (kind, subject);
    CREATE INDEX proposals_state ON proposals (state);
    CREATE TABLE tended (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    """,
    """
    CREATE INDEX audit_id ON audit (id, seq);
    """,
    """
    CREATE TABLE automatic (id TEXT PRIMARY KEY, digests TEXT NOT NULL) STRICT;
    """,
    """
    ALTER TABLE keys ADD COLUMN namespace TEXT;
    """,
    """
    ALTER TABLE audit ADD COLUMN address TEXT NOT NULL DEFAULT '';
    """,
    """
    CREATE TABLE reviewed (
        path TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        visible TEXT NOT NULL,
        generation INTEGER NOT NULL,
        at INTEGER NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE note_uses (id TEXT PRIMARY KEY, uses REAL NOT NULL) STRICT;
    """,
    """
    CREATE TABLE shares (workspace TEXT NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (workspace, entry)) STRICT;
    """,
    # An id is unique only within its workspace. "" = recorded before the workspace was: it counts for the id in any of them.
    """
    ALTER TABLE note_uses RENAME TO note_uses_before;
    CREATE TABLE note_uses (workspace TEXT NOT NULL, id TEXT NOT NULL, uses REAL NOT NULL, PRIMARY KEY (workspace, id)) STRICT;
    INSERT INTO note_uses SELECT '', id, uses FROM note_uses_before;
    DROP TABLE note_uses_before;
    ALTER TABLE automatic RENAME TO automatic_before;
    CREATE TABLE automatic (workspace TEXT NOT NULL, id TEXT NOT NULL, digests TEXT NOT NULL, PRIMARY KEY (workspace, id)) STRICT;
    INSERT INTO automatic SELECT '', id, digests FROM automatic_before;
    DROP TABLE automatic_before;
    ALTER TABLE enrichment RENAME TO enrichment_before;
    CREATE TABLE enrichment (
        workspace TEXT NOT NULL,
        id TEXT NOT NULL,
        failures INTEGER NOT NULL,
        due_at INTEGER NOT NULL,
        PRIMARY KEY (workspace, id)
    ) STRICT;
    INSERT INTO enrichment SELECT '', id, failures, due_at FROM enrichment_before;
    DROP TABLE enrichment_before;
    """,
)


class Ledger:
    """Provides the ledger to all threads: one connection writes and another reads, so that reads don't wait for a disk.

    Inside a `transaction` its thread reads its own writes; every other thread reads the state before."""

    def __init__(self, path: Path, connection: sqlite3.Connection, reader: sqlite3.Connection) -> None:
        self.path = path
        self._connection, self._reader = connection, reader
        self._lock, self._reading = threading.RLock(), threading.Lock()
        self._writer: int | None = None  # the thread with the current transaction
        self.problem = ""  # why the last read failed, as a sentence
        self._closed = False

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Open the ledger at `path`, created with mode 0600 if missing. Raises Unavailable if others could read it."""
        _ensure_private(path)
        try:
            # The lock below serialises all use of the connection.
            connection = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=5, factory=SafeConnection
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")  # removed texts are overwritten
            _migrate(connection, path)
            reader = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=5, factory=SafeConnection
            )
            reader.execute("PRAGMA query_only = ON")
            for opened in (connection, reader):
                opened.execute(f"PRAGMA cache_size = -{CACHE}")
        except sqlite3.Error as error:
            raise Unavailable(
                f"the ledger {path.name} can't be opened ({error}); {WAYS_OUT}",
                retryable=False,
            ) from error
        return cls(path, connection, reader)

    def query(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query; none for a text that is not Unicode, because no row contains such a text."""
        with self._guard_read() as connection, contextlib.suppress(UnicodeEncodeError):
            return connection.execute(statement, parameters).fetchall()
        return []

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Run one transaction: everything that `execute` does inside it is committed and synced at the end, or nothing."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._writer = threading.get_ident()
                try:
                    yield
                except BaseException:
                    self._roll_back()
                    raise
                finally:
                    self._writer = None
                self._connection.execute("COMMIT")
            except sqlite3.DatabaseError as error:
                self._roll_back()
                if self._closed:
                    raise Unavailable(CLOSED) from error
                raise Unavailable(f"the ledger could not be written ({error}); nothing was changed") from error

    def _roll_back(self) -> None:
        """Roll back, if needed: a failed commit may leave its transaction open, and a full disk may have ended it."""
        with contextlib.suppress(sqlite3.DatabaseError):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Run one statement (inside a `transaction`); return the number of changed rows."""
        with self._lock:
            return self._connection.execute(statement, parameters).rowcount

    def empty_log(self) -> None:
        """Write the log to the file and empty it, so that nothing removed is left in it. If the ledger is busy, a later call does it."""
        with self._lock, contextlib.suppress(sqlite3.OperationalError):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def data_version(self) -> int:
        """Return a number that changes after every commit by any process: earlier reads may be outdated then."""
        with self._guard_read() as connection:
            return int(connection.execute("PRAGMA data_version").fetchone()[0])

    @contextlib.contextmanager
    def _guard_read(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection to read with, exclusively for this thread during the block."""
        writing = self._writer == threading.get_ident()
        with self._lock if writing else self._reading:
            try:
                yield self._connection if writing else self._reader
                self.problem = ""
            except sqlite3.DatabaseError as error:
                if self._closed:
                    raise Unavailable(CLOSED) from error
                log.error("the ledger can't be read: %s", error)  # noqa: TRY400 - the message says everything
                self.problem = "ledger: it can't be read, so Memex refuses all keys; see memex doctor"
                raise Unavailable("the ledger can't be read; see the daemon's log") from error

    def close(self) -> None:
        """Close the file; the ledger can't be used afterwards."""
        with self._lock, self._reading:
            self._closed = True
            self._reader.close()
            self._connection.close()


def check_integrity(path: Path) -> str:
    """Return what is wrong with the ledger at `path`, without changing it; "" = nothing."""
    try:
        with contextlib.closing(_open_read_only(path, timeout=5)) as reader:
            (version,) = reader.execute("PRAGMA user_version").fetchone()
            if version > len(SCHEMA):
                return f"{NEWER} (schema {version}, known {len(SCHEMA)})"
            lines = [str(line) for (line,) in reader.execute("PRAGMA integrity_check(3)")]
    except sqlite3.Error as error:
        return str(error)
    return "" if lines == ["ok"] else "; ".join(lines)


def is_damaged(path: Path) -> bool:
    """Return whether the file at `path` can't be a valid ledger for any version of Memex."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return True
    try:
        with contextlib.closing(_open_read_only(path, timeout=5)) as reader:
            return bool(reader.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",))
    except sqlite3.OperationalError:  # it can't be read now: locked, no permission, a failing disk
        return False
    except sqlite3.DatabaseError:
        return True


def query_read_only(path: Path, statement: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query on the ledger at `path`, without changing it; none if a table is missing."""
    try:
        with contextlib.closing(_open_read_only(path, timeout=5)) as reader:
            yield from reader.execute(statement)
    except sqlite3.DatabaseError as error:
        if "no such table" not in str(error):
            raise Unavailable(f"the ledger {path.name} can't be read: {error}", retryable=False) from error


def back_up(path: Path, target: Path, *, without: str = "", damaged: bool = False) -> None:
    """Copy a consistent state of the ledger at `path`, even while others write to it; `target` is private.

    `without`: a statement that removes from the copy what is not to be kept there; nothing of it is left in the file.
    `damaged`: where SQLite can copy the pages but not run the statement, keep the whole copy, instead of raising Unavailable."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    try:
        with (
            contextlib.closing(_open_read_only(path, timeout=30)) as source,
            contextlib.closing(sqlite3.connect(target, factory=SafeConnection)) as made,
        ):
            source.backup(made)
            made.execute("PRAGMA journal_mode = DELETE")  # one complete file
            if without:
                try:
                    _remove_from_copy(made, without)
                except sqlite3.OperationalError:  # such as a full disk
                    raise
                except sqlite3.DatabaseError as error:
                    if not damaged:
                        raise Unavailable(
                            f"the ledger {path.name} is damaged ({error}); {WAYS_OUT}", retryable=False
                        ) from error
    except sqlite3.Error as error:
        raise Unavailable(f"the ledger {path.name} can't be copied: {error}", retryable=False) from error


def _remove_from_copy(made: sqlite3.Connection, statement: str) -> None:
    """Run a statement that removes something, unless an older schema lacks its table, and drop the free pages."""
    try:
        with made:
            made.execute(statement)
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
    made.execute("VACUUM")


def _open_read_only(path: Path, *, timeout: float) -> sqlite3.Connection:
    """Open the ledger at `path` for reading. SQLite would wait forever for a pipe, and follow a link."""
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise sqlite3.DatabaseError("it is not a regular file")
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=timeout, factory=SafeConnection)


def _ensure_private(path: Path) -> None:
    """Create the file with mode 0600, or check that only this user can read it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise Unavailable(f"the ledger {path.name} is not a regular file; {WAYS_OUT}", retryable=False) from None
        if status.st_uid != os.geteuid():
            raise Unavailable(
                f"the ledger belongs to another user: sudo chown $(id -u) {shlex.quote(str(path))}", retryable=False
            ) from None
        if status.st_mode & 0o077:
            raise Unavailable(
                f"others can read the ledger {path.name}, which holds key hashes; run `chmod 600` on it",
                retryable=False,
            ) from None
    except OSError as error:
        raise Unavailable(f"the ledger {path.name} can't be created: {error.strerror}", retryable=False) from error
    else:
        os.fsync(descriptor)
        os.close(descriptor)
    if path.parent.stat().st_mode & 0o022:
        raise Unavailable(
            f"others can write the folder of the ledger {path.name}; run `chmod 700` on it", retryable=False
        )


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Apply the schema versions that the file does not have yet, all in one transaction."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(SCHEMA):
        raise Unavailable(
            f"the ledger {path.name} was written by a newer Memex (schema {version}, known {len(SCHEMA)}); "
            "update Memex or restore an older backup",
            retryable=False,
        )
    if version < len(SCHEMA):
        steps = " ".join(SCHEMA[version:])
        connection.executescript(f"BEGIN IMMEDIATE; {steps} PRAGMA user_version = {len(SCHEMA)}; COMMIT;")
