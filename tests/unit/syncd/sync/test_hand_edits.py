"""syncd/sync/hand_edits.py: what a person changes by hand counts as an update, once, and no agent overwrites it unread."""

import os
import shutil
import subprocess
import threading
import time

import pytest

from index.errors import Conflict
from syncd.notes.front_matter import properties, split
from syncd.notes.timestamps import iso
from syncd.settings.settings import SyncSettings
from tests.support.world import World, until

SLOW = SyncSettings(quiet_s=0.05, patience_s=0.2, adopt_s=3600.0, listing_s=3600.0)
NOTE = "---\nid: mine\ncreated_at: 2026-01-02T03:04:05.000Z\n---\n"
PATH = "Captures/default/Mine.md"
AT = 1_800_000_000_123


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def space(world):
    return world.app.agent_access.workspace("default")


@pytest.fixture
def slow(tmp_path):
    """A world in which nothing is ever quiet for long enough."""
    opened = World(tmp_path, sync=SLOW)
    yield opened
    opened.close()


def written(world, text, path=PATH, at=AT):
    """Write a note at that time, as an editor would; the file."""
    file = world.write(path, text)
    if at is not None:
        os.utime(file, ns=(at * 1_000_000, at * 1_000_000))
    return file


def front(file):
    return properties(split(file.read_bytes().decode())[0])


def stamps(file):
    said = front(file)
    return said.get("version"), said.get("updated_at")


def settled(world):
    """Passes, until nothing changes any more: a stamp is no edit."""
    world.run()
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in world.vault.rglob("*.md")}
    for _ in range(3):
        world.run()
    world.reopen()
    world.run()
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in world.vault.rglob("*.md")} == before
    assert not world.app.sync.edits.waiting
    assert world.dump() == world.rebuilt(world.state.parent / "again")


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
    assert set(slow.app.sync.edits.waiting) == {PATH}
    written(slow, NOTE + "old", at=None)
    slow.run()
    assert not slow.app.sync.edits.waiting
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
            space.nodes.replace("Ada", 1, "agent's", version=1)
        assert caught.value.retryable
        with pytest.raises(Conflict):
            space.nodes.set_tags("Ada", ["x"], version=1)
        slow.run()
    space.nodes.add([("Ada", ["two"])])  # builds on the edit
    assert "one, by hand" in (slow.vault / path).read_text()
    space.nodes.replace("Ada", 1, "agent's", version=2)  # the version says by now what it is of


# Git


@pytest.fixture
def tracked(tmp_path):
    opened = World(tmp_path)
    written(opened, NOTE + "old")
    opened.git("init", "-q", "-b", "main")
    opened.git("add", "-A")
    opened.git("commit", "-q", "-m", "one")
    opened.run()
    yield opened
    opened.close()


def pulled(world):
    """Another device's commit, and the pull that brings it."""
    other = world.state.parent / "other"
    subprocess.run(["git", "clone", "-q", world.vault, other], check=True)
    (other / PATH).write_text(NOTE + "from the phone")
    who = ("-c", "user.name=P", "-c", "user.email=p@example.org")
    subprocess.run(["git", "-C", other, *who, "commit", "-qam", "phone"], check=True)
    world.git("pull", "-q", str(other), "main")
    shutil.rmtree(other)


def changed(world, text):
    file = written(world, text, at=None)
    world.git("commit", "-qam", "changed")
    return file


GIT = {
    "a pull": pulled,
    "a checkout of another commit": lambda world: world.git("checkout", "-q", "HEAD~1"),
    "a hard reset": lambda world: world.git("reset", "-q", "--hard", "HEAD~1"),
    "a revert": lambda world: world.git("revert", "--no-edit", "HEAD"),
    "a stash": lambda world: (written(world, NOTE + "unsaved", at=None), world.git("stash", "-q")),
    "a file from an older commit": lambda world: world.git("checkout", "-q", "HEAD~1", "--", PATH),
}


@pytest.mark.parametrize(
    ("how", "running"), [*((how, True) for how in GIT), *((how, False) for how in ("a pull", "a hard reset"))]
)
def test_what_git_brings_is_no_edit(tracked, how, running):
    changed(tracked, NOTE + "two")
    tracked.run()
    file = tracked.vault / PATH
    tracked.git("commit", "-qam", "stamped")
    time.sleep(max(0, 1.05 - time.time() % 1))  # Git tells the time of its moves in whole seconds
    before = tracked.git("rev-parse", "HEAD:" + PATH)
    if not running:
        tracked.app.close()
    GIT[how](tracked)
    brought = file.read_bytes()
    if not running:
        tracked.app = tracked._open()
    tracked.run()
    assert file.read_bytes() == brought
    assert "updated_at" in tracked.git("cat-file", "blob", before.strip())
    settled(tracked)


def test_an_edit_that_was_committed_at_once_is_an_edit(tracked):
    """As a plug-in does that commits every few seconds."""
    file = changed(tracked, NOTE + "by hand")
    tracked.run()
    assert stamps(file)[0] == 2
    settled(tracked)


def test_an_edit_on_top_of_what_git_brought_is_an_edit(tracked):
    pulled(tracked)
    file = written(tracked, (tracked.vault / PATH).read_text() + ", and by hand", at=AT)
    tracked.run()
    assert stamps(file) == (2, iso(AT))
    settled(tracked)


def test_while_git_is_at_work_nothing_is_stamped(tracked):
    file = written(tracked, NOTE + "new", at=None)
    lock = tracked.vault / ".git/index.lock"
    lock.touch()
    tracked.run()
    assert stamps(file) == (None, None)
    assert PATH in tracked.app.sync.waiting
    lock.unlink()
    tracked.run()
    assert stamps(file)[0] == 2


def test_a_repository_that_keeps_no_log_is_believed(tracked):
    tracked.git("config", "core.logAllRefUpdates", "false")
    shutil.rmtree(tracked.vault / ".git/logs")
    pulled(tracked)
    brought = (tracked.vault / PATH).read_bytes()
    settled(tracked)
    assert (tracked.vault / PATH).read_bytes() == brought


def test_git_sees_nothing_in_the_vault_proper(tracked):
    for n in range(5):
        written(tracked, f"note {n}", f"Own {n}.md", at=None)
    tracked.git("add", "-A")
    tracked.git("commit", "-qm", "own")
    tracked.run()
    for n in range(5):
        written(tracked, f"note {n}, changed", f"Own {n}.md", at=None)
    tracked.git("commit", "-qam", "own, changed")
    tracked.run()
    assert tracked.git("status", "--porcelain") == ""


# Against a person who goes on writing


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
            until(lambda: not world.app.sync.edits.waiting and world.app.sync.pending == 0, 60)
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
    assert set(slow.app.sync.edits.waiting) == {"Captures/default/Renamed.md"}
    with pytest.raises(Conflict, match="just edited"):
        slow.app.agent_access.workspace("default").update_note("mine", "agent's", version=1)
    file.with_name("Renamed.md").unlink()
    slow.run()
    assert not slow.app.sync.edits.waiting


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

    world.app.sync.rebuild(fresh=True, progress=meanwhile)
    assert world.found("new", mode="text", scope="captures") == [PATH]
    with pytest.raises(Conflict, match="just edited"):
        space.update_note("mine", "agent's", version=1)
    world.run()
    assert stamps(file) == (2, iso(AT + 1))
    settled(world)


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
