"""The ledger: durable, private, and never opened when it can not be trusted."""

import contextlib
import os
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from index.errors import InvalidArgument, Unavailable
from syncd.context.use_counts import UseCounts
from syncd.state import ledger
from syncd.state.ledger import Ledger
from syncd.state.ledger_schema import SCHEMA
from tests.support.damaged_bytes import damage_schema, flip_bytes


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder / "ledger.db"


def test_all_its_files_are_only_its_owners(path):
    before = os.umask(0)
    try:
        opened = Ledger.open(path)
        with opened.transaction():
            opened.execute(
                "INSERT INTO keys (id, name, digest, scopes, surfaces, created_at) VALUES ('a','n',x'00','r','m',1)"
            )
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        opened.close()
    finally:
        os.umask(before)
    assert modes
    assert set(modes.values()) == {0o600}


def test_what_was_written_is_there_when_it_is_opened_again(path):
    first = Ledger.open(path)
    with first.transaction():
        first.execute(
            "INSERT INTO keys (id, name, digest, scopes, surfaces, created_at) VALUES ('a','n',x'00','r','m',1)"
        )
    first.close()
    again = Ledger.open(path)
    assert again.query("SELECT id FROM keys") == [("a",)]
    assert again.query("PRAGMA journal_mode") == [("wal",)]
    assert again.query("PRAGMA synchronous") == [(2,)]
    again.close()


def test_a_failed_transaction_changes_nothing(path):
    opened = Ledger.open(path)
    with pytest.raises(RuntimeError), opened.transaction():
        opened.execute(
            "INSERT INTO keys (id, name, digest, scopes, surfaces, created_at) VALUES ('a','n',x'00','r','m',1)"
        )
        raise RuntimeError("in the middle")
    assert opened.query("SELECT id FROM keys") == []
    opened.close()


def test_a_read_waits_for_no_write_and_sees_what_was_before(path):
    opened = Ledger.open(path)
    row = "INSERT INTO keys (id, name, digest, scopes, surfaces, created_at) VALUES ('a','n',x'00','r','m',1)"
    seen, version = [], opened.data_version()

    def read():
        seen.append(opened.query("SELECT id FROM keys"))
        seen.append(opened.data_version() == version)

    with opened.transaction():
        opened.execute(row)
        assert opened.query("SELECT id FROM keys") == [("a",)], "its own thread sees what it has written"
        reader = threading.Thread(target=read)
        reader.start()
        reader.join(30)
        assert seen == [[], True]
    read()
    assert seen[2:] == [[("a",)], False]
    with pytest.raises(Unavailable):
        opened.query(row.replace("'a'", "'b'"))
    opened.close()


def test_a_number_that_sqlite_can_t_hold_is_refused_and_the_ledger_goes_on(path):
    opened = Ledger.open(path)
    with pytest.raises(InvalidArgument, match="too large"):
        opened.query("SELECT id FROM keys WHERE created_at < ?", (1 << 63,))
    assert opened.problem == ""
    assert opened.query("SELECT id FROM keys WHERE created_at < ?", ((1 << 63) - 1,)) == []
    opened.close()


def test_another_process_writing_is_noticed(path):
    opened = Ledger.open(path)
    before = opened.data_version()
    assert opened.data_version() == before
    other = sqlite3.connect(path)
    other.execute("UPDATE keys SET name = 'x'")
    other.execute("INSERT INTO keys (id, name, digest, scopes, surfaces, created_at) VALUES ('b','n',x'00','r','m',1)")
    other.commit()
    other.close()
    assert opened.data_version() != before
    opened.close()


def test_a_newer_schema_is_not_opened(path):
    Ledger.open(path).close()
    newer = sqlite3.connect(path)
    newer.execute(f"PRAGMA user_version = {len(SCHEMA) + 1}")
    newer.commit()
    newer.close()
    with pytest.raises(Unavailable, match="newer Memex"):
        Ledger.open(path)


def _older(path: Path, version: int) -> None:
    """Make the ledger that a Memex of this schema version left."""
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.executescript(f"{''.join(SCHEMA[:version])} PRAGMA user_version = {version};")
    path.chmod(0o600)


def _schema(path: Path) -> tuple[int, list[tuple[str, ...]]]:
    """The version of a ledger, and all that it is made of."""
    with contextlib.closing(sqlite3.connect(path)) as reader:
        (version,) = reader.execute("PRAGMA user_version").fetchone()
        return version, reader.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()


@pytest.mark.parametrize("version", [0, 5, len(SCHEMA) - 1])
def test_those_that_open_a_new_or_older_ledger_at_the_same_time_migrate_it_once(path, version):
    Ledger.open(path.with_name("new.db")).close()
    if version:
        _older(path, version)
    together = threading.Barrier(4)

    def open_it() -> None:
        together.wait(10)
        Ledger.open(path).close()

    with ThreadPoolExecutor(4) as threads:
        for opened in [threads.submit(open_it) for _ in range(4)]:
            opened.result()
    assert _schema(path) == _schema(path.with_name("new.db"))


@pytest.mark.parametrize("version", range(1, len(SCHEMA)))
def test_an_older_ledger_becomes_what_a_new_one_is(path, version):
    Ledger.open(path.with_name("new.db")).close()
    _older(path, version)
    Ledger.open(path).close()
    assert _schema(path) == _schema(path.with_name("new.db"))


