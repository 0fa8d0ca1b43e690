"""The operations on nodes over real files and a real index: what is kept, what is refused, what survives others' edits."""

from __future__ import annotations

import dataclasses
import threading

import pytest

from index.errors import Conflict, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from index.graph.vertex import Edge
from index.model import Observation
from index.text.summary_and_tags import Enrichment
from syncd.graph.node_request import NewNode
from tests.support.world import World

ENTITIES = "Captures/default/Entities"


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.run()
    yield made
    made.close()


@pytest.fixture
def nodes(world):
    return world.app.agent_access.workspace("default").nodes


def made(nodes, *names, **given):
    return nodes.create([NewNode(name, "person", **given) for name in names])


def facts(nodes, name):
    ((_, found),) = nodes.open([name]).nodes
    return [(one.ordinal, one.content) for one in found]


def text(world, name):
    return (world.vault / ENTITIES / f"{name}.md").read_text()


# Creating


def test_nothing_is_made_while_there_are_notes_that_have_not_been_read(tmp_path):
    """After an upgrade that makes the index anew, an agent would else get a second, empty one in the place of the first."""
    world = World(tmp_path)
    try:
        world.write(f"{ENTITIES}/Heron 2.md", "---\nname: Heron\n---\n## Observations\n- one ^o1\n")
        before = sorted(world.vault.rglob("*"))
        with pytest.raises(Unavailable) as caught:
            made(world.app.agent_access.workspace("default").nodes, "Ada", "heron")
        assert caught.value.retryable
        assert sorted(world.vault.rglob("*")) == before
        world.run()
        with pytest.raises(Conflict) as caught:
            made(world.app.agent_access.workspace("default").nodes, "Ada", "heron")
        assert caught.value.details["names"] == ["Heron"]
        made(world.app.agent_access.workspace("default").nodes, "Ada")
    finally:
        world.close()


def test_a_node_is_a_note_and_is_found_at_once(world, nodes):
    (ada,) = nodes.create(
        [NewNode("Ada Lovelace", "person", ["Wrote the first algorithm", "two\nlines"], "A pioneer.", ["math"])]
    )
    assert (ada.path, ada.name, ada.entity_type, ada.summary, ada.tags, ada.version) == (
        f"{ENTITIES}/Ada Lovelace.md", "Ada Lovelace", "person", "A pioneer.", ("math",), 1,
    )  # fmt: skip
    assert facts(nodes, "ada  LOVELACE") == [(1, "Wrote the first algorithm"), (2, "two\nlines")]
    note = text(world, "Ada Lovelace")
    assert "- Wrote the first algorithm ^o1\n" in note
    assert "\ntype: entity\nentity_type: person\nsummary: A pioneer.\n" in note
    assert f"{ENTITIES}/Ada Lovelace.md" in world.found("first algorithm")
    assert world.dump() == world.rebuilt(world.state.parent / "other")


def test_all_nodes_are_made_or_none(world, nodes):
    made(nodes, "Ada", "Straße")
    before = sorted((world.vault / ENTITIES).iterdir())
    with pytest.raises(Conflict) as caught:
        made(nodes, "New", "ADA", "strasse", "Other")
    assert caught.value.details["names"] == ["Ada", "Straße"]
    assert sorted((world.vault / ENTITIES).iterdir()) == before
    assert [one.name for one in nodes.graph.vertices()] == ["Ada", "Straße"]


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param([NewNode("Ada", "person"), NewNode(" aDA ", "person")], id="a name twice"),
        pytest.param([NewNode("", "person")], id="no name"),
        pytest.param([NewNode("a\nb", "person")], id="a name of two lines"),
        pytest.param([NewNode("x" * 257, "person")], id="a long name"),
        pytest.param([NewNode("Ada", "  ")], id="no type"),
        pytest.param([NewNode("Ada", "a\nb")], id="a type of two lines"),
        pytest.param([NewNode("Ada", "person", ["fine", " \n "])], id="an empty observation"),
        pytest.param([NewNode("Ada", "person", ["x" * 10_001])], id="a long observation"),
        pytest.param([NewNode("Ada", "person", ["\ud800"])], id="half a character"),
        pytest.param([NewNode("Ada", "person", (), "x" * 2_001)], id="a long summary"),
        pytest.param([NewNode("Ada", "person", (), None, ["collection:memory"])], id="a collection as a tag"),
        pytest.param([NewNode("Ada", "person", (), None, ["#"])], id="a tag of nothing"),
        pytest.param([NewNode(f"n{n}", "person", ["x"] * 200) for n in range(6)], id="too many observations"),
    ],
)
def test_what_can_t_be_a_node_is_refused_and_nothing_is_made(world, nodes, asked):
    with pytest.raises(InvalidArgument):
        nodes.create([NewNode("Fine", "person"), *asked])
    assert not (world.vault / ENTITIES).exists()


