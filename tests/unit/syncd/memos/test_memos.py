"""syncd/memos/memos.py: memos are saved, changed and deleted as notes, on the real stores."""

import pytest

from index.errors import Conflict, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from syncd.history.audit_log import Author, acting_as
from syncd.memos.memos import TRIES, Memos, merge_patch
from syncd.notes.front_matter import readable_properties, split
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.memo_notes import entries, files, relations_in, save, text_of, titles
from tests.support.world import World

# Saving


def test_the_text_of_a_stored_file_is_no_memo_to_change(world, space):
    note = "---\nid: kept\ntype: file\nfile: '[[Captures/default/Files/a.pdf]]'\nfile_sha256: abc\n---\nWhat the file says."
    world.write("Captures/default/Files/a.pdf.md", note)
    world.app.opened.sync.run()
    for given in ({}, {"metadata": {"project": "x"}, "replace": True}):
        with pytest.raises(InvalidArgument, match="the text of a file"):
            space.memos.save("Something else.", memo_id="kept", **given)
    assert (world.vault / "Captures/default/Files/a.pdf.md").read_text() == note


def test_saving_a_memo_that_comes_and_goes_ends(world, space):
    class Restless(Memos):
        """Memos of which another caller makes each one first, and removes it at once."""

        asked = 0

        def _is_id_taken(self, _):
            self.asked += 1
            return True

    restless = Restless("default", space.memos._inbox)
    with pytest.raises(Conflict, match="kept being created and removed") as refused:
        restless.save("Mine.", memo_id="todo")
    assert (restless.asked, refused.value.retryable, files(world)) == (TRIES, True, {})


def test_an_id_that_another_workspace_uses_is_free_here(world, space):
    other = world.app.agent_access.create_workspace("other")
    theirs = save(other, "Theirs.", memo_id="todo")
    aim = save(other, "Their aim.", memo_id="aim")
    other.memo_graph.save("todo", "aim", "leads")
    mine = space.memos.save("Mine.", memo_id="todo")
    assert (mine.created, mine.record.id, mine.record.path == theirs.path) == (True, "todo", False)
    assert space.memos.save("Mine, changed.", memo_id="todo").record.version == 2
    assert (space.get("todo").content, other.get("todo").content) == ("Mine, changed.", "Theirs.")
    assert entries(other.memo_graph.list()) == [("todo", "aim", "leads")]
    assert entries(space.memo_graph.list()) == []
    assert space.memos.delete("todo")[1] == 0
    assert entries(other.memo_graph.list()) == [("todo", "aim", "leads")]
    save(space, "My aim.", memo_id="aim")
    assert space.memos.delete("aim")[1] == 0
    assert other.get("aim").content == "Their aim."
    assert entries(other.memo_graph.list()) == [("todo", "aim", "leads")], aim.path
    assert world.dump() == world.rebuilt(world.state.parent / "again")


def test_a_memo_is_a_note_of_the_collection_memory(world, space):
    saved = space.memos.save("The keel is lead.", title="Keel", metadata={"project": "alpha", "tags": ["boat"]})
    record = saved.record
    assert saved.created
    assert record.path == "Captures/default/Keel.md"
    assert (record.collection, record.version, record.updated_at, record.tags) == ("memory", 1, None, ("boat",))
    assert record.metadata == {"project": "alpha"}
    assert text_of(world, record).endswith("---\nThe keel is lead.")
    assert world.found("keel of lead", scope="captures") == [record.path]


def test_namespaces_are_folders(world, space):
    deep = save(space, "x", namespace="a/b", title="T")
    top = save(space, "x", title="T")
    assert (deep.path, deep.namespace) == ("Captures/default/a/b/T.md", "a/b")
    assert top.path == "Captures/default/T 2.md"
    assert titles(space.memos.search(namespace="a/b")) == ["T"]
    assert [item.record.id for item in space.memos.search().items] == [top.id]
    for bad in ("..", "a/../b", "", "Entities", "/", "a//b", ".x"):
        with pytest.raises(InvalidArgument):
            save(space, "x", namespace=bad)


