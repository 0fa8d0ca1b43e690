"""syncd/sync/hand_edits.py: what a person changes by hand counts as an update, once."""

import sqlite3
from contextlib import closing

import pytest

from index.errors import Conflict
from syncd.graph.node_request import NewNode
from syncd.notes.timestamps import iso
from tests.support.hand_edits import AT, NOTE, PATH, front, settled, stamps, written
from tests.support.world import World


def test_an_edit_of_the_text_is_stamped_once_with_the_time_of_the_file(world, space):
    text = "\ufeff---\r\nid: mine\r\ntags: [a,   b]  # mine\r\n'n': 007\r\n---\r\nold"
    world.write(PATH, text)
    world.run()
    file = written(world, (world.vault / PATH).read_bytes().replace(b"old", b"new\r\n\r\n"))
    world.run()
    assert stamps(file) == (2, iso(AT))
    made = front(file)["created_at"]
    added = f"created_at: {made}\r\nupdated_at: {iso(AT)}\r\nversion: 2\r\n"
    assert file.read_bytes().decode() == text.replace("---\r\nold", f"{added}---\r\nnew\r\n\r\n")
    record = space.get("mine").record
    assert (record.version, record.updated_at) == (2, AT)
    settled(world)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        pytest.param("tags: [a]", "tags: [a, b]", True, id="tags"),
        pytest.param("title: A", "title: B", True, id="the title"),
        pytest.param("project: alpha", "project: beta", True, id="metadata"),
        pytest.param("summary: A", "summary: B", True, id="the summary"),
        pytest.param("promote: false", "promote: true", False, id="promote"),
        pytest.param("review: later", "review: dismissed", False, id="review"),
        pytest.param("relations: []", "relations:\n  - target: '[[X]]'\n    tag: t", False, id="relations"),
        pytest.param("tags: [a, b]", "tags:\n  - b\n  - a", False, id="the order of tags"),
        pytest.param("source: x", "source: x # a comment", False, id="a comment"),
    ],
)
def test_properties_count_as_far_as_agents_can_set_them(world, before, after, counts):
    written(world, f"---\nid: mine\ncreated_at: 2026-01-02\n{before}\n---\ntext")
    world.run()
    file = written(world, f"---\nid: mine\ncreated_at: 2026-01-02\n{after}\n---\ntext", at=AT + 1)
    world.run()
    assert stamps(file) == ((2, iso(AT + 1)) if counts else (None, None))
    settled(world)


DERIVED = "---\nid: mine\ncreated_at: 2026-01-02\ntags: [a]\n{}---\nThe text of a note. More text.\n"


def derive_otherwise(world, script=""):
    """Give the catalog the summary that another version of Memex derived from the text, while Memex is closed."""
    world.app.close()
    (catalog,) = world.state.glob("index/*/captures.db")
    with closing(sqlite3.connect(catalog)) as connection:
        connection.executescript(f"update documents set summary = 'Other words.' where summary_derived; {script}")
        assert connection.total_changes == 1
    world.app = world._open()


def test_a_summary_that_is_derived_otherwise_is_no_edit(world):
    written(world, DERIVED.format(""))
    world.run()
    derive_otherwise(world)
    file = written(world, DERIVED.format("review: later\n"), at=AT + 1)
    world.run()
    assert stamps(file) == (None, None)
    settled(world)


def test_after_an_upgrade_a_summary_is_derived_again_and_no_file_is_written(world):
    file = written(world, DERIVED.format(""))
    world.run()
    before = file.read_bytes()
    derive_otherwise(world, "pragma user_version = 16;")
    outcome = world.run()
    assert (outcome.changes, outcome.embedded) == (1, 0)
    assert file.read_bytes() == before
    settled(world)


def test_nodes_and_files_count_too(world):
    written(world, "---\nid: ada\n---\n## Observations\n- one ^o1\n", "Captures/default/Entities/Ada.md")
    written(world, NOTE + "text", "Captures/default/Files/r.pdf.md")
    world.run()
    node = world.vault / "Captures/default/Entities/Ada.md"
    written(world, node.read_text() + "- two\n", "Captures/default/Entities/Ada.md", AT + 1)
    file = written(world, NOTE + "better text", "Captures/default/Files/r.pdf.md", AT + 1)
    world.run()
    assert (stamps(node), stamps(file)) == ((2, iso(AT + 1)),) * 2
    assert "- two ^o2" in node.read_text()
    settled(world)


def test_an_edit_counts_whatever_title_an_agent_gave_the_capture(world, space):
    record = space.capture("Meeting notes (conflicted copy)\n\nWe found the heron.\n").record
    world.run()
    file = world.vault / record.path
    file.write_text(file.read_text() + "mine\n")
    world.run()
    with pytest.raises(Conflict):
        space.update_note(record.id, "theirs", version=record.version)
    assert file.read_text().endswith("mine\n")


