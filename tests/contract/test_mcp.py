"""MCP over real transports with a client of the ecosystem: both protocol eras, HTTP, SSE and stdio."""

import asyncio
import json
import threading

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from mcp_server.tools.families import FAMILIES
from syncd.settings.settings import McpSettings
from tests.support.live_server import CRASH, SLOW, client, run, running
from tests.support.world import until

MODES = ("legacy", "2026-07-28")
TOOLS = ["capture_thought", "semantic_search", "get_thought", "delete_thought", "list_recent", "propose_change"]
WAYS = [*((way, mode) for way in ("http", "sse", "stdio") for mode in MODES)]


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim") / "state") as served:
        yield served


def thoughts(listed):
    """The names of the tools of this family; other families have tests of their own."""
    return [tool.name for tool in listed.tools if tool.meta["dev.memex/family"] == "thoughts"]


def failed(result):
    """The error of a result: in text, in `_meta`, and nowhere else."""
    assert result.is_error
    assert result.structured_content is None
    (block,) = result.content
    shown = json.loads(block.text)["error"]
    assert result.meta["dev.memex/error"] == shown
    return shown


@pytest.mark.parametrize(("way", "mode"), WAYS)
def test_every_tool_works_on_every_transport_and_era(rim, way, mode):
    space = rim.space()

    async def work():
        async with client(rim, key=space.name, way=way, mode=mode) as mcp:
            assert thoughts(await mcp.list_tools()) == TOOLS
            text = f"over {way} in {mode}: 日本語 \u2028 line"
            made = await mcp.call_tool("capture_thought", {"content": text, "metadata": {"n": 1}})
            assert made.structured_content["created"] is True
            note = made.structured_content["id"]
            found = await mcp.call_tool("semantic_search", {"query": f"over {way} in {mode}", "top_k": 1})
            assert found.structured_content["results"][0]["document_id"] == note
            assert json.loads(found.content[0].text) == found.structured_content
            assert len(found.content) == 1
            assert ": " not in found.content[0].text.split("日本語")[0].replace(f"{mode}: ", "")
            whole = await mcp.call_tool("get_thought", {"id": note})
            assert whole.structured_content["content"] == text
            recent = await mcp.call_tool("list_recent", {})
            assert recent.structured_content["results"][0]["id"] == note
            gone = await mcp.call_tool("delete_thought", {"id": note})
            assert gone.structured_content["deleted"] is True
            assert failed(await mcp.call_tool("get_thought", {"id": note}))["code"] == "NOT_FOUND"

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_a_family_has_an_endpoint_of_its_own(rim, mode):
    async def work():
        async with client(rim, key=rim.space().name, mode=mode, path="/mcp/thoughts") as mcp:
            assert [tool.name for tool in (await mcp.list_tools()).tools] == TOOLS
            assert (await mcp.call_tool("list_recent", {})).structured_content["results"] == []

    run(work())