def test_the_same_content_twice_is_two_memos(space):
    assert save(space, "same").id != save(space, "same").id


def test_a_change_keeps_id_path_and_time_of_making_and_moves_the_version(world, space):
    first = save(space, "alpha", title="T", metadata={"a": 1})
    saved = space.memos.save("beta", memo_id=first.id, metadata={"b": 2})
    record = saved.record
    assert not saved.created
    assert (record.id, record.path, record.created_at, record.version) == (first.id, first.path, first.created_at, 2)
    assert record.updated_at >= first.created_at
    assert record.metadata == {"a": 1, "b": 2}
    assert titles(space.memos.search(query="beta")) == ["T"]
    assert space.get(first.id).content == "beta"
    assert world.found("alpha", mode="text", scope="captures") == []
    assert world.found("beta", mode="text", scope="captures") == [first.path]


def test_what_is_the_same_already_is_not_written(world, space):
    first = save(space, "alpha", title="T", metadata={"a": {"b": 1}, "tags": ["x"]})
    before, dump, calls = files(world), world.dump(), list(world.encoder.calls)
    again = space.memos.save("alpha", memo_id=first.id, title="T", metadata={"a": {"b": 1}, "tags": ["x"], "c": None})
    assert not again.created
    assert again.record == first
    assert (files(world), world.dump()) == (before, dump)
    assert world.encoder.calls == calls


def test_a_summary_that_was_found_for_the_old_text_is_found_anew(world, space):
    text = "# Heat pump\n\nThe filter of the heat pump is due in {}. The plumber comes on Tuesday."
    found, given = save(space, text.format("May")), save(space, text.format("May"))
    assert "May" in found.summary
    file = world.vault / given.path
    file.write_text(file.read_text().replace(f"summary: {given.summary}", "summary: My own words."))
    world.run()
    assert "June" in save(space, text.format("June"), memo_id=found.id).summary
    assert save(space, text.format("June"), memo_id=given.id).summary == "My own words."


def test_a_change_of_metadata_embeds_nothing(world, space):
    first = save(space, "alpha")
    calls = [call for call in world.encoder.calls if call[0] == "document"]
    assert save(space, "alpha", memo_id=first.id, metadata={"n": 1}).version == 2
    assert [call for call in world.encoder.calls if call[0] == "document"] == calls


def test_metadata_is_merged_or_replaced_and_null_takes_away(space):
    first = save(space, "x", metadata={"a": {"b": 1, "c": 2}, "d": [1], "e": None})
    assert first.metadata == {"a": {"b": 1, "c": 2}, "d": [1]}
    merged = save(space, "x", memo_id=first.id, metadata={"a": {"b": None, "n": 3}, "d": None, "A2": "x"})
    assert merged.metadata == {"a": {"c": 2, "n": 3}, "A2": "x"}
    replaced = save(space, "x", memo_id=first.id, metadata={"a2": {"z": 1}}, replace=True)
    assert replaced.metadata == {"A2": {"z": 1}}  # in a note, keys that differ by letter case are one
    assert save(space, "x", memo_id=first.id, replace=True).metadata == {}


def test_a_merge_is_that_of_rfc_7396():
    # The examples of its appendix A that have objects on both sides.
    for old, patch, new in (
        ({"a": "b"}, {"a": "c"}, {"a": "c"}), ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}), ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}), ({"a": ["b"]}, {"a": "c"}, {"a": "c"}), ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}), ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}), ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ):  # fmt: skip
        assert merge_patch(old, patch) == new


OWNED = [
    "id",
    "version",
    "relations",
    "promote",
    "Review",
    "created_at",
    "type",
    "ＩＤ",
]


def test_a_key_that_memex_owns_is_refused(world, space):
    record = save(space, "x")
    before = files(world)
    for key in OWNED:
        for given in ({"memo_id": record.id}, {}):
            with pytest.raises(InvalidArgument, match="belongs to Memex"):
                save(space, "y", metadata={key: 1}, **given)
        assert files(world) == before, key


