"""An import of a graph adds to the nodes of a workspace what they lack, whoever else writes them."""

from __future__ import annotations

from syncd.graph.node_request import NewNode
from syncd.graph.nodes import Nodes
from syncd.owner.graph import memory_json


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
