"""The return of a promoted note changes no other note or file than those of its promotion, whatever happened since."""

from __future__ import annotations

from tests.support.promotion_vault import capture, consistent, files, promotions
from tests.support.world import promote


def test_links_lead_to_a_note_that_returns_under_another_name(world, tmp_path):
    promote(world, "c1", to="Birds")
    other = capture().replace("id: c1", "id: c2").replace("heron", "egret")
    world.write("Captures/default/Heron.md", other)
    world.run()
    assert promotions(world).unpromote("c1")["target"] == "Captures/default/Heron 2.md"
    now = files(world)
    assert now["Captures/default/Heron.md"].decode() == other
    assert now["Areas/Pond.md"].endswith(b"[heron](../Captures/default/Heron%202.md#x)\n")
    assert now["Daily/Today.md"].startswith(b"Saw [[Captures/default/Heron 2|one]]")
    consistent(world, tmp_path)


def test_a_copy_of_a_promoted_note_stays_where_it_is(world):
    before = files(world)
    promote(world, "c1", to="Birds")
    copy = files(world)["Birds/Heron.md"]
    world.write("Areas/A copy.md", copy)
    world.run()
    promotions(world).unpromote("c1")
    assert files(world) == before | {"Areas/A copy.md": copy}


def test_a_note_with_a_link_that_was_edited_since_keeps_its_edit(world):
    before = files(world)
    promote(world, "c1", to="Birds")
    today = world.vault / "Daily/Today.md"
    today.write_text(f"{today.read_text()}It rains.\n")
    world.run()
    promotions(world).unpromote("c1")
    assert files(world).keys() == before.keys()
    assert today.read_text().endswith("It rains.\n")
    assert "[[Captures/default/Heron|one]]" in today.read_text()


def test_a_stored_file_that_was_copied_back_stays_in_both_places(world):
    file, note = "Captures/default/Files/report.pdf", "Captures/default/Files/report.pdf.md"
    world.write(file, b"%PDF the bytes")
    world.write(note, f'---\nid: f1\ntype: file\nfile: "[[{file}]]"\nfile_sha256: x\n---\nThe text.\n')
    world.run()
    before = files(world)
    promote(world, "f1", to="Papers")
    world.write(file, b"%PDF the bytes")
    assert promotions(world).unpromote("f1")["target"] == note
    assert files(world) == before | {"Papers/report.pdf": b"%PDF the bytes"}
