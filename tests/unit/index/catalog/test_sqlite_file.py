"""The file of the catalog: queries for many values."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from unittest.mock import patch

import pytest

from index.catalog.sqlite_file import TERMS, Database, query_read_only
from index.errors import IndexUnusable, Unavailable
from tests.support.damaged_bytes import damage_schema, flip_bytes

QUERY = "select path from skipped where path in"


def test_a_query_has_one_text_for_any_number_of_values(tmp_path):
    paths = [f"Captures/default/Über {number}, \"half\" \\ '{number}'.md" for number in range(2 * TERMS + 7)]
    with closing(Database(tmp_path / "catalog.db")) as database:
        with database.transaction() as writer:
            writer.executemany("insert into skipped (path, workspace, reason) values (?, '', '')", zip(paths))
        with patch.object(database, "rows", wraps=database.rows) as asked:
            for count in (0, 1, 2, 3, TERMS, TERMS + 1, len(paths)):
                assert [path for (path,) in database.rows_in(QUERY, paths[:count])] == sorted(paths[:count])
        assert len({call.args[0] for call in asked.call_args_list}) == 1


def test_only_equal_values_are_found(tmp_path):
    with closing(Database(tmp_path / "catalog.db")) as database:
        with database.transaction() as writer:
            writer.execute("insert into skipped (path, workspace, reason) values ('Weir.md', '', '')")
        assert (
            list(database.rows_in(QUERY, ["weir.md", "Weir.md\0", "Weir.md\ud800", "\ud800", "Weir%", "[]", ""])) == []
        )
        assert list(database.rows_in(QUERY, ["\ud800", "Weir.md"])) == [("Weir.md",)]


def test_a_pipe_in_place_of_the_catalog_is_not_waited_for(tmp_path):
    os.mkfifo(path := tmp_path / "captures.db")
    with pytest.raises(Unavailable, match="not a regular file"):
        query_read_only(path, "select 1")


def test_a_read_after_the_end_fails_and_does_not_create_the_file_again(tmp_path):
    database = Database(path := tmp_path / "catalog.db")
    database.rows(f"{QUERY} (?)", "A.md")
    database.close()
    path.unlink()
    with pytest.raises(Unavailable):
        database.rows(f"{QUERY} (?)", "A.md")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", [0, 100, 5_000])
def test_a_file_that_is_cut_while_it_is_open_counts_as_damaged(tmp_path, end):
    with closing(Database(path := tmp_path / "catalog.db")) as database:
        assert not database.rows(f"{QUERY} (?)", "A.md")
        assert not database.is_damaged
        with closing(sqlite3.connect(path)) as other:
            other.execute("pragma wal_checkpoint(truncate)")
        os.truncate(path, end)
        with pytest.raises(IndexUnusable):
            database.rows(f"{QUERY} (?)", "A.md")
        assert database.is_damaged


def test_a_file_that_its_owner_can_not_write_becomes_writable(tmp_path):
    with closing(Database(path := tmp_path / "catalog.db")):
        pass
    path.chmod(0o400)
    with closing(Database(path)) as database, database.transaction() as writer:
        writer.execute("insert into skipped (path, workspace, reason) values ('A.md', '', '')")
    assert path.stat().st_mode & 0o777 == 0o600
    assert not database.fresh


@pytest.mark.parametrize("seed", range(40))
def test_a_catalog_with_changed_bytes_is_opened_or_made_new(tmp_path, seed):
    with closing(Database(tmp_path / "catalog.db")):
        pass
    flip_bytes(tmp_path / "catalog.db", seed)
    with suppress(Unavailable):
        query_read_only(tmp_path / "catalog.db", "select path from skipped")
    with closing(Database(tmp_path / "catalog.db")) as database, suppress(Unavailable):
        database.rows("select path from skipped")


def test_a_catalog_whose_tables_have_names_that_are_not_unicode_is_made_new(tmp_path):
    with closing(Database(tmp_path / "catalog.db")):
        pass
    damage_schema(tmp_path / "catalog.db")
    with pytest.raises(Unavailable, match="damaged"):
        query_read_only(tmp_path / "catalog.db", "select path from skipped")
    with closing(Database(tmp_path / "catalog.db")) as database:
        assert database.fresh
        assert database.rows("select path from skipped") == []


def test_a_catalog_whose_tables_are_damaged_while_it_is_open_says_so(tmp_path):
    with closing(Database(tmp_path / "catalog.db")) as database:
        with closing(sqlite3.connect(tmp_path / "catalog.db")) as other:
            other.execute("pragma wal_checkpoint(truncate)")
        damage_schema(tmp_path / "catalog.db")
        with pytest.raises(Unavailable):
            database.rows("select path from skipped")
        assert database.is_damaged


def test_a_closed_catalog_says_so_to_readers_and_writers(tmp_path):
    database = Database(tmp_path / "catalog.db")
    database.close()
    with pytest.raises(Unavailable, match="is closed"):
        database.rows("select path from skipped")
    with pytest.raises(Unavailable, match="is closed") as refused, database.transaction():
        pass
    assert not refused.value.retryable
    assert not database.is_damaged
