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
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from index.catalog.sqlite_connection import DAMAGE, SafeConnection
from index.errors import InvalidArgument, Unavailable
from syncd.state.ledger_schema import NEWER, SCHEMA, find_misfit

SQLITE_HERE = sqlite3.sqlite_version_info  # version of Python's SQLite library
WAYS_OUT = (
    "restore a backup with `memex restore BACKUP --force`, or start with an empty ledger and a new owner's key with "
    "`memex key reset --yes`"
)
DAMAGED = f"ledger: it is damaged, so Memex refuses some calls; run `memex stop`, then {WAYS_OUT}"
BUSY_S = 5.0  # longest wait for another process that has the file locked
CACHE = 512  # KiB of pages that each connection keeps, of 2,000 by default: the system keeps the file in memory anyway
CLOSED = "Memex is stopping: its ledger is closed"  # for a thread that asks after the end
log = logging.getLogger(__name__)


class Ledger:
    """Provides the ledger to all threads: one connection writes and another reads, so that reads don't wait for a disk.

    Inside a `transaction` its thread reads its own writes; every other thread reads the state before."""

    def __init__(self, path: Path, connection: sqlite3.Connection, reader: sqlite3.Connection) -> None:
        self.path = path
        self._connection, self._reader = connection, reader
        self._lock, self._reading = threading.RLock(), threading.Lock()
        self._writer: int | None = None  # the thread with the current transaction
        self.problem = ""  # why the last read failed, or that the file is damaged, as a sentence
        self._damage = ""  # DAMAGED until a restart: that another page can be read proves nothing
        self._closed = False

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Open the ledger at `path`, created with mode 0600 if missing. Raises Unavailable if others could read it."""
        _ensure_private(path)
        try:
            # The lock below serialises all use of the connection.
            connection = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=BUSY_S, factory=SafeConnection
            )
            _switch_to_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")  # removed texts are overwritten
            _migrate(connection, path)
            reader = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=BUSY_S, factory=SafeConnection
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
        """Return the rows of a query; none for a text that is not Unicode, because no row contains such a text.

        Raises InvalidArgument for a number that SQLite can't hold."""
        with self._guard_read() as connection, contextlib.suppress(UnicodeEncodeError):
            try:
                return connection.execute(statement, parameters).fetchall()
            except OverflowError as error:
                raise InvalidArgument("a number is too large") from error
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
                self._refuse_damage(error)
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

    def execute_each(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement with each of these rows, in one transaction; none without rows."""
        if rows := list(rows):
            with self.transaction():
                for row in rows:
                    self.execute(statement, row)

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
                self.problem = self._damage
            except sqlite3.DatabaseError as error:
                self._refuse_damage(error)
                log.error("the ledger can't be read: %s", error)  # noqa: TRY400 - the message says everything
                self.problem = "ledger: it can't be read, so Memex refuses all keys; see memex doctor"
                raise Unavailable("the ledger can't be read; see the daemon's log") from error

    def _refuse_damage(self, error: sqlite3.DatabaseError) -> None:
        """Raise Unavailable if this error will not pass: the ledger is closed, or a part of the file is damaged."""
        if self._closed:
            raise Unavailable(CLOSED) from error
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE:  # the lowest byte is the primary code
            if not self._damage:
                log.error("the ledger is damaged: %s", error)
            self._damage = self.problem = DAMAGED
            raise Unavailable(
                f"the ledger is damaged ({error}), and nothing was changed; run `memex stop`, then {WAYS_OUT}",
                retryable=False,
            ) from error

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
            if (misfit := find_misfit(reader)).startswith(NEWER):
                return misfit
            lines = [str(line) for (line,) in reader.execute("PRAGMA integrity_check(3)")]
    except sqlite3.Error as error:
        return str(error)
    return misfit if lines == ["ok"] else "; ".join(lines)


def is_damaged(path: Path) -> bool:
    """Return whether the file at `path` can't be a valid ledger for this version of Memex, or an older one."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return True
    try:
        with contextlib.closing(_open_read_only(path, timeout=5)) as reader:
            return bool(reader.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",) or find_misfit(reader))
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


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Switch a new file to write-ahead logging. SQLite itself does not wait for another process that does so now."""
    end = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                raise
            time.sleep(0.01)
        else:
            return


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Apply the schema versions that the file does not have yet, all in one transaction."""
    if misfit := find_misfit(connection):
        update = "update Memex, " if misfit.startswith(NEWER) else ""
        raise Unavailable(f"the ledger {path.name} can't be used: {misfit}; {update}{WAYS_OUT}", retryable=False)
    if connection.execute("PRAGMA user_version").fetchone() == (len(SCHEMA),):
        return
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()  # another process may have migrated it meanwhile
    for statement in " ".join(SCHEMA[version:]).split(";"):  # `executescript` would commit first
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {max(version, len(SCHEMA))}")
    connection.execute("COMMIT")
