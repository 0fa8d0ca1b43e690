"""Memex changes a note that a person has just edited: the edit still counts, whatever Memex wrote over it."""

import pytest

from index.errors import Conflict, Unavailable
from index.topics.summary_and_tags import Enrichment
from syncd.notes.timestamps import iso
from tests.support.hand_edits import AT, front, settled, stamps, written
from tests.support.parsed_notes import parse
from tests.support.world import promote

PATH, OTHER = "Captures/default/Mine.md", "Captures/default/Other.md"
NOTE = "---\nid: mine\ncreated_at: 2026-01-02\ntags: [before]\n---\nSee [[Captures/default/Other]].\n"
LINKED = "---\nid: other\ncreated_at: 2026-01-02\n---\nThe other note.\n"
RELATED = NOTE.replace("tags:", "relations:\n- {target: '[[Other]]', id: other, tag: t}\ntags:")


def capture_again(world, space):
    space.capture("See [[Captures/default/Other]].\n")


def enrich(world, space):
    document = parse(world.app.opened.vault.read(PATH)[0], PATH, mtime_ms=0)
    space.enrich(document, Enrichment(summary="A summary.", tags=()))


def relate(world, space):
    space.memo_graph.save("mine", "other", "new")


def unrelate(world, space):
    space.memo_graph.delete("mine", "other", "t")


def delete_related(world, space):
    space.memos.delete("other")


def promote_linked(world, space):
    promote(world, OTHER)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "write"),
    [
        (NOTE, capture_again),
        (NOTE, enrich),
        (NOTE, relate),
        (RELATED, unrelate),
        (RELATED, delete_related),
        (NOTE, promote_linked),
    ],
    ids=[
        "a repeated capture",
        "enrichment",
        "a new relation",
        "a removed relation",
        "a deleted target",
        "a rewritten link",
    ],
)
def test_a_write_over_an_edit_that_is_not_indexed_hides_no_edit(world, space, text, write):
    file = written(world, text)
    written(world, LINKED, OTHER)
    world.run()
    read = space.get("mine").record.version
    written(world, file.read_text().replace("before", "by-hand"), at=AT + 1)
    write(world, space)
    for _ in range(2):  # before the next pass, and after
        with pytest.raises(Conflict):
            space.update_note("mine", None, tags=["agent"], version=read)
        world.run()
    assert front(file)["tags"] == ["by-hand"]
    version, updated_at = stamps(file)
    assert version == read + (2 if write is promote_linked else 1)  # an updated link counts too
    assert updated_at is not None
    settled(world)


def test_an_agent_with_the_version_from_before_a_promotion_can_t_restore_the_old_link(world, space):
    file = written(world, NOTE)
    written(world, LINKED, OTHER)
    world.run()
    read = space.get("mine").record.version
    promote_linked(world, space)
    for _ in range(2):  # before the next pass, and after
        with pytest.raises(Conflict, match=f"has version {read + 1}"):
            space.update_note("mine", "More. See [[Captures/default/Other]].\n", version=read)
        world.run()
    assert file.read_text() == NOTE.replace("Captures/default/", "").replace("]\n---", f"]\nversion: {read + 1}\n---")
    space.update_note("mine", "More. See [[Other]].\n", version=read + 1)
    settled(world)


def test_a_write_over_an_edit_that_fails_hides_no_edit(world, space, monkeypatch):
    file = written(world, NOTE)
    written(world, LINKED, OTHER)
    world.run()
    edited = file.read_text().replace("before", "by-hand")
    written(world, edited, at=AT + 1)

    def fail(*_, **__):
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(world.app.opened.captures.index, "commit", fail)
        with pytest.raises(Unavailable):
            relate(world, space)
    assert file.read_text() == edited
    world.run()
    assert space.get("mine").record.version == 2
    settled(world)


def test_a_write_over_an_edit_of_a_renamed_note_hides_no_edit(world, space):
    file = written(world, NOTE)
    written(world, LINKED, OTHER)
    world.run()
    edited = file.read_text().replace("before", "by-hand")
    file.unlink()
    file = written(world, edited, PATH.replace("Mine", "Renamed"), at=AT + 1)
    promote_linked(world, space)
    assert "[[Other]]" in file.read_text()
    world.run()
    assert stamps(file) == (3, iso(AT + 1))  # the link and the edit
    settled(world)


@pytest.mark.parametrize("path", [PATH, PATH.replace("Mine", "Renamed")], ids=["in its place", "renamed"])
def test_an_edit_after_an_update_that_included_an_earlier_edit_counts(world, space, path):
    file = written(world, NOTE)
    world.run()
    written(world, file.read_text().replace("before", "by-hand"), at=AT + 1)
    assert space.update_note("mine", "More.\n")[0].version == 2
    edited = file.read_text().replace("by-hand", "by-hand-again")
    file.unlink()
    file = written(world, edited, path, at=AT + 2)
    world.run()
    assert (stamps(file), front(file)["tags"]) == ((3, iso(AT + 2)), ["by-hand-again"])
    settled(world)


def test_an_edit_that_an_update_included_is_not_stamped_when_a_link_is_updated_later(world, space):
    file = written(world, NOTE)
    written(world, LINKED, OTHER)
    world.run()
    written(world, file.read_text().replace("before", "by-hand"), at=AT + 1)
    updated = space.update_note("mine", "More. See [[Captures/default/Other]].\n")[0]
    promote_linked(world, space)
    world.run()
    assert stamps(file) == (3, iso(updated.updated_at))
    settled(world)


def test_an_edit_stays_safe_from_agents_although_a_link_is_updated_before_its_stamp(slow):
    file = written(slow, NOTE)
    written(slow, LINKED, OTHER)
    slow.run()
    written(slow, file.read_text().replace("before", "by-hand"), at=None)
    slow.run()
    promote(slow, OTHER)
    for _ in range(2):  # before the next pass, and after
        with pytest.raises(Conflict, match="just edited"):
            slow.app.agent_access.workspace("default").update_note("mine", None, tags=["agent"])
        slow.run()
    assert front(file)["tags"] == ["by-hand"]


@pytest.mark.parametrize(
    "replace_tags",
    [
        lambda space: space.update_note("mine", None, tags=["agent"]),
        lambda space: space.set_tags("mine", ["agent"]),
        lambda space: space.memos.save(
            "See [[Captures/default/Other]].\n", memo_id="mine", metadata={"tags": ["agent"]}
        ),
        lambda space: space.nodes.set_tags("Ada", ["agent"]),
        lambda space: space.nodes.rename("Ada", "Agent"),
    ],
    ids=["update_note", "set_tags", "memory.save", "set_tags of a node", "rename"],
)
def test_without_a_version_too_an_agent_replaces_no_property_that_was_just_edited(slow, replace_tags):
    node = "---\nid: ada\ncreated_at: 2026-01-02\ntags: [before]\n---\n## Observations\n- one ^o1\n"
    path = "Captures/default/Entities/Ada.md"
    files = [written(slow, NOTE), written(slow, node, path)]
    slow.run()
    edited = [file.read_text().replace("before", "by-hand") for file in files]
    written(slow, edited[0], at=None)
    written(slow, edited[1], path, at=None)
    for _ in range(2):  # before it is indexed, and after
        with pytest.raises(Conflict, match="just edited") as caught:
            replace_tags(slow.app.agent_access.workspace("default"))
        assert caught.value.retryable
        assert [file.read_text() for file in files] == edited
        slow.run()
