"""A connection whose file is damaged fails with an error of SQLite, whatever bytes SQLite quotes."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from index.catalog.sqlite_connection import SafeConnection
from tests.support.damaged_bytes import damage_schema


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / "file.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table places (name text)")
        connection.commit()
    damage_schema(path)
    return path


@pytest.mark.parametrize(
    "use",
    [
        lambda opened: opened.execute("select * from places"),
        lambda opened: opened.executemany("insert into places values (?)", [("a",)]),
        lambda opened: opened.executescript("begin; insert into places values ('a'); commit;"),
    ],
    ids=["execute", "executemany", "executescript"],
)
def test_damage_that_is_quoted_in_a_message_is_an_error_of_sqlite(damaged, use):
    with closing(sqlite3.connect(damaged, factory=SafeConnection)) as opened:
        with pytest.raises(sqlite3.DatabaseError) as failure:
            use(opened)
        assert failure.value.sqlite_errorcode == sqlite3.SQLITE_CORRUPT


def test_an_intact_file_is_used_as_usual(tmp_path):
    with closing(sqlite3.connect(tmp_path / "file.db", factory=SafeConnection)) as opened:
        opened.executescript("create table places (name text);")
        opened.executemany("insert into places values (?)", [("a",), ("b",)])
        assert opened.execute("select count(*) from places").fetchone() == (2,)
        with closing(sqlite3.connect(":memory:", factory=SafeConnection)) as copy:
            opened.commit()
            opened.backup(copy)
            assert copy.execute("select count(*) from places").fetchone() == (2,)
