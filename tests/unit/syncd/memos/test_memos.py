"""syncd/memos/memos.py and syncd/memos/memo_graph.py: memos and their relations as notes, on the real stores."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from index.errors import Conflict, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from syncd.memos.memos import TRIES, Memos, patched
from syncd.notes.front_matter import properties, split
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def space(world):
    return world.app.agent_access.workspace("default")


def save(space, content, **given):
    return space.memos.save(content, **given).record


def text_of(world, record):
    return (world.vault / record.path).read_text()


def lines(world, record):
    return text_of(world, record).splitlines()


def relations_in(world, record):
    return properties(split(text_of(world, record))[0]).get("relations")


def entries(found):
    return [(tie.source.id, tie.target.id, tie.relation.tag) for tie in found.ties]


def titles(found):
    return [item.record.title for item in found.items]


def files(world):
    return {path: path.read_bytes() for path in sorted(world.vault.rglob("*.md"))}


# Saving


def test_the_text_of_a_stored_file_is_no_memo_to_change(world, space):
    note = "---\nid: kept\ntype: file\nfile: '[[Captures/default/Files/a.pdf]]'\nfile_sha256: abc\n---\nWhat the file says."
    world.write("Captures/default/Files/a.pdf.md", note)
    world.app.sync.run()
    for given in ({}, {"metadata": {"project": "x"}, "replace": True}):
        with pytest.raises(InvalidArgument, match="the text of a file"):
            space.memos.save("Something else.", memo_id="kept", **given)
    assert (world.vault / "Captures/default/Files/a.pdf.md").read_text() == note


def test_saving_a_memo_that_comes_and_goes_ends(world, space):
    class Restless(Memos):
        """Memos of which another caller makes each one first, and removes it at once."""

        asked = 0

        def _taken(self, _):
            self.asked += 1
            return True

    restless = Restless("default", space.memos._tools)
    with pytest.raises(Conflict, match="came and went") as refused:
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
        assert patched(old, patch) == new


@pytest.mark.parametrize("key", ["id", "version", "relations", "promote", "Review", "created_at", "type", "ＩＤ"])
def test_a_key_that_memex_owns_is_refused(world, space, key):
    record = save(space, "x")
    before = files(world)
    for given in ({"memo_id": record.id}, {}):
        with pytest.raises(InvalidArgument, match="belongs to Memex"):
            save(space, "y", metadata={key: 1}, **given)
    assert files(world) == before


def test_title_and_tags_can_be_changed_and_taken_away(world, space):
    record = save(space, "x", title="One", metadata={"tags": ["a"]})
    changed = save(space, "x", memo_id=record.id, title="Two", metadata={"tags": ["b", "c"]})
    assert (changed.title, changed.tags, changed.path) == ("Two", ("b", "c"), record.path)
    bare = save(space, "x", memo_id=record.id, metadata={"title": None, "tags": None})
    assert (bare.title, bare.tags) == ("One", ())


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
    replace = world.app.vault.replace
    edits = iter(["mine: 1\n---\none", "mine: 2\n---\none"])

    def meddling(path, data, *, digest):
        if edit := next(edits, None):
            file.write_text(text_of(world, record).partition("mine:")[0].removesuffix("---\none") + edit)
        return replace(path, data, digest=digest)

    world.app.vault.replace = meddling
    try:
        changed = save(space, "two", memo_id=record.id)
    finally:
        world.app.vault.replace = replace
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
        with pytest.raises(Conflict, match="gets an id") as caught:
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


# Searching


def test_a_search_is_by_likeness_and_every_memo_is_compared(space):
    names = ["alpha beta", "alpha gamma", "delta"]
    made = {name: save(space, name) for name in names}
    found = space.memos.search(query="alpha beta")
    assert titles(found)[0] == "alpha beta"
    assert len(found.items) == 3
    assert [item.score for item in found.items] == sorted((item.score for item in found.items), reverse=True)
    assert titles(space.memos.search(query="alpha beta", k=1)) == ["alpha beta"]
    assert titles(space.memos.search(query="alpha beta", minimum=0.9)) == ["alpha beta"]
    far = space.memos.search(query="alpha beta", metric="l2")
    assert titles(far) == titles(found)
    for near, away in zip(found.items, far.items, strict=True):
        assert away.score == pytest.approx((2 - 2 * near.score) ** 0.5, abs=1e-3)
    pivot = space.memos.search(pivot=made["alpha beta"].id)
    assert titles(pivot) == ["alpha gamma", "delta"]
    whole = space.memos.search(pivot=made["alpha beta"].id, exclude_pivot=False)
    assert (titles(whole)[0], whole.items[0].score) == ("alpha beta", pytest.approx(1, abs=1e-4))


def test_a_memo_is_as_near_as_its_nearest_passage(space):
    long = "\n\n".join(f"# Part {n}\n\n" + f"filler{n} " * 120 for n in range(12))
    save(space, long + "\n\n# End\n\n" + "walrus tusk " * 60, title="Long")
    save(space, "walrus", title="Short")
    save(space, "filler0 filler1", title="Other")
    found = space.memos.search(query="walrus tusk walrus tusk")
    assert set(titles(found)[:2]) == {"Long", "Short"}
    assert len(found.items) == 3
    pivot = space.memos.search(pivot=next(item.record.id for item in found.items if item.record.title == "Long"))
    assert len(pivot.items) == 2


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({}, ["c", "b", "a"]),
        ({"p": "x"}, ["b", "a"]),
        ({"p": "X"}, []),
        ({"p": {"contains": "X"}}, ["b", "a"]),
        ({"deep": {"er": {"n": 1}}}, ["a"]),
        ({"deep": {"er": {"n": 1.0}}}, ["a"]),
        ({"deep": {"er": {"n": True}}}, []),
        ({"deep": {"er": {"t": {"contains": "日本"}}}}, ["a"]),
        ({"deep": {}}, ["a"]),
        ({"list": ["one"]}, ["b"]),
        ({"list": ["two", "one"]}, ["b"]),
        ({"list": ["one", "three"]}, []),
        ({"list": "one"}, []),
        ({"list": {"contains": "ON"}}, ["b"]),
        ({"flag": True}, ["c"]),
        ({"flag": 1}, []),
        ({"contains": {"contains": "in it"}}, ["c"]),
        ({"odd": {"contains": "exact"}}, ["c"]),
        ({'quo"te': "\\'"}, ["c"]),
        ({"title": "a"}, ["a"]),
        ({"tags": ["red"], "p": "x"}, ["a"]),
        ({"none": None}, []),
    ],
)
def test_a_filter_is_a_part_of_the_metadata(space, wanted, names):
    save(
        space,
        "alpha",
        title="a",
        metadata={"p": "x", "deep": {"er": {"n": 1, "t": "in 日本 now"}}, "tags": ["red", "blue"]},
    )
    save(space, "alpha", title="b", metadata={"p": "x", "list": ["one", "two", 3]})
    save(
        space,
        "beta",
        title="c",
        metadata={"flag": True, "contains": "words in it", "odd": {"contains": "exact"}, 'quo"te': "\\'"},
    )
    assert titles(space.memos.search(wanted=wanted)) == names
    assert sorted(titles(space.memos.search(query="alpha", wanted=wanted))) == sorted(names)


@pytest.mark.parametrize("held", [True, False], ids=["rows at hand", "rows on disk"])
def test_a_filter_comes_before_the_nearest_are_taken(space, monkeypatch, held):
    from index.memos import queries
    from index.storage import maintenance_policy

    if not held:
        monkeypatch.setattr(maintenance_policy, "HELD", 0)
    save(space, "zeta", title="rare", metadata={"rare": True})
    for n in range(40):
        save(space, f"alpha {n}")
    assert titles(space.memos.search(query="alpha", k=1, wanted={"rare": True})) == ["rare"]
    exact = [item.record.id for item in space.memos.search(query="alpha 7", k=5).items]
    monkeypatch.setattr(queries, "EXACT", 10)  # the vector index is asked instead
    assert [item.record.id for item in space.memos.search(query="alpha 7", k=5).items] == exact
    assert titles(space.memos.search(query="alpha", k=1, wanted={"rare": True})) == ["rare"]
    assert len(space.memos.search(query="alpha 7", k=100).items) == 41
    monkeypatch.setattr(queries, "POOL", 8)
    monkeypatch.setattr(queries, "EXACT", 0)
    assert titles(space.memos.search(query="alpha", k=1, wanted={"rare": True})) == ["rare"]
    pivot = space.memos.search(pivot=exact[0], k=3).items
    monkeypatch.undo()
    assert [(item.record.id, pytest.approx(item.score, abs=1e-3)) for item in pivot] == [
        (item.record.id, item.score) for item in space.memos.search(pivot=exact[0], k=3).items
    ]


def test_notes_of_all_kinds_are_memos_but_nodes_are_not(world, space):
    space.capture("a thought of alpha")
    world.write("Captures/default/By hand.md", "alpha by hand")
    world.write("Captures/default/Entities/Ada.md", "---\nid: ada\n---\n## Observations\n- alpha ^o1\n")
    world.write("Notes/Private.md", "alpha of the vault")
    world.run()
    world.run()
    assert sorted(titles(space.memos.search(query="alpha"))) == ["By hand", "a thought of alpha"]
    assert sorted(titles(space.memos.search())) == ["By hand", "a thought of alpha"]
    for work in (
        lambda: space.memos.search(pivot="ada"),
        lambda: space.memos.delete("ada"),
        lambda: space.memo_graph.graph("ada"),
    ):
        with pytest.raises(NotFound):
            work()


def test_without_a_question_those_changed_last_come_first(space):
    first, _, _ = (save(space, name) for name in ("one", "two", "three"))
    save(space, "one!", memo_id=first.id)
    assert titles(space.memos.search(k=2))[0] == "one"
    assert [item.score for item in space.memos.search().items] == [None] * 3


@pytest.mark.parametrize(
    "given",
    [
        {"query": "a", "pivot": "b"}, {"query": "a", "minimum": 0.5, "metric": "l2"}, {"minimum": 0.5}, {"k": 0}, {"k": 101},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(space, given):
    with pytest.raises(InvalidArgument):
        space.memos.search(**given)


def test_without_an_encoder_a_query_fails_and_a_pivot_does_not(world, space):
    one, _ = save(space, "alpha beta"), save(space, "alpha")
    index = world.app.builds.scopes["captures"].index
    index.memos._fitting = lambda: None
    with pytest.raises(Unavailable):
        space.memos.search(query="alpha")
    assert titles(space.memos.search(pivot=one.id)) == ["alpha"]
    assert len(space.memos.search().items) == 2


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


def test_a_delete_compares_the_version_too(space):
    record = save(space, "x")
    save(space, "y", memo_id=record.id)
    with pytest.raises(Conflict) as caught:
        space.memos.delete(record.id, version=1)
    assert caught.value.details == {"version": 2}
    space.memos.delete(record.id, version=2)
    with pytest.raises(NotFound):
        space.memos.delete(record.id)
    with pytest.raises(NotFound):
        space.memos.delete(save(space, "x").id, namespace="other")


def test_a_delete_that_fails_changed_nothing(world, space, monkeypatch):
    a, b = save(space, "a"), save(space, "b")
    space.memo_graph.save(a.id, b.id, "t")
    before, dump = files(world), world.dump()
    index = world.app.builds.scopes["captures"].index

    def failing(*_args, **_given):
        raise Unavailable("the disk is full")

    monkeypatch.setattr(index._catalog, "write", failing)
    with pytest.raises(Unavailable):
        space.memos.delete(b.id)
    monkeypatch.undo()
    assert files(world) == before
    world.reopen()
    world.run()
    assert world.dump() == dump


# Relations


def test_a_relation_is_an_entry_that_people_can_read(world, space):
    a, b = save(space, "a", title="One"), save(space, "b", title="Two: a/b")
    made = space.memo_graph.save(a.id, b.id, " supports ", weight=0.456, reason="It says: so")
    assert (made.relation.tag, made.relation.weight, made.relation.version) == ("supports", 0.46, 1)
    assert relations_in(world, a) == [
        {
            "target": "[[Two a b]]",
            "id": b.id,
            "tag": "supports",
            "weight": 0.46,
            "reason": "It says: so",
            "version": 1,
            "created_at": relations_in(world, a)[0]["created_at"],
        }
    ]
    record = space.get(a.id).record
    assert (record.version, record.updated_at) == (1, None)
    assert record.metadata == {}
    assert world.rebuilt(world.state.parent / "other") == world.dump()


def test_saving_again_moves_the_version_only_with_a_change(world, space):
    a, b = save(space, "a"), save(space, "b")
    first = space.memo_graph.save(a.id, b.id, "t", weight=0.5, reason="r")
    before = files(world)
    for given in ({"weight": 0.5}, {"reason": "r"}, {}, {"weight": 0.501, "reason": "r"}):
        same = space.memo_graph.save(a.id, b.id, "t", **given)
        assert (same.relation, same.key) == (first.relation, first.key)
    assert files(world) == before
    changed = space.memo_graph.save(a.id, b.id, "t", weight=0.6)
    assert (changed.relation.version, changed.relation.reason, changed.created_at) == (2, "r", first.created_at)
    assert changed.updated_at >= first.updated_at
    bare = space.memo_graph.save(a.id, b.id, "t", reason="")
    assert (bare.relation.version, bare.relation.reason, bare.relation.weight) == (3, None, 0.6)
    (listed,) = space.memo_graph.list().ties
    assert (listed.relation, listed.updated_at) == (bare.relation, bare.updated_at)
    other = space.memo_graph.save(a.id, b.id, "T")
    assert other.relation.version == 1
    assert len(space.memo_graph.list().ties) == 2


def test_deleting_tells_what_it_was(world, space):
    a, b = save(space, "a"), save(space, "b")
    before = text_of(world, a)
    made = space.memo_graph.save(a.id, b.id, "t", weight=0.25, reason="r")
    with pytest.raises(NotFound):
        space.memo_graph.delete(b.id, a.id, "t")
    with pytest.raises(NotFound):
        space.memo_graph.delete(a.id, b.id, "u")
    assert space.memo_graph.delete(a.id, b.id, "t").relation == made.relation
    assert text_of(world, a) == before
    with pytest.raises(NotFound):
        space.memo_graph.delete(a.id, b.id, "t")


BY_HAND = """---
id: mine
relations:
  # what I think
  - target: "[[Other|that one]]"   # by name
    tag: sees
  - just words
  - target: "[[Other]]"
    id: other
    tag: knows
    weight: 2
  - {id: other, tag: likes, weight: 0.5, own: kept}
  - target: "[[Nowhere]]"
    tag: sees