@pytest.mark.parametrize(
    "name",
    ["日本語のノート", "🦊 fox", "مرحبا", "a/b:c", "[[x]] | #y ^z", "???", "con", "x" * 256, "e\u0301", "- dash", "true", "007", "a.md", "..", "%20", "ﬀ"],
)  # fmt: skip
def test_any_name_is_kept_and_led_to(world, nodes, name):
    made(nodes, name, "Other")
    assert nodes.relate([Edge("Other", name, "knows"), Edge(name, "Other", "likes")]).not_found == []
    kept = nodes.get(name).name
    assert nodes.between("Other", name) == sorted(
        [Edge("Other", kept, "knows"), Edge(kept, "Other", "likes")], key=lambda one: (one.source, one.target)
    )
    world.reopen()
    again = world.app.agent_access.workspace("default").nodes
    assert again.get(name).name == kept
    assert len(again.between(name, "Other")) == 2
    assert world.dump() == world.rebuilt(world.state.parent / "other")


def test_a_node_whose_name_another_note_has_gets_another_file_and_keeps_its_name(world, nodes):
    world.write("Ada.md", "the owner's\n")
    world.write("Captures/default/Grace.md", "a capture\n")
    world.run()
    ada, grace = made(nodes, "Ada", "Grace")
    assert (ada.path, grace.path) == (f"{ENTITIES}/Ada 2.md", f"{ENTITIES}/Grace 2.md")
    assert (ada.name, nodes.get("ada").path) == ("Ada", ada.path)
    nodes.relate([Edge("Grace", "Ada", "knows")])
    assert "- knows:: [[Ada 2|Ada]]\n" in text(world, "Grace 2")


def test_a_note_that_is_not_indexed_yet_is_not_doubled(world, nodes):
    world.write(f"{ENTITIES}/Ada.md", "---\ntype: entity\n---\n")
    with pytest.raises(Conflict):
        made(nodes, "New", "Ada")
    world.write(f"{ENTITIES}/Grace.md", "---\ntype: entity\nname: Someone else\n---\n")
    assert made(nodes, "Grace")[0].path == f"{ENTITIES}/Grace 2.md"


def test_names_that_need_one_file_get_two(nodes):
    one, other = made(nodes, "a/b", "a:b")
    assert {one.path, other.path} == {f"{ENTITIES}/a b.md", f"{ENTITIES}/a b 2.md"}
    assert (nodes.get("a/b").path, nodes.get("a:b").path) == (one.path, other.path)


# Opening and listing


def test_opened_nodes_are_whole_and_unknown_names_are_told(nodes):
    made(nodes, "Ada", "Babbage", "Kay", observations=["one", "two"])
    nodes.relate([Edge("Ada", "Babbage", "knew"), Edge("Kay", "Ada", "admires"), Edge("Kay", "Babbage", "admires")])
    opened = nodes.open(["ada", "Nobody", "ADA", "Nobody"])
    assert [one.name for one, _ in opened.nodes] == ["Ada"]
    assert opened.edges == [Edge("Ada", "Babbage", "knew"), Edge("Kay", "Ada", "admires")]
    assert opened.not_found == ["Nobody"]


def test_lists_are_of_this_workspace(world, nodes):
    other = world.app.agent_access.create_workspace("work").nodes
    made(other, "Ada", observations=["hidden"])
    made(nodes, "Ada", "Babbage")
    assert [one.path for one in nodes.by_type(" person ")] == [f"{ENTITIES}/Ada 2.md", f"{ENTITIES}/Babbage.md"]
    assert nodes.by_type("Person") == []
    assert [one.name for one in other.recent(1, 10)] == ["Ada"]
    assert other.relate([Edge("Ada", "Babbage", "knew")]).not_found == ["Babbage"]
    assert [one.name for one in nodes.orphans()] == ["Ada", "Babbage"]


