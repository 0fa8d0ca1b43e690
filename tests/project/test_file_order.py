"""tests/support/file_order.py: long files are handed out first, and the table names files that are there."""

from __future__ import annotations

from tests.support import file_order
from tests.support.paths import TESTS


def test_every_file_of_the_table_is_there():
    files = {file.relative_to(TESTS).with_suffix("").as_posix() for file in TESTS.rglob("test_*.py")}
    assert file_order.SECONDS.keys() <= files


def test_the_longest_come_first_and_the_rest_by_name():
    names = ("unit/test_b", "unit/test_a", "integration/test_daemon", "integration/test_sync_pipeline")
    files = [TESTS / f"{name}.py" for name in names]
    assert [file.stem for file in sorted(files, key=file_order.place)] == [
        "test_sync_pipeline",
        "test_daemon",
        "test_a",
        "test_b",
    ]