title: Mine
---
text
"""


def test_what_a_person_writes_is_read_and_what_can_t_be_is_told_and_kept(world, space):
    file = world.write("Captures/default/Mine.md", BY_HAND)
    world.write("Captures/default/Other.md", "---\nid: other\n---\nx")
    world.run()
    assert sorted(entries(space.memo_graph.list())) == [("mine", "other", "likes"), ("mine", "other", "sees")]
    told = [str(defect) for defect in space.get("mine").record.defects]
    assert [one.partition(":")[0] for one in told] == ["bad-relation", "bad-relation"]
    assert "entry 2" in told[0]
    assert "weight" in told[1]
    liked = space.memo_graph.save("mine", "other", "likes", reason="because")
    assert (liked.relation.version, liked.relation.weight) == (2, 0.5)
    seen = space.memo_graph.save("mine", "other", "sees", weight=0.1)
    assert (seen.relation.version, seen.relation.weight) == (2, 0.1)
    text = file.read_text()
    gone = [line for line in BY_HAND.splitlines() if line not in text.splitlines()]
    assert gone == ["  - {id: other, tag: likes, weight: 0.5, own: kept}"]
    assert {"own": "kept"}.items() <= relations_in(world, space.get("mine").record)[3].items()
    assert '  - target: "[[Other|that one]]"   # by name\n    tag: sees\n    id: other\n' in text
    space.memo_graph.delete("mine", "other", "likes")
    space.memos.delete("other")
    assert "just words" in file.read_text()
    assert "weight: 2" in file.read_text()
    assert "# what I think" in file.read_text()
    assert "sees" in file.read_text()  # the one that leads nowhere


def test_a_relation_is_gone_while_a_person_has_taken_an_end_away(world, space):
    a, b = save(space, "a"), save(space, "b")
    space.memo_graph.save(a.id, b.id, "t")
    before = (world.vault / b.path).read_bytes()
    (world.vault / b.path).unlink()
    world.run()
    assert entries(space.memo_graph.list()) == []
    assert space.memo_graph.graph(a.id).steps == ()
    (world.vault / b.path).write_bytes(before)
    world.run()
    assert entries(space.memo_graph.list()) == [(a.id, b.id, "t")]
    moved = world.vault / "Captures/default/Renamed by hand.md"
    (world.vault / b.path).rename(moved)
    world.run()
    assert entries(space.memo_graph.list()) == [(a.id, b.id, "t")]
    (world.vault / a.path).write_text(text_of(world, a).replace(f"    id: {b.id}\n", "    id: nobody\n"))
    world.run()
    assert entries(space.memo_graph.list()) == []


def test_a_relation_stays_within_its_namespace(world, space):
    world.app.agent_access.create_workspace("other")
    a, b = save(space, "a"), save(space, "b", namespace="ns")
    far = save(world.app.agent_access.workspace("other"), "quokka", title="Q")
    for target in (b, far):
        with pytest.raises(NotFound):
            space.memo_graph.save(a.id, target.id, "t")
        with pytest.raises(NotFound):
            space.memo_graph.save(target.id, a.id, "t")
    for id in (b.id, far.id):
        (world.vault / a.path).write_text(
            f"---\nid: {a.id}\nrelations: [{{id: {id}, tag: t}}, {{target: '[[Q]]', tag: t}}]\n---\na"
        )
        world.run()
        assert space.memo_graph.list().ties == ()
        assert space.memo_graph.graph(a.id, way="both").steps == ()
    assert world.app.agent_access.workspace("other").memo_graph.graph(far.id, way="backward").steps == ()


def test_a_link_means_the_note_with_the_best_right_to_the_name(world, space):
    world.write("Captures/default/A.md", "---\nid: a\nrelations:\n  - target: '[[Twin]]'\n    tag: t\n---\n")
    world.write("Captures/default/Twin.md", "---\nid: top\n---\n")
    world.write("Captures/default/Files/Twin.md", "---\nid: deep\n---\n")
    world.run()
    assert entries(space.memo_graph.list()) == [("a", "top", "t")]
    assert entries(space.memo_graph.list(target="deep")) == []
    assert space.memo_graph.graph("deep", way="both").steps == ()


@pytest.mark.parametrize(
    "given",
    [
        {"tag": ""}, {"tag": "  "}, {"tag": "x" * 65}, {"tag": "a\nb"}, {"tag": "t", "weight": 1.01}, {"tag": "t", "weight": -0.01},
        {"tag": "t", "weight": float("nan")}, {"tag": "t", "reason": "x" * 1001},
    ],
)  # fmt: skip
def test_a_relation_out_of_bounds_is_refused(world, space, given):
    a, b = save(space, "a"), save(space, "b")
    before = files(world)
    with pytest.raises(InvalidArgument):
        space.memo_graph.save(a.id, b.id, **given)
    assert files(world) == before


def test_hostile_words_in_a_relation_are_words(world, space):
    a, b = save(space, "a"), save(space, "b")
    for n, words in enumerate(
        ["---\nid: stolen", "]] [[x", "- x: y", "日本\u2028語", "{a: 1}", "'\"\\", "null", "1e5", "# no"]
    ):
        tie = space.memo_graph.save(a.id, b.id, f"{n} {words}".replace("\n", " ").replace("\u2028", " "), reason=words)
        assert tie.relation.reason == words
    found = space.memo_graph.list().ties
    assert len(found) == 9
    world.run()
    assert space.memo_graph.list().ties == found
    assert space.get(a.id).record.id == a.id


def test_a_list_is_filtered_and_bounded(space):
    a, b, c = (save(space, name) for name in "abc")
    for source, target, tag in ((a, b, "x"), (b, c, "x"), (a, c, "y")):
        space.memo_graph.save(source.id, target.id, tag)
    graph = space.memo_graph
    assert len(graph.list().ties) == 3
    assert {tie.target.id for tie in graph.list(source=a.id).ties} == {b.id, c.id}
    assert {tie.source.id for tie in graph.list(target=c.id).ties} == {a.id, b.id}
    assert entries(graph.list(source=a.id, target=c.id)) == [(a.id, c.id, "y")]
    assert entries(graph.list(source=a.id, tag="x")) == [(a.id, b.id, "x")]
    assert graph.list(source="nobody").ties == ()
    assert graph.list(namespace="none").ties == ()
    short = graph.list(limit=2)
    assert (len(short.ties), short.truncated, graph.list(limit=3).truncated) == (2, True, False)
    assert {memo.id for memo in graph.list(tag="y").memos} == {a.id, c.id}
    for bad in (0, 501):
        with pytest.raises(InvalidArgument):
            graph.list(limit=bad)


def steps(found):
    return [(step.tie.relation.tag, step.depth, step.direction, len(step.path), step.loop) for step in found.steps]


def test_a_walk_tells_depth_direction_and_way_of_each_relation(space):
    a, b, c, d = (save(space, name) for name in "abcd")
    graph = space.memo_graph
    for tag, source, target, weight in (
        ("ab", a, b, 1),
        ("bc", b, c, 1),
        ("ca", c, a, 1),
        ("cd", c, d, 0.5),
        ("aa", a, a, 0.1),
    ):
        graph.save(source.id, target.id, tag, weight=weight)
    assert steps(graph.graph(a.id, depth=10)) == [
        ("ab", 1, "forward", 2, False), ("aa", 1, "forward", 2, True), ("bc", 2, "forward", 3, False),
        ("ca", 3, "forward", 4, True), ("cd", 3, "forward", 4, False),
    ]  # fmt: skip
    assert graph.graph(a.id, depth=10).steps[-1].path == (a.id, b.id, c.id, d.id)
    assert [step[:3] for step in steps(graph.graph(a.id, way="backward", depth=1))] == [
        ("ca", 1, "backward"), ("aa", 1, "backward"),
    ]  # fmt: skip
    assert [step[:3] for step in steps(graph.graph(d.id, way="backward"))] == [
        ("cd", 1, "backward"), ("bc", 2, "backward"), ("ab", 3, "backward"),
    ]  # fmt: skip
    both = graph.graph(b.id, way="both", depth=2)
    assert sorted(step[0] for step in steps(both)) == ["aa", "ab", "bc", "ca", "cd"]
    assert len(both.memos) == 4
    assert steps(graph.graph(a.id, tag="ab")) == [("ab", 1, "forward", 2, False)]
    short = graph.graph(a.id, depth=10, limit=2)
    assert (len(short.steps), short.truncated) == (2, True)
    assert [memo.id for memo in graph.graph(d.id).memos] == [d.id]
    with pytest.raises(NotFound):
        graph.graph("nobody")
    for bad in ({"depth": 0}, {"depth": 11}, {"limit": 0}, {"limit": 1001}):
        with pytest.raises(InvalidArgument):
            graph.graph(a.id, **bad)


def test_a_dense_graph_is_walked_in_no_time(world, space):
    """Where all are related to all, the ways are countless and the relations are not."""
    ids = [f"n{n}" for n in range(24)]
    for own in ids:
        entries_ = "".join(f"  - {{id: {other}, tag: t}}\n" for other in ids if other != own)
        world.write(f"Captures/default/{own}.md", f"---\nid: {own}\nrelations:\n{entries_}---\nx")
    world.run()
    found = space.memo_graph.graph("n0", depth=10, way="both", limit=1000)
    assert len(found.steps) == 24 * 23
    assert max(step.depth for step in found.steps) == 2


# At once


def test_twenty_relations_at_once_on_one_memo_are_all_kept(world, space):
    hub, *others = [save(space, f"memo {n}", title=f"M{n}") for n in range(21)]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda other: space.memo_graph.save(hub.id, other.id, "t"), others))
    assert sorted(entry["id"] for entry in relations_in(world, hub)) == sorted(other.id for other in others)
    assert len(space.memo_graph.list(limit=500).ties) == 20
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda n: space.memo_graph.save(hub.id, others[0].id, "same", weight=n / 20), range(20)))
    same = [entry for entry in relations_in(world, hub) if entry["tag"] == "same"]
    assert len(same) == 1
    assert same[0]["version"] == 20
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda other: space.memo_graph.delete(hub.id, other.id, "t"), others))
    assert [entry["tag"] for entry in relations_in(world, hub)] == ["same"]


def test_eight_clients_that_upsert_the_same_ids_double_nothing(world, space):
    ids = [f"memo-{n}" for n in range(5)]
    world.app.sync.run()  # before it, a save may be told that the notes are still being read

    def client(number):
        return [space.memos.save(f"by {number}", memo_id=id, metadata={f"c{number}": True}).created for id in ids]

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(client, range(8)))
    assert [sum(made) for made in zip(*told, strict=True)] == [1] * 5
    found = space.memos.search().items
    assert sorted(item.record.id for item in found) == ids
    for item in found:
        assert item.record.version == 8
        assert item.record.metadata == {f"c{number}": True for number in range(8)}
    assert len(list((world.vault / "Captures/default").glob("*.md"))) == 5


def test_of_many_that_compare_the_version_one_wins_each_time(space):
    record = save(space, "0")
    won = []

    def client(number):
        for _ in range(50):
            version = space.get(record.id).record.version
            if version > 8:
                return
            try:
                won.append(save(space, f"by {number} at {version}", memo_id=record.id, version=version).version)
            except Conflict:
                continue

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(client, range(8)))
    assert sorted(won) == list(range(2, max(won) + 1))


def test_a_person_who_edits_while_agents_relate_loses_nothing(world, space):
    hub, *others = [save(space, f"memo {n}", title=f"M{n}") for n in range(5)]
    file, replace = world.vault / hub.path, world.app.vault.replace
    numbers = iter(range(6))

    def meddling(path, data, *, digest):
        if path == hub.path and (n := next(numbers, None)) is not None and n % 2 == 0:  # just before it is written
            file.write_text(file.read_text().replace("---\nmemo 0", f"by_hand_{n}: yes\n---\nmemo 0"))
        return replace(path, data, digest=digest)

    world.app.vault.replace = meddling
    try:
        for other in others:
            space.memo_graph.save(hub.id, other.id, "t")
    finally:
        world.app.vault.replace = replace
    assert [entry["id"] for entry in relations_in(world, hub)] == [other.id for other in others]
    assert space.get(hub.id).record.metadata == {"by_hand_0": "yes", "by_hand_2": "yes", "by_hand_4": "yes"}
