"""Open or recreate a SQLite file that may be dropped at any time; reads run beside a write, and each write is one transaction.

Everything in the file is derived from the notes, so Memex drops a damaged or outdated file and creates it again. For this
reason `synchronous=NORMAL` is enough: a power cut may lose the newest rows, and the next listing treats their files as
changed."""

from __future__ import annotations

import itertools
import json
import logging
import os
import sqlite3
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from index.catalog.schema import SCHEMA, UPGRADE_FUNCTIONS, UPGRADES, VERSION
from index.catalog.sqlite_connection import DAMAGE, SafeConnection
from index.errors import IndexUnusable, Unavailable

TERMS: Final = 500  # values of one query
IDLE: Final = 4  # connections that are kept for the next reader
READER_CACHE: Final = 512  # KiB of pages that each of them keeps; with the default of 2,000, reads are no faster
ENDINGS: Final = "", "-wal", "-shm"  # of the names of the files of one catalog

log = logging.getLogger(__name__)


class Database:
    """Store the tables of `index/catalog/schema.py` in one file; safe to use from any thread. A read never waits for a write."""

    fresh: bool  # just created: empty
    is_damaged = False  # whether a query failed because of damage; only a new file helps
    _is_closed = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._writer, self.fresh = _open_or_create(path)

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a query."""
        connection = self._reader()
        try:
            return connection.execute(query, values).fetchall()
        except UnicodeEncodeError:  # half a character: nothing that is stored equals it
            return []
        except sqlite3.Error as error:
            raise self._failure(error) from error
        finally:
            if len(self._idle) < IDLE and not self._is_closed:
                self._idle.append(connection)
            else:
                connection.close()

    def rows_in(self, query: str, values: Iterable[str]) -> Iterator[Any]:
        """Yield the rows of a query that ends in "in" for these values.

        They are one parameter, because SQLite compiles a query for each number of parameters, and every connection keeps
        128 compiled queries with their values: 15 MB after an hour of writes. No path, id or name contains NUL, and SQLite
        would cut a value there."""
        remaining = iter(sorted(value for value in values if "\0" not in value))
        while terms := list(itertools.islice(remaining, TERMS)):
            yield from self.rows(f"{query} (select value from json_each(?))", json.dumps(terms))  # noqa: S608 - constants

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction: all changes in the block, or none."""
        with self._writing:
            try:
                self._writer.execute("begin immediate")
                try:
                    yield self._writer
                except BaseException:
                    self._writer.rollback()
                    raise
                self._writer.commit()
            except sqlite3.Error as error:
                raise self._failure(error) from error

    def close(self) -> None:
        """Let go of the file; later reads and writes raise Unavailable."""
        self._is_closed = True
        with self._writing:
            for connection in (*self._idle, self._writer):
                connection.close()
            self._idle.clear()

    def _reader(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()  # atomic: no lock
        except IndexError:
            pass
        if self._is_closed:  # a new connection would create the file again if it was removed
            raise _closed()
        try:
            return _connect(self._path, f"cache_size = -{READER_CACHE}")
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _failure(self, error: sqlite3.Error) -> Unavailable:
        """Return the error for callers, and remember damage: the file may be cut or overwritten while it is open."""
        if self._is_closed:
            return _closed()
        self.is_damaged = self.is_damaged or _is_damage(error)
        return to_unavailable(error)


def _closed() -> Unavailable:
    return Unavailable("the catalog is closed", retryable=False)


def to_unavailable(error: sqlite3.Error) -> Unavailable:
    """Turn a failure in SQLite into the error for callers."""
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return Unavailable("the catalog can't be written: the disk is full; free some space and try again")
    return IndexUnusable("the catalog can't be used; if this persists, rebuild the index: memex index --full")


def _is_damage(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0)  # the lowest byte is the primary code
    return code & 0xFF in DAMAGE or "no such table" in str(error)  # an emptied file has no tables


def query_read_only(path: Path, *queries: str) -> list[list[Any]]:
    """Run queries on the file at `path` without changing it. Raises Unavailable with the reason if it can't be read."""
    # SQLite would wait forever for the writer of a pipe. The functions of `os.path` raise nothing.
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - see above
        raise Unavailable(f"the catalog {path.name} can't be read: it is not a regular file")
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0, factory=SafeConnection)
        ) as reader:
            [(version,)] = reader.execute("pragma user_version")
            if version != VERSION:
                raise Unavailable(f"the catalog {path.name} has another version")
            if reader.execute("pragma integrity_check(1)").fetchall() != [("ok",)]:
                raise Unavailable(f"the catalog {path.name} is damaged")
            return [reader.execute(query).fetchall() for query in queries]
    except sqlite3.Error as error:
        raise Unavailable(f"the catalog {path.name} can't be read: {error}") from error


def _open_or_create(path: Path) -> tuple[sqlite3.Connection, bool]:
    for ending in ENDINGS:
        _allow_writes(path.with_name(path.name + ending))
    try:
        writer = _connect(path)
        [(version,)] = writer.execute("pragma user_version").fetchall()
        if version in {VERSION, *UPGRADES} and writer.execute("pragma quick_check(1)").fetchall() == [("ok",)]:
            if version != VERSION:
                _upgrade(writer, UPGRADES[version])
            return writer, False
        writer.close()
        if version:
            log.warning("%s is damaged or has another version; Memex rebuilds it from the files", path)
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise to_unavailable(error) from error
        log.warning("%s is damaged; Memex rebuilds it from the files: %s", path, error)
    for ending in ENDINGS:
        path.with_name(path.name + ending).unlink(missing_ok=True)
    return _create(path), True


def _create(path: Path) -> sqlite3.Connection:
    """Create an empty catalog, and return the connection that writes it."""
    writer = _connect(path)
    writer.executescript(f"begin; {SCHEMA} pragma user_version = {VERSION}; commit;")
    return writer


def _allow_writes(file: Path) -> None:
    """Let the owner read and write the file; otherwise each write would fail, and no restart would help."""
    with suppress(OSError):  # missing, or another user's
        mode = stat.S_IMODE(file.stat().st_mode)
        if mode & 0o600 != 0o600:
            file.chmod(mode | 0o600)


def _upgrade(writer: sqlite3.Connection, steps: str) -> None:
    """Upgrade the catalog to this version in one transaction; a failure leaves it unchanged and closes the connection."""
    try:
        for name, function in UPGRADE_FUNCTIONS.items():
            writer.create_function(name, 1, function)
        writer.executescript(f"begin immediate; {steps} pragma user_version = {VERSION}; commit;")
    except sqlite3.Error:
        writer.close()
        raise


def _connect(path: Path, *pragmas: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=10.0, isolation_level=None, check_same_thread=False, factory=SafeConnection
    )
    try:
        always = ("journal_mode = wal", "synchronous = normal", "foreign_keys = on", "temp_store = memory")
        for pragma in (*always, *pragmas):
            connection.execute(f"pragma {pragma}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
