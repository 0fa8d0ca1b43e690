"""Which captures wait, and what their owner has said of each: asked of the index once, and again only when it changes."""

from __future__ import annotations

import hashlib

import pytest

from index.catalog.catalog import Catalog
from index.errors import Unavailable
from syncd.documents.owner_marks import OwnerMarks
from syncd.promotion.waiting_captures import WaitingCaptures
from syncd.vault.vault import Vault
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


def waiting(world):
    return WaitingCaptures(world.app.opened.builds.scopes["captures"])


def marked(waits):
    return [(record.path, marks.promote_to) for record, marks in waits.find_captures(lambda one: one.promote)]


def test_captures_are_told_with_their_marks(world):
    world.write("Captures/default/A.md", "---\nid: a\npromote: true\npromote_to: Ideas\n---\nx\n")
    world.write("Captures/default/B.md", "---\nid: b\n---\npromote: true\n")
    world.write("Captures/default/Entities/C.md", "---\nid: c\ntype: entity\nreview: later\n---\n")
    world.write("Captures/Reports/R.md", "---\npromote: true\n---\n")
    world.write("Notes/N.md", "---\npromote: true\n---\n")
    world.run()
    waits = waiting(world)
    told = {record.path: marks for record, marks in waits.find_captures(lambda _: True)}
    assert told == {
        "Captures/default/A.md": OwnerMarks(promote=True, promote_to="Ideas"),
        "Captures/default/B.md": OwnerMarks(),
        "Captures/default/Entities/C.md": OwnerMarks(review="later"),
    }
    assert marked(waits) == [("Captures/default/A.md", "Ideas")]
    assert sorted(waits.count(), key=str) == [
        ("entity", OwnerMarks(review="later"), 1),
        ("note", OwnerMarks(), 1),
        ("note", OwnerMarks(promote=True, promote_to="Ideas"), 1),
    ]
    assert waits.marked()["Captures/default/A.md"].marks.promote
    assert "Notes/N.md" not in waits.marked()


def test_the_index_is_asked_again_only_about_what_has_changed(world, monkeypatch):
    for number in range(20):
        world.write(f"Captures/default/{number}.md", f"---\nid: n{number}\n---\nnote {number}\n")
    world.run()
    waits, read_rows, rows = waiting(world), Catalog.owner_marks, []
    monkeypatch.setattr(Catalog, "owner_marks", lambda *asked: rows.extend(got := list(read_rows(*asked))) or got)
    with monkeypatch.context() as patched:
        patched.setattr(Vault, "read", lambda *_, **__: pytest.fail("a note was read"))
        waits.find_captures(lambda _: True)
        assert len(rows) == 20
        assert waits.marked().keys() == {f"Captures/default/{number}.md" for number in range(20)}
        assert len(rows) == 20
    before = waits.version
    world.write("Captures/default/3.md", "---\nid: n3\npromote: true\n---\nnote 3\n")
    (world.vault / "Captures/default/4.md").unlink()
    world.run()
    assert waits.version != before
    assert marked(waits) == [("Captures/default/3.md", None)]
    assert len(rows) == 21
    assert len(waits.find_captures(lambda _: True)) == len(waits.marked()) == 19
    assert len(rows) == 21


def test_marks_are_those_of_the_bytes_that_the_index_has_seen(world):
    file = world.write("Captures/default/A.md", "---\nid: a\nreview: later\n---\nx\n")
    world.run()
    file.write_text("---\nid: a\npromote: true\n---\nx\n")
    waits = waiting(world)
    [(record, marks)] = waits.find_captures(lambda _: True)
    assert (record.digest, marks) == (
        hashlib.sha256(b"---\nid: a\nreview: later\n---\nx\n").hexdigest(), OwnerMarks(review="later"),
    )  # fmt: skip
    world.run()
    assert marked(waits) == [("Captures/default/A.md", None)]


def test_a_look_that_fails_is_made_again(world, monkeypatch):
    world.write("Captures/default/A.md", "---\nid: a\npromote: true\n---\nx\n")
    world.run()
    waits = waiting(world)
    broken = lambda *_: (_ for _ in ()).throw(Unavailable("no catalog"))  # noqa: E731 - it raises, and no more
    monkeypatch.setattr(Catalog, "owner_marks", broken)
    with pytest.raises(Unavailable):
        waits.find_captures(lambda _: True)
    monkeypatch.undo()
    assert marked(waits) == [("Captures/default/A.md", None)]


def test_a_note_whose_bytes_nobody_knows_is_left_out_until_it_is_read(world):
    world.write("Captures/default/A.md", "---\nid: a\n---\nx\n")
    world.run()
    index = world.app.opened.builds.scopes["captures"].index
    index.catalog.forget()
    waits = waiting(world)
    assert (waits.find_captures(lambda _: True), waits.marked(), waits.count()) == ([], {}, [])
    world.reopen()
    world.run()
    assert len(waiting(world).find_captures(lambda _: True)) == 1


def test_another_build_is_looked_through_anew(world):
    world.write("Captures/default/A.md", "---\nid: a\npromote: true\n---\nx\n")
    world.run()
    waits = waiting(world)
    assert len(waits.find_captures(lambda _: True)) == 1
    world.app.operations["index"]({"full": True}, lambda _: None)
    assert marked(waits) == [("Captures/default/A.md", None)]


def test_the_strings_of_the_index_are_not_copied(world):
    world.write("Captures/default/A.md", "---\nid: a\n---\nx\n")
    world.run()
    ((path, capture),) = waiting(world).marked().items()
    entry = world.app.opened.builds.scopes["captures"].index.manifest[path]
    assert path is entry.path
    assert capture.digest is entry.digest