def test_what_is_no_edit_of_a_capture_is_left_alone(world, space):
    own = written(world, "my own note", "Own.md")
    mine = written(world, NOTE + "text")
    world.run()
    record = space.capture("captured").record
    space.update_note(record.id, "captured, changed")
    space.memos.save("a memo", memo_id="memo")
    space.memos.save("a memo, changed", memo_id="memo", version=1)
    world.app.operations["enrich"]({"id": "mine"}, lambda _: None)
    before = {path: path.read_bytes() for path in world.vault.rglob("*.md")}
    written(world, before[mine], at=AT + 5)  # the same bytes at another time
    mine.rename(mine.with_name("Renamed.md"))
    written(world, "my own note, changed", "Own.md")
    settled(world)
    after = {path: path.read_bytes() for path in world.vault.rglob("*.md")}
    assert after.pop(own) == b"my own note, changed"
    assert after.pop(mine.with_name("Renamed.md")) == before.pop(mine)
    before.pop(own)
    assert after == before


def test_an_edit_and_a_rename_at_once_are_an_edit(world, space):
    written(world, NOTE + "old")
    world.run()
    (world.vault / PATH).unlink()
    file = written(world, NOTE + "new", "Captures/default/deep/Renamed.md", AT + 1)
    world.run()
    assert stamps(file) == (2, iso(AT + 1))
    settled(world)


def test_a_copy_that_was_changed_is_no_edit_of_the_note_it_was_made_of(world):
    written(world, NOTE + "old")
    world.run()
    copy = written(world, NOTE + "a beginning for another", "Captures/default/Mine 1.md")
    world.run()
    assert stamps(copy) == (None, None)
    settled(world)


def test_an_edit_that_is_undone_before_it_is_quiet_was_none(slow):
    file = written(slow, NOTE + "old")
    slow.run()
    written(slow, NOTE + "new", at=None)
    slow.run()
    assert set(slow.app.opened.sync.edits.paths) == {PATH}
    written(slow, NOTE + "old", at=None)
    slow.run()
    assert not slow.app.opened.sync.edits.paths
    assert stamps(file) == (None, None)


def test_the_version_never_goes_back(world, space):
    """An editor that had the note open saves what it held, properties and all, over what an agent wrote meanwhile."""
    first = space.capture("one").record
    file = world.vault / first.path
    held = file.read_bytes()
    space.update_note(first.id, "two")
    written(world, held.replace(b"one", b"one, by hand"), first.path, AT)
    world.run()
    assert space.get(first.id).record.version == 3
    assert space.get(first.id).content == "one, by hand"
    with pytest.raises(Conflict):
        space.update_note(first.id, "three", version=2)
    settled(world)


def test_a_time_that_an_editor_sets_itself_is_kept(world, space):
    written(world, NOTE + "old")
    world.run()
    theirs = "2026-10-10T10:10:10Z"
    file = written(world, NOTE.replace("---\n", f"---\nupdated_at: {theirs}\n", 1) + "new")
    world.run()
    assert stamps(file) == (2, theirs)
    settled(world)


def test_what_says_that_it_is_newer_is_not_stamped_again(world):
    """Another device has stamped it, and a sync program has brought it."""
    written(world, NOTE + "old")
    world.run()
    text = NOTE.replace("---\n", f"---\nversion: 2\nupdated_at: {iso(AT)}\n", 1) + "new"
    file = written(world, text)
    world.run()
    assert file.read_text() == text
    settled(world)


def test_two_devices_that_see_the_same_edit_write_the_same_bytes(tmp_path):
    worlds = [World(tmp_path / name) for name in ("a", "b")]
    try:
        files = []
        for world in worlds:
            written(world, NOTE + "old")
            world.run()
            files.append(written(world, NOTE + "new", at=AT + 7))
            world.run()
        assert files[0].read_bytes() == files[1].read_bytes()
        assert stamps(files[0]) == (2, iso(AT + 7))
        for world in worlds:
            settled(world)
    finally:
        for world in worlds:
            world.close()


def test_a_file_older_than_its_note_does_not_take_its_time_back(world):
    written(world, NOTE + "old")
    world.run()
    file = written(world, NOTE + "new", at=1_000)
    world.run()
    assert stamps(file) == (2, "2026-01-02T03:04:05.000Z")
    settled(world)


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b"---\nid: mine\nbad: [\n---\nnew", id="properties that can't be read"),
        pytest.param(b"---\nid: mine\nid: mine\n---\nnew", id="a key twice"),
        pytest.param(b"---\n{id: mine}\n---\nnew", id="properties as a flow"),
        pytest.param(b"---\nid: mine\n---\nnew \xff", id="no UTF-8"),
        pytest.param(b"---\nid: mine\n---\n<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n", id="an unresolved merge"),
        pytest.param(b"---\nid: mine\nnew", id="properties without an end"),
    ],
)
def test_a_note_that_can_t_be_written_is_not_and_is_stamped_once_it_can(world, space, broken):
    written(world, "---\nid: mine\ncreated_at: 2026-01-02\nversion: 5\n---\nold")
    world.run()
    file = written(world, broken)
    world.run()
    assert file.read_bytes() == broken
    world.run()
    written(world, "---\nid: mine\ncreated_at: 2026-01-02\nversion: 5\n---\nmended", at=AT + 3)
    world.run()
    if b"{id" in broken:  # it could be read, and could not be changed: what it said then is forgotten
        assert space.get("mine").record.version in (5, 6)
    else:
        assert stamps(file) == (6, iso(AT + 3))
    settled(world)


