"""LanceDB is imported without what no part of Memex uses."""

from __future__ import annotations

import subprocess
import sys

import pydantic
import pytest

from index.storage import lancedb_import

CODE = """
from index.storage.lancedb_import import lancedb
from lance_namespace_urllib3_client.api.table_api import TableApi
print(lancedb.__name__, hasattr(TableApi.create_table, "__wrapped__"))
"""


def test_the_rest_client_that_comes_with_it_builds_no_checks_and_says_nothing():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("lancedb False\n", "")


def test_everybody_else_s_arguments_are_checked_as_before():
    assert pydantic.validate_call is lancedb_import._validate_call

    def double(n: int) -> int:
        return 2 * n

    for checked in (
        pydantic.validate_call(double),
        lancedb_import._validate_unless_unused(double),  # what another thread may come upon during the import
        lancedb_import._validate_unless_unused(validate_return=True)(double),
    ):
        assert checked("4") == 8
        with pytest.raises(pydantic.ValidationError):
            checked("four")