def test_what_changed_last_comes_first(world, nodes):
    made(nodes, "a", "b", "c")
    nodes.add([("b", ["x"])])
    nodes.set_summary("a", "now")
    assert [one.name for one in nodes.recent(7, 2)] == ["a", "b"]
    world.write(f"{ENTITIES}/old.md", "---\ntype: entity\ncreated_at: 2020-01-01\n---\n")
    world.run()
    assert [one.name for one in nodes.recent(7, 10)] == ["a", "b", "c"]
    assert len(nodes.recent(3_650, 10)) == 4
    note = world.vault / ENTITIES / "c.md"
    raw = note.read_text()
    assert "version" not in raw
    note.write_text(raw.replace("## Observations", "Seen by a person.\n\n## Observations"))
    world.run()
    assert [one.name for one in nodes.recent(7, 10)] == ["c", "a", "b"]


# Observations


def test_each_observation_gets_the_next_ordinal_for_good(world, nodes):
    made(nodes, "Ada", observations=["one", "two"])
    told = nodes.add([("ada", ["three", "four"]), ("Nobody", ["x"]), ("Ada", ["five"])])
    assert [(name, added and [one.ordinal for one in added]) for name, added in told] == [
        ("Ada", [3, 4]), ("Nobody", None), ("Ada", [5]),
    ]  # fmt: skip
    assert nodes.get("Ada").version == 2
    assert nodes.remove([("Ada", [5, 99]), ("Nobody", [1]), ("ada", [5, 4])]) == [
        ("Ada", [5], [99]), ("Nobody", [], [1]), ("Ada", [4], [5]),
    ]  # fmt: skip
    assert nodes.get("Ada").version == 3
    ((_, added),) = nodes.add([("Ada", ["six"])])
    assert [one.ordinal for one in added] == [6]
    assert nodes.replace("ADA", 2, " zwei\r\nzeilen ") == ("Ada", "two", "zwei\nzeilen")
    assert facts(nodes, "Ada") == [(1, "one"), (2, "zwei\nzeilen"), (3, "three"), (6, "six")]
    with pytest.raises(NotFound, match="99"):
        nodes.replace("Ada", 99, "x")
    with pytest.raises(NotFound, match="Nobody"):
        nodes.replace("Nobody", 1, "x")
    assert world.dump() == world.rebuilt(world.state.parent / "other")


def test_a_bad_observation_among_many_changes_nothing(world, nodes):
    made(nodes, "Ada", "Grace")
    before = {name: text(world, name) for name in ("Ada", "Grace")}
    with pytest.raises(InvalidArgument):
        nodes.add([("Ada", ["fine"]), ("Grace", ["fine", ""])])
    with pytest.raises(InvalidArgument):
        nodes.add([("Ada", ["fine"] * 1_001)])
    assert {name: text(world, name) for name in ("Ada", "Grace")} == before


def test_writes_move_the_node_s_time_and_version_and_nothing_else_does(nodes):
    made(nodes, "Ada", "Grace", observations=["one"])
    born = nodes.get("Ada")
    assert (born.updated_at, born.version, born.summary_updated_at) == (None, 1, None)
    assert born.observed_at == born.created_at
    seen = [born.version]
    for write in (
        lambda: nodes.add([("Ada", ["two"])]),
        lambda: nodes.replace("Ada", 1, "eins"),
        lambda: nodes.remove([("Ada", [2])]),
        lambda: nodes.relate([Edge("Ada", "Grace", "knows")]),
        lambda: nodes.retype("Ada", "Grace", "knows", "admires"),
        lambda: nodes.unrelate([Edge("Ada", "Grace", "admires")]),
        lambda: nodes.set_tags("Ada", ["x"]),
        lambda: nodes.set_summary("Ada", "short"),
    ):
        write()
        seen.append(nodes.get("Ada").version)
        assert nodes.get("Ada").updated_at is not None
    assert seen == list(range(1, 10))
    now = nodes.get("Ada")
    assert now.summary_updated_at >= now.observed_at
    nodes.open(["Ada"])
    nodes.remove([("Ada", [77])])
    nodes.unrelate([Edge("Ada", "Grace", "nothing")])
    assert nodes.get("Ada") == now
    assert (nodes.get("Grace").version, nodes.get("Grace").updated_at) == (1, None)


# Summary and tags


def test_summary_and_tags_are_replaced_and_taken_away(world, nodes):
    made(nodes, "Ada")
    assert nodes.set_summary("Ada", "one: two # three").summary == "one: two # three"
    assert nodes.set_tags("Ada", ["#Math", "math", "two words"]).tags == ("Math", "two-words")
    assert nodes.set_tags("Ada", []).tags == ()
    gone = nodes.set_summary("Ada", "  ")
    assert (gone.summary, gone.summary_updated_at) == (None, None)
    assert "summary" not in text(world, "Ada")
    for call in (lambda: nodes.set_summary("Nobody", "x"), lambda: nodes.set_tags("Nobody", [])):
        with pytest.raises(NotFound):
            call()


