"""Nodes beside captures, twins and conflict copies: what is a node, and what is a note of its own."""

from __future__ import annotations

import pytest

from index.errors import Conflict, InvalidArgument, NotFound
from index.graph.vertex import Edge
from index.topics.summary_and_tags import Enrichment
from tests.support.node_notes import ENTITIES, facts, made, text
from tests.support.parsed_notes import parse


def test_a_word_with_a_hash_in_a_fact_is_no_tag_of_the_node(world, nodes):
    made(nodes, "Ada", observations=["likes #algebra"], tags=["math"])
    assert nodes.get("Ada").tags == ("math",)
    assert nodes.set_tags("Ada", []).tags == ()
    world.reopen()
    assert world.app.agent_access.workspace("default").nodes.get("Ada").tags == ()
    assert world.found("algebra", tags=["algebra"]) == [f"{ENTITIES}/Ada.md"]


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
    assert world.app.backfill.enrich_all({}, lambda _: None)["enriched"] == 0
    with pytest.raises(InvalidArgument, match="entity of the graph"):
        world.app.backfill.enrich_note({"id": ada.id}, lambda _: None)
    found = Enrichment(summary="A summary.", tags=("a-tag",))
    page = parse(before.encode(), ada.path, mtime_ms=0)
    assert world.app.agent_access.workspace("default").enrich(page, found, replacing=True) is None
    assert text(world, "Ada") == before


def test_a_node_deleted_by_its_id_takes_its_relations_along_and_its_twin_alone_does_not(world, nodes):
    made(nodes, "Ada", "Kay")
    nodes.add_relations([Edge("Kay", "Ada", "admires")])
    world.write(f"{ENTITIES}/Another Ada.md", "---\nid: twin\ntype: entity\nname: Ada\n---\n")
    world.run()
    space = world.app.agent_access.workspace("default")
    space.delete("twin")
    assert not (world.vault / ENTITIES / "Another Ada.md").exists()
    assert nodes.relations_between("Kay", "Ada") == [Edge("Kay", "Ada", "admires")]
    space.delete(nodes.get("Ada").id)
    assert "admires" not in text(world, "Kay")
    with pytest.raises(NotFound):
        space.delete("twin")


def test_a_conflict_copy_of_a_node_is_no_node(world, nodes):
    made(nodes, "Ada", "Bob", observations=["one"])
    nodes.add_relations([Edge("Ada", "Bob", "knows")])
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


def test_a_relation_leads_to_its_entity_although_another_note_has_the_file_name(world, nodes):
    made(nodes, "Ada", "Eve")
    world.write("Captures/default/alpha/Ada.md", "---\ntype: entity\nname: Grace\n---\n## Observations\n- one\n")
    world.run()
    edges = [Edge("Eve", "Ada", "loves"), Edge("Eve", "Grace", "knows")]
    assert nodes.add_relations(edges).created == edges
    assert nodes.open(["Eve"]).edges == sorted(edges)
    assert f"- loves:: [[{ENTITIES}/Ada|Ada]]\n" in text(world, "Eve")
    assert "- knows:: [[Ada|Grace]]\n" in text(world, "Eve")
    assert nodes.add_relations(edges).existed == edges
    assert world.dump() == world.rebuilt(world.state.parent / "other")
    assert nodes.remove_relations(edges) == (2, 0)
    assert nodes.open(["Eve"]).edges == []


def test_a_relation_to_a_file_that_no_link_can_name_is_refused(world, nodes):
    made(nodes, "Eve")
    world.write("Captures/default/Ada.md", "---\ntype: entity\nname: Grace\n---\n")
    world.write("Captures/default/ada.md", "---\ntype: entity\nname: Ada L\n---\n")
    world.run()
    if len(nodes.graph) < 3:
        pytest.skip("the file system ignores letter case")
    with pytest.raises(Conflict, match="no link can lead to 'Ada L'"):
        nodes.add_relations([Edge("Eve", "Ada L", "knows")])


def test_a_node_gets_the_name_of_its_file_whatever_the_letter_case_of_the_ending(world, nodes):
    path = "Captures/default/Entities/Bob.MD"
    world.write(path, "---\nid: bob\ntype: entity\nname: Robert\n---\n\n## Observations\n\n- built it\n")
    world.run()
    assert nodes.rename("Robert", "Bob").aliases == ("Robert",)
    assert "name:" not in (world.vault / path).read_text()


def test_a_query_without_words_is_refused_not_answered_by_chance(nodes):
    made(nodes, "Ada", observations=["one"])
    for mode in ("embedding", "text"):
        with pytest.raises(InvalidArgument, match="query must be text"):
            nodes.search(" ", 5, mode)
        with pytest.raises(InvalidArgument, match="query must be text"):
            nodes.search_node("Ada", "\n", mode)
