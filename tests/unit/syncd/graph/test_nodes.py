"""The operations on nodes over real files and a real index: what they keep, change and refuse."""

from __future__ import annotations

from contextlib import suppress

import pytest

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from index.graph.vertex import Edge
from index.model import Observation
from syncd.graph.node_request import NewNode
from tests.support.node_notes import ENTITIES, facts, made, text
from tests.support.world import World

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


NO_NODES = {
    "a name twice": [NewNode("Ada", "person"), NewNode(" aDA ", "person")],
    "no name": [NewNode("", "person")],
    "a name of two lines": [NewNode("a\nb", "person")],
    "a long name": [NewNode("x" * 257, "person")],
    "no type": [NewNode("Ada", "  ")],
    "a type of two lines": [NewNode("Ada", "a\nb")],
    "an empty observation": [NewNode("Ada", "person", ["fine", " \n "])],
    "a long observation": [NewNode("Ada", "person", ["x" * 10_001])],
    "half a character": [NewNode("Ada", "person", ["\ud800"])],
    "a long summary": [NewNode("Ada", "person", (), "x" * 2_001)],
    "a collection as a tag": [NewNode("Ada", "person", (), None, ["collection:memory"])],
    "a tag of nothing": [NewNode("Ada", "person", (), None, ["#"])],
    "too many observations": [NewNode(f"n{n}", "person", ["x"] * 200) for n in range(6)],
}


def test_what_can_t_be_a_node_is_refused_and_nothing_is_made(world, nodes):
    accepted = []
    for what, asked in NO_NODES.items():
        with suppress(InvalidArgument):
            nodes.create([NewNode("Fine", "person"), *asked])
            accepted.append(what)
    assert accepted == []
    assert not (world.vault / ENTITIES).exists()


NAMES = ["日本語のノート", "🦊 fox", "مرحبا", "a/b:c", "[[x]] | #y ^z", "???", "con", "x" * 256, "e\u0301", "- dash", "true", "007", "a.md", "..", "%20", "ﬀ"]  # fmt: skip


def test_any_name_is_kept_and_led_to(world, nodes):
    made(nodes, "Other", *NAMES)
    edges = [edge for name in NAMES for edge in (Edge("Other", name, "knows"), Edge(name, "Other", "likes"))]
    assert nodes.add_relations(edges).not_found == []
    kept = {name: nodes.get(name).name for name in NAMES}
    for name in NAMES:
        assert nodes.relations_between("Other", name) == sorted(
            [Edge("Other", kept[name], "knows"), Edge(kept[name], "Other", "likes")],
            key=lambda one: (one.source, one.target),
        ), name
    world.reopen()
    again = world.app.agent_access.workspace("default").nodes
    for name in NAMES:
        assert again.get(name).name == kept[name]
        assert len(again.relations_between(name, "Other")) == 2, name
    assert world.dump() == world.rebuilt(world.state.parent / "other")


def test_a_node_whose_name_another_note_has_gets_another_file_and_keeps_its_name(world, nodes):
    world.write("Ada.md", "the owner's\n")
    world.write("Captures/default/Grace.md", "a capture\n")
    world.run()
    ada, grace = made(nodes, "Ada", "Grace")
    assert (ada.path, grace.path) == (f"{ENTITIES}/Ada 2.md", f"{ENTITIES}/Grace 2.md")
    assert (ada.name, nodes.get("ada").path) == ("Ada", ada.path)
    nodes.add_relations([Edge("Grace", "Ada", "knows")])
    assert "- knows:: [[Ada 2|Ada]]\n" in text(world, "Grace 2")


def test_a_note_that_is_not_indexed_yet_is_not_doubled(world, nodes):
    world.write(f"{ENTITIES}/Ada.md", "---\ntype: entity\n---\n")
    with pytest.raises(Conflict):
        made(nodes, "New", "Ada")
    world.write(f"{ENTITIES}/Grace.md", "---\ntype: entity\nname: Someone else\n---\n")
    assert made(nodes, "Grace")[0].path == f"{ENTITIES}/Grace 2.md"