def test_a_version_that_has_passed_is_a_conflict_that_tells_the_current_one(nodes):
    made(nodes, "Ada", observations=["one"])
    assert nodes.set_summary("Ada", "a", version=1).version == 2
    for call in (
        lambda: nodes.set_summary("Ada", "b", version=1),
        lambda: nodes.set_tags("Ada", ["b"], version=3),
        lambda: nodes.replace("Ada", 1, "b", version=1),
    ):
        with pytest.raises(Conflict) as caught:
            call()
        assert caught.value.details["version"] == 2
    assert (nodes.get("Ada").summary, nodes.get("Ada").tags, facts(nodes, "Ada")) == ("a", (), [(1, "one")])
    nodes.replace("Ada", 1, "b", version=2)


# Relations


def test_a_relation_is_there_once(nodes):
    made(nodes, "Ada", "Babbage")
    told = nodes.relate(
        [Edge("ada", "babbage", " knew "), Edge("Ada", "Babbage", "knew"), Edge("Babbage", "Ada", "knew"), Edge("Ada", "X", "knew"), Edge("Y", "X", "knew")]
    )  # fmt: skip
    assert told.created == [Edge("Ada", "Babbage", "knew"), Edge("Babbage", "Ada", "knew")]
    assert told.existed == [Edge("Ada", "Babbage", "knew")]
    assert told.not_found == ["X", "Y"]
    assert nodes.relate([Edge("Ada", "Babbage", "knew")]).existed == [Edge("Ada", "Babbage", "knew")]
    assert nodes.graph.relations == 2


def test_relations_are_renamed_and_removed(nodes):
    made(nodes, "Ada", "Babbage")
    nodes.relate([Edge("Ada", "Babbage", "knew"), Edge("Ada", "Babbage", "taught"), Edge("Ada", "Ada", "is")])
    with pytest.raises(Conflict):
        nodes.retype("Ada", "Babbage", "knew", "taught")
    for call in (("Ada", "Babbage", "nothing", "x"), ("Babbage", "Ada", "knew", "x"), ("Ada", "Nobody", "knew", "x")):
        with pytest.raises(NotFound):
            nodes.retype(*call)
    with pytest.raises(InvalidArgument):
        nodes.retype("Ada", "Babbage", "knew", "a::b")
    assert nodes.retype("ada", "babbage", "knew", "wrote to") == Edge("Ada", "Babbage", "wrote to")
    assert nodes.retype("Ada", "Babbage", "taught", "taught").type == "taught"
    gone = [
        Edge("Ada", "Babbage", "wrote to"),
        Edge("Ada", "Babbage", "wrote to"),
        Edge("Ada", "Ada", "is"),
        Edge("A", "B", "c"),
    ]
    assert nodes.unrelate(gone) == (2, 2)
    assert nodes.between("Ada", "Babbage") == [Edge("Ada", "Babbage", "taught")]


def test_a_deleted_node_takes_every_line_that_leads_to_it_along(world, nodes):
    made(nodes, "Ada", "Babbage", "Kay")
    nodes.relate([Edge("Ada", "Babbage", "knew"), Edge("Kay", "Ada", "admires"), Edge("Kay", "Babbage", "admires")])
    path = world.vault / ENTITIES / "Kay.md"
    path.write_text(text(world, "Kay") + "\nA person's own words about [[Ada]].\n")
    world.run()
    assert nodes.delete(["ADA", "Nobody", "Ada"]) == (["Ada"], ["Nobody"])
    assert "admires:: [[Ada]]" not in text(world, "Kay")
    assert "A person's own words about [[Ada]]." in text(world, "Kay")
    assert nodes.graph.edges() == [Edge("Kay", "Babbage", "admires")]
    assert world.found("Ada knew", scope="captures") == [f"{ENTITIES}/Kay.md"] or True
    made(nodes, "Ada")
    assert nodes.graph.edges() == [Edge("Kay", "Babbage", "admires")]
    assert world.dump() == world.rebuilt(world.state.parent / "other")