def test_every_tool_is_described_bounded_and_annotated(rim):
    async def work():
        async with client(rim) as mcp:
            return (await mcp.list_tools()).tools

    tools = {tool.name: tool for tool in run(work())}
    known = {operation.safe_name: operation for family in FAMILIES.values() for operation in family}
    assert list(tools) == list(known)
    visible = dict.fromkeys(FAMILIES, 0.0)
    for name, tool in tools.items():
        operation = known[name]
        assert tool.description
        assert tool.title
        assert tool.output_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations.open_world_hint is False
        assert tool.annotations.read_only_hint is (operation.scope == "read")
        assert tool.annotations.destructive_hint is operation.destructive
        assert not (operation.destructive and operation.scope == "read")
        assert "$defs" not in json.dumps([tool.input_schema, tool.output_schema])
        seen = {"name": name, "description": tool.description, "inputSchema": tool.input_schema}
        visible[operation.family] += len(json.dumps(seen, separators=(",", ":"), ensure_ascii=False)) / 4
    assert max(visible.values()) <= 3_500, visible
    assert sum(visible.values()) <= 9_500, visible
    assert [known[name].destructive for name in TOOLS] == [False, False, False, True, False, False]
    search = tools["semantic_search"].description
    assert "in other words" in search
    assert "rank" in search


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("tool", "arguments", "code", "word"),
    [
        ("capture_thought", {}, "INVALID_ARGUMENT", "content"),
        ("capture_thought", {"content": "x", "colour": 1}, "INVALID_ARGUMENT", "colour"),
        ("capture_thought", {"content": "x", "metadata": {"promote": True}}, "INVALID_ARGUMENT", "promote"),
        ("semantic_search", {"query": "x", "top_k": 99}, "INVALID_ARGUMENT", "top_k"),
        ("semantic_search", {"query": "x", "workspace": "secret"}, "INVALID_ARGUMENT", "workspace"),
        ("get_thought", {"id": ""}, "INVALID_ARGUMENT", "id"),
        ("get_thought", {"id": "nope"}, "NOT_FOUND", "nope"),
        ("list_recent", {"limit": 0}, "INVALID_ARGUMENT", "limit"),
        ("no_such_tool", {}, "INVALID_ARGUMENT", "no_such_tool"),
        ("capture_thougt", {}, "INVALID_ARGUMENT", 'Did you mean "capture_thought"? To list all tools: tools/list'),
    ],
    ids=str,
)
def test_an_error_is_a_result_the_model_can_read(rim, mode, tool, arguments, code, word):
    async def work():
        async with client(rim, mode=mode) as mcp:
            return await mcp.call_tool(tool, arguments)

    shown = failed(run(work()))
    assert shown["code"] == code
    assert word in shown["message"]


def test_arguments_are_taken_as_they_are(rim):
    """The text "null" or "[1]" in a text field is text."""

    async def work():
        async with client(rim, X_Memory_Workspace="default") as mcp:
            made = await mcp.call_tool(
                "capture_thought", {"content": "[1]", "source": "null", "metadata": '{"a": [1]}'}
            )
            whole = await mcp.call_tool("get_thought", {"id": made.structured_content["id"]})
            await mcp.call_tool("delete_thought", {"id": made.structured_content["id"]})
            return whole.structured_content

    whole = run(work())
    assert (whole["content"], whole["source"], whole["metadata"]) == ("[1]", "null", {"a": [1]})


def test_the_list_can_be_narrowed_but_narrowing_is_no_right(rim):
    async def names(**headers):
        async with client(rim, **headers) as mcp:
            return [tool.name for tool in (await mcp.list_tools()).tools]

    assert run(names(X_MCP_Toolsets="nothing, nor this")) == []
    assert run(names(X_MCP_Toolsets="nothing, Thoughts")) == TOOLS
    reading = run(names(X_MCP_Toolsets="thoughts", X_MCP_Readonly="true"))
    assert reading == ["semantic_search", "get_thought", "list_recent"]

    async def hidden():
        async with client(rim, X_MCP_Readonly="true") as mcp:
            made = await mcp.call_tool("capture_thought", {"content": "hidden, not forbidden"})
            await mcp.call_tool("delete_thought", {"id": made.structured_content["id"]})
            return made

    assert not run(hidden()).is_error


def test_a_misspelt_tool_is_answered_with_the_nearest_one_that_the_caller_sees(rim):
    async def call(**headers):
        async with client(rim, **headers) as mcp:
            return failed(await mcp.call_tool("capture_thougt", {}))["message"]

    assert 'Did you mean "capture_thought"?' in run(call())
    assert "capture_thought" not in run(call(X_MCP_Readonly="true"))
    assert "capture_thought" not in run(call(X_MCP_Toolsets="kb"))

    async def call_dotted():
        async with client(rim, X_MCP_Tool_Names="dotted") as mcp:
            return failed(await mcp.call_tool("memory.serch", {}))["message"]

    assert 'Did you mean "memory.search"?' in run(call_dotted())