def test_an_older_ledger_that_can_not_be_brought_up_to_date_stays_as_it_was(path):
    _older(path, 1)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("ALTER TABLE keys ADD COLUMN namespace TEXT")  # the last but one step adds it
    before = _schema(path)
    with pytest.raises(Unavailable, match="namespace"):
        Ledger.open(path)
    assert _schema(path) == before


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        pytest.param(lambda path: path.chmod(0o644), "others can read", id="readable by others"),
        pytest.param(lambda path: path.parent.chmod(0o777), "others can write", id="folder writable by others"),
        pytest.param(lambda path: path.write_bytes(b"no database" * 100), "can't be opened", id="not a database"),
        pytest.param(
            lambda path: (path.rename(path.with_suffix(".x")), path.symlink_to("x")), "regular file", id="a link"
        ),
    ],
)
def test_a_ledger_that_can_not_be_trusted_is_refused_with_the_way_out(path, spoil, words):
    Ledger.open(path).close()
    spoil(path)
    with pytest.raises(Unavailable, match=words) as caught:
        Ledger.open(path)
    assert str(path.parent) not in caught.value.message
    assert not caught.value.retryable


def test_a_folder_that_is_missing_is_told(tmp_path):
    with pytest.raises(Unavailable, match="can't be created"):
        Ledger.open(tmp_path / "nowhere" / "ledger.db")


def test_a_thread_that_asks_after_the_end_is_refused_and_no_fault_is_logged(path, caplog):
    opened = Ledger.open(path)
    opened.close()
    with pytest.raises(Unavailable, match="is stopping"):
        opened.query("SELECT 1")
    with pytest.raises(Unavailable, match="is stopping"), opened.transaction():
        opened.execute("DELETE FROM keys")
    assert opened.problem == ""
    assert caplog.records == []


@pytest.mark.parametrize("call", ["read", "write"])
def test_a_damaged_page_stays_a_problem_and_its_error_names_the_way_out(path, call):
    with contextlib.closing(Ledger.open(path)) as opened:
        with opened.transaction():
            for n in range(400):
                opened.execute("INSERT INTO tended VALUES (?, ?)", (f"name {n}", "x" * 200))
    raw = bytearray(path.read_bytes())
    raw[-4096:] = b"\xa5" * 4096
    path.write_bytes(raw)
    with contextlib.closing(Ledger.open(path)) as opened:
        with pytest.raises(Unavailable, match="memex key reset --yes") as caught:
            if call == "read":
                opened.query("SELECT * FROM tended")
            else:
                with opened.transaction():
                    opened.execute("UPDATE tended SET value = 'y'")
        assert not caught.value.retryable
        assert opened.query("SELECT id FROM keys") == []
        assert "memex restore BACKUP --force" in opened.problem, "a good read of another page takes nothing back"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(lambda path: path.write_bytes(b"no database" * 100), "not a database", id="not a database"),
        pytest.param(os.mkfifo, "not a regular file", id="a pipe"),
        pytest.param(Path.mkdir, "not a regular file", id="a folder"),
        pytest.param(lambda path: path.symlink_to("x"), "not a regular file", id="a link"),
    ],
)
def test_a_file_that_is_no_ledger_is_read_by_nothing_and_ends_no_reader(path, make, words):
    make(path)
    assert words in ledger.check_integrity(path)
    with pytest.raises(Unavailable, match=words):
        list(ledger.query_read_only(path, "SELECT id FROM keys"))
    with pytest.raises(Unavailable, match=words):
        ledger.back_up(path, path.with_name("copy.db"))


def test_a_ledger_of_another_user_is_not_called_damaged(path):
    if os.geteuid():
        pytest.skip("needs root to give a file away")
    Ledger.open(path).close()
    os.chown(path, 65534, -1)
    with pytest.raises(Unavailable) as caught:
        Ledger.open(path)
    assert caught.value.message == f"the ledger belongs to another user: sudo chown $(id -u) {path}"


def test_what_was_recorded_before_the_workspace_was_counts_in_any(path):
    before = next(n for n, step in enumerate(SCHEMA) if "automatic_before" in step)
    _older(path, before)
    with contextlib.closing(sqlite3.connect(path)) as older:
        older.execute("INSERT INTO automatic VALUES ('a', '{}')")
        older.execute("INSERT INTO enrichment VALUES ('b', 3, 7)")
        older.execute("INSERT INTO note_uses VALUES ('c', 0.5)")
        older.commit()
    with contextlib.closing(Ledger.open(path)) as opened:
        assert opened.query("SELECT * FROM automatic") == [("", "a", "{}")]
        assert opened.query("SELECT * FROM enrichment") == [("", "b", 3, 7)]
        uses = UseCounts(opened)
        uses.add("work", ["c"])
        uses.flush()
        assert (uses.read("work"), uses.read("home")) == ({"c": 1.5}, {"c": 0.5})


@pytest.mark.parametrize("seed", range(30))
def test_a_ledger_with_changed_bytes_is_opened_or_refused_with_a_way_out(path, seed):
    Ledger.open(path).close()
    flip_bytes(path, seed)
    ledger.check_integrity(path)
    ledger.is_damaged(path)
    try:
        Ledger.open(path).close()
    except Unavailable as error:
        assert "memex" in error.message


def test_a_ledger_whose_tables_have_names_that_are_not_unicode_counts_as_damaged(path, tmp_path):
    Ledger.open(path).close()
    damage_schema(path)
    assert ledger.is_damaged(path)
    assert ledger.check_integrity(path)
    with pytest.raises(Unavailable, match="key reset"):
        Ledger.open(path)
    with pytest.raises(Unavailable):
        list(ledger.query_read_only(path, "SELECT id FROM keys"))
    with pytest.raises(Unavailable):
        ledger.back_up(path, tmp_path / "copy.db", without="DELETE FROM keys")