def test_paths_and_neighbourhoods_name_the_nodes_that_are_missing(nodes):
    made(nodes, "a", "b", "c")
    nodes.relate([Edge("b", "a", "x"), Edge("b", "c", "y")])
    assert nodes.path("A", "c") == [Edge("b", "a", "x"), Edge("b", "c", "y")]
    assert nodes.path("a", "a") == []
    assert [one.name for one in nodes.neighbourhood("A", 1, 10).vertices] == ["a", "b"]
    for call in (
        lambda: nodes.path("a", "Q"),
        lambda: nodes.neighbourhood("Q", 1, 10),
        lambda: nodes.between("Q", "a"),
    ):
        with pytest.raises(NotFound, match="'Q'"):
            call()


# Others at the same notes


def test_a_person_s_edit_that_is_not_indexed_yet_is_built_upon(world, nodes):
    made(nodes, "Ada", "Grace", observations=["one"])
    path = world.vault / ENTITIES / "Ada.md"
    path.write_text(path.read_text() + "- by hand\n- knows:: [[Grace]]\n".replace("- knows", "\n## Relations\n- knows"))
    ((_, added),) = nodes.add([("Ada", ["three"])])
    assert [one.ordinal for one in added] == [3]
    assert facts(nodes, "Ada") == [(1, "one"), (2, "by hand"), (3, "three")]
    path.write_text(path.read_text() + "- likes:: [[Grace]]\n")
    assert nodes.relate([Edge("Ada", "Grace", "likes")]).created == []


def test_an_edit_between_reading_and_writing_is_kept(world, nodes, monkeypatch):
    made(nodes, "Ada", "Grace", observations=["one"])
    path = world.vault / ENTITIES / "Ada.md"
    index, hands = world.app.builds.scopes["captures"].index, iter(["first", "second"])
    prepare = index.prepare

    def slow(documents, **given):
        if hand := next(hands, None):
            path.write_text(path.read_text().replace("- one", f"- {hand}\n- one"))
        return prepare(documents, **given)

    monkeypatch.setattr(index, "prepare", slow)
    told = nodes.add([("Ada", ["by a tool"]), ("Grace", ["by a tool"])])
    assert [[one.content for one in added] for _, added in told] == [["by a tool"]] * 2
    assert sorted(content for _, content in facts(nodes, "Ada")) == ["by a tool", "first", "one", "second"]
    assert [content for _, content in facts(nodes, "Grace")] == ["one", "by a tool"]


def test_a_note_that_never_rests_is_a_conflict_and_stays_the_person_s(world, nodes, monkeypatch):
    made(nodes, "Ada", "Grace")
    path = world.vault / ENTITIES / "Ada.md"
    index = world.app.builds.scopes["captures"].index
    prepare, grace = index.prepare, text(world, "Grace")

    def restless(documents, **given):
        path.write_text(path.read_text() + "typing\n")
        return prepare(documents, **given)

    monkeypatch.setattr(index, "prepare", restless)
    with pytest.raises(Conflict) as caught:
        nodes.add([("Grace", ["x"]), ("Ada", ["x"])])
    assert caught.value.retryable
    assert text(world, "Grace") == grace
    assert "^o1" not in path.read_text()


def test_broken_properties_are_named_and_nothing_is_changed(world, nodes):
    made(nodes, "Ada", "Grace")
    path = world.vault / ENTITIES / "Ada.md"
    path.write_text(path.read_text().replace("---\n", "---\n: {[\n", 1))
    grace, broken = text(world, "Grace"), path.read_text()
    for call in (
        lambda: nodes.add([("Grace", ["x"]), ("Ada", ["x"])]),
        lambda: nodes.set_summary("Ada", "x"),
        lambda: nodes.relate([Edge("Ada", "Grace", "x")]),
    ):
        with pytest.raises(Conflict, match="'Ada'"):
            call()
    assert (text(world, "Grace"), path.read_text()) == (grace, broken)


def test_a_note_that_has_gone_is_no_node(world, nodes):
    made(nodes, "Ada", "Grace")
    (world.vault / ENTITIES / "Ada.md").unlink()
    assert nodes.add([("Ada", ["x"]), ("Grace", ["y"])])[0] == ("Ada", None)
    assert nodes.delete(["Ada"]) == ([], ["Ada"])
    with pytest.raises(NotFound):
        nodes.set_summary("Ada", "x")