def test_what_is_published_is_neither_set_nor_taken_away_by_an_agent(world, space):
    record = save(space, "x", metadata={"project": "a"})
    text = (world.vault / record.path).read_text().replace("project: a\n", "project: a\npublish: true\n")
    world.write(record.path, text)
    world.run()
    for key in ("publish", "dg-publish"):
        with pytest.raises(InvalidArgument, match="decides about publishing"):
            save(space, "x", memo_id=record.id, metadata={key: None})
    save(space, "x", memo_id=record.id, metadata={"room": "b"}, replace=True)
    properties = readable_properties((world.vault / record.path).read_text())
    assert (properties["publish"], properties["room"], "project" in properties) == (True, "b", False)


def test_title_and_tags_can_be_changed_and_taken_away(world, space):
    record = save(space, "x", title="One", metadata={"tags": ["a"]})
    changed = save(space, "x", memo_id=record.id, title="Two", metadata={"tags": ["b", "c"]})
    assert (changed.title, changed.tags, changed.path) == ("Two", ("b", "c"), record.path)
    bare = save(space, "x", memo_id=record.id, metadata={"title": None, "tags": None})
    assert (bare.title, bare.tags, bare.path) == ("x", (), record.path)


def test_an_id_may_be_chosen_and_is_then_the_memo_s(space):
    made = space.memos.save("x", memo_id="my-note_1")
    assert (made.created, made.record.id) == (True, "my-note_1")
    assert not space.memos.save("y", memo_id="my-note_1").created
    for bad in ("", "a b", "../x", "x" * 65, "é", "a\n"):
        with pytest.raises(InvalidArgument, match="memo_id"):
            save(space, "x", memo_id=bad)


def test_an_id_of_another_note_is_a_conflict_that_tells_not_where(world, space):
    world.write("Captures/default/Entities/Ada.md", "---\nid: ada\n---\n## Observations\n- x ^o1\n")
    world.write("Captures/default/ns/N.md", "---\nid: in-ns\n---\nx quokka")
    world.run()
    before = files(world)
    told = []
    for id in ("ada", "in-ns"):
        with pytest.raises(Conflict) as caught:
            save(space, "x", memo_id=id)
        told.append(caught.value.message.replace(id, "ID"))
        assert "quokka" not in str(caught.value.as_dict())
    assert len(set(told)) == 1
    assert files(world) == before


def test_a_version_is_compared_and_set(world, space):
    record = save(space, "one")
    assert save(space, "two", memo_id=record.id, version=1).version == 2
    before = files(world)
    for wrong in (1, 3, 0):
        with pytest.raises(Conflict) as caught:
            save(space, "three", memo_id=record.id, version=wrong)
        assert caught.value.details == {"version": 2}
    with pytest.raises(Conflict) as caught:
        save(space, "x", memo_id="none-such", version=1)
    assert caught.value.details == {"version": 0}
    with pytest.raises(InvalidArgument, match="memo_id"):
        save(space, "x", version=1)
    assert files(world) == before
    assert space.memos.save("x", memo_id="none-such", version=0).created


HAND_MADE = """---
# a memo that a person keeps tidy
id:   mine
tags: [a, "b"]   # two
own: 007

created_at: 2026-01-01   # long ago
---
Old text
"""


def test_a_change_touches_its_own_lines_only(world, space):
    for newline in ("\n", "\r\n"):
        file = world.write("Captures/default/Tidy.md", "\ufeff" + HAND_MADE.replace("\n", newline))
        world.run()
        save(space, "New\r\ntext\n", memo_id="mine", metadata={"extra": 1})
        text = file.read_bytes().decode()
        front = split(text)[0]
        assert split(text)[1] == "New\r\ntext\n"
        kept = [line for line in front.splitlines() if line.split(":")[0] not in ("extra", "version", "updated_at")]
        assert kept == split("\ufeff" + HAND_MADE)[0].splitlines()
        file.unlink()
        world.run()


