"""No agent overwrites a person's edit unread, and no edit is missed, whatever happens before it is stamped."""

import hashlib
import os
import threading
import time

import pytest

from index.errors import Conflict
from syncd.notes.timestamps import iso
from syncd.settings.settings import SyncSettings
from tests.support.hand_edits import AT, NOTE, PATH, front, settled, stamps, written
from tests.support.world import World, until

# What agents meet in between


def test_until_it_is_stamped_an_agent_s_write_is_refused(slow):
    space = slow.app.agent_access.workspace("default")
    written(slow, NOTE + "old")
    slow.run()
    written(slow, NOTE + "new", at=None)
    works = (
        lambda: space.update_note("mine", "agent's"),
        lambda: space.update_note("mine", "agent's", version=1),
        lambda: space.update_note("mine", None, tags=["x"], version=1),
        lambda: space.memos.save("agent's", memo_id="mine", version=1),
        lambda: space.memos.delete("mine", version=1),
    )
    for _ in range(2):  # before it is indexed, and after
        for work in works:
            with pytest.raises(Conflict, match="just edited") as caught:
                work()
            assert caught.value.retryable
        slow.run()
    assert space.get("mine").content == "new"
    assert (space.get("mine").record.version, space.update_note("mine", None)[1]) == (1, False)


def test_a_node_s_version_does_not_stand_for_an_edit(slow):
    space = slow.app.agent_access.workspace("default")
    path = "Captures/default/Entities/Ada.md"
    text = "---\nid: ada\ncreated_at: 2026-01-02\nlast_ordinal: 1\n---\n## Observations\n- one ^o1\n"
    written(slow, text, path)
    slow.run()
    written(slow, text.replace("one", "one, by hand"), path, at=None)
    for _ in range(2):
        with pytest.raises(Conflict) as caught:
            space.nodes.replace_observation("Ada", 1, "agent's", version=1)
        assert caught.value.retryable
        with pytest.raises(Conflict):
            space.nodes.set_tags("Ada", ["x"], version=1)
        slow.run()
    space.nodes.add_observations([("Ada", ["two"])])  # builds on the edit
    assert "one, by hand" in (slow.vault / path).read_text()
    space.nodes.replace_observation("Ada", 1, "agent's", version=2)  # the version says by now what it is of


@pytest.mark.parametrize(
    ("overwrite", "after"),
    [
        (lambda nodes: nodes.replace_observation("Ada", 2, "agent's"), "- agent's ^o2\n"),
        (lambda nodes: nodes.remove_observations([("Ada", [2])]), "- one ^o1\n- two ^o3\n"),
        (lambda nodes: nodes.set_summary("Ada", "agent's"), "summary: agent's\n"),
    ],
    ids=["replace_observation", "remove_observations", "set_summary"],
)
def test_without_a_version_too_an_agent_overwrites_nothing_of_a_node_that_was_just_edited(slow, overwrite, after):
    nodes = slow.app.agent_access.workspace("default").nodes
    path = "Captures/default/Entities/Ada.md"
    front = "---\nid: ada\ncreated_at: 2026-01-02\nlast_ordinal: 1\n"
    written(slow, f"{front}---\n## Observations\n- one ^o1\n- two\n- three\n", path)
    slow.run()
    edited = f"{front}summary: by hand\ntags: [by-hand]\n---\n## Observations\n- one ^o1\n- three\n- two\n"
    written(slow, edited, path, at=None)  # the second fact is another one now
    for _ in range(2):  # before it is indexed, and after
        with pytest.raises(Conflict, match="just edited") as caught:
            overwrite(nodes)
        assert caught.value.retryable
        assert (slow.vault / path).read_text() == edited
        slow.run()
    nodes.add_observations([("Ada", ["four"])])  # builds on the edit
    overwrite(nodes)
    assert after in (slow.vault / path).read_text()


# Against a person who goes on writing


