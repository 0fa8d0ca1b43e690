"""Named values: each is kept under its name, and several are written or removed together."""

import contextlib

import pytest

from index.errors import Unavailable
from syncd.state import named_values
from syncd.state.ledger import Ledger


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder / "ledger.db"


@pytest.fixture
def ledger(path):
    with contextlib.closing(Ledger.open(path)) as opened:
        yield opened


def test_a_name_without_a_value_is_none(ledger):
    assert named_values.read(ledger, "git.seen") is None


def test_a_value_outlives_the_process(ledger, path):
    named_values.write(ledger, {"git.seen": "7", "git.left": "[]"})
    with contextlib.closing(Ledger.open(path)) as reopened:
        assert named_values.read(reopened, "git.seen") == "7"
        assert named_values.read(reopened, "git.left") == "[]"


def test_a_second_write_replaces_the_value_and_no_other(ledger):
    named_values.write(ledger, {"git.seen": "7", "git.left": "[]"})
    named_values.write(ledger, {"git.seen": "8"})
    assert named_values.read_prefixed(ledger, "git.") == {"seen": "8", "left": "[]"}


def test_a_removed_value_is_gone_and_the_others_stay(ledger):
    named_values.write(ledger, {"stray:a": "1", "stray:b": "2", "stray:c": "3"})
    named_values.delete(ledger, ["stray:a", "stray:c", "stray:unknown"])
    assert named_values.read_prefixed(ledger, "stray:") == {"b": "2"}


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        pytest.param("strays:a", "stray:", id="a longer word"),
        pytest.param("my stray:a", "stray:", id="in the middle"),
        pytest.param("100 stray", "1%", id="a percent sign is no wildcard"),
        pytest.param("stray:a", "stra_:", id="an underscore is no wildcard"),
    ],
)
def test_only_names_that_begin_with_the_prefix_are_read(ledger, name, prefix):
    named_values.write(ledger, {name: "1", f"{prefix}é": "2"})
    assert named_values.read_prefixed(ledger, prefix) == {"é": "2"}


def test_values_of_the_table_of_earlier_versions_are_read(ledger):
    with ledger.transaction():
        ledger.execute("INSERT INTO tended (name, value) VALUES ('job tick', '12')")
    assert named_values.read(ledger, "job tick") == "12"


def test_either_all_values_are_written_or_none(ledger):
    with pytest.raises(Unavailable):
        named_values.write(ledger, {"git.seen": "7", "git.left": None})
    assert named_values.read_prefixed(ledger, "git.") == {}


def test_a_ledger_that_can_not_be_written_is_unavailable(ledger):
    ledger.execute("PRAGMA query_only = 1")
    with pytest.raises(Unavailable):
        named_values.write(ledger, {"git.seen": "7"})
    with pytest.raises(Unavailable):
        named_values.delete(ledger, ["git.seen"])
