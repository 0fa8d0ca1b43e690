"""Operations on nodes beside a person who edits the notes and other agents who write at once."""

from __future__ import annotations

import threading

import pytest

from index.errors import Conflict, NotFound, Unavailable
from index.graph.vertex import Edge
from syncd.graph.node_request import NewNode
from tests.support.node_notes import ENTITIES, facts, made, text


def test_a_person_s_edit_that_is_not_indexed_yet_is_built_upon(world, nodes):
    made(nodes, "Ada", "Grace", observations=["one"])
    path = world.vault / ENTITIES / "Ada.md"
    path.write_text(path.read_text() + "- by hand\n- knows:: [[Grace]]\n".replace("- knows", "\n## Relations\n- knows"))
    ((_, added),) = nodes.add_observations([("Ada", ["three"])])
    assert [one.ordinal for one in added] == [3]
    assert facts(nodes, "Ada") == [(1, "one"), (2, "by hand"), (3, "three")]
    path.write_text(path.read_text() + "- likes:: [[Grace]]\n")
    assert nodes.add_relations([Edge("Ada", "Grace", "likes")]).created == []


def test_an_edit_between_reading_and_writing_is_kept(world, nodes, monkeypatch):
    made(nodes, "Ada", "Grace", observations=["one"])
    path = world.vault / ENTITIES / "Ada.md"
    index, hands = world.app.opened.builds.scopes["captures"].index, iter(["first", "second"])
    prepare = index.prepare

    def slow(documents, **given):
        if hand := next(hands, None):
            path.write_text(path.read_text().replace("- one", f"- {hand}\n- one"))
        return prepare(documents, **given)

    monkeypatch.setattr(index, "prepare", slow)
    told = nodes.add_observations([("Ada", ["by a tool"]), ("Grace", ["by a tool"])])
    assert [[one.content for one in added] for _, added in told] == [["by a tool"]] * 2
    assert sorted(content for _, content in facts(nodes, "Ada")) == ["by a tool", "first", "one", "second"]
    assert [content for _, content in facts(nodes, "Grace")] == ["one", "by a tool"]


def test_a_note_that_never_rests_is_a_conflict_and_stays_the_person_s(world, nodes, monkeypatch):
    made(nodes, "Ada", "Grace")
    path = world.vault / ENTITIES / "Ada.md"
    index = world.app.opened.builds.scopes["captures"].index
    prepare, grace = index.prepare, text(world, "Grace")

    def restless(documents, **given):
        path.write_text(path.read_text() + "typing\n")
        return prepare(documents, **given)

    monkeypatch.setattr(index, "prepare", restless)
    with pytest.raises(Conflict) as caught:
        nodes.add_observations([("Grace", ["x"]), ("Ada", ["x"])])
    assert caught.value.retryable
    assert text(world, "Grace") == grace
    assert "^o1" not in path.read_text()


def test_broken_properties_are_named_and_nothing_is_changed(world, nodes):
    made(nodes, "Ada", "Grace")
    path = world.vault / ENTITIES / "Ada.md"
    path.write_text(path.read_text().replace("---\n", "---\n: {[\n", 1))
    grace, broken = text(world, "Grace"), path.read_text()
    for call in (
        lambda: nodes.add_observations([("Grace", ["x"]), ("Ada", ["x"])]),
        lambda: nodes.set_summary("Ada", "x"),
        lambda: nodes.add_relations([Edge("Ada", "Grace", "x")]),
    ):
        with pytest.raises(Conflict, match="'Ada'"):
            call()
    assert (text(world, "Grace"), path.read_text()) == (grace, broken)


def test_a_note_that_has_gone_is_no_node(world, nodes):
    made(nodes, "Ada", "Grace")
    (world.vault / ENTITIES / "Ada.md").unlink()
    assert nodes.add_observations([("Ada", ["x"]), ("Grace", ["y"])])[0] == ("Ada", None)
    assert nodes.delete(["Ada"]) == ([], ["Ada"])
    with pytest.raises(NotFound):
        nodes.set_summary("Ada", "x")


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


@pytest.mark.slow
def test_twenty_writers_on_one_node_lose_nothing(world, nodes):
    made(nodes, "Hub", *(f"n{n}" for n in range(20)))
    told = at_once(*(lambda n=n: nodes.add_observations([("Hub", [f"fact {n}", f"more {n}"])]) for n in range(20)))
    ordinals = [one.ordinal for ((_, added),) in told for one in added]
    assert sorted(ordinals) == list(range(1, 41))
    at_once(*(lambda n=n: nodes.add_relations([Edge("Hub", f"n{n}", "leads to")]) for n in range(20)))
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
        lambda: space.nodes.add_observations([("Ada", ["two"])]),
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
