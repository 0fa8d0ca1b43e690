"""The tables of the ledger: what fits this version of Memex, and what does not."""

import sqlite3

import pytest

from syncd.state.ledger_schema import NEWER, SCHEMA, find_misfit


def made(steps, version, *changes):
    connection = sqlite3.connect(":memory:")
    connection.executescript(f"{' '.join(steps)} PRAGMA user_version = {version};")
    for change in changes:
        connection.execute(change)
    return connection


@pytest.mark.parametrize("version", range(len(SCHEMA) + 1))
def test_the_ledger_of_each_earlier_version_fits(version):
    assert find_misfit(made(SCHEMA[:version], version)) == ""


@pytest.mark.parametrize("version", [0, 1, 12, -1, len(SCHEMA) + 1, 0x13000000])
def test_a_version_that_is_not_that_of_the_tables_does_not_fit(version):
    misfit = find_misfit(made(SCHEMA, version))
    assert misfit
    assert misfit.startswith(NEWER) == (version > len(SCHEMA))


@pytest.mark.parametrize("version", [1, len(SCHEMA)])
def test_a_table_that_is_gone_is_named(version):
    assert "keys" in find_misfit(made(SCHEMA[:version], version, "DROP TABLE keys"))


def test_a_column_that_is_gone_is_named():
    assert "keys.serial" in find_misfit(made(SCHEMA, len(SCHEMA), "ALTER TABLE keys DROP COLUMN serial"))


@pytest.mark.parametrize("change", ["CREATE TABLE other (x)", "ANALYZE", "DROP INDEX audit_id"])
def test_what_a_person_added_does_no_harm(change):
    connection = made(SCHEMA, len(SCHEMA), change)
    before = list(connection.iterdump())
    assert find_misfit(connection) == ""
    assert list(connection.iterdump()) == before


def test_no_sql_of_the_file_is_run(tmp_path):
    version = len(SCHEMA) - 1
    connection = made(SCHEMA[:version], version)
    hostile = f"CREATE TABLE other (x); ATTACH '{tmp_path / 'made.db'}' AS z; CREATE TABLE z.t (x)"
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES ('table', 'other', 'other', 0, ?)",
        [hostile],
    )
    connection.commit()
    find_misfit(connection)
    assert list(tmp_path.iterdir()) == []


def test_the_check_leaves_no_transaction_open():
    connection = made(SCHEMA, len(SCHEMA))
    find_misfit(connection)
    assert not connection.in_transaction