def test_an_edit_that_nobody_can_have_read_is_not_overwritten(world, space):
    record = save(space, "one", title="T")
    file = world.vault / record.path
    file.write_text(text_of(world, record) + " and more")
    for work in (
        lambda: save(space, "two", memo_id=record.id),
        lambda: save(space, "two", memo_id=record.id, version=1),
        lambda: space.memos.delete(record.id),
    ):
        with pytest.raises(Conflict, match="just edited") as caught:
            work()
        assert caught.value.retryable
    assert file.read_text().endswith("one and more")
    save(space, "one and more", memo_id=record.id, metadata={"n": 1})  # that loses nothing
    world.run()
    assert save(space, "two", memo_id=record.id).version == 3


def test_a_person_s_edit_of_properties_is_kept(world, space):
    record = save(space, "one", metadata={"a": 1})
    file = world.vault / record.path
    file.write_text(text_of(world, record).replace("a: 1", "a: 1\nmine: yes # a comment"))
    changed = save(space, "two", memo_id=record.id, metadata={"b": 2})
    assert changed.metadata == {"a": 1, "mine": "yes", "b": 2}
    assert "mine: yes # a comment\n" in file.read_text()


def test_an_edit_between_reading_and_writing_is_not_lost(world, space):
    record = save(space, "one")
    file = world.vault / record.path
    replace_all = world.app.opened.vault.replace_all
    edits = iter(["mine: 1\n---\none", "mine: 2\n---\none"])

    def meddling(changes):
        if edit := next(edits, None):
            file.write_text(text_of(world, record).partition("mine:")[0].removesuffix("---\none") + edit)
        return replace_all(changes)

    world.app.opened.vault.replace_all = meddling
    try:
        changed = save(space, "two", memo_id=record.id)
    finally:
        world.app.opened.vault.replace_all = replace_all
    assert (changed.metadata, split(file.read_text())[1]) == ({"mine": 2}, "two")


def test_broken_properties_are_left_to_their_owner(world, space):
    record, other = save(space, "one"), save(space, "two")
    space.memo_graph.save(record.id, other.id, "t")
    file = world.vault / record.path
    broken = file.read_text().replace("collection:", "collection: [")
    file.write_text(broken)
    for work in (
        lambda: save(space, "two", memo_id=record.id),
        lambda: space.memo_graph.save(record.id, other.id, "u"),
        lambda: space.memo_graph.delete(record.id, other.id, "t"),
    ):
        with pytest.raises(Conflict, match="can't be read"):
            work()
    assert file.read_text() == broken
    assert space.memos.delete(other.id)[1] == 1
    assert file.read_text() == broken


def test_a_note_that_has_no_id_of_its_own_yet_is_not_written_to(world, space):
    from syncd.settings.settings import SyncSettings

    world.close()
    world._sections["sync"] = SyncSettings(quiet_s=0.05, patience_s=0.2, adopt_s=3600.0, listing_s=3600.0)
    world.app = world._open()
    space = world.app.agent_access.workspace("default")
    file = world.write("Captures/default/Dropped.md", "dropped in")
    other = save(space, "x")
    world.run()
    (dropped,) = [item.record for item in space.memos.search().items if item.record.title == "Dropped"]
    for work in (
        lambda: save(space, "y", memo_id=dropped.id),
        lambda: space.memo_graph.save(dropped.id, other.id, "t"),
        lambda: space.memo_graph.save(other.id, dropped.id, "t"),
    ):
        with pytest.raises(Conflict, match="gives it an id") as caught:
            work()
        assert caught.value.retryable
    assert file.read_text() == "dropped in"


