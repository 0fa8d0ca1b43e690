"""Settings of Obsidian are read as far as they can be, and name nothing where they can't."""

from __future__ import annotations

import json

import pytest

from syncd.vault.obsidian_settings import ObsidianSettings
from syncd.vault.vault import Vault


@pytest.fixture
def settings(tmp_path):
    def write(**files):
        (tmp_path / ".obsidian").mkdir(exist_ok=True)
        for name, value in files.items():
            text = value if isinstance(value, str) else json.dumps(value)
            (tmp_path / ".obsidian" / f"{name.replace('_', '-')}.json").write_text(text)
        return ObsidianSettings(vault)

    vault = Vault(tmp_path)
    yield write
    vault.close()


@pytest.mark.parametrize(
    ("given", "left_out"),
    [
        (["Templates/"], ["templates/a.md", "Templates/b/c.md"]),
        (["Temp"], ["Temporary.md", "templates/a.md", "Templates/b/c.md"]),
        (["/^Temp.*c/"], ["Templates/b/c.md"]),
        (["/[/", "", None, 5, ["Note.md"], {"Note.md": 1}, "x" * 501], []),
        (None, []),
        ("Templates/", []),
    ],
)
def test_filters_are_beginnings_of_paths_or_patterns(settings, given, left_out):
    test = settings(app={"userIgnoreFilters": given}).exclusion_test()
    assert [
        path for path in ("Temporary.md", "templates/a.md", "Templates/b/c.md", "Note.md") if test(path)
    ] == left_out


@pytest.mark.parametrize("broken", ["", "[]", "{", "[" * 5000, '{"folder": 5}', '{"folder": ""}', '{"folder": "/"}'])
def test_what_can_not_be_read_names_nothing(settings, broken):
    of = settings(templates=broken, daily_notes=broken, app=broken, zk_prefixer=broken)
    assert not any(test("Note.md") for test in (of.template_test(), of.exclusion_test()))


def test_folders_and_notes_for_templates_are_named_by_each_plugin(settings):
    of = settings(
        templates={"folder": "T/"}, daily_notes={"folder": "D", "template": "x/Day"}, zk_prefixer={"template": "Z.MD"}
    )
    assert [
        path for path in ("T/a.md", "t/b/c.md", "x/Day.md", "Z.md", "D/1.md", "Ta.md") if of.template_test()(path)
    ] == [
        "T/a.md",
        "t/b/c.md",
        "x/Day.md",
        "Z.md",
    ]
    assert of.special_folders() == ["D", "T/"]
