"""Public MCP clients of both protocol eras on a running daemon; `make clients` installs them and runs this file."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client

from mcp_server.tools.families import CORE, FAMILIES
from tests.support.daemon_process import ROOT, daemon

CLIENTS = ROOT / "tests/clients"
NODE = CLIENTS / "node_modules/.bin/node"
TOOLS = [operation.safe_name for family in FAMILIES.values() for operation in family]
ENDPOINTS = [("/mcp", TOOLS), ("/mcp/core", list(CORE))]
PROMPTS = ["context", "recall", "capture-session", "consolidate"]
LEGACY, MODERN = "2025-11-25", "2026-07-28"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not NODE.exists(), reason="the clients are not installed: make clients (needs npm)"),
]


@pytest.fixture(scope="module")
def memex(tmp_path_factory, bundled, models):
    with daemon(tmp_path_factory.mktemp("clients"), models) as one:
        one.write("Own.md", "a note of my own that no agent may see\n")
        one.serve()
        yield one


@pytest.fixture
def environ(memex):
    path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
    told = {"MEMEX_URL": memex.url, "MEMEX_KEY": memex.key, "MEMEX_BRIDGE": json.dumps(bridge(memex))}
    return memex.environ | told | {"PATH": path, "MCP_AUTO_OPEN_ENABLED": "false"}


@pytest.fixture(scope="module")
def connected(memex):
    """The key that a client gets from `memex connect`."""
    return memex.json("connect", "other")["key"]


def bridge(memex, *words):
    return [sys.executable, "-m", "syncd.cli", "mcp", "--vault", str(memex.vault), "--state", str(memex.state), *words]


def walked(environ, era, way):
    """What a walk with one of the TypeScript SDKs did, and that it went well."""
    done = subprocess.run(
        [NODE, "walk.mjs", era, way], cwd=CLIENTS, env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    id = told["captured"]["id"]
    assert told["server"] == "memex"
    assert told["found"][0] == id == told["recent"][0]
    assert told["same"] is True
    assert told["template"] == "note://{workspace}/{+path}"
    assert told["read"] == {"same": True, "kind": "text/markdown", "id": id}
    assert told["prompts"] == PROMPTS
    assert told["recalled"] is True
    assert told["spaces"] == ["default"]
    assert [path.split()[0] for path in told["paths"]] == ["Walked"]
    assert told["tags"] == []
    assert told["missing"] == -32602
    assert told["updated"] is True
    assert told["deleted"] | {"title": ""} == {"id": id, "deleted": True, "title": "", "suspicious": []}
    assert told["error"] == {"isError": True, "code": "NOT_FOUND", "text": "NOT_FOUND"}
    assert told["invalid"] == {"isError": True, "code": "INVALID_ARGUMENT"}
    return told | {"stderr": done.stderr}


@pytest.mark.parametrize(
    ("era", "way", "protocol"),
    [
        ("legacy", "http", LEGACY),
        ("legacy", "sse", ""),
        ("legacy", "stdio", ""),
        ("modern", "http", MODERN),
        ("modern", "stdio", MODERN),
    ],
)
def test_the_typescript_sdk_calls_every_tool(environ, era, way, protocol):
    told = walked(environ, era, way)
    assert told["tools"] == TOOLS
    assert told["protocol"] == protocol or not protocol
    assert told["stderr"] == ""


@pytest.mark.parametrize(
    ("era", "way"), [("legacy", "http"), ("legacy", "stdio"), ("modern", "http"), ("modern", "stdio")]
)
def test_the_typescript_sdk_sees_the_core_alone(memex, environ, connected, era, way):
    words = json.dumps(bridge(memex, "--toolset", "core"))
    core = {"MEMEX_ENDPOINT": "/mcp/core", "MEMEX_KEY": connected, "MEMEX_BRIDGE": words}
    assert walked(environ | core, era, way)["tools"] == list(CORE)


@pytest.mark.parametrize(("endpoint", "tools"), ENDPOINTS)
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_mcp_remote_carries_everything(memex, environ, connected, era, endpoint, tools):
    words = [
        str(NODE),
        str(NODE.with_name("mcp-remote")),
        memex.url + endpoint,
        "--header",
        f"Authorization: Bearer {connected}",
    ]
    told = walked(environ | {"MEMEX_BRIDGE": json.dumps(words)}, era, "stdio")
    assert told["tools"] == tools


@pytest.mark.parametrize(("endpoint", "tools"), ENDPOINTS)
@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_the_python_sdk_keeps_a_note_and_a_node(memex, connected, mode, endpoint, tools):
    async def work():
        headers = {"Authorization": f"Bearer {connected}", "X-Memory-Workspace": "default"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            mcp.Client(streamable_http_client(memex.url + endpoint, http_client=http), mode=mode) as client,
        ):
            assert [tool.name for tool in (await client.list_tools()).tools] == tools
            await keep_a_note_and_a_node(client.call_tool, f"python sdk {mode} {endpoint}")

    asyncio.run(work())


@pytest.mark.parametrize(("endpoint", "tools"), ENDPOINTS)
def test_fastmcp_keeps_a_note_and_a_node(memex, connected, endpoint, tools):
    fastmcp = pytest.importorskip("fastmcp", reason="fastmcp is not installed: make clients")
    from fastmcp.client.transports import StreamableHttpTransport

    async def work():
        headers = {"Authorization": f"Bearer {connected}", "X-Memory-Workspace": "default"}
        async with fastmcp.Client(StreamableHttpTransport(memex.url + endpoint, headers=headers)) as client:
            assert [tool.name for tool in await client.list_tools()] == tools
            await keep_a_note_and_a_node(client.call_tool, f"fastmcp {endpoint}")

    asyncio.run(work())


async def keep_a_note_and_a_node(call, text):
    """Capture, find, change and delete a note, and make a node and find it, with names as other servers have them."""
    made = (await call("capture_thought", {"text": text})).structured_content
    found = (await call("semantic_search", {"q": text, "limit": 1})).structured_content["results"]
    assert [hit["document_id"] for hit in found] == [made["id"]]
    assert found[0]["path"] == made["path"]
    changed = (await call("kb_update_note", {"id": made["id"], "text": f"{text}, changed"})).structured_content
    assert changed["changed"] is True
    assert (await call("get_thought", {"id": made["id"]})).structured_content["content"] == f"{text}, changed"
    node = {"name": f"Node of {text}", "entityType": "test", "observations": [text]}
    await call("create_entities", {"entities": [node]})
    opened = (await call("open_nodes", {"names": [node["name"]]})).structured_content
    assert [entity["name"] for entity in opened["entities"]] == [node["name"]]
    assert (await call("delete_thought", {"id": made["id"]})).structured_content["deleted"] is True


class Inspector:
    """The inspector's command line on one way in."""

    def __init__(self, memex, environ, way):
        self.environ = environ
        transport, _, era = way.partition(" ")
        headers = ["--header", f"Authorization: Bearer {memex.key}", "X-Memory-Workspace: default"]
        ways = {
            "http": ["--transport", "http", "--server-url", f"{memex.url}/mcp", *headers],
            "core": ["--transport", "http", "--server-url", f"{memex.url}/mcp/core", *headers],
            "sse": ["--transport", "sse", "--server-url", f"{memex.url}/sse", *headers],
            "stdio": json.loads(environ["MEMEX_BRIDGE"]),
        }
        self.words = ways[transport]
        self.era = ["--protocol-era", era] if era else []

    def run(self, *words):
        """The exit code, and what it printed."""
        # Flags of ours may follow a command line of the bridge's only after its own end.
        command = [NODE, NODE.with_name("mcp-inspector"), "--cli", *self.era, *words, *self._target()]
        done = subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def _target(self):
        return self.words if self.words[0].startswith("--") else ["--", *self.words]

    def json(self, method, *words):
        code, out, err = self.run("--method", method, *words)
        assert code == 0, err
        return json.loads(out)

    def call(self, tool, **arguments):
        pairs = [f"{name}={value}" for name, value in arguments.items()]
        words = ["--method", "tools/call", "--tool-name", tool, *(["--tool-arg", *pairs] if pairs else [])]
        code, out, err = self.run(*words)
        return code, (json.loads(out) if out.strip().startswith("{") else {}), err