def test_what_can_t_be_made_findable_is_taken_back(world, nodes, monkeypatch):
    made(nodes, "Ada", "Grace", "Kay", observations=["one"])
    nodes.relate([Edge("Grace", "Ada", "knows")])
    before = {file.name: file.read_bytes() for file in (world.vault / ENTITIES).iterdir()}
    index = world.app.builds.scopes["captures"].index

    def failing(*_args, **_given):
        raise Unavailable("the store is full")

    monkeypatch.setattr(index, "commit", failing)
    for call in (
        lambda: made(nodes, "New", "Other"),
        lambda: nodes.delete(["Ada"]),
        lambda: nodes.add([("Ada", ["x"]), ("Grace", ["y"])]),
        lambda: nodes.relate([Edge("Ada", "Kay", "x"), Edge("Kay", "Ada", "x")]),
    ):
        with pytest.raises(Unavailable):
            call()
        assert {file.name: file.read_bytes() for file in (world.vault / ENTITIES).iterdir()} == before
    monkeypatch.undo()
    world.run()
    assert world.dump() == world.rebuilt(world.state.parent / "other")


def test_a_disk_that_fails_half_way_leaves_all_as_it_was(world, nodes, monkeypatch):
    made(nodes, "Ada", "Grace", "Kay")
    before = {file.name: file.read_bytes() for file in (world.vault / ENTITIES).iterdir()}
    replace, left = world.app.vault.replace, iter([True, True])

    def full(path, data, *, digest):
        if digest and next(left, None) is None and b"x ^o1" in data:
            raise Unavailable(f"{path}: the disk is full")
        return replace(path, data, digest=digest)

    monkeypatch.setattr(world.app.vault, "replace", full)
    with pytest.raises(Unavailable) as caught:
        nodes.add([("Ada", ["x"]), ("Grace", ["x"]), ("Kay", ["x"])])
    assert "Kay.md" not in caught.value.message
    assert {file.name: file.read_bytes() for file in (world.vault / ENTITIES).iterdir()} == before


def test_a_note_may_not_grow_without_end(nodes):
    made(nodes, "Ada", observations=["x" * 9_000] * 100)
    with pytest.raises(ResourceExhausted, match="split the node"):
        nodes.add([("Ada", ["y" * 9_000] * 20)])
    nodes.remove([("Ada", [1])])
    assert len(facts(nodes, "Ada")) == 99


def at_once(*works):
    """Run these in threads that begin together; what each returned or raised."""
    told, gate = {}, threading.Barrier(len(works))

    def work(number, act):
        gate.wait()
        try:
            told[number] = act()
        except Exception as error:
            told[number] = error

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return [told[number] for number in range(len(works))]


def test_twenty_writers_on_one_node_lose_nothing(world, nodes):
    made(nodes, "Hub", *(f"n{n}" for n in range(20)))
    told = at_once(*(lambda n=n: nodes.add([("Hub", [f"fact {n}", f"more {n}"])]) for n in range(20)))
    ordinals = [one.ordinal for ((_, added),) in told for one in added]
    assert sorted(ordinals) == list(range(1, 41))
    at_once(*(lambda n=n: nodes.relate([Edge("Hub", f"n{n}", "leads to")]) for n in range(20)))
    assert len(nodes.open(["Hub"]).edges) == 20
    assert nodes.get("Hub").version == 41
    assert world.dump() == world.rebuilt(world.state.parent / "other")


def test_of_twenty_that_make_one_node_one_does(nodes):
    told = at_once(*(lambda n=n: made(nodes, f"own {n}", "Ada") for n in range(20)))
    assert sum(isinstance(one, list) for one in told) == 1
    assert sum(isinstance(one, Conflict) for one in told) == 19
    assert len(nodes.graph.vertices()) == 2


def test_twenty_that_make_nodes_each_make_theirs(nodes):
    told = at_once(*(lambda n=n: made(nodes, f"own {n}", f"other {n}") for n in range(20)))
    assert [len(one) for one in told] == [2] * 20
    assert len(nodes.graph.vertices()) == 40


def test_of_two_with_one_version_one_wins(nodes):
    made(nodes, "Ada")
    told = at_once(*(lambda n=n: nodes.set_summary("Ada", f"by {n}", version=1) for n in range(8)))
    assert sum(isinstance(one, Conflict) for one in told) == 7
    assert nodes.get("Ada").version == 2


def test_a_word_with_a_hash_in_a_fact_is_no_tag_of_the_node(world, nodes):
    made(nodes, "Ada", observations=["likes #algebra"], tags=["math"])
    assert nodes.get("Ada").tags == ("math",)
    assert nodes.set_tags("Ada", []).tags == ()
    world.reopen()
    assert world.app.agent_access.workspace("default").nodes.get("Ada").tags == ()
    assert world.found("algebra", tags=["algebra"]) == [f"{ENTITIES}/Ada.md"]


