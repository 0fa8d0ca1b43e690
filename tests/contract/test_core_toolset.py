"""The toolset `core`: few tools in few tokens, the workspace that a key implies, and everything else still to be called."""

import pytest

from mcp_server.protocol.instructions import DECISIONS, server_instructions
from mcp_server.protocol.prompts import KINDS
from mcp_server.tools.families import CORE, FAMILIES, OPERATIONS
from tests.support.live_server import client, run, running
from tests.support.token_count import counted, seen_by_a_model

MODES = ("legacy", "2026-07-28")
NODE = {"entities": [{"name": "Heron", "entity_type": "project"}]}
KNOWN = {operation.safe_name: operation for operation in OPERATIONS}


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim") / "state") as served:
        yield served


def listed(rim, **options):
    async def work():
        async with client(rim, **options) as mcp:
            return (await mcp.list_tools()).tools

    return run(work())


def called(rim, tool, arguments, **options):
    async def work():
        async with client(rim, **options) as mcp:
            return await mcp.call_tool(tool, arguments)

    return run(work())


def code_of(result):
    return result.meta["dev.memex/error"]["code"] if result.is_error else ""


def test_the_list_is_short_enough_to_choose_from(rim):
    tools = listed(rim, path="/mcp/core")
    assert [tool.name for tool in tools] == list(CORE)
    assert len(tools) <= 12
    texts = [seen_by_a_model(tool) for tool in tools]
    assert sum(map(counted, texts)) <= 2_500
    assert sum(map(len, texts)) / 4 <= 2_500
    assert counted(server_instructions(list(CORE))) <= 300


@pytest.mark.parametrize(("way", "mode"), [*((way, mode) for way in ("http", "stdio") for mode in MODES)])
def test_it_is_the_same_on_every_transport(rim, way, mode):
    tools = [tool.name for tool in listed(rim, path="/mcp/core", way=way, mode=mode)]
    assert tools == list(CORE)


@pytest.mark.parametrize("way", ["http", "sse"])
def test_the_header_asks_for_it_elsewhere(rim, way):
    tools = listed(rim, key="work", way=way, X_MCP_Toolsets="core")
    assert [tool.name for tool in tools] == list(CORE)
    assert sum(counted(seen_by_a_model(tool)) for tool in tools) <= 2_500
    both = [tool.name for tool in listed(rim, key="work", way=way, X_MCP_Toolsets="core, memory")]
    assert set(both) == {*CORE, *(operation.safe_name for operation in FAMILIES["memory"])}


def test_the_headers_narrow_it(rim):
    names = [tool.name for tool in listed(rim, path="/mcp/core", X_MCP_Readonly="true")]
    assert names == [name for name in CORE if KNOWN[name].scope == "read"]
    names = [tool.name for tool in listed(rim, path="/mcp/core", X_MCP_Toolsets="graph")]
    assert names == [name for name in CORE if KNOWN[name].family == "graph"]


def test_its_schemas_hide_parameters_and_take_them(rim):
    tools = {tool.name: tool.input_schema for tool in listed(rim, path="/mcp/core")}
    for name, hidden in CORE.items():
        fields = KNOWN[name].given.model_fields
        assert set(tools[name]["properties"]) == set(fields) - set(hidden)
        assert set(hidden) <= set(fields)
        assert not any(fields[field].is_required() for field in hidden)
    space = rim.space()
    arguments = {"content": "in a namespace", "namespace": "alpha"}
    assert not called(rim, "capture_thought", arguments, path="/mcp/core", key=space.name).is_error
    found = called(
        rim, "semantic_search", {"query": "namespace", "namespace": "beta"}, path="/mcp/core", key=space.name
    )
    assert found.structured_content["results"] == []


@pytest.mark.parametrize("mode", MODES)
def test_a_key_that_is_bound_to_one_workspace_implies_it_for_the_graph(rim, mode):
    space = rim.space()

    async def work():
        async with client(rim, key=space.name, mode=mode, path="/mcp/core") as mcp:
            assert not (await mcp.call_tool("create_entities", NODE)).is_error
            facts = {"observations": [{"entity_name": "Heron", "contents": ["runs on sunlight"]}]}
            assert not (await mcp.call_tool("add_observations", facts)).is_error
            found = await mcp.call_tool("search_nodes", {"query": "sunlight"})
            stats = await mcp.call_tool("get_stats", {})  # not listed, and called all the same
            return found.structured_content["results"], stats.structured_content

    found, stats = run(work())
    assert [hit["name"] for hit in found] == ["Heron"]
    assert stats["node_count"] == 1
    for path in ("/mcp", "/mcp/graph"):
        assert (
            code_of(called(rim, "open_nodes", {"names": ["Heron"]}, key=space.name, mode=mode, path=path))
            == "NOT_FOUND"
        )
    header = {"X_MCP_Toolsets": "core"}
    assert not called(rim, "open_nodes", {"names": ["Heron"]}, key=space.name, mode=mode, **header).is_error


@pytest.mark.parametrize("key", ["two", "full", "gone"])
def test_no_other_key_implies_one(rim, key):
    assert code_of(called(rim, "search_nodes", {"query": "x"}, key=key, path="/mcp/core")) == "NOT_FOUND"


@pytest.mark.parametrize("name", ["secret", "default", "nowhere"])
def test_an_implied_workspace_leads_to_no_other(rim, name):
    for tool, arguments in (("create_entities", NODE), ("search_nodes", {"query": "x"}), ("list_recent", {})):
        result = called(rim, tool, arguments, key="work", path="/mcp/core", X_Memory_Workspace=name)
        assert code_of(result) == "NOT_FOUND"


def test_prompts_and_instructions_name_what_is_listed(rim):
    async def work():
        async with client(rim, key="work", path="/mcp/core") as mcp:
            given = {name: {"question": "x"} if name == "recall" else {} for name in KINDS}
            return [(await mcp.get_prompt(name, of)).messages[0].content.text for name, of in given.items()]

    steps = [line for text in run(work()) for line in text.splitlines() if line[:1].isdigit()]
    named = {name for line in steps for name in KNOWN if name in line.replace(",", " ").replace(".", " ").split()}
    assert {"semantic_search", "capture_thought", "search_nodes", "create_entities"} <= named <= set(CORE)


def test_the_table_of_decisions_names_tools_that_there_are():
    for _, answers in DECISIONS:
        assert all(answer.split()[0].rstrip(",") in KNOWN for answer in answers)
    for kind, listed_tools in {
        "all": list(KNOWN),
        "core": list(CORE),
        **{name: [operation.safe_name for operation in family] for name, family in FAMILIES.items()},
    }.items():
        rows = [row for row in server_instructions(listed_tools).splitlines() if row.startswith("- ")]
        assert len(rows) >= 3, kind
        assert all(
            row.split(": ")[1].split()[0].rstrip(",") in listed_tools for row in rows if not row.startswith("- memory_")
        )
    assert "one thing learned: capture_thought" in server_instructions(list(KNOWN))
    assert "kb_upload_start" in server_instructions(list(CORE))
