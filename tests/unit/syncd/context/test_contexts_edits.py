"""What the owner does while Memex writes the note of a context, and the end of the note with its workspace."""

from __future__ import annotations

import pytest

from tests.support.world import promote

FILTER, TABS = "The filter of the heat pump is due in May", "Ada prefers tabs in every Makefile"


def test_a_line_that_the_owner_deletes_as_soon_as_it_is_written_is_left_out(world, monkeypatch):
    vault, note = world.app.opened.vault, world.vault / "Captures/Context/default.md"
    workspace, replace = world.app.agent_access.workspace("default"), vault.replace

    def replace_and_edit(path, data, **more):
        stat = replace(path, data, **more)
        note.write_text("".join(line for line in note.read_text().splitlines(True) if "heat pump" not in line))
        monkeypatch.setattr(vault, "replace", replace)
        return stat

    workspace.capture(FILTER)
    assert world.app.services.write_contexts() == 1
    workspace.capture(TABS)
    monkeypatch.setattr(vault, "replace", replace_and_edit)
    assert world.app.services.write_contexts() == 1
    assert "heat pump" not in note.read_text()
    assert world.app.services.write_contexts() == 1
    assert "heat pump" in note.read_text().partition("## Left out")[2]
    assert world.app.services.write_contexts() == 0


@pytest.mark.parametrize("is_foreign", [False, True])
def test_the_note_goes_with_its_workspace_unless_memex_did_not_write_it(world, is_foreign):
    access, note = world.app.agent_access, world.vault / "Captures/Context/work.md"
    id = access.create_workspace("work").capture(FILTER).record.id
    if is_foreign:
        world.write("Captures/Context/work.md", "Mine.")
    assert world.app.services.write_contexts() == int(not is_foreign)
    promote(world, id)
    world.app.operations["workspace.delete"]({"name": "work"}, lambda _: None)
    assert note.exists() == is_foreign
    assert access.create_workspace("work").context().lines == (), "the facts of the workspace before are forgotten"
    assert world.app.services.write_contexts() == 0
    assert note.exists() == is_foreign
