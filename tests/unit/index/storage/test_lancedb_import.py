"""LanceDB is imported without the client of remote catalogs and without checks; both are there as soon as somebody uses them."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

from index.storage import lancedb_import

IMPORT = """
import json, sys
from importlib import import_module, util
from index.storage.lancedb_import import CLIENT, lancedb
early = [name for name in sys.modules if name.partition(".")[0] in (CLIENT, "urllib3", "overrides")]
"""
USES = """
import lance_namespace
from lancedb.db import ListTablesResponse
given = ListTablesResponse(tables=["chunks"])
other = lance_namespace.ListTablesResponse.from_dict({"tables": ["facts"]})
from lance_namespace_urllib3_client.models.list_tables_response import ListTablesResponse as Real
from lance_namespace_urllib3_client.api.table_api import TableApi
catalog = lancedb.connect_namespace("dir", {"root": sys.argv[1]})
catalog.create_table("notes", [{"a": 1}])
print(json.dumps({
    "early": early,
    "real": [type(given) is Real, type(other) is Real, isinstance(given, ListTablesResponse), isinstance(3, ListTablesResponse)],
    "tables": [given.tables, other.tables, catalog.list_tables().tables, lancedb.connect(sys.argv[1]).list_tables().tables],
    "rows": catalog.open_table("notes").count_rows(),
    "client": hasattr(TableApi, "create_table"),
    "checks": not util.find_spec("overrides") or hasattr(import_module("overrides"), "final"),
    "left": [str(finder) for finder in sys.meta_path if "StandIn" in str(finder)],
}))
"""


@pytest.mark.slow
def test_the_client_comes_when_it_is_used_and_no_earlier(tmp_path):
    command = [sys.executable, "-c", IMPORT + USES, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (json.loads(done.stdout), done.stderr) == (
        {
            "early": [],
            "real": [True, True, True, False],
            "tables": [["chunks"], ["facts"], ["notes"], ["notes"]],
            "rows": 1,
            "client": True,
            "checks": True,
            "left": [],
        },
        "",
    )


def test_a_lancedb_that_was_imported_already_stays_as_it_is():
    finders = list(sys.meta_path)
    client = {name: module for name, module in sys.modules.items() if name.startswith(lancedb_import.CLIENT)}
    again = importlib.reload(lancedb_import)
    assert again.lancedb is sys.modules["lancedb"]
    assert sys.meta_path == finders
    assert client.items() <= sys.modules.items()


class ImportedMeanwhile(str):
    """A module's name; whoever looks at it sees another thread's import."""

    __slots__ = ()

    def partition(self, separator):
        sys.modules["imported_meanwhile"] = sys
        return super().partition(separator)


def test_stand_ins_are_removed_while_another_thread_imports(monkeypatch):
    monkeypatch.setitem(sys.modules, ImportedMeanwhile("being_imported"), sys)
    monkeypatch.setattr(sys, "meta_path", [lancedb_import._FINDER, *sys.meta_path])
    kept = {name: module for name, module in sys.modules.items() if name.startswith(lancedb_import.CLIENT)}
    try:
        lancedb_import._forget_stand_ins()
        assert "imported_meanwhile" in sys.modules
    finally:
        sys.modules.pop("imported_meanwhile", None)
        sys.modules.update(kept)
