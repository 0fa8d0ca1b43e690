"""Whatever a node is called, it can be created, opened, pointed at, moved by hand and found again, with its facts whole."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from index.errors import MemexError
from index.text.hidden_characters import find_hidden
from mcp_server.operations.wire_format import encode_payload
from mcp_server.tools.families import FAMILIES
from tests.support import graph_oracle
from tests.support.example_counts import examples
from tests.support.graph_oracle import key
from tests.support.mcp_agent import triple
from tests.support.world import World

TOOLS = {one.name: one for one in FAMILIES["graph"]}
NAMES = st.one_of(
    st.text(min_size=1, max_size=256),
    st.text(st.sampled_from('/:\\#^[]|?*"<>%.~- aB日é\u0301🍀\u200d\u202e\u3000ßİıſﬀ'), min_size=1, max_size=40),
    st.sampled_from(["nul", "COM1.txt", "COM0", "conin$", "日" * 256, "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 40, "a" * 256, "null", "~", "- x", "1.0"]),
)  # fmt: skip
OFTEN = examples(
    60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("names"))
    made.write("Projects/Taken.md", "A note of the vault proper.")
    made.run()
    yield made
    made.close()


def ask(world, tool, **arguments):
    """What a tool tells, or the code of its refusal."""
    operation = TOOLS[tool]
    try:
        asked = operation.given.model_validate(arguments)
        return encode_payload(operation.run(world.app.agent_access.workspace("default"), asked, world.app.settings))[0]
    except ValidationError:
        return "INVALID_ARGUMENT"
    except MemexError as error:
        return error.code


def opened(world, name):
    told = ask(world, "open_nodes", names=[name])
    assert told["not_found"] == [], ascii(name)
    (node,) = told["entities"]
    return node, {triple(edge) for edge in told["relations"]}


def bad(name):
    """Whether the rule refuses it: 1 to 256 characters of one line, none hidden or for control, white space around it aside."""
    plain = name.strip()
    unfit = any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in plain)
    return not 1 <= len(plain) <= 256 or unfit or bool(find_hidden(f" {plain}"))


@OFTEN
@given(name=NAMES, facts=st.lists(st.text(min_size=1, max_size=60).filter(str.strip), max_size=3))
def test_a_name_and_facts_go_through_a_file_and_a_move(world, name, facts):
    told = ask(world, "create_entities", entities=[{"name": name, "entity_type": "x", "observations": facts}])
    if bad(name):
        assert told in ("INVALID_ARGUMENT", "NOT_FOUND"), ascii(name)
        return
    if told == "INVALID_ARGUMENT":  # stricter than the rule for what no link or property can say
        assert any(not c.isprintable() and c != " " for c in name.strip() + "".join(facts)), ascii((name, facts))
        return
    try:
        (made,) = told["results"]
        wanted = dict(enumerate((fact.replace("\r\n", "\n").replace("\r", "\n").strip() for fact in facts), 1))
        assert made["name"] == unicodedata.normalize("NFC", name.strip())
        ask(world, "create_entities", entities=[{"name": "Pointer", "entity_type": "x"}])
        edge = {"from_entity": "Pointer", "to_entity": name, "relation_type": "to"}
        assert ask(world, "create_relations", relations=[edge])["not_found"] == []
        back = {"from_entity": name, "to_entity": "Pointer", "relation_type": "back"}
        ask(world, "create_relations", relations=[back])
        edges = {("Pointer", "to", made["name"]), (made["name"], "back", "Pointer")}

        def holds(called, edges):
            world.run()
            for spelt in (called, called.upper() if key(called.upper()) == key(called) else called):
                node, seen = opened(world, spelt)
                assert node["name"] == called
                assert {one["ordinal"]: one["content"] for one in node["observations"]} == wanted
                assert seen == edges, ascii(called)

        holds(made["name"], edges)
        folder = world.vault / "Captures/default/Entities"
        (file,) = [one for one in folder.glob("*.md") if one.name != "Pointer.md"]
        assert len(file.name.encode()) <= 255
        named = "name" in graph_oracle.read(file).properties
        moved = file.rename(folder / "Moved by hand.md")
        pointer = folder / "Pointer.md"
        pointer.write_text(
            pointer.read_text("utf-8")
            .replace(f"[[{file.stem}]]", "[[Moved by hand]]")
            .replace(f"[[{file.stem}|", "[[Moved by hand|"),
            "utf-8",
        )
        called = made["name"] if named else "Moved by hand"
        holds(called, {tuple(called if part == made["name"] else part for part in edge) for edge in edges})
        assert ask(world, "create_entities", entities=[{"name": called, "entity_type": "x"}]) == "CONFLICT"
        told = ask(world, "delete_entities", entity_names=[called])
        assert (told["deleted"], moved.exists()) == ([called], False)
    finally:
        for file in (world.vault / "Captures/default").rglob("*.md"):
            file.unlink()
        world.run()


@OFTEN
@given(one=NAMES, other=NAMES)
def test_two_names_are_one_when_they_fold_alike(world, one, other):
    assume(not bad(one) and not bad(other))
    try:
        first = ask(world, "create_entities", entities=[{"name": one, "entity_type": "x"}])
        assume(first != "INVALID_ARGUMENT")
        variants = [unicodedata.normalize(form, one) for form in ("NFC", "NFD")] + [
            one.swapcase(),
            one.replace(" ", "  "),
            f" {one} ",
        ]
        for spelt in variants:
            if key(spelt) == key(one) and not bad(spelt) and len(spelt) <= 256:
                code = ask(world, "create_entities", entities=[{"name": spelt, "entity_type": "x"}])
                assert code == "CONFLICT", ascii((one, spelt))
        second = ask(world, "create_entities", entities=[{"name": other, "entity_type": "x"}])
        if key(one) == key(other):
            assert second == "CONFLICT"
        elif second != "INVALID_ARGUMENT":
            assert second != "CONFLICT", ascii((one, other))
            assert opened(world, one)[0]["name"] == unicodedata.normalize("NFC", one.strip())
            assert opened(world, other)[0]["name"] == unicodedata.normalize("NFC", other.strip())
    finally:
        for file in (world.vault / "Captures/default").rglob("*.md"):
            file.unlink()
        world.run()


@pytest.mark.parametrize("name", ["Taken", "taken", "TAKEN"])
def test_a_note_elsewhere_in_the_vault_keeps_its_name_and_the_node_too(world, name):
    ask(world, "create_entities", entities=[{"name": name, "entity_type": "x"}])
    try:
        (file,) = (world.vault / "Captures/default/Entities").glob("*.md")
        assert key(file.stem) != key("Taken")
        said = graph_oracle.read(file).properties
        assert (said["name"], said["aliases"]) == (name, [name])
        assert opened(world, "Taken")[0]["name"] == name
    finally:
        ask(world, "delete_entities", entity_names=[name])
