"""An import of a graph adds to the nodes of a workspace what they lack, whoever else writes them."""

from __future__ import annotations

import io
import json

import pytest

from index.graph.vertex import Edge
from syncd.graph.memory_json import parse_lines
from syncd.graph.memory_json_reader import import_graph, summarize_file
from syncd.graph.node_request import NewNode
from syncd.graph.nodes import Nodes
from syncd.owner.graph import memory_json
from tests.support.node_notes import ENTITIES, text

STAMPED = {"created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-02T00:00:00.000Z", "version": 4}


def entity(name, **properties):
    return {"type": "entity", "name": name, "entityType": "person", "observations": ["one"], **properties}


def brought(world, *lines, before=lambda _: None, workspace="default"):
    """Import lines; `before` sees each request first."""

    def ask(operation, given):
        before(given)
        return world.app.operations[operation](given, lambda _: None)

    source = io.BytesIO("\n".join(map(json.dumps, lines)).encode())
    given = {"workspace": workspace, "dry_run": False}
    return import_graph(source, summarize_file(source), ask, lambda _: None, given)


def exported(world, *names, workspace="default"):
    part = world.app.operations["graph.export"]({"workspace": workspace, "names": names}, lambda _: None)
    return [json.loads(line) for line in part["entities"]]


def test_what_an_agent_writes_during_an_import_is_not_replaced(nodes):
    nodes.create([NewNode("Ada", "person"), NewNode("Bob", "person")])
    writes = [lambda: nodes.set_tags("Bob", ["theirs"]), lambda: nodes.set_summary("Bob", "Theirs")]

    class Interrupted(Nodes):
        def _change(self, *args, **how):
            result = super()._change(*args, **how)
            while writes:
                writes.pop()()
            return result

    mine = {"observations": ["known"], "ordinals": [], "properties": {"summary": "Mine", "tags": ["mine"]}}
    wanted = [{"name": name, "entity_type": "person", **mine} for name in ("Ada", "Bob")]
    operations = memory_json.operations(lambda _: Interrupted("default", nodes._inbox), lambda: nodes._index)
    operations["graph.import"]({"workspace": "default", "entities": wanted}, None)
    assert [(node.summary, list(node.tags)) for node in map(nodes.get, ("Ada", "Bob"))] == [
        ("Mine", ["mine"]),
        ("Theirs", ["theirs", "mine"]),
    ]


def test_an_import_leaves_the_version_that_an_agent_wrote_meanwhile(world, nodes):
    def write(given):
        if "relations" in given:
            nodes.set_summary("Ada", "Theirs")

    knows = {"type": "relation", "from": "Ada", "to": "Bob", "relationType": "knows"}
    counts = brought(world, entity("Ada", **STAMPED), entity("Bob", **STAMPED), knows, before=write)
    ada, bob = nodes.get("Ada"), nodes.get("Bob")
    assert (counts["related"], nodes.open(["Ada"]).edges) == (1, [Edge("Ada", "Bob", "knows")])
    assert (ada.summary, ada.version, bob.version) == ("Theirs", 5, 4)
    assert [node.name for node in nodes.recent(1)] == ["Ada"]


def test_a_relation_is_a_change_of_a_node_that_existed_and_belongs_to_a_new_one(world, nodes):
    nodes.create([NewNode("Old", "person")])
    lines = [{"type": "relation", "from": name, "to": "Old", "relationType": "knows"} for name in ("Old", "Ada")]
    brought(world, entity("Ada", **STAMPED), *lines)
    ada = exported(world, "Ada")[0]
    assert ({key: ada[key] for key in STAMPED}, nodes.get("Old").version) == (STAMPED, 2)
    assert len(nodes.open(["Old"]).edges) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"created_at": "2026-01-01 00:00:00+00"},
        {"updated_at": "20260101T000000Z"},
        {"observed_at": "2026-W01-1T00:00:00Z"},
        {"summary_updated_at": "0001-01-01T00:00:00+14:00"},
        {"created_at": "2026-01-01T00:00:00"},
        {"version": 0},
    ],
)
def test_a_value_that_the_note_could_not_have_is_a_mistake(wrong):
    ((_, _, (mistake,)),) = parse_lines([(1, json.dumps(entity("Ada", **wrong)).encode())])
    assert mistake.what.startswith(f"{next(iter(wrong))} must be")


def test_of_two_entities_with_one_id_the_first_gets_it(world, nodes):
    brought(world, entity("Ada", id="same"), entity("Bob", id="same"))
    assert nodes.get("Ada").id == "same"
    assert "id: same" not in text(world, "Bob")
    assert nodes.open(["Ada", "Bob"]).not_found == []


PROPERTIES = """entity_type: "two\\nlines"
source: "a\\n\\nb"
aliases: ["c\\nd", Countess]
version: 1000000000000000
"": empty
publish: true
born: 1815"""


def test_what_an_owner_wrote_is_exported_as_an_import_accepts_it(world):
    world.write(
        f"{ENTITIES}/Ada.md", f"---\ntype: entity\n{PROPERTIES}\n---\n## Observations\n- one ^o999999999999\n- two\n"
    )
    world.run()
    (ada,) = exported(world, "Ada")
    assert (ada["entityType"], ada["source"], ada["aliases"]) == ("two lines", "a b", ["Countess"])
    assert (ada["observations"], ada["metadata"], ada.get("version")) == (["one", "two"], {"born": 1815}, None)
    assert summarize_file(io.BytesIO(json.dumps(ada).encode())).mistakes == []
    world.app.operations["workspace.create"]({"name": "other"}, lambda _: None)
    brought(world, ada, workspace="other")
    (other,) = exported(world, "Ada", workspace="other")
    assert {**other, "id": "", "ordinals": [], "last_ordinal": 0} == {
        **ada,
        "id": "",
        "ordinals": [],
        "last_ordinal": 0,
    }


def test_a_summary_that_the_owner_wrote_goes_out_and_comes_back_however_long_it_is(world):
    world.app.agent_access.create_workspace("other")
    world.write(f"{ENTITIES}/Ada.md", f"---\nid: ada\ncreated_at: 2026-01-02\nsummary: {'Long. ' * 2_000}\n---\n")
    world.run()
    lines = exported(world, "Ada")
    assert len(lines[0]["summary"]) > 10_000
    brought(world, entity("Ada"), workspace="other")  # one that has no summary yet
    for workspace in ("other", "third"):
        world.app.agent_access.create_workspace(workspace)
        brought(world, *lines, workspace=workspace)
        assert exported(world, "Ada", workspace=workspace)[0]["summary"] == lines[0]["summary"]


def test_a_summary_that_no_note_can_hold_is_a_mistake():
    line = json.dumps(entity("Ada", summary="é" * 40_000)).encode()
    ((_, _, mistakes),) = parse_lines([(1, line)])
    assert "larger than 65,536 bytes" in str(mistakes)