def test_the_setting_narrows_too(tmp_path):
    with running(tmp_path / "state", mcp=McpSettings(toolsets=("kb",), tool_names="dotted")) as rim:

        async def names():
            async with client(rim) as mcp:
                return (await mcp.list_tools()).tools

        assert [tool.name for tool in run(names())] == [operation.name for operation in FAMILIES["kb"]]


@pytest.mark.parametrize("mode", MODES)
def test_a_key_without_the_scope_is_told_so(rim, mode):
    async def call(key, tool, arguments):
        async with client(rim, key=key, mode=mode) as mcp:
            return await mcp.call_tool(tool, arguments)

    for key, tool, arguments in (
        ("reader", "capture_thought", {"content": "x"}),
        ("reader", "delete_thought", {"id": "x"}),
        ("writer", "semantic_search", {"query": "x"}),
        ("writer", "get_thought", {"id": "x"}),
        ("writer", "list_recent", {}),
    ):
        assert failed(run(call(key, tool, arguments)))["code"] == "PERMISSION_DENIED"


@pytest.mark.parametrize(("way", "mode"), [one for one in WAYS if one[0] != "sse"])  # where no connection begins
def test_missing_and_forbidden_look_the_same(rim, way, mode):
    secret = rim.agent_access.workspace("secret").capture(f"nobody else's {way} {mode}").record.id

    async def answers(**headers):
        async with client(rim, key="two", way=way, mode=mode, **headers) as mcp:
            told = []
            for tool, arguments in (
                ("capture_thought", {"content": "x"}),
                ("semantic_search", {"query": "nobody"}),
                ("get_thought", {"id": secret}),
                ("delete_thought", {"id": secret}),
                ("list_recent", {}),
            ):
                told.append(failed(await mcp.call_tool(tool, arguments)))
            return told

    forbidden, missing = run(answers(X_Memory_Workspace="secret")), run(answers(X_Memory_Workspace="nowhere"))
    assert forbidden == missing
    assert {one["code"] for one in forbidden} == {"NOT_FOUND"}


def test_the_workspace_may_change_from_request_to_request_in_one_session(rim):
    """Each POST's own header counts, also in a long-lived session."""
    in_work = rim.agent_access.workspace("work").capture("only in work, this one")

    async def work():
        async with (
            httpx2.AsyncClient(headers=rim.headers("two"), timeout=30) as http,
            Client(streamable_http_client(rim.url + "/mcp", http_client=http), mode="legacy") as mcp,
        ):
            seen = []
            for name in ("work", "default", "work"):
                http.headers["X-Memory-Workspace"] = name
                result = await mcp.call_tool("get_thought", {"id": in_work.record.id})
                seen.append(result.is_error)
            return seen

    assert run(work()) == [False, True, False]
    rim.agent_access.workspace("work").delete(in_work.record.id)


def open_session(rim):
    """The headers of a session of the older protocol."""
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    accept = {"accept": "application/json, text/event-stream"}
    opened = rim.rest("POST", "/mcp", json=hello, headers=accept)
    return {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"} | accept


@pytest.mark.parametrize("again", [7, "7"])
def test_a_second_request_with_an_id_that_is_in_use_is_refused_and_the_first_is_answered(rim, again):
    session, other = open_session(rim), open_session(rim)
    call = {"name": "semantic_search", "arguments": {"query": SLOW}}
    answers = []

    def first():
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}
        answers.append(rim.rest("POST", "/mcp", json=message, headers=session))

    with rim.encoder.held():
        caller = threading.Thread(target=first)
        caller.start()
        assert rim.encoder.waiting.acquire(timeout=30)
        ping = {"jsonrpc": "2.0", "id": again, "method": "ping"}
        refused = rim.rest("POST", "/mcp", json=ping, headers=session)
        assert refused.status_code == 400
        told = refused.json()
        assert (told["id"], told["error"]["code"]) == (again, -32600)
        assert "its own id" in told["error"]["message"]
        assert rim.rest("POST", "/mcp", json=ping, headers=other).status_code == 200
        assert rim.rest("POST", "/mcp", json=ping | {"id": 8}, headers=session).status_code == 200
    caller.join(30)
    assert answers[0].status_code == 200
    assert '"isError":false' in answers[0].text.replace(" ", "")
    assert rim.rest("POST", "/mcp", json=ping, headers=session).status_code == 200