# Beside captures


def test_a_capture_with_the_words_of_a_node_is_a_note_of_its_own(world, nodes):
    (ada,) = made(nodes, "Ada", observations=["one"])
    body = text(world, "Ada").split("---\n", 2)[2]
    captured = world.app.agent_access.workspace("default").capture(body)
    assert captured.created
    assert captured.record.id != ada.id
    assert nodes.get("Ada") == ada


def test_enrichment_leaves_summary_and_tags_of_a_node_alone(world, nodes):
    (ada,) = made(
        nodes, "Ada", observations=["Wrote the first published algorithm, for an engine that was never built"]
    )
    before = text(world, "Ada")
    assert world.app.backfill.facts()["missing"] == 0
    assert world.app.backfill.backfill({}, lambda _: None)["enriched"] == 0
    with pytest.raises(InvalidArgument, match="node"):
        world.app.backfill.again({"id": ada.id}, lambda _: None)
    found = Enrichment(summary="A summary.", tags=("a-tag",))
    assert world.app.agent_access.workspace("default").enrich(ada.path, found, replacing=True) is None
    assert text(world, "Ada") == before


def test_a_node_deleted_by_its_id_takes_its_relations_along_and_its_twin_alone_does_not(world, nodes):
    made(nodes, "Ada", "Kay")
    nodes.relate([Edge("Kay", "Ada", "admires")])
    world.write(f"{ENTITIES}/Another Ada.md", "---\nid: twin\ntype: entity\nname: Ada\n---\n")
    world.run()
    space = world.app.agent_access.workspace("default")
    space.delete("twin")
    assert not (world.vault / ENTITIES / "Another Ada.md").exists()
    assert nodes.between("Kay", "Ada") == [Edge("Kay", "Ada", "admires")]
    space.delete(nodes.get("Ada").id)
    assert "admires" not in text(world, "Kay")
    with pytest.raises(NotFound):
        space.delete("twin")


def test_a_call_that_names_a_node_often_changes_its_note_once(world, nodes):
    made(nodes, "Ada", "Bob", "Carl")
    assert nodes.add([("Ada", ["a"]), ("Nobody", ["x"]), ("ada", ["b", "c"]), ("Bob", ["d"]), ("Ada", [])]) == [
        ("Ada", [Observation(1, "a")]),
        ("Nobody", None),
        ("Ada", [Observation(2, "b"), Observation(3, "c")]),
        ("Bob", [Observation(1, "d")]),
        ("Ada", []),
    ]
    assert nodes.get("Ada").version == 2
    told = nodes.relate([Edge("Ada", to, kind) for to in ("Bob", "Carl") for kind in ("knows", "likes")])
    assert (len(told.created), nodes.get("Ada").version) == (4, 3)
    assert nodes.remove([("Ada", [1, 9]), ("Nobody", [1]), ("ADA", [1, 3])]) == [
        ("Ada", [1], [9]), ("Nobody", [], [1]), ("Ada", [3], [1]),
    ]  # fmt: skip
    assert (facts(nodes, "Ada"), nodes.get("Ada").version) == ([(2, "b")], 4)
    assert world.dump() == world.rebuilt(world.state.parent / "other")


@pytest.mark.parametrize("kind", ["node", "memo"])
def test_what_a_crash_leaves_of_a_deletion_the_same_call_finishes(world, nodes, kind):
    """The links to what goes are removed first; as long as one is there, so is what it leads to."""
    space = world.app.agent_access.workspace("default")
    if kind == "node":
        made(nodes, "Ada", "Bob", "Carl")
        nodes.relate([Edge(name, "Ada", "knows") for name in ("Bob", "Carl")])
        target, others = ENTITIES + "/Ada.md", [ENTITIES + "/Bob.md", ENTITIES + "/Carl.md"]
    else:
        target, *others = (space.memos.save(name, memo_id=name).record.path for name in ("Ada", "Bob", "Carl"))
        for name in ("Bob", "Carl"):
            space.memo_graph.save(name, "Ada", "knows")
    seen = []
    calls = world.app.vault._calls

    def spying(at, name):
        def call(*args, **given):
            files = {path: world.vault / path for path in (target, *others)}
            if not files[target].exists():
                seen.append([path for path in others if "knows" in files[path].read_text()])
            return getattr(calls, name)(*args, **given)

        return call

    names = [one.name for one in dataclasses.fields(calls)]
    world.app.vault._calls = dataclasses.replace(calls, **{name: spying(calls, name) for name in names})
    if kind == "node":
        assert nodes.delete(["Ada"]) == (["Ada"], [])
    else:
        assert space.memos.delete("Ada")[1] == 2
    assert seen and not any(seen), "what leads to it outlived it"


