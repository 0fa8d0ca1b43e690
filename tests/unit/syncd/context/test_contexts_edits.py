"""An edit of the owner while Memex writes the note of a context."""

from __future__ import annotations

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