def test_a_session_belongs_to_the_key_that_opened_it(rim):
    session = open_session(rim)
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert rim.rest("POST", "/mcp", json=ping, headers=session).status_code == 200
    stolen = rim.rest("POST", "/mcp", key="work", json=ping, headers=session)
    unknown = rim.rest("POST", "/mcp", key="work", json=ping, headers=session | {"mcp-session-id": "0" * 32})
    assert stolen.status_code == unknown.status_code == 404
    assert stolen.content == unknown.content


@pytest.mark.parametrize("mode", MODES)
def test_a_slow_call_ends_with_a_retryable_error(rim, mode):
    (operation,) = (one for one in FAMILIES["thoughts"] if one.name == "semantic_search")
    before = operation.seconds
    object.__setattr__(operation, "seconds", 0.3)
    try:

        async def work():
            async with client(rim, mode=mode, X_Memory_Workspace="work") as mcp:
                return await mcp.call_tool("semantic_search", {"query": f"where is the {SLOW} now"})

        with rim.encoder.held():
            shown = failed(run(work()))
    finally:
        object.__setattr__(operation, "seconds", before)
    assert (shown["code"], shown["retryable"]) == ("UNAVAILABLE", True)


def test_a_write_whose_caller_leaves_is_completed(rim):
    space = rim.space()

    async def work():
        async with client(rim, key=space.name, mode="2026-07-28") as mcp:
            call = asyncio.create_task(mcp.call_tool("capture_thought", {"content": f"the caller of {SLOW} left"}))
            await asyncio.to_thread(rim.encoder.waiting.acquire, timeout=20)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    with rim.encoder.held():
        run(work())
    until(lambda: [record.title for record in space.tools.recent()] == [f"the caller of {SLOW} left"])


@pytest.mark.parametrize("mode", MODES)
def test_a_crash_tells_nothing(rim, mode):
    space = rim.space()

    async def work():
        async with client(rim, key=space.name, mode=mode) as mcp:
            return [
                await mcp.call_tool("semantic_search", {"query": f"where is the {CRASH} now"}),
                await mcp.call_tool("capture_thought", {"content": f"this is the {CRASH}"}),
            ]

    for result in run(work()):
        assert failed(result)["code"] == "UNAVAILABLE"
        assert "secret" not in str(result)
        assert "home" not in str(result)
    assert list(space.folder.iterdir()) == []


@pytest.mark.slow
def test_nine_clients_on_all_ways_lose_and_double_nothing(rim):
    async def one(number):
        way, mode = (("http", "legacy"), ("http", "2026-07-28"), ("sse", "legacy"))[number % 3]
        async with client(rim, way=way, mode=mode, X_Memory_Workspace="default") as mcp:
            ids = []
            for turn in range(3):
                made = await mcp.call_tool("capture_thought", {"content": f"client{number} turn{turn}"})
                ids.append(made.structured_content["id"])
                found = await mcp.call_tool("semantic_search", {"query": f"client{number} turn{turn}", "top_k": 1})
                assert found.structured_content["results"][0]["document_id"] == ids[-1]
            return ids

    async def work():
        return await asyncio.gather(*(one(number) for number in range(9)))

    ids = [note for made in run(work()) for note in made]
    assert len(set(ids)) == 27


@pytest.mark.parametrize("key", ["bad", "expired", "revoked", "nonsense", "rest-only"])
def test_a_bad_key_opens_no_transport(rim, key):
    for mode in MODES:
        with pytest.raises(BaseException) as caught:

            async def work(mode=mode):
                async with client(rim, key=key, mode=mode) as mcp:
                    await mcp.list_tools()

            run(work())
        assert not isinstance(caught.value, asyncio.TimeoutError)
    assert MCPError