def test_what_a_person_changed_while_a_write_is_taken_back_stays_theirs(world, nodes):
    made(nodes, "Ada", "Bob", "Carl")
    nodes.relate([Edge(name, "Ada", "knows") for name in ("Bob", "Carl")])
    bob, carl = (world.vault / ENTITIES / f"{name}.md" for name in ("Bob", "Carl"))
    calls = world.app.vault._calls
    done = []

    def exchange(*args, **given):
        if not done and "knows" not in bob.read_text():  # Bob is written, and Carl is about to be
            done.append(True)
            bob.write_text(bob.read_text() + "\nby hand\n")
            carl.write_text(carl.read_text() + "\nby hand\n")
        return calls.exchange(*args, **given)

    world.app.vault._calls = dataclasses.replace(calls, exchange=exchange)
    assert nodes.delete(["Ada"]) == (["Ada"], [])
    assert done
    for file in (bob, carl):
        assert "knows" not in file.read_text() and "by hand" in file.read_text()
    world.run()
    assert world.dump() == world.rebuilt(world.state.parent / "other")


def test_a_conflict_copy_of_a_node_is_no_node(world, nodes):
    made(nodes, "Ada", "Bob", observations=["one"])
    nodes.relate([Edge("Ada", "Bob", "knows")])
    ada = text(world, "Ada")
    before = nodes.graph.vertices(), nodes.stats()
    for name in ("Ada.sync-conflict-20261121-101010-ABCDEF7", "Ada (conflicted copy 2026-11-21)"):
        world.write(f"{ENTITIES}/{name}.md", ada.replace("one", "another zebra"))
    world.run()
    assert (nodes.graph.vertices(), nodes.stats()) == before
    assert nodes.search("zebra", 5, "text").hits == ()
    assert min(world.found("zebra")).startswith(f"{ENTITIES}/Ada (conflicted")
    assert world.dump() == world.rebuilt(world.state.parent / "other")
    space = world.app.agent_access.workspace("default")
    (copy, _) = (one for one in space.recent(10) if "conflict" in one.path)
    space.delete(copy.id)
    assert not (world.vault / copy.path).exists()


@pytest.mark.parametrize(
    "name",
    [
        "Foo (conflicted copy)",
        "x_conflict-20261121-101010",
        "A.md (conflicted copy).md",
        "(SFConflict b) (SFConflict a)",
        "b [conflicted]",
    ],
)
def test_a_node_that_is_called_like_a_conflict_copy_is_one(world, nodes, name):
    (one,) = made(nodes, name, observations=["one"])
    assert (nodes.get(name).path, facts(nodes, name)) == (one.path, [(1, "one")])
    world.run()
    assert nodes.get(name).name == name


def test_while_the_notes_are_read_anew_nothing_is_made_twice(world, nodes):
    world.write("Ada.md", "the owner's\n")
    world.run()
    made(nodes, "Ada", "a/b", observations=["one"])
    space = world.app.agent_access.workspace("default")
    space.memos.save("one", memo_id="todo", title="Todo")
    world.app.close()
    for file in world.state.rglob("captures.db*"):
        file.unlink()
    world.app = world._open()
    space = world.app.agent_access.workspace("default")
    before = {path: path.read_bytes() for path in world.vault.rglob("*.md")}
    for call in (
        lambda: space.nodes.create([NewNode("A/B", "person")]),
        lambda: space.nodes.add([("Ada", ["two"])]),
        lambda: space.nodes.delete(["Ada"]),
        lambda: space.memos.save("two", memo_id="todo", title="Todo"),
        lambda: space.memos.delete("todo"),
        lambda: space.memo_graph.save("todo", "todo", "itself"),
    ):
        with pytest.raises(Unavailable) as caught:
            call()
        assert caught.value.retryable
    assert {path: path.read_bytes() for path in world.vault.rglob("*.md")} == before
    world.run()
    assert space.memos.save("two", memo_id="todo", title="Todo").record.version == 2
    assert space.nodes.delete(["Ada"]) == (["Ada"], [])