def test_a_link_or_a_folder_that_has_a_node_s_file_name_is_left_alone(world, nodes):
    folder = world.vault / ENTITIES
    folder.mkdir(parents=True)
    (folder / "Ada.md").symlink_to("nowhere.md")
    (folder / "Bea.md").mkdir()
    made(nodes, "Ada", "Bea")
    assert [vertex.path for vertex, *_ in nodes.open(["Ada", "Bea"]).nodes] == [
        f"{ENTITIES}/Ada 2.md",
        f"{ENTITIES}/Bea 2.md",
    ]
    assert (folder / "Ada.md").readlink().name == "nowhere.md"


def test_where_the_nodes_folder_can_t_be_it_is_said_at_once(world, nodes):
    (world.vault / "Captures/default").mkdir(exist_ok=True)
    (world.vault / ENTITIES).write_text("no folder")
    with pytest.raises(Conflict, match="blocks the path"):
        made(nodes, "Ada")


def test_names_that_need_one_file_get_two(nodes):
    one, other = made(nodes, "a/b", "a:b")
    assert {one.path, other.path} == {f"{ENTITIES}/a b.md", f"{ENTITIES}/a b 2.md"}
    assert (nodes.get("a/b").path, nodes.get("a:b").path) == (one.path, other.path)


# Opening and listing


def test_opened_nodes_are_whole_and_unknown_names_are_told(nodes):
    made(nodes, "Ada", "Babbage", "Kay", observations=["one", "two"])
    nodes.add_relations(
        [Edge("Ada", "Babbage", "knew"), Edge("Kay", "Ada", "admires"), Edge("Kay", "Babbage", "admires")]
    )
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
    assert other.add_relations([Edge("Ada", "Babbage", "knew")]).not_found == ["Babbage"]
    assert [one.name for one in nodes.graph.orphans()] == ["Ada", "Babbage"]


def test_what_changed_last_comes_first(world, nodes):
    made(nodes, "a", "b", "c")
    nodes.add_observations([("b", ["x"])])
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
    told = nodes.add_observations([("ada", ["three", "four"]), ("Nobody", ["x"]), ("Ada", ["five"])])
    assert [(name, added and [one.ordinal for one in added]) for name, added in told] == [
        ("Ada", [3, 4]), ("Nobody", None), ("Ada", [5]),
    ]  # fmt: skip
    assert nodes.get("Ada").version == 2
    assert nodes.remove_observations([("Ada", [5, 99]), ("Nobody", [1]), ("ada", [5, 4])]) == [
        ("Ada", [5], [99]), ("Nobody", [], [1]), ("Ada", [4], [5]),
    ]  # fmt: skip
    assert nodes.get("Ada").version == 3
    ((_, added),) = nodes.add_observations([("Ada", ["six"])])
    assert [one.ordinal for one in added] == [6]
    assert nodes.replace_observation("ADA", 2, " zwei\r\nzeilen ") == ("Ada", "two", "zwei\nzeilen")
    assert facts(nodes, "Ada") == [(1, "one"), (2, "zwei\nzeilen"), (3, "three"), (6, "six")]
    with pytest.raises(NotFound, match="99"):
        nodes.replace_observation("Ada", 99, "x")
    with pytest.raises(NotFound, match="Nobody"):
        nodes.replace_observation("Nobody", 1, "x")
    assert world.dump() == world.rebuilt(world.state.parent / "other")


def test_a_bad_observation_among_many_changes_nothing(world, nodes):
    made(nodes, "Ada", "Grace")
    before = {name: text(world, name) for name in ("Ada", "Grace")}
    with pytest.raises(InvalidArgument):
        nodes.add_observations([("Ada", ["fine"]), ("Grace", ["fine", ""])])
    with pytest.raises(InvalidArgument):
        nodes.add_observations([("Ada", ["fine"] * 1_001)])
    assert {name: text(world, name) for name in ("Ada", "Grace")} == before