@pytest.mark.slow
@pytest.mark.parametrize("atomic", [True, False], ids=["by rename", "in place"])
def test_a_compare_and_set_loses_no_edit_of_a_person(tmp_path, atomic):
    """A person adds lines while two agents read, append and compare-and-set as fast as they can; no line of theirs is lost."""
    world = World(tmp_path, sync=SyncSettings(quiet_s=0.02, patience_s=0.1, adopt_s=0.25, listing_s=3600.0))
    lines = [f"person {n} \u00e9\u65e5" for n in range(12)]
    done = threading.Event()
    wins = []
    thinking = {"a": 0.01, "b": 0.17}
    try:
        with world.serving():
            space = world.app.agent_access.workspace("default")
            first = space.capture("the beginning\n").record
            file = world.vault / first.path

            def agent(name):
                while not done.is_set():
                    kept = space.get(first.id)
                    time.sleep(thinking[name])  # the person may write meanwhile, and be indexed
                    try:
                        space.update_note(first.id, kept.content + f"agent {name}\n", version=kept.record.version)
                    except Conflict:
                        done.wait(0.01)
                    else:
                        wins.append(name)
                        done.wait(0.3)

            agents = [threading.Thread(target=agent, args=(name,)) for name in "ab"]
            for one in agents:
                one.start()
            for n, line in enumerate(lines):
                before = len(wins)
                raw = file.read_bytes() + f"{line}\n".encode()
                if atomic:
                    temp = file.with_name(f".{n}.tmp")
                    temp.write_bytes(raw)
                    temp.replace(file)
                else:
                    file.write_bytes(raw)
                if n % 3 == 0:
                    until(lambda before=before: len(wins) > before, 60)  # an agent wrote since
            done.set()
            for one in agents:
                one.join(60)

            def last_edit_is_stamped():
                """Return whether the index has the file's last bytes, none of whose edits waits for its stamp."""
                indexed = space.get(first.id).record.digest == hashlib.sha256(file.read_bytes()).hexdigest()
                return indexed and not world.app.opened.sync.edits.paths

            until(last_edit_is_stamped, 60)
            kept = space.get(first.id)
        theirs = [line for line in kept.content.splitlines() if line.startswith("person")]
        assert theirs == lines
        assert wins
        assert kept.record.version > len(lines) // 3
        settled(world)
    finally:
        done.set()
        world.close()


# Where an edit could slip through


def test_an_edit_that_waits_goes_along_with_a_rename(slow):
    file = written(slow, NOTE + "old")
    slow.run()
    written(slow, NOTE + "new", at=None)
    slow.run()
    file.rename(file.with_name("Renamed.md"))
    slow.run()
    assert set(slow.app.opened.sync.edits.paths) == {"Captures/default/Renamed.md"}
    with pytest.raises(Conflict, match="just edited"):
        slow.app.agent_access.workspace("default").update_note("mine", "agent's", version=1)
    file.with_name("Renamed.md").unlink()
    slow.run()
    assert not slow.app.opened.sync.edits.paths


def test_an_edit_while_the_index_is_made_anew_is_one(world, space):
    """It is read into the new index only, which can't tell what the note was."""
    for n in range(60):
        written(world, f"note {n}", f"Own {n}.md")
    file = written(world, NOTE + "old")
    world.run()
    edits = iter([NOTE + "new"])

    def meanwhile(*_):
        if text := next(edits, None):
            written(world, text, at=AT + 1)

    world.app.opened.sync.rebuild(fresh=True, progress=meanwhile)
    assert world.found("new", mode="text", scope="captures") == [PATH]
    # Whether the edit has its stamp already depends on when the file was read; both refuse the old version.
    with pytest.raises(Conflict, match=r"just edited|has version 2, not 1"):
        space.update_note("mine", "agent's", version=1)
    world.run()
    assert stamps(file) == (2, iso(AT + 1))
    settled(world)


@pytest.mark.slow
@pytest.mark.parametrize("half", ["---\ni", NOTE[: len(NOTE) // 2], NOTE[:-1], NOTE + "n"])
def test_an_edit_that_is_half_written_when_it_is_looked_at_is_one(slow, tmp_path, half):
    file = written(slow, NOTE + "old")
    slow.run()
    written(slow, half, at=None)
    slow.run()
    written(slow, NOTE + "new", at=None)
    slow.run()
    slow.app.close()
    world = World(tmp_path)
    try:
        os.utime(file, ns=(AT * 1_000_000, AT * 1_000_000))
        world.run()
        assert (stamps(file), front(file)["id"]) == ((2, iso(AT)), "mine")
        settled(world)
    finally:
        world.close()
        slow.app = world.app