def test_a_restart_forgets_no_edit(slow, tmp_path):
    first, second = "Captures/default/First.md", "Captures/default/Second.md"
    for path in (first, second):
        written(slow, NOTE.replace("mine", path[17:22]) + "old", path)
    slow.run()
    written(slow, NOTE.replace("mine", "First") + "new", first, at=None)
    slow.run()
    assert "new" in slow.app.agent_access.workspace("default").get("First").content
    slow.app.close()
    file = written(slow, NOTE.replace("mine", "Secon") + "while nobody looked", second)  # while nothing runs
    world = World(tmp_path)
    try:
        world.run()
        assert stamps(file) == (2, iso(AT))
        assert stamps(world.vault / first)[0] == 2
        settled(world)
    finally:
        world.close()
        slow.app = world.app


def test_a_tag_that_names_a_collection_is_an_edit_and_is_written_down_with_it(world, space):
    written(world, NOTE.replace("---\n", "---\ncollection: documents\ntags:\n  - a\n", 1) + "text")
    world.run()
    file = world.vault / PATH
    written(world, file.read_text().replace("  - a\n", "  - a\n  - collection:memory\n"))
    world.run()
    record = space.get("mine").record
    assert (record.collection, record.tags, record.version) == ("memory", ("a",), 2)
    assert stamps(file) == (2, iso(AT))
    settled(world)


def node_times(file):
    said = front(file)
    return said.get("summary_updated_at"), said.get("observed_at")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "summary", "facts"),
    [
        pytest.param("summary: A", "summary: B", True, False, id="another summary"),
        pytest.param("- one", "- ONE", False, True, id="another fact"),
        pytest.param("- two ^o2", "- two ^o2\n- three", False, True, id="one more fact"),
        pytest.param("- two ^o2\n", "", False, False, id="one fact less"),
        pytest.param("tags: [a]", "tags: [b]", False, False, id="another tag"),
    ],
)
def test_an_edit_of_a_summary_or_a_fact_moves_its_time(world, old, new, summary, facts):
    path, then = "Captures/default/Entities/Ada.md", iso(AT - 1)
    times = f"updated_at: {then}\nsummary_updated_at: {then}\nobserved_at: {then}\nlast_ordinal: 2\n"
    text = f"---\nid: ada\ntype: entity\ntags: [a]\nsummary: A\n{times}---\n## Observations\n- one ^o1\n- two ^o2\n"
    written(world, text, path, AT - 1)
    world.run()
    file = written(world, (world.vault / path).read_text().replace(old, new), path)
    world.run()
    assert stamps(file) == (2, iso(AT))
    assert node_times(file) == (iso(AT) if summary else then, iso(AT) if facts else then)
    settled(world)


def test_an_edited_summary_and_fact_without_a_time_get_one(world):
    path = "Captures/default/Entities/Ada.md"
    text = "---\nid: ada\ntype: entity\nsummary: A\n---\n## Observations\n- one ^o1\n"
    written(world, text, path, AT - 1)
    world.run()
    before = (world.vault / path).read_text()
    file = written(world, before.replace("summary: A", "summary: B").replace("- one", "- ONE"), path)
    world.run()
    assert node_times(file) == (iso(AT), iso(AT))


def test_an_outdated_summary_that_the_owner_rewrites_is_up_to_date(slow):
    nodes = slow.app.agent_access.workspace("default").nodes
    slow.run()
    nodes.create([NewNode("Ada", "person", ["one"], "old")])
    nodes.add_observations([("Ada", ["two"])])
    assert [pending.name for pending in nodes.unsummarized()] == ["Ada"]
    path = nodes.get("Ada").path
    file = slow.vault / path
    whole = file.read_text().replace("summary: old", "summary: new")
    for text in ("---\ntype: entity", whole):  # half of it first
        written(slow, text, path, at=None)
        slow.run()
    before = node_times(file)
    written(slow, whole, path)  # quiet now
    slow.run()
    assert node_times(file) == (iso(AT), before[1])
    assert nodes.unsummarized() == []
    settled(slow)


def test_a_summary_that_the_owner_removes_has_no_time(world):
    path = "Captures/default/Entities/Ada.md"
    world.run()
    world.app.agent_access.workspace("default").nodes.create([NewNode("Ada", "person", ["one"], "old")])
    file = written(world, (world.vault / path).read_text().replace("summary: old\n", ""), path)
    world.run()
    assert node_times(file)[0] is None
    settled(world)