@pytest.mark.parametrize(
    "way", ["http legacy", "http modern", "core legacy", "core modern", "sse", "stdio legacy", "stdio modern"]
)
def test_the_inspector_calls_every_tool(memex, environ, way):
    inspector = Inspector(memex, environ, way)
    code, out, err = inspector.run("--method", "tools/list", "--strict")
    assert code == 0, err
    assert [tool["name"] for tool in json.loads(out)["tools"]] == (list(CORE) if way.startswith("core") else TOOLS)
    code, made, err = inspector.call("capture_thought", content=f"inspected over {way}", source="inspector")
    assert code == 0, err
    id = made["structuredContent"]["id"]
    _, found, _ = inspector.call("semantic_search", query=f"inspected over {way}")
    assert found["structuredContent"]["results"][0]["document_id"] == id
    code, kept, err = inspector.call("get_thought", id=id)
    assert code == 0, (kept, err)
    assert kept["structuredContent"]["content"] == f"inspected over {way}"
    _, recent, _ = inspector.call("list_recent", limit=3)
    assert recent["structuredContent"]["results"][0]["id"] == id
    (resource,) = (one for one in inspector.json("resources/list")["resources"] if way in one["title"])
    (read,) = inspector.json("resources/read", "--uri", resource["uri"])["contents"]
    assert (read["text"], read["mimeType"]) == (f"inspected over {way}", "text/markdown")
    (template,) = inspector.json("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "note://{workspace}/{+path}"
    assert [prompt["name"] for prompt in inspector.json("prompts/list")["prompts"]] == PROMPTS
    asked = ["--prompt-name", "recall", "--prompt-args", f"question=inspected over {way}"]
    assert id in inspector.json("prompts/get", *asked)["messages"][0]["content"]["text"]
    code, gone, _ = inspector.call("delete_thought", id=id)
    assert (code, gone["structuredContent"]["deleted"]) == (0, True)
    code, again, _ = inspector.call("get_thought", id=id)
    assert code == 5  # the inspector's code for a tool's own error
    assert again["isError"] is True


def test_the_inspector_is_told_that_a_key_is_missing(memex, environ):
    inspector = Inspector(memex, environ, "http modern")
    inspector.words = ["--transport", "http", "--server-url", f"{memex.url}/mcp"]
    assert inspector.run("--method", "tools/list")[0] == 3


def test_a_key_of_another_workspace_works_over_stdio(memex, environ):
    """The bridge names no workspace of its own accord, so that of the key is taken."""
    memex.json("workspace", "create", "work")
    secret = memex.json("key", "create", "--name", "worker", "--workspace", "work")["key"]
    done = subprocess.run(
        [NODE, "walk.mjs", "modern", "stdio"],
        cwd=CLIENTS,
        env=environ | {"MEMEX_KEY": secret},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(Path(memex.vault, "Captures/default").glob("Walked*"))