def test_nothing_is_written_when_it_can_t_be_embedded(tmp_path):
    class Broken(FakeEncoder):
        broken = False

        def encode(self, texts, *, kind, urgent):
            if self.broken:
                raise RuntimeError("a bug")
            return super().encode(texts, kind=kind, urgent=urgent)

    encoder = Broken()
    world = World(tmp_path, embedder=fake_embedder(encoder))
    try:
        space = world.app.agent_access.workspace("default")
        record = save(space, "one")
        before, dump = files(world), world.dump()
        encoder.broken = True
        for given in ({"memo_id": record.id}, {}, {"memo_id": "new"}):
            with pytest.raises((RuntimeError, Unavailable)):
                save(space, "two", **given)
        assert (files(world), world.dump()) == (before, dump)
    finally:
        world.close()


def test_properties_that_grow_too_large_are_refused(world, space):
    record = save(space, "x", metadata={f"k{n}": "v" * 900 for n in range(60)})
    before = files(world)
    with pytest.raises(ResourceExhausted, match="too large"):
        save(space, "x", memo_id=record.id, metadata={f"l{n}": "v" * 900 for n in range(20)})
    assert files(world) == before


# Deleting


def test_a_memo_goes_with_its_relations_at_both_ends(world, space):
    a, b, c = (save(space, name) for name in "abc")
    for source, target in ((a, b), (b, c), (c, b), (a, c)):
        space.memo_graph.save(source.id, target.id, "t")
    gone, count = space.memos.delete(b.id)
    assert (gone.id, count) == (b.id, 3)
    assert not (world.vault / b.path).exists()
    assert [entry["id"] for entry in relations_in(world, a)] == [c.id]
    assert relations_in(world, c) is None
    assert entries(space.memo_graph.list()) == [(a.id, c.id, "t")]
    save(space, "b again", memo_id=b.id)
    assert entries(space.memo_graph.list()) == [(a.id, c.id, "t")]
    assert world.rebuilt(world.state.parent / "other") == world.dump()


def delete_as_thought(world, id):
    with acting_as(Author("mcp", "delete_thought", request="r" * 32)):
        world.app.agent_access.workspace("default").delete(id)
    return "r" * 32


def delete_by_owner(world, id):
    return world.app.operations["delete"]({"id": id}, lambda _: None)["undo"]


@pytest.mark.parametrize("delete", [delete_as_thought, delete_by_owner])
def test_a_memo_that_is_deleted_as_a_note_takes_the_relations_to_it_along(world, space, delete):
    """Undoing the deletion brings the note and the relations back."""
    a, b = save(space, "a"), save(space, "b")
    space.memo_graph.save(a.id, b.id, "t")
    before = files(world)
    request = delete(world, b.id)
    assert not (world.vault / b.path).exists()
    assert relations_in(world, a) is None
    assert space.memo_graph.list().ties == ()
    world.app.operations["undo"]({"id": request}, lambda _: None)
    world.run()
    assert files(world) == before
    assert entries(space.memo_graph.list()) == [(a.id, b.id, "t")]


def test_a_delete_compares_the_version_too(space):
    record = save(space, "x")
    save(space, "y", memo_id=record.id)
    with pytest.raises(Conflict) as caught:
        space.memos.delete(record.id, version=1)
    assert caught.value.details == {"version": 2}
    space.memos.delete(record.id, version=2)
    with pytest.raises(NotFound, match="in namespace 'default'; a search returns the id"):
        space.memos.delete(record.id)
    with pytest.raises(NotFound):
        space.memos.delete(save(space, "x").id, namespace="other")


def test_a_delete_that_fails_changed_nothing(world, space, monkeypatch):
    a, b = save(space, "a"), save(space, "b")
    space.memo_graph.save(a.id, b.id, "t")
    before, dump = files(world), world.dump()
    index = world.app.opened.builds.scopes["captures"].index

    def failing(*_args, **_given):
        raise Unavailable("the disk is full")

    monkeypatch.setattr(index.catalog, "write", failing)
    with pytest.raises(Unavailable):
        space.memos.delete(b.id)
    monkeypatch.undo()
    assert files(world) == before
    world.reopen()
    world.run()
    assert world.dump() == dump
