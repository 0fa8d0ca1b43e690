"""What lies in the folder of contexts and is none."""

from __future__ import annotations

from contextlib import closing

from syncd.context.stray_notes import find_stray_notes
from syncd.vault.vault import Vault
from tests.support.world import World


def write(folder, path, text="Mine.\n"):
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_workspace_with_the_reserved_name_and_a_note_in_the_way_are_strays(tmp_path):
    for path in ("Mine.md", "alpha/Deep.md", "picture.png", ".hidden.md", ".obsidian/x.md"):
        write(tmp_path, f"Captures/Context/{path}")
    write(tmp_path, "Captures/context/Lower.md")
    write(tmp_path, "Captures/work/Other.md")
    with closing(Vault(tmp_path)) as vault:
        strays = find_stray_notes(vault, "Captures")
        kept = find_stray_notes(vault, "Captures", lambda workspace: workspace == "Mine")
    assert strays == [
        "Captures/Context/Mine.md",
        "Captures/Context/alpha/",
        "Captures/context/",
    ]
    assert "Captures/Context/Mine.md" not in kept


def test_a_vault_without_an_inbox_or_with_a_file_in_its_place_has_none(tmp_path):
    with closing(Vault(tmp_path)) as vault:
        assert find_stray_notes(vault, "Captures") == []
        write(tmp_path, "Captures", "no folder")
        assert find_stray_notes(vault, "Captures") == []


def test_a_context_that_memex_wrote_is_none_whatever_its_owner_did_to_it(tmp_path):
    world = World(tmp_path)
    try:
        world.app.agent_access.workspace("default").capture("The filter is due in May.")
        world.run()
        assert world.app.services.write_contexts() == 1
        note = world.vault / "Captures/Context/default.md"
        assert world.app.opened.contexts.find_strays() == []
        note.write_text("only my words\n")
        assert world.app.opened.contexts.find_strays() == []
        write(world.vault, "Captures/Context/work.md")
        strays = ["Captures/Context/work.md"]
        assert world.app.opened.contexts.find_strays() == strays
        assert world.app.operations["status"]({}, lambda _: None)["contexts"] == {"strays": strays}
    finally:
        world.close()
