"""What the file of a node is called tells no agent of the notes elsewhere in the vault that have its name already."""

from __future__ import annotations

import json
import re

import pytest

from index.document_ids import path_id
from index.errors import MemexError
from mcp_server.operations.wire_format import encode_payload
from mcp_server.tools.families import FAMILIES
from syncd.graph.node_request import NewNode
from syncd.vault.path_rules import file_name
from tests.support.world import World

TOOLS = {one.name: one for family in ("thoughts", "graph") for one in FAMILIES[family]}
NAMES = ["Secret plan", "a/b: c", "Plan.md", "???", "x" * 200, "sk-proj-" + "aB3" * 16]


def ask(world, tool, **arguments):
    """What a tool tells, or the code of its refusal."""
    operation = TOOLS[tool]
    try:
        asked = operation.given.model_validate(arguments)
        return encode_payload(operation.run(world.app.agent_access.workspace("default"), asked, world.app.settings))[0]
    except MemexError as error:
        return error.code


def told(world, name):
    """All that an agent can learn in a graph of its own making, ids and times aside."""
    entities = [
        {"name": name, "entity_type": "x", "observations": ["fact one"]},
        {"name": "Pointer", "entity_type": "x", "observations": [f"mentions {file_name(name) or 'Entity'} 2 here"]},
    ]
    answers = [
        ask(world, "create_entities", entities=entities),
        ask(world, "get_relation_gaps"),
        ask(world, "create_relations", relations=[{"from_entity": "Pointer", "to_entity": name, "relation_type": "k"}]),
        *(
            ask(world, "open_nodes", names=[f"{stem} 2"])
            for stem in (file_name(name), "Entity", "Plan", file_name(name)[:78])
        ),
        ask(world, "get_consolidation_report"),
    ]
    workspace = world.app.agent_access.workspace("default")
    records = sorted(workspace.recent(10), key=lambda one: one.title)
    for one in records:
        answers += [ask(world, "get_thought", id=one.id), workspace.read_content(one), dict(one.metadata)]
    answers.append(sorted(workspace.addresses(records).values()))
    answers.append(ask(world, "list_recent"))
    answers += [ask(world, "semantic_search", query=query, mode="text") for query in ("2", "fact one", "Plan")]
    text = json.dumps(answers, ensure_ascii=False)
    for number, one in enumerate(records):
        text = text.replace(one.id, f"id{number}").replace(path_id(one.path), f"key{number}")
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\b1\d{12}\b", "time", text)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_agent_learns_nothing_of_notes_that_have_the_name(tmp_path, name):
    known = []
    for taken in (False, True):
        world = World(tmp_path / str(taken))
        try:
            if taken:
                world.app.agent_access.create_workspace("work").nodes.create([NewNode(name, "x")])
                world.write("Secret plan.md", "the owner's\n")
            world.run()
            known.append(told(world, name))
            files = sorted(path.name for path in (world.vault / "Captures/default/Entities").iterdir())
            assert any(re.search(r" [23]\.md$", file) for file in files) == taken
        finally:
            world.close()
    assert known[0] == known[1]