def test_writes_move_the_node_s_time_and_version_and_nothing_else_does(nodes):
    made(nodes, "Ada", "Grace", observations=["one"])
    born = nodes.get("Ada")
    assert (born.updated_at, born.version, born.summary_updated_at) == (None, 1, None)
    assert born.observed_at == born.created_at
    seen = [born.version]
    for write in (
        lambda: nodes.add_observations([("Ada", ["two"])]),
        lambda: nodes.replace_observation("Ada", 1, "eins"),
        lambda: nodes.remove_observations([("Ada", [2])]),
        lambda: nodes.add_relations([Edge("Ada", "Grace", "knows")]),
        lambda: nodes.retype_relation("Ada", "Grace", "knows", "admires"),
        lambda: nodes.remove_relations([Edge("Ada", "Grace", "admires")]),
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
    nodes.remove_observations([("Ada", [77])])
    nodes.remove_relations([Edge("Ada", "Grace", "nothing")])
    assert nodes.get("Ada") == now
    assert (nodes.get("Grace").version, nodes.get("Grace").updated_at) == (1, None)


def test_a_call_that_names_a_node_often_changes_its_note_once(world, nodes):
    made(nodes, "Ada", "Bob", "Carl")
    assert nodes.add_observations(
        [("Ada", ["a"]), ("Nobody", ["x"]), ("ada", ["b", "c"]), ("Bob", ["d"]), ("Ada", [])]
    ) == [
        ("Ada", [Observation(1, "a")]),
        ("Nobody", None),
        ("Ada", [Observation(2, "b"), Observation(3, "c")]),
        ("Bob", [Observation(1, "d")]),
        ("Ada", []),
    ]
    assert nodes.get("Ada").version == 2
    told = nodes.add_relations([Edge("Ada", to, kind) for to in ("Bob", "Carl") for kind in ("knows", "likes")])
    assert (len(told.created), nodes.get("Ada").version) == (4, 3)
    assert nodes.remove_observations([("Ada", [1, 9]), ("Nobody", [1]), ("ADA", [1, 3])]) == [
        ("Ada", [1], [9]), ("Nobody", [], [1]), ("Ada", [3], [1]),
    ]  # fmt: skip
    assert (facts(nodes, "Ada"), nodes.get("Ada").version) == ([(2, "b")], 4)
    assert world.dump() == world.rebuilt(world.state.parent / "other")


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


@pytest.mark.parametrize("name", ["Ada", "Ada: a note"])
def test_a_name_or_tags_that_a_node_has_already_are_not_written(world, nodes, name):
    made(nodes, name)
    nodes.set_tags(name, ["a", "b"])
    file = world.vault / nodes.get(name).path
    before = file.read_bytes()
    assert nodes.rename(name, name).version == 2
    assert nodes.set_tags(name, ["a", "b"]).version == 2
    assert file.read_bytes() == before


def test_a_version_that_has_passed_is_a_conflict_that_tells_the_current_one(nodes):
    made(nodes, "Ada", observations=["one"])
    assert nodes.set_summary("Ada", "a", version=1).version == 2
    for call in (
        lambda: nodes.set_summary("Ada", "b", version=1),
        lambda: nodes.set_tags("Ada", ["b"], version=3),
        lambda: nodes.replace_observation("Ada", 1, "b", version=1),
    ):
        with pytest.raises(Conflict) as caught:
            call()
        assert caught.value.details["version"] == 2
    assert (nodes.get("Ada").summary, nodes.get("Ada").tags, facts(nodes, "Ada")) == ("a", (), [(1, "one")])
    nodes.replace_observation("Ada", 1, "b", version=2)


# Relations


def test_a_relation_is_there_once(nodes):
    made(nodes, "Ada", "Babbage")
    told = nodes.add_relations(
        [Edge("ada", "babbage", " knew "), Edge("Ada", "Babbage", "knew"), Edge("Babbage", "Ada", "knew"), Edge("Ada", "X", "knew"), Edge("Y", "X", "knew")]
    )  # fmt: skip
    assert told.created == [Edge("Ada", "Babbage", "knew"), Edge("Babbage", "Ada", "knew")]
    assert told.existed == [Edge("Ada", "Babbage", "knew")]
    assert told.not_found == ["X", "Y"]
    assert nodes.add_relations([Edge("Ada", "Babbage", "knew")]).existed == [Edge("Ada", "Babbage", "knew")]
    assert nodes.graph.relation_count == 2


def test_relations_are_renamed_and_removed(nodes):
    made(nodes, "Ada", "Babbage")
    nodes.add_relations([Edge("Ada", "Babbage", "knew"), Edge("Ada", "Babbage", "taught"), Edge("Ada", "Ada", "is")])
    with pytest.raises(Conflict):
        nodes.retype_relation("Ada", "Babbage", "knew", "taught")
    for call in (("Ada", "Babbage", "nothing", "x"), ("Babbage", "Ada", "knew", "x"), ("Ada", "Nobody", "knew", "x")):
        with pytest.raises(NotFound):
            nodes.retype_relation(*call)
    with pytest.raises(NotFound, match="to 'Babbage'; there are: knew, taught"):
        nodes.retype_relation("Ada", "Babbage", "nothing", "x")
    with pytest.raises(InvalidArgument):
        nodes.retype_relation("Ada", "Babbage", "knew", "a::b")
    assert nodes.retype_relation("ada", "babbage", "knew", "wrote to") == Edge("Ada", "Babbage", "wrote to")
    assert nodes.retype_relation("Ada", "Babbage", "taught", "taught").type == "taught"
    gone = [
        Edge("Ada", "Babbage", "wrote to"),
        Edge("Ada", "Babbage", "wrote to"),
        Edge("Ada", "Ada", "is"),
        Edge("A", "B", "c"),
    ]
    assert nodes.remove_relations(gone) == (2, 2)
    assert nodes.relations_between("Ada", "Babbage") == [Edge("Ada", "Babbage", "taught")]


def test_a_deleted_node_takes_every_line_that_leads_to_it_along(world, nodes):
    made(nodes, "Ada", "Babbage", "Kay")
    nodes.add_relations(
        [Edge("Ada", "Babbage", "knew"), Edge("Kay", "Ada", "admires"), Edge("Kay", "Babbage", "admires")]
    )
    path = world.vault / ENTITIES / "Kay.md"
    path.write_text(text(world, "Kay") + "\nA person's own words about [[Ada]].\n")
    world.run()
    assert nodes.delete(["ADA", "Nobody", "Ada"]) == (["Ada"], ["Nobody"])
    assert "admires:: [[Ada]]" not in text(world, "Kay")
    assert "A person's own words about [[Ada]]." in text(world, "Kay")
    assert nodes.graph.edges() == [Edge("Kay", "Babbage", "admires")]
    assert f"{ENTITIES}/Ada.md" not in world.found("Ada knew", scope="captures")
    made(nodes, "Ada")
    assert nodes.graph.edges() == [Edge("Kay", "Babbage", "admires")]
    assert world.dump() == world.rebuilt(world.state.parent / "other")


def test_paths_and_neighbourhoods_name_the_nodes_that_are_missing(nodes):
    made(nodes, "a", "b", "c")
    nodes.add_relations([Edge("b", "a", "x"), Edge("b", "c", "y")])
    assert nodes.shortest_path("A", "c") == [Edge("b", "a", "x"), Edge("b", "c", "y")]
    assert nodes.shortest_path("a", "a") == []
    assert [one.name for one in nodes.neighbourhood("A", 1, 10).vertices] == ["a", "b"]
    for call in (
        lambda: nodes.shortest_path("a", "Q"),
        lambda: nodes.neighbourhood("Q", 1, 10),
        lambda: nodes.relations_between("Q", "a"),
    ):
        with pytest.raises(NotFound, match="'Q'"):
            call()
