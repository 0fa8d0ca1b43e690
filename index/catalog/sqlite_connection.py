"""A SQLite connection that reports every damage of its file as an error of SQLite.

SQLite quotes damaged bytes in its messages, and `sqlite3` fails with UnicodeDecodeError when they are not UTF-8."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)  # primary codes of a damaged file


def _report_damage(method: Callable[P, T]) -> Callable[P, T]:
    @functools.wraps(method)
    def run(*arguments: P.args, **options: P.kwargs) -> T:
        try:
            return method(*arguments, **options)
        except UnicodeDecodeError as error:
            damage = sqlite3.DatabaseError("its list of tables is damaged")
            damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise damage from error

    return run


class SafeConnection(sqlite3.Connection):
    """Use it as the `factory` of `sqlite3.connect`. Raises sqlite3.DatabaseError with the code SQLITE_CORRUPT for such a message."""

    execute = _report_damage(sqlite3.Connection.execute)
    executemany = _report_damage(sqlite3.Connection.executemany)
    executescript = _report_damage(sqlite3.Connection.executescript)
    backup = _report_damage(sqlite3.Connection.backup)
