"""tests/support/file_order.py: long files are handed out first, and the table names files that are there."""

from __future__ import annotations

from tests.support import file_order
from tests.support.paths import TESTS


def test_every_file_of_the_table_is_there():
    files = {file.relative_to(TESTS).with_suffix("").as_posix() for file in TESTS.rglob("test_*.py")}
    assert file_order.SECONDS.keys() <= files


def test_the_longest_come_first_and_the_rest_by_name():
    first, second = sorted(file_order.SECONDS, key=lambda name: -file_order.SECONDS[name])[:2]
    files = [TESTS / f"{name}.py" for name in ("unit/test_b", second, "unit/test_a", first)]
    assert [file.relative_to(TESTS).with_suffix("").as_posix() for file in sorted(files, key=file_order.place)] == [
        first,
        second,
        "unit/test_a",
        "unit/test_b",
    ]
