"""Passes over a real vault, with real stores: what one look leaves for the next."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from index.errors import Unavailable
from syncd.sync import index_pass
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.world import PROMPT, World, until


@pytest.fixture
def slow_to_adopt(tmp_path):
    world = World(tmp_path, sync=replace(PROMPT, adopt_s=0.6))
    yield world
    world.close()


def test_a_note_dropped_into_the_inbox_gets_its_id_once_it_is_quiet(slow_to_adopt):
    with slow_to_adopt.serving():
        file = slow_to_adopt.write("Captures/default/Dropped.md", "dropped by hand\n")
        until(lambda: slow_to_adopt.found("dropped by hand") == ["Captures/default/Dropped.md"])
        assert b"id: " not in file.read_bytes()
        until(lambda: file.read_bytes().startswith(b"---\nid: "))
        slow_to_adopt.settled()
    assert file.read_bytes().endswith(b"\n---\ndropped by hand\n")


def test_a_note_that_was_dropped_before_a_restart_gets_its_id_after_it(slow_to_adopt):
    file = slow_to_adopt.write("Captures/default/Dropped.md", "dropped by hand\n")
    slow_to_adopt.run()
    slow_to_adopt.reopen()
    time.sleep(0.7)
    assert slow_to_adopt.run().unchanged == 0
    assert file.read_bytes().startswith(b"---\nid: ")
    assert slow_to_adopt.run().unchanged == 1


def test_a_note_that_can_get_no_id_is_read_again_and_no_more(slow_to_adopt):
    file = slow_to_adopt.write("Captures/default/Bad.md", before := "---\nid: bad id!\n---\nbody\n")
    os.utime(file, (1, 1))
    assert slow_to_adopt.run().added == 1
    again = slow_to_adopt.run()
    assert (again.unchanged, again.changes) == (1, 0)
    assert file.read_text() == before


def test_a_command_alone_knows_that_all_was_listed_once(slow_to_adopt):
    slow_to_adopt.write("Note.md", "text")
    assert not slow_to_adopt.app.health.status(None)["ready"]
    slow_to_adopt.run()
    slow_to_adopt.reopen()
    assert slow_to_adopt.app.health.status(None)["ready"]


ENTITY = "---\r\nid: ada\r\ntype: entity # hers\r\nlast_ordinal: 4\r\n---\r\n## Observations\r\n- first ^o2\r\n- by hand\r\n\r\nprose\r\n"


def test_an_observation_written_by_hand_gets_its_ordinal_once_the_note_is_quiet(slow_to_adopt):
    with slow_to_adopt.serving():
        file = slow_to_adopt.write("Captures/default/Entities/Ada.md", ENTITY)
        until(lambda: slow_to_adopt.found("by hand") == ["Captures/default/Entities/Ada.md"], 20)
        until(lambda: b"^o5" in file.read_bytes(), 20)
        slow_to_adopt.settled()
        node = slow_to_adopt.app.opened.builds.scopes["captures"].index.graph("default").get("Ada")
    lines = file.read_bytes().decode().split("\r\n")
    assert [line for line in lines if line not in ENTITY.split("\r\n") and "_at: " not in line] == [
        "last_ordinal: 5",
        "- by hand ^o5",
    ]
    assert not any("\n" in line for line in lines)
    assert (node.observations, node.last_ordinal, node.unsettled) == (2, 5, False)
    assert node.observed_at == node.updated_at is not None


def test_an_observation_written_before_a_restart_gets_its_ordinal_after_it(slow_to_adopt):
    file = slow_to_adopt.write("Captures/default/Entities/Ada.md", ENTITY)
    slow_to_adopt.run()
    assert file.read_bytes().decode() == ENTITY
    slow_to_adopt.reopen()
    time.sleep(0.7)
    assert slow_to_adopt.run().unchanged == 0
    assert b"- by hand ^o5" in file.read_bytes()
    assert slow_to_adopt.run().unchanged == 1


def test_a_node_dropped_into_the_inbox_gets_its_id_and_its_ordinals_at_once(slow_to_adopt):
    file = slow_to_adopt.write("Captures/default/Entities/Ada.md", "## Observations\n- one\n- two")
    os.utime(file, (1, 1))
    assert slow_to_adopt.run().added == 1
    assert file.read_text().startswith("---\nid: ")
    assert file.read_text().endswith("\n---\n## Observations\n- one ^o1\n- two ^o2")
    assert slow_to_adopt.run().unchanged == 1


@pytest.mark.parametrize(
    "text",
    [
        "---\nid: ada\n---\n## Observations\n<<<<<<< HEAD\n- mine\n=======\n- theirs\n>>>>>>> them\n",
        "---\nid: ada\nlast_ordinal: 999999999999\n---\n## Observations\n- one too many\n",
        "---\nid: ada\nid: ada\n---\n## Observations\n- repeated keys\n",
    ],
)
def test_a_node_that_can_get_no_ordinals_is_read_again_and_no_more(slow_to_adopt, text):
    file = slow_to_adopt.write("Captures/default/Entities/Ada.md", text)
    os.utime(file, (1, 1))
    assert slow_to_adopt.run().added == 1
    assert slow_to_adopt.run().changes == 0
    assert file.read_text() == text


class Unlisted(dict):
    """A manifest of which single notes may be looked up, and which nobody may go through."""

    def __iter__(self):
        raise AssertionError

    keys = values = items = copy = __iter__


def test_a_look_at_a_note_goes_through_no_others_and_one_at_a_folder_finds_what_it_held(tmp_path):
    world = World(tmp_path)
    for path in ("A.md/B.md", "A.md/Deep/C.md", "A.md B.md", "D.md"):
        world.write(path, path)
    world.run()
    index = world.app.opened.builds.scopes["vault"].index
    held = {"A.md/B.md", "A.md/Deep/C.md"}
    assert [index.entries(under).keys() for under in (["A.md"], ["A.md/Deep"], ["D.md", "D.md/x"])] == [
        held,
        {"A.md/Deep/C.md"},
        {"D.md"},
    ]
    shutil.rmtree(world.vault / "A.md")
    world.write("A.md", "a file has taken the folder's name")
    assert world.run(under=["A.md"]).removed == 2
    assert index.entries(["A.md"]).keys() == {"A.md"} == index.entries(["A.md", "A.md/Deep"]).keys()
    index.manifest = Unlisted(index.manifest)
    world.write("D.md", "edited")
    world.write("New.md", "new")
    outcome = world.run(under=["A.md", "D.md", "New.md", "Gone.md"])
    assert (outcome.modified, outcome.added, outcome.unchanged) == (1, 1, 1)
    world.close()


def test_a_note_that_can_not_be_read_is_named_until_it_is_gone(slow_to_adopt, monkeypatch):
    def closed(path):
        raise Unavailable(f"{path}: permission denied")

    slow_to_adopt.write("Notes/Closed.md", "text\n")
    monkeypatch.setattr(slow_to_adopt.app.opened.vault, "read", closed)
    slow_to_adopt.run()
    named = {"Notes/Closed.md": "can't be read: permission denied"}
    assert slow_to_adopt.app.opened.sync.failures == named
    (slow_to_adopt.vault / "Notes/Closed.md").unlink()
    slow_to_adopt.run(under=["Other"])
    assert slow_to_adopt.app.opened.sync.failures == named
    slow_to_adopt.run(under=["Notes"])
    assert slow_to_adopt.app.opened.sync.failures == {}


@pytest.mark.parametrize("why", ["a folder is unread", "removals are held"])
def test_no_new_index_is_built_without_all_notes(tmp_path, monkeypatch, why):
    world = World(tmp_path)
    for number in range(30):
        world.write(f"Notes/{number}.md", f"{number}\n")
    world.write("Left.md", "left\n")
    world.run()
    live, vault = world.app.opened.builds.live, world.app.opened.vault
    if why == "removals are held":
        shutil.rmtree(world.vault / "Notes")
        world.app.opened.sync.run()
    else:
        listed = vault.list_notes
        monkeypatch.setattr(vault, "list_notes", lambda *under: replace(listed(*under), complete=False))
    with pytest.raises(Unavailable, match="no new index is built"):
        world.app.opened.sync.rebuild(fresh=True)
    assert world.app.opened.builds.live is live
    assert "Notes/7.md" in live.indexes["vault"].manifest
    world.close()


def test_a_save_of_a_note_that_is_being_embedded_leaves_the_list_of_skipped_files(tmp_path):
    world = World(tmp_path)
    world.write("Huge.md", b"x" * (world.app.opened.vault.max_bytes + 1))
    world.run()
    skipped = world.app.opened.builds.defects()
    assert [path for path, _ in skipped] == ["Huge.md"]
    world.write("Saved.md", "saved again while it is embedded")
    pending_paths = world.app.opened.sync._pending_paths
    pending_paths.hint(["Saved.md"])
    with pending_paths.processing_due():
        pass  # begins its quiet time
    time.sleep(2 * PROMPT.quiet_s)
    assert world.run().added == 1
    assert world.app.opened.builds.defects() == skipped
    world.close()


def test_a_saved_note_is_pending_at_every_moment_until_it_is_indexed(tmp_path, monkeypatch):
    world = World(tmp_path)
    world.run()
    pending_paths = world.app.opened.sync._pending_paths
    recheck, seen = pending_paths.recheck, []

    def look_and_recheck(path, after):
        seen.append(pending_paths.paths)
        recheck(path, after)

    for path in ("Embedded.md", "Saved.md"):
        world.write(path, path)
    pending_paths.hint(["Embedded.md", "Saved.md"])
    with pending_paths.processing_due():
        pass  # begins its quiet time
    time.sleep(2 * PROMPT.quiet_s)
    monkeypatch.setattr(pending_paths, "recheck", look_and_recheck)
    world.run(under=["Embedded.md"])
    assert seen[0] == {"Embedded.md", "Saved.md"}
    world.close()


class SlowEncoder(FakeEncoder):
    """Takes 20 ms for a batch."""

    def encode(self, texts, *, kind, urgent):
        time.sleep(0.02)
        return super().encode(texts, kind=kind, urgent=urgent)


def test_a_long_pass_gets_as_much_time_as_the_saves_that_it_takes_in(tmp_path, monkeypatch):
    monkeypatch.setattr(index_pass, "REST_S", 60.0)
    world = World(tmp_path, embedder=fake_embedder(SlowEncoder(32, batch=1)))
    for number in range(60):
        world.write(f"Note {number}.md", f"The heron {number}.\n")
    sync = world.app.opened.sync
    passes, run = sync._index_pass, sync._index_pass.run
    spans = []

    def run_slowly(request, progress=None):
        sync._pending_paths.recheck("Saved.md", 0)  # due again when this pass ends
        begun = time.monotonic()
        if passes._inner:
            time.sleep(0.1)
        outcome = run(request, progress)
        if passes._inner == 1:
            spans.append((begun, time.monotonic()))
        return outcome

    monkeypatch.setattr(passes, "run", run_slowly)
    assert world.run().added == 60
    assert len(spans) > 1
    assert all(later[0] - ended >= ended - begun for (begun, ended), later in pairwise(spans))
    world.close()
