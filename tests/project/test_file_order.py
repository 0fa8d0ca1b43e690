"""tests/support/file_order.py: long files are handed out first, and the table names files that are there."""

from __future__ import annotations

from pathlib import Path

from tests.support import file_order

TESTS = Path(__file__).parent


def test_every_file_of_the_table_is_there():
    assert file_order.SECONDS.keys() <= {file.stem for file in TESTS.rglob("test_*.py")}


def test_the_longest_come_first_and_the_rest_by_name():
    files = [Path(f"tests/{name}.py") for name in ("test_b", "test_a", "test_audit", "test_deaf")]
    assert [file.stem for file in sorted(files, key=file_order.place)] == [
        "test_deaf",
        "test_audit",
        "test_a",
        "test_b",
    ]
