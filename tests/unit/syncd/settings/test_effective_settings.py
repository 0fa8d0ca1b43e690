"""syncd/settings/effective_settings.py: every setting with its value in force and its origin, secrets left out."""

from __future__ import annotations

import json

from syncd.settings.effective_settings import effective_settings
from syncd.settings.settings import all_settings, load


def test_every_setting_is_listed_with_its_value_and_origin(tmp_path):
    flags = {"vault.path": str(tmp_path), "state": str(tmp_path / "state")}
    rows = effective_settings(load(flags, {"MEMEX_PAGE__PORT": "9000", "HOME": str(tmp_path)}, cwd=tmp_path))
    assert [row["name"] for row in rows] == list(all_settings())
    by_name = {row["name"]: row for row in rows}
    assert by_name["page.port"]["value"] == 9000
    assert "MEMEX_PAGE__PORT" in by_name["page.port"]["origin"]
    assert by_name["page.always"]["origin"] == "default"
    assert all(row["doc"] and row["type"] for row in rows)
    json.dumps(rows)
